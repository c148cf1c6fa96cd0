"""Words and exit codes, on their own."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from offload.cli import page, render
from offload.cli.exits import BY_ERROR, Exit, exit_for
from offload.cli.output import print_error
from offload.domain import errors
from offload.domain.change import Conflict
from offload.wire import words
from offload.wire.operations import OPERATIONS
from offload.wire.results import (
    ApplyTaskResult,
    CleanTasksResult,
    GetChangesResult,
    TaskResult,
    TrustWorkspaceResult,
    UndoApplyResult,
)
from offload.wire.views import ChangesView, TaskStatus, TaskView, WorkerView

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


INTEGRATION = {
    "task_ids": ["task_1", "task_2", "task_3", "task_4"],
    "order": ["task_1", "task_2"],
    "overlaps": [
        {"task_ids": ["task_1", "task_2"], "paths": ["a.py"], "hunks": False},
        {"task_ids": ["task_1", "task_3"], "paths": ["b.py"], "hunks": True},
    ],
    "left_out": [
        {"task_id": "task_3", "with_tasks": ["task_1"], "conflicts": [{"path": "b.py", "reason": "both changed it"}]},
        {"task_id": "task_4", "with_tasks": [], "conflicts": [{"path": "c.py", "reason": "both changed it"}]},
    ],
    "culprits": [],
    "before": False,
    "probes": 0,
}


def landing(apply_id, **fields):
    files = [{"path": "a.py", "place": "disk"}]
    made = {"apply_id": apply_id, "turn_id": "turn_1", "paths": ["a.py"], "files": files, "hunks": [], "at": 1}
    return {**made, "by": "", "undone_at": None, **fields}


def changed(path, **fields):
    made = {"path": path, "file_id": "f1", "status": "added", "state": "pending", "added_lines": 0, "removed_lines": 0}
    return {**made, **fields}


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
    assert shown.splitlines()[0].strip() == "+a�[2J"


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


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"files_changed": 1}, "1 file changed, not checked"),
        ({"files_changed": 2, "checked": "passed", "hunks_pending": 3}, "2 files changed, checked"),
        ({"files_changed": 2, "checked": "failed", "hunks_pending": 0}, "2 files changed, checks fail, reviewed"),
        ({"files_changed": 0}, "0 files changed"),
    ],
)
def test_a_result_in_a_list_says_whether_it_is_checked_and_decided_on(fields, told):
    row = _table(status(phase="ready", state="completed", **fields)).splitlines()[1].rstrip()
    assert row.endswith(f"  {told}")


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


def test_the_report_of_an_integration_names_commands_with_the_tasks_that_they_are_for():
    text = "continue_task task_3 onto=task_1 sends it back; then integrate_tasks task_1 task_3 again. apply_task task_1 takes it."
    shown = printed(TaskResult.model_validate({**RESULT, "text": text, "integration": INTEGRATION}))
    assert (
        "`offload continue-task task_3 --onto task_1` sends it back; then `offload integrate task_1 task_3` again."
        in shown
    )
    assert "`offload apply task_1` takes it." in shown
    assert "continue_task task_3 onto=task_1" in printed(TaskResult.model_validate({**RESULT, "text": text})), (
        "a worker's words"
    )
    advice = render.as_commands("integrate_tasks makes it anew, or let continue_task with onto=files do it.", "task_1")
    assert advice == "`offload integrate` makes it anew, or let `offload continue-task task_1 --onto files` do it."


def test_a_long_or_doubtful_result_says_so():
    changes = {"base": "", "result": "", "added_lines": 5, "removed_lines": 0, "files_left_out": 7}
    changes["files"] = [changed("a.png", binary=True)]
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
        "landings": [landing("apply_1"), landing("apply_2", undone_at=3)],
        "integration": INTEGRATION,
        "closed": False,
    }
    shown = printed(TaskView.model_validate(task))
    for words_ in ("a.py:3 f", "note: a submodule", "failed: it went away", "so far", "not checked", "3 tokens ("):
        assert words_ in shown
    assert "I did it" in shown
    assert "applied (apply_1): a.py" in shown
    assert "applied (apply_2, and undone): a.py" in shown
    bare = {**turn, "text": "", "failure": None, "changes": None}
    assert "no block" in printed(TaskView.model_validate({**task, "anchor": None, "live_text": "", "turns": [bare]}))


def test_files_out_of_scope_stand_last_and_what_became_of_each_is_said():
    files = [
        changed("out.py", outside=True),
        changed("new.py", old_path="old.py", status="renamed", state="applied"),
        changed("no.py", state="rejected"),
    ]
    changes = {"base": "", "result": "", "files": files, "added_lines": 0, "removed_lines": 0}
    console = Console(width=120)
    with console.capture() as captured:
        console.print(render.changes_table(ChangesView.model_validate({**changes, "claimed_only": ["said.py"]})))
    rows = [" ".join(line.split()) for line in captured.get().splitlines()]
    assert rows == [
        "renamed old.py → new.py +0 -0 applied",
        "added no.py +0 -0 rejected",
        "added out.py +0 -0 outside of its allowed paths",
        "all +0 -0",
        "no change said.py though the worker says it wrote it",
    ]


def test_checks_are_told_and_what_a_failing_one_printed_last():
    passed = {"name": "lint", "passed": True, "seconds": 1, "told": "lint: passed", "tail": "all well"}
    failed = {
        "name": "tests",
        "passed": False,
        "seconds": 1,
        "told": "tests: 1 failed: test_a",
        "tail": "AssertionError",
    }
    silent = {**failed, "name": "types", "told": "types: timed out after 5 s", "tail": ""}
    changes = {"base": "", "result": "", "files": [], "added_lines": 0, "removed_lines": 0}
    view = {**RESULT, "changes": changes, "checked": "failed", "checks": [passed, failed, silent]}
    shown = printed(TaskResult.model_validate(view))
    assert "lint: passed\ntests: 1 failed: test_a\nAssertionError\ntypes: timed out after 5 s\n" in shown
    assert "not checked" not in shown
    assert "all well" not in shown
    assert "tests: 14 passed" in printed(status(phase="ready", checks=["tests: 14 passed"]))


def test_an_apply_says_where_each_file_went_and_how_it_is_taken_back():
    files = [
        {"path": "open.py", "place": "buffer"},
        {"path": "disk.py", "place": "disk"},
        {"path": "same.py", "place": "disk", "unchanged": True},
        {"path": "gone.py", "place": "disk", "removed": True},
    ]
    applied = {"task_id": "task_1", "apply_id": "apply_1", "paths": [], "files": files}
    told = "in the editor, not saved: open.py\nwritten: disk.py\nthere already: same.py\nremoved: gone.py\n"
    assert (
        printed(ApplyTaskResult.model_validate(applied))
        == f"{told}`offload undo task_1 --apply apply_1` takes it back\n"
    )
    assert printed(ApplyTaskResult.model_validate({**applied, "files": files[2:3]})) == "there already: same.py\n"
    shown = printed(ApplyTaskResult.model_validate({**applied, "hunks_pending": 2}))
    doubtful = ApplyTaskResult.model_validate({**applied, "needs_review": "tests: 1 failed: test_a"})
    assert "needs a look: tests: 1 failed: test_a\n" in printed(doubtful)
    assert "2 more hunks wait: `offload diff task_1` shows what" in shown
    shown = printed(ApplyTaskResult.model_validate({**applied, "hunks_pending": 1}))
    assert "1 more hunk waits: `offload diff task_1` shows what" in shown
    assert printed(ApplyTaskResult.model_validate({**applied, "files": []})) == "nothing was left to be written\n"
    undone = UndoApplyResult.model_validate({"task_id": "task_1", "apply_id": "apply_1", "files": files[:1]})
    assert printed(undone) == "in the editor, not saved: open.py\ntaken back: apply_1\n"
    undone = UndoApplyResult.model_validate({"task_id": "task_1", "apply_id": "apply_1", "files": files[2:3]})
    assert printed(undone) == "as it was already: same.py\ntaken back: apply_1\n"


def test_hunks_are_listed_with_the_ids_that_apply_takes():
    hunk = {"hunk_id": "h1", "state": "applied", "old_start": 1, "old_lines": 1, "new_start": 3, "new_lines": 4}
    files = [changed("a.py", hunks=[hunk]), changed("b.png", binary=True)]
    changes = {"base": "", "result": "", "files": files, "added_lines": 0, "removed_lines": 0}
    shown = printed(GetChangesResult.model_validate({"task_id": "t", "changes": changes, "patch": ""}))
    rows = [" ".join(line.split()) for line in shown.splitlines()]
    assert "h1 a.py lines 3-6 applied" in rows
    assert "f1 b.png pending" in rows


def test_a_command_that_is_trusted_is_shown_as_the_shell_reads_it():
    """On one line everything after the comment would look like a part of it."""
    asked = {
        "setup": "npm ci # set up\nrm -r x",
        "format": "sed 's/ *$//'",
        "checks": [],
        "carry": [],
        "never_send": [],
    }
    shown = printed(TrustWorkspaceResult.model_validate({"workspace": "/w", "trusted": True, "note": "", **asked}))
    assert shown == "/w: trusted\n  setup: npm ci # set up\n    rm -r x\n  format: sed 's/ *$//'\n"


def test_what_is_trusted_is_shown_command_by_command():
    asked = {"setup": "npm ci", "format": "", "checks": ["npm test"], "carry": ["node_modules"], "never_send": []}
    view = {"workspace": "/w", "trusted": True, "note": "", **asked}
    shown = printed(TrustWorkspaceResult.model_validate(view))
    assert shown == "/w: trusted\n  setup: npm ci\n  check: npm test\n  carry: node_modules\n"
    shown = printed(TrustWorkspaceResult.model_validate({**view, "trusted": False, "note": "it has changed"}))
    assert shown.startswith("/w: not trusted\n")
    assert shown.endswith("  it has changed\n")


@pytest.mark.parametrize(("line", "place"), [(7, "a.py:7 h1"), (0, "a.py h1")])
def test_a_conflict_shows_both_sides(capsys, line, place):
    conflict = Conflict("a.py", "both changed it", "h1", line, "mine\n", "old\n", "theirs\n\x1b[2J")
    error = errors.ApplyRefused("a.py: conflict", (("a.py", "conflict"),), (conflict,))
    assert print_error(error, as_json=False) == Exit.REFUSED
    told = capsys.readouterr().err
    assert told == f"offload: a.py: conflict\n  {place}\n    -mine\n    +theirs\n    +�[2J\n"


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


def test_an_error_says_what_to_type_for_the_task_that_the_command_was_about(capsys):
    error = errors.ApplyRefused("Let continue_task with onto=files do it, or say include_outside.", (), ())
    print_error(error, as_json=False, task_id="k2j4")
    told = "Let `offload continue-task k2j4 --onto files` do it, or say `--include-outside`."
    assert capsys.readouterr().err == f"offload: {told}\n"


def test_the_text_of_a_patch_has_the_colour_of_the_terminals_own_text():
    """White on whatever ground cannot be read on a white one."""
    shown = io.StringIO()
    patch = render.patch("@@ -1 +1 @@\n same\n-old\n+new\n")
    Console(file=shown, force_terminal=True, color_system="truecolor", width=40).print(patch)
    same = next(line for line in shown.getvalue().splitlines() if "same" in line)
    assert not re.search(r"\x1b\[[\d;]*\b(37|38|97)\b", same), same
    assert "\x1b[92" in shown.getvalue(), "what was added is green"
