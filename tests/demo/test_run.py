"""The demo on a project of one's own: the real hub and rpc, a worker that plays what stands in the block that it was sent."""

import io
import os
import pty
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from offload.cli.exits import Exit
from offload.demo import keys, table
from offload.demo.run import Demo, Stage, say, told
from offload.domain.errors import ApplyRefused
from offload.hub import run as hub_run
from offload.wire.results import TaskResult
from offload.wire.views import TaskStatus

NAMES = ("one", "two", "three", "four", "five")


def function(name, step):
    return f'def {name}(x):\n    """{name}\n    {step}\n    """\n    return x\n\n\n'


@pytest.fixture(autouse=True)
def _hub(terminal):
    """The hub of these tests is the one that the demo finds, whichever test comes first; it would start the person's otherwise."""
    assert terminal.run("list-tasks").exit_code == Exit.OK


@pytest.fixture
def project(tmp_path):
    """Five blocks, each with a step that writes its tests; the project's own test run ends with the code in the file `code`."""
    folder = tmp_path / "project"
    (folder / ".venv/bin").mkdir(parents=True)
    python = folder / ".venv/bin/python"
    python.write_text('#!/bin/sh\necho "the tests ran"\nexit $(cat code)\n')
    python.chmod(0o755)
    (folder / "code").write_text("0")
    steps = {name: f"::write tests/test_{name}.py pass" for name in NAMES}
    write(folder, steps)
    return folder


def write(folder, steps):
    (folder / "code.py").write_text("".join(function(name, step) for name, step in steps.items()))


def demo(terminal, project, *words, model="fake/worker"):
    return terminal.run("demo", "--path", project, "--model", model, *words)


def test_five_results_are_applied_and_tested(terminal, project, plain):
    result = demo(terminal, project, "--yes")
    shown = plain(result.stdout)
    assert result.exit_code == Exit.OK, shown
    assert shown.startswith("Model: fake/worker. Everything is real")
    assert "Without tests: one, two, three, four, five." in shown
    assert "the tests ran 5 of 5 results applied; the project's tests are green." in shown
    assert sorted(path.name for path in (project / "tests").iterdir()) == sorted(f"test_{name}.py" for name in NAMES)
    assert hub_run.status(terminal.environ) is not None, "the person's own hub goes on"


def test_one_result_is_sent_back_once(terminal, project, plain):
    shown = plain(demo(terminal, project, "--yes").stdout)
    assert shown.count("Sent back") == 1
    tasks = terminal.json("show-tasks", "--workspace", project)["tasks"]
    turns = {task["title"]: len(task["turns"]) for task in tasks if task["recipe"] == "tests"}
    assert sorted(turns.values()) == [1, 1, 1, 1, 2]


def test_each_task_and_each_change_of_it_is_a_line_without_a_terminal(terminal, project):
    lines = demo(terminal, project, "--yes").stdout.splitlines()
    assert {f"{name}: ready: 1 file changed" for name in NAMES} <= set(lines)


def test_without_consent_nothing_is_applied(terminal, project, plain):
    result = demo(terminal, project)
    assert result.exit_code == Exit.NOT_DONE
    told = "Nothing was applied, because nobody can be asked here; `offload demo --yes` applies without asking. 0 of 5"
    assert told in plain(result.stdout)
    assert not (project / "tests").exists()


def test_tests_that_fail_make_the_demo_fail(terminal, project, plain):
    (project / "code").write_text("1")
    result = demo(terminal, project, "--yes")
    assert result.exit_code == Exit.NOT_DONE
    assert "5 of 5 results applied; the project's tests are not green." in plain(result.stdout)


def test_tests_that_cannot_be_run_make_the_demo_fail(terminal, project, plain):
    (project / ".venv/bin/python").write_text("#!/nowhere\n")
    (project / "package.json").write_text("{}")
    result = terminal.run("demo", "--path", project, "--model", "fake/worker", "--yes", env={"PATH": str(project)})
    assert result.exit_code == Exit.NOT_DONE
    assert "They could not be run:" in plain(result.stdout)


def test_a_task_that_fails_or_changes_nothing_is_told_and_the_others_are_applied(terminal, project, plain):
    steps = {"one": "::fail no luck", "two": "::text thought about it", "three": "::write tests/test_three.py pass"}
    write(project, steps)
    result = demo(terminal, project, "--yes")
    shown = plain(result.stdout)
    assert result.exit_code == Exit.NOT_DONE
    assert "one: no luck (" in shown
    assert "two: " in shown
    assert "1 of 3 results applied" in shown


def test_a_result_that_conflicts_is_left_out_and_sent_back(terminal, project, plain):
    """This worker does not resolve the conflict, so that its result stays out."""
    write(project, {"one": "::write tests/test_same.py a", "two": "::write tests/test_same.py b"})
    result = demo(terminal, project, "--yes")
    shown = plain(result.stdout)
    assert result.exit_code == Exit.NOT_DONE
    assert "overlap: one and two both change tests/test_same.py" in shown
    left_out = re.search(r"left out: (one|two), which conflicts with (one|two) in tests/test_same\.py", shown)
    assert left_out[1] != left_out[2]
    assert f"Sent back {left_out[1]}, with its conflicts marked in the files." in shown
    assert "1 of 2 results applied" in shown
    assert (project / "tests/test_same.py").read_text() == {"one": "a", "two": "b"}[left_out[2]]


class Refusing:
    """A hub that lets nothing be applied, as one does when a file was changed at the last moment."""

    def call(self, method, params):
        raise ApplyRefused("Nothing was written. a.py: was changed by you")


MADE = {
    "task_id": "all",
    "turn_id": "turn_1",
    "state": "completed",
    "phase": "ready",
    "text": "",
    "text_offset": 0,
    "next_text_offset": None,
    "changes": None,
    "ran": None,
    "usage": dict.fromkeys(("input_tokens", "output_tokens", "reasoning_tokens"), 0)
    | dict.fromkeys(("cache_read_tokens", "cache_write_tokens", "total_tokens"), 0)
    | {"cost": None},
    "needs_review": "",
    "failure": None,
    "next_step": "",
}
FOUND = {"task_ids": ["a", "b"], "overlaps": [], "left_out": [], "before": False, "probes": 3}


def made(**fields):
    return TaskResult.model_validate({**MADE, **fields})


def test_a_result_that_cannot_be_applied_is_told(capsys):
    console = Console(highlight=False, markup=False)
    assert Demo(console, Refusing(), None, yes=True)._apply(made()) == 0
    one = made(integration={**FOUND, "order": ["a"], "culprits": []})
    assert Demo(console, Refusing(), None, yes=True)._apply(one) == 0
    assert capsys.readouterr().out == "Not applied. Nothing was written. a.py: was changed by you\n"


class Conflicting:
    """A hub in which the two results conflict however often they are sent back."""

    def __init__(self):
        self.sent_back = 0

    def call(self, method, params):
        if method == "continue_task":
            self.sent_back += 1
        if method == "get_task_result" and params["task_id"] == "all":
            conflict = {"path": "x.py", "reason": "both changed it"}
            left_out = [{"task_id": "b", "with_tasks": ["a"], "conflicts": [conflict]}]
            integration = {**FOUND, "order": ["a"], "left_out": left_out, "culprits": []}
            return made(integration=integration).model_dump(mode="json")
        if method == "get_task_result":
            return made(task_id="b").model_dump(mode="json")
        if method != "wait_for_tasks":
            return {"task_id": "all"}
        status = {"task_id": params["task_ids"][0], "title": "x", "state": "completed", "phase": "ready"}
        status |= {"revision": 1, "turn_id": "u", "elapsed_s": 1, "total_tokens": 1}
        return {"done": True, "tasks": [status], "after_revision": {}}


def test_what_conflicts_again_and_again_is_sent_back_twice(capsys):
    hub = Conflicting()
    demo = Demo(Console(highlight=False, markup=False), hub, Stage(Path("/"), "m", {}), yes=True)
    left = demo._integrate({"a": "one", "b": "two"}, ["a", "b"])
    assert [each.task_id for each in left.integration.left_out] == ["b"]
    assert hub.sent_back == 2
    assert capsys.readouterr().out.count("Sent back two, with its conflicts marked in the files.") == 2


def test_what_an_integration_found_is_told_by_the_blocks_names():
    left_out = [{"task_id": "b", "with_tasks": [], "conflicts": [{"path": "x.py", "reason": "both changed it"}]}]
    check = {"name": "tests", "passed": False, "seconds": 1, "told": "tests: 1 failed"}
    found = {**FOUND, "order": ["a"], "left_out": left_out, "culprits": ["a"]}
    assert list(told(made(integration=found, checks=[check]), {"a": "one", "b": "two"})) == [
        "merged, in this order: one",
        "left out: two, which conflicts with your own files in x.py",
        "tests: 1 failed",
        "the checks fail with one",
    ]
    failure = {"code": "nothing_merged", "message": "nothing went together"}
    assert list(told(made(state="failed", phase="failed", failure=failure), {})) == ["failed: nothing went together"]
    assert list(told(made(), {})) == ["failed: there is no result"]


def test_when_no_task_succeeds_nothing_is_applied_or_run(terminal, project, plain):
    write(project, {"one": "::fail no luck"})
    result = demo(terminal, project, "--yes")
    assert result.exit_code == Exit.NOT_DONE
    assert "0 of 1 results applied; the tests were not run." in plain(result.stdout)


def test_a_project_without_untested_blocks_is_told(terminal, project):
    (project / "code.py").write_text("x = 1\n")
    result = demo(terminal, project, "--yes")
    assert result.exit_code == Exit.REFUSED
    assert "there is nothing to show" in result.stderr


def test_a_project_of_ones_own_needs_a_real_model(terminal, project):
    result = demo(terminal, project, model="")
    assert result.exit_code == Exit.REFUSED
    assert "give --model PROVIDER/MODEL" in result.stderr


def test_a_model_that_is_not_there_is_told(terminal, project, plain):
    result = demo(terminal, project, "--yes", model="fake/none")
    assert result.exit_code == Exit.NOT_DONE
    assert "fake has no model 'fake/none'" in plain(result.stdout)


def test_the_sample_can_be_kept_and_is_removed_otherwise(terminal, plain):
    """With a real model the sample is worked on by the person's own hub."""
    kept = plain(terminal.run("demo", "--model", "fake/worker", "--keep").stdout)
    folder = Path(kept.rpartition("Kept: ")[2])
    assert (folder / "shop/shop/money.py").is_file()
    subprocess.run(["rm", "-r", folder], check=True)
    gone = plain(terminal.run("demo", "--model", "fake/worker").stdout)
    assert "Project: " in gone
    assert not Path(gone.split("Project: ")[1].split(". Without")[0]).exists()


@pytest.mark.parametrize(
    ("answer", "told", "code"),
    [
        ("y\n", "5 of 5 results applied", Exit.OK),
        ("n\n", "Nothing was applied, as you wish.\r\n\r\n0 of 5 results applied", Exit.NOT_DONE),
    ],
)
def test_a_person_is_asked_before_anything_is_applied(terminal, project, answer, told, code):
    """In a real terminal, which also draws the live table. What was typed before the question does not answer it."""
    outer, inner = pty.openpty()
    os.write(outer, b"y\n" if answer == "n\n" else b"n\n")
    program = f"""
import sys
from pathlib import Path
from offload.demo.run import demo
sys.exit(demo(Path({str(project)!r}), "fake/worker", yes=False, keep=False, pace_s=0))
"""
    environ = {**terminal.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "40"}
    process = subprocess.Popen([sys.executable, "-c", program], env=environ, stdin=inner, stdout=inner, stderr=inner)
    os.close(inner)
    drawn = ""
    try:
        while True:
            try:
                drawn += os.read(outer, 65536).decode(errors="replace")
            except OSError:  # Linux says so when the other end is closed
                break
            if "Apply 5 results" in drawn and answer:
                os.write(outer, answer.encode())
                answer = ""
        ended = process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
        os.close(outer)
    assert "elapsed" in drawn
    assert told in drawn
    assert ended == code


def test_keys_that_are_typed_while_something_is_shown_are_neither_drawn_nor_kept(monkeypatch):
    outer, inner = pty.openpty()
    with os.fdopen(inner, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with keys.unheard():
            os.write(outer, b"typed\n")
            os.write(inner, b"shown")
            assert os.read(outer, 100) == b"shown"
        assert select.select([stdin], [], [], 0)[0] == []
        os.write(outer, b"more\n")
        assert os.read(outer, 100) == b"more\r\n"
        keys.forget()
        assert select.select([stdin], [], [], 0)[0] == []
    os.close(outer)


def test_text_is_broken_between_words_in_a_terminal_and_left_as_it_is_elsewhere():
    text = "Everything else is real: OpenCode and its tools, the hub, git, the tests."
    drawn, written = io.StringIO(), io.StringIO()
    say(Console(file=drawn, width=30, force_terminal=True), text)
    say(Console(file=written, width=30), text)
    assert [line.rstrip() for line in drawn.getvalue().splitlines()] == [
        "Everything else is real:",
        "OpenCode and its tools, the",
        "hub, git, the tests.",
    ]
    assert written.getvalue() == f"{text}\n"


def test_a_row_shows_block_status_activity_time_and_tokens():
    task = TaskStatus.model_validate(
        {
            "task_id": "t",
            "title": "x",
            "state": "working",
            "phase": "working",
            "revision": 1,
            "turn_id": "u",
            "elapsed_s": 75,
            "total_tokens": 8200,
            "activity": {"kind": "tool", "label": "running the test suite"},
        }
    )
    console = Console(width=100)
    with console.capture() as captured:
        console.print(table.table({"t": "Cart.total"}, [task]))
    row = captured.get().splitlines()[1].split()
    assert row == ["Cart.total", "working", "running", "the", "test", "suite", "1:15", "8.2k"]
