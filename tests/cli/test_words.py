"""Words and exit codes, on their own."""

from pathlib import Path

import pytest
from rich.console import Console

from offload.cli import page, render
from offload.cli.exits import BY_ERROR, Exit, exit_for
from offload.domain import errors
from offload.wire import words
from offload.wire.operations import OPERATIONS
from offload.wire.results import CleanTasksResult, GetChangesResult, TaskResult
from offload.wire.views import TaskStatus, TaskView, WorkerView

STATUS = {
    "task_id": "task_1",
    "title": "tests for price",
    "state": "working",
    "phase": "working",
    "revision": 3,
    "turn_id": "turn_1",
    "elapsed_s": 3,
    "total_tokens": 1500,
}
USAGE = {
    "input_tokens": 1,
    "output_tokens": 2,
    "reasoning_tokens": 0,
    "cache_read_tokens": 0,
    "cache_write_tokens": 0,
    "total_tokens": 3,
    "cost": 0.5,
}
RESULT = {
    "task_id": "task_1",
    "turn_id": "turn_1",
    "state": "completed",
    "phase": "ready",
    "text": "done",
    "text_offset": 0,
    "next_text_offset": None,
    "changes": None,
    "ran": None,
    "usage": USAGE,
    "needs_review": "",
    "failure": None,
    "next_step": "",
}
ASK = {"ask_id": "a", "kind": "permission", "subject": "bash", "detail": "make\nall", "choices": ["allow", "deny"]}


def status(**fields):
    return TaskStatus.model_validate({**STATUS, **fields})


def printed(view):
    console = Console(width=200, markup=False, highlight=False)
    with console.capture() as captured:
        for part in render.rendered(view):
            console.print(part)
    return captured.get()


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "waits for the model"),
        ({"phase": "ready"}, ""),
        ({"phase": "starting"}, "the worker is being started"),
        ({"asks": [ASK]}, "asks: bash: make all"),
        ({"place": 2}, "waits for a free place, number 2"),
        ({"failure": {"code": "turn_lost", "message": "it went away"}}, "it went away"),
        ({"needs_review": "no report"}, "needs a look: no report"),
        ({"activity": {"kind": "tool", "label": "running the test suite"}}, "running the test suite"),
        ({"activity": {"kind": "thinking", "label": ""}}, "thinking"),
        ({"activity": {"kind": "writing", "label": "writing"}}, "writing"),
        ({"activity": {"kind": "writing", "label": ""}, "partial_text": "and so\non."}, "and so on."),
        ({"activity": {"kind": "writing", "label": ""}, "partial_text": "and so\nforthwi"}, "and so"),
        ({"activity": {"kind": "writing", "label": ""}, "partial_text": "Firs"}, "Firs"),
        ({"files_changed": 1}, "1 file changed"),
        ({"files_changed": 2}, "2 files changed"),
    ],
)
def test_what_a_task_does_is_said_in_a_line(fields, told):
    assert words.doing(status(**fields)) == told


def test_long_words_of_a_worker_are_cut_at_their_beginning_or_left_out():
    task = status(activity={"kind": "writing", "label": "writing"}, partial_text="so much " * 20 + "to say.")
    assert words.doing(task) == "…" + "so much " * 6 + "to say."
    assert len(words.doing(task)) <= words.TALK
    assert words.doing(task, talk=False) == "writing"


def test_a_task_that_asks_waits_for_you():
    assert words.state(status()) == "working"
    assert words.state(status(asks=[ASK])) == "waits for you"
    assert words.state(status(asks=[ASK], phase="cancelling")) == "cancelling"


@pytest.mark.parametrize(("elapsed", "told"), [(0, "0 s"), (59.9, "59 s"), (185, "3:05"), (3723, "1:02:03")])
def test_times_are_short(elapsed, told):
    assert words.seconds(elapsed) == told


@pytest.mark.parametrize(("number", "told"), [(812, "812"), (8200, "8.2k"), (1_300_000, "1.3M")])
def test_counts_are_short(number, told):
    assert words.count(number) == told


def test_a_workers_text_cannot_steer_the_terminal():
    """OSC 52 would write to the clipboard, CSI 2J clear what was read before."""
    evil = "a\x1b]52;c;ZXZpbA==\x07b\x9b2Jc\rd\n\te"
    assert words.harmless(evil) == "a�]52;c;ZXZpbA==�b�2Jc�d\n\te"
    shown = printed(TaskResult.model_validate({**RESULT, "text": evil, "failure": {"code": "x", "message": evil}}))
    assert not {"\x1b", "\x07", "\x9b", "\r"} & set(shown)


def test_a_status_without_advice_has_two_lines():
    assert printed(status(phase="ready")).splitlines() == ["task_1  ready  tests for price", "  3 s, 1.5k tokens"]


def test_a_patch_is_shown_to_a_person_without_what_could_steer_the_terminal():
    changes = {"base": "", "result": "", "files": [], "added_lines": 1, "removed_lines": 0}
    shown = printed(GetChangesResult.model_validate({"task_id": "t", "changes": changes, "patch": "+a\x1b[2J\n"}))
    assert shown.strip() == "+a�[2J"


def test_in_a_narrow_terminal_the_words_give_way_and_never_the_id():
    table = render.task_table(
        [status(title="tests for all that there is", failure={"code": "x", "message": "no luck " * 9})]
    )
    table.expand = True
    console = Console(width=50)
    with console.capture() as captured:
        console.print(table)
    row = captured.get().splitlines()[1]
    assert row.startswith("task_1  working   3 s    1.5k  tests")
    assert row.count("…") == 2
    table = render.task_table([status(title="tests for all that", failure=None)], narrow=True)
    table.expand = True
    with console.capture() as captured:
        console.print(table)
    assert captured.get().splitlines()[1].startswith("task_1  working   3 s    1.5k  tests for all that")


def test_rows_say_which_file_and_which_folder_when_there_are_several():
    """Five rows "tests for slug" looked alike."""
    here, there = ({"workspace": f"/home/me/{name}", "path": "src/text.py"} for name in ("shop", "site"))
    assert "tests for price, src/text.py" in _table(status(**here), status(**here))
    both = _table(status(**here), status(**there))
    assert "tests for price, shop/src/text.py" in both
    assert "tests for price, site/src/text.py" in both


def test_a_task_that_waits_in_the_queue_has_no_time_yet():
    assert " s " not in _table(status(phase="queued", elapsed_s=0))
    assert "7 s" in _table(status(phase="queued", elapsed_s=7))


def _table(*tasks):
    console = Console(width=200)
    with console.capture() as captured:
        console.print(render.task_table(tasks))
    return captured.get()


def test_every_result_can_be_shown():
    assert {operation.result for operation in OPERATIONS} == set(render.RENDERERS)


def test_advice_names_commands():
    told = render.as_commands("Call get_task_result to review it; continue_task sends a follow-up.")
    assert told == "Call `offload task-result` to review it; `offload continue-task` sends a follow-up."


def test_advice_about_a_task_can_be_typed_as_it_stands():
    told = render.as_commands("Call wait_for_tasks; list_tasks shows the others, clean_tasks removes some.", "k2j4")
    assert told == "Call `offload wait k2j4`; `offload list-tasks` shows the others, `offload clean` removes some."


def test_a_long_or_doubtful_result_says_so():
    changes = {"base": "", "result": "", "added_lines": 5, "removed_lines": 0, "files_left_out": 7}
    changes["files"] = [{"path": "a.png", "status": "added", "added_lines": 0, "removed_lines": 0, "binary": True}]
    shown = printed(
        TaskResult.model_validate(
            {
                **RESULT,
                "next_text_offset": 3000,
                "needs_review": "tests fail",
                "changes": changes,
                "next_step": "wait_for_tasks",
            }
        )
    )
    assert "--text-offset 3000" in shown
    assert "needs a look: tests fail" in shown
    assert "7 more files" in shown
    assert "binary" in shown
    assert "3 tokens, $0.5000 (1 in, 2 out)" in shown
    assert "`offload wait task_1`" in shown


def test_a_whole_task_shows_what_it_has_been_through():
    turn = {
        "turn_id": "turn_1",
        "brief": "do it",
        "asked": {"worker": "fake"},
        "ran": None,
        "queued_at": 1,
        "started_at": None,
        "ended_at": None,
        "usage": {**USAGE, "cost": None},
        "text": "I did it",
        "changes": {"base": "", "result": "", "files": [], "added_lines": 0, "removed_lines": 0},
        "checks": [],
        "failure": {"code": "turn_lost", "message": "it went away"},
        "needs_review": "",
    }
    task = {
        "task_id": "task_1",
        "title": "t",
        "workspace": "/w",
        "recipe": "tests",
        "phase": "failed",
        "revision": 1,
        "place": None,
        "front": "rpc",
        "created_at": 1,
        "changed_at": 1,
        "anchor": {"path": "a.py", "symbol": "f", "kind": "function", "first_line": 3, "last_line": 5},
        "activity": None,
        "asks": [],
        "live_text": "so far",
        "turns": [turn],
        "notes": ["a submodule was left out"],
        "landings": [{"turn_id": "turn_1", "paths": ["a.py"], "at": 1}],
        "closed": False,
    }
    shown = printed(TaskView.model_validate(task))
    for words_ in ("a.py:3 f", "note: a submodule", "failed: it went away", "so far", "applied: a.py", "3 tokens ("):
        assert words_ in shown
    assert "I did it" in shown
    bare = {**turn, "text": "", "failure": None, "changes": None}
    assert "no block" in printed(TaskView.model_validate({**task, "anchor": None, "live_text": "", "turns": [bare]}))


def test_a_worker_with_a_problem_says_what_to_do():
    lines = list(render._worker(WorkerView(name="w", problem="run the installer", models_left_out=3), is_default=False))
    assert [str(line).strip() for line in lines][1:] == ["run the installer", "3 more models; narrow it with --search"]


@pytest.mark.parametrize("error", errors.all_errors())
def test_every_error_has_an_exit_code(error):
    """docs/COMMANDS.md promises them; who adds an error decides here whether its parent's code fits."""
    made = error.__new__(error)
    assert exit_for(made) in set(BY_ERROR.values())
    if issubclass(error, errors.CallerError) and error is not errors.VersionMismatch:
        assert exit_for(made) == Exit.REFUSED


def test_the_code_of_a_missing_hub_is_its_own():
    assert exit_for(errors.HubUnavailable("x")) == Exit.NO_HUB
    assert exit_for(errors.GitFailed("x")) == Exit.MACHINE
    assert exit_for(errors.WorkerMissing("x")) == Exit.WORKER
    assert exit_for(errors.Defect("x")) == Exit.DEFECT


def test_the_commands_page_is_fresh():
    """Generated: `python -m offload.cli.page > docs/COMMANDS.md`."""
    written = Path(__file__).resolve().parents[2] / "docs/COMMANDS.md"
    assert written.read_text() == page.page()


def test_the_page_and_the_help_name_commands_and_no_tools():
    names = [name for name in render.COMMANDS if "_" in name]
    assert [name for name in names if name in page.page()] == []


def test_the_page_names_every_exit_code():
    for code in Exit:
        assert f"| {code.value} | {code.meaning} |" in page.page()


@pytest.mark.parametrize(
    ("number", "said"), [(812, "812 B"), (8200, "8.2 kB"), (1_300_000, "1.3 MB"), (2_000_000_000, "2.0 GB")]
)
def test_a_size_is_told_in_short(number, said):
    assert words.size(number) == said


def test_what_workers_left_is_told_with_its_size():
    result = CleanTasksResult(dry_run=False, removed=[], kept=[], younger=0, left_over_bytes=8200)
    console = Console(width=80, record=True)
    for part in render.rendered(result):
        console.print(part)
    assert "left over by workers: 8.2 kB" in console.export_text()
