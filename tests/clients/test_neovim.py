"""The Neovim plugin in the real Neovim, against a server that does what the test says."""

import os
import re
import shutil
import sys
from typing import Any

import pytest

from offload.lsp.commands import COMMANDS
from offload.lsp.protocol import TASK_CHANGED
from offload.lsp.requests import REQUESTS
from tests.clients import status_cases
from tests.support.neovim import PLUGIN, Neovim

ASK = {"ask_id": "ask_1", "kind": "permission", "subject": "bash", "detail": "npm test", "choices": ["allow", "deny"]}
QUESTION = {"ask_id": "ask_2", "kind": "question", "subject": "Style", "detail": "Which style?", "choices": []}
CHANGES = {
    "base": "a",
    "result": "b",
    "files": [{"path": "test_cart.py", "status": "added", "added_lines": 2, "removed_lines": 0}],
    "added_lines": 2,
    "removed_lines": 0,
}


@pytest.fixture
def about(workspace):
    """A task about `total`, lines 4 to 6 of the module, with some fields changed."""

    def make(turn=None, **changed):
        anchor = {"path": "cart.py", "symbol": "total", "kind": "function", "first_line": 4, "last_line": 6}
        return status_cases.task({"workspace": str(workspace), "anchor": anchor} | changed, turn)

    return make


def ask(editor: Neovim, method: str, params: object) -> Any:
    """What the scripted server answers to a request of the test's own."""
    request = "vim.lsp.get_clients({ name = 'offload' })[1]:request_sync(method, params, 20000).result"
    return editor.lua(f"local method, params = ...; return {request}", method, params)


def tell(editor: Neovim, *tasks: dict[str, Any]) -> None:
    """Has the server send each task's state, in order; a notification is handled before the answer that follows it."""
    for task in tasks:
        ask(editor, "test/notify", {"method": "offload/taskChanged", "params": task})


def seen(editor: Neovim, method: str) -> list[dict[str, Any]]:
    """The params of the requests for `method` that the server got."""
    return [request["params"] for request in ask(editor, "test/seen", {}) if request["method"] == method]


def run(editor: Neovim) -> list[tuple[str, dict[str, Any]]]:
    """The server's commands that were run."""
    return [(each["command"], *each["arguments"]) for each in seen(editor, "workspace/executeCommand")]


def will_answer(editor: Neovim, method: str, result: object) -> None:
    """Sets what the server answers to `method`."""
    ask(editor, "test/answer", {"method": method, "answer": {"result": result}})


def marks(editor: Neovim) -> list[tuple[int, str]]:
    """What stands at line ends: line (1-based) and text."""
    found = editor.lua(
        "local space = require('offload.marks').namespace;"
        "local found = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true });"
        "return vim.tbl_map(function(mark) return { mark[2] + 1, mark[4].virt_text and mark[4].virt_text[1][1] } end, found)"
    )
    return [(line, text) for line, text in (mark for mark in found if len(mark) == 2)]


def cursor_at(editor: Neovim, line: int) -> None:
    editor.lua("vim.api.nvim_win_set_cursor(0, { ..., 0 })", line)


def will_pick(editor: Neovim, number: int) -> None:
    """The user picks this entry from the next list, and what was listed is kept."""
    editor.lua(
        "local number = ...; vim.ui.select = function(items, options, chosen)"
        " listed = vim.tbl_map(options.format_item or tostring, items); chosen(items[number], number) end",
        number,
    )


@pytest.mark.parametrize(("mark", "level", "task"), status_cases.CASES, ids=[case[0] for case in status_cases.CASES])
def test_a_status_reads_as_in_the_table(shared_editor, mark, level, task):
    assert shared_editor.lua("return { require('offload.status').mark(...) }", task) == [mark, level]


def test_the_server_is_told_that_the_client_draws_the_marks(editor):
    (initialize,) = seen(editor, "initialize")
    assert initialize["initializationOptions"] == {"offload": {"marks": "client"}}


def test_a_task_stands_at_the_end_of_its_blocks_first_line(editor, about):
    tell(editor, about(phase="queued", revision=1))
    assert marks(editor) == [(4, "◀ tests queued")]
    tell(editor, about(phase="starting", revision=2))
    assert marks(editor) == [(4, "◀ tests starting")]


def test_a_mark_moves_with_the_text_and_not_with_the_lines_of_messages(editor, about):
    tell(editor, about(revision=1))
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, { '# one', '# two' })")
    assert marks(editor) == [(6, "◀ tests working")]
    tell(editor, about(revision=2, phase="checking"))
    assert marks(editor) == [(6, "◀ tests checking the result")]


def test_a_line_shows_one_live_task_and_how_many_more_there_are(editor, about):
    tell(
        editor,
        about(task_id="task_1", created_at=3.0, phase="failed"),
        about(task_id="task_2", created_at=1.0, recipe="docs"),
        about(task_id="task_3", created_at=2.0, phase="queued"),
    )
    assert marks(editor) == [(4, "◀ tests queued  +2")]
    tell(editor, about(task_id="task_2", created_at=1.0, recipe="docs", revision=4, asks=[ASK]))
    assert marks(editor) == [(4, "◀ docs waits for you: bash: npm test  +2")]


def test_a_line_shows_the_same_after_its_file_was_opened_again(editor, about):
    tell(editor, *(about(task_id=f"task_{number}", created_at=float(number), place=number) for number in (2, 3, 1)))
    assert marks(editor) == [(4, "◀ tests working, place 3  +2")]
    editor.command("edit!")
    editor.until("#vim.lsp.get_clients({ bufnr = 0, name = 'offload' }) == 1")
    assert marks(editor) == [(4, "◀ tests working, place 3  +2")]


def test_a_task_that_is_closed_uncovers_the_one_behind_it(editor, about):
    tell(editor, about(task_id="task_1"), about(task_id="task_2", recipe="docs", created_at=2000.0))
    assert marks(editor) == [(4, "◀ docs working  +1")]
    tell(editor, about(task_id="task_2", recipe="docs", revision=4, phase="cancelled", closed=True))
    assert marks(editor) == [(4, "◀ tests working")]


def test_a_closed_task_leaves_no_mark(editor, about):
    tell(editor, about(revision=1), about(revision=2, phase="cancelled", closed=True))
    assert marks(editor) == []


def test_an_older_state_that_comes_late_changes_nothing(editor, about):
    tell(editor, about(revision=2, phase="checking"), about(revision=1, phase="starting"))
    assert marks(editor) == [(4, "◀ tests checking the result")]


def test_a_task_without_a_block_or_for_another_file_draws_nothing(editor, about):
    elsewhere = about()["anchor"] | {"path": "other.py"}
    tell(editor, about(task_id="task_1", anchor=None), about(task_id="task_2", anchor=elsewhere))
    assert marks(editor) == []


def test_an_anchor_beyond_the_end_of_the_file_is_drawn_on_its_last_line(editor, about):
    beyond = about()["anchor"] | {"first_line": 90, "last_line": 99}
    tell(editor, about(anchor=beyond))
    assert marks(editor) == [(10, "◀ tests working")]


def test_a_file_that_is_opened_later_or_read_anew_shows_its_tasks(editor, about, workspace):
    (workspace / "other.py").write_text("def other():\n    pass\n")
    elsewhere = about()["anchor"] | {"path": "other.py", "first_line": 1, "last_line": 2}
    tell(editor, about(anchor=elsewhere))
    editor.command("edit other.py")
    editor.until("#vim.lsp.get_clients({ bufnr = 0, name = 'offload' }) == 1")
    assert marks(editor) == [(1, "◀ tests working")]
    editor.command("edit!")
    editor.until("#vim.lsp.get_clients({ bufnr = 0, name = 'offload' }) == 1")
    assert marks(editor) == [(1, "◀ tests working")]


def test_a_file_reached_through_a_link_shows_its_tasks(editor, about, workspace, tmp_path):
    (tmp_path / "link").symlink_to(workspace)
    tell(editor, about(workspace=str(tmp_path / "link")))
    assert marks(editor) == [(4, "◀ tests working")]


def test_tasks_from_before_the_editor_came_are_drawn(idle_editor, about, attach, workspace):
    before = [about(phase="queued", place=2), about(task_id="task_2", workspace=f"{workspace}-2", title="Another's")]
    attach(idle_editor, {"offload/showTasks": {"result": {"tasks": before}}})
    idle_editor.until("#vim.api.nvim_buf_get_extmarks(0, require('offload.marks').namespace, 0, -1, {}) == 1")
    assert marks(idle_editor) == [(4, "◀ tests queued, place 2")]
    titles = "vim.tbl_map(function(task) return task.title end, require('offload.tasks').open())"
    assert idle_editor.lua(f"return {titles}") == ["Tests for total"]


@pytest.mark.parametrize(
    ("folder", "concerned"),
    [
        ("/home/ada/shop", True),
        ("/home/ada", True),
        ("/home/ada/shop/web", True),
        ("/home/ada/shop2", False),
        (None, True),
    ],
)
def test_a_task_concerns_its_workspace_a_folder_above_it_or_one_inside(shared_editor, folder, concerned):
    task = status_cases.task({"workspace": "/home/ada/shop"})
    assert shared_editor.lua("return require('offload.tasks').concerns(...)", task, folder) is concerned


def test_a_selection_is_delegated_by_its_lines(editor, workspace):
    editor.command("4,6Offload tests")
    editor.command("1Offload make this retry on timeouts")
    file = str(workspace / "cart.py")
    assert seen(editor, "offload/startTask") == [
        {"file": file, "lines": "4-6", "recipe": "tests", "brief": ""},
        {"file": file, "lines": "1-1", "recipe": "instruction", "brief": "make this retry on timeouts"},
    ]


def test_the_block_at_the_cursor_is_the_one_that_the_server_names(editor, workspace):
    place = {"file": str(workspace / "cart.py"), "symbol": "total", "recipe": "tests"}
    foreign = {"title": "Sort imports", "command": {"title": "Sort", "command": "other.sort"}}
    delegate = {"title": "Delegate", "command": {"title": "Delegate", "command": "offload.start", "arguments": [place]}}
    will_answer(editor, "textDocument/codeAction", [{"title": "Only an edit"}, foreign, delegate])
    cursor_at(editor, 6)
    editor.command("Offload docs")
    (asked,) = seen(editor, "textDocument/codeAction")
    assert asked["range"]["start"]["line"] == 5
    assert seen(editor, "offload/startTask") == [place | {"recipe": "docs", "brief": ""}]


def test_a_cursor_outside_of_every_block_is_told_so(editor):
    editor.command("Offload tests")
    editor.until("#said > 0")
    assert editor.said() == ["offload: no block at the cursor; select the lines to delegate"]
    assert seen(editor, "offload/startTask") == []


def test_the_recipes_are_completed(editor):
    assert editor.lua("return vim.fn.getcompletion('Offload ', 'cmdline')") == ["docs", "tests"]
    assert editor.lua("return vim.fn.getcompletion('Offload t', 'cmdline')") == ["tests"]


def test_the_only_task_at_the_cursor_is_stopped_without_a_question(editor, about):
    elsewhere = about()["anchor"] | {"first_line": 9, "last_line": 10}
    tell(editor, about(task_id="task_1"), about(task_id="task_2", anchor=elsewhere))
    cursor_at(editor, 9)
    editor.command("OffloadCancel")
    assert seen(editor, "offload/cancelTask") == [{"task_id": "task_2"}]


def test_a_task_that_is_not_at_the_cursor_is_picked_from_a_list(editor, about):
    tell(editor, about(task_id="task_1", created_at=1.0), about(task_id="task_2", created_at=2.0, title="Docs"))
    cursor_at(editor, 1)
    will_pick(editor, 2)
    editor.command("OffloadCancel")
    assert editor.lua("return listed") == ["Docs (working)", "Tests for total (working)"]
    assert seen(editor, "offload/cancelTask") == [{"task_id": "task_1"}]


def test_nothing_is_stopped_when_nothing_is_picked(editor, about):
    tell(editor, about())
    cursor_at(editor, 1)
    will_pick(editor, 0)
    editor.command("OffloadCancel")
    assert seen(editor, "offload/cancelTask") == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("OffloadCancel", "offload: no task runs"),
        ("OffloadClose", "offload: no finished task is open"),
        ("OffloadContinue more", "offload: no finished task is open"),
        ("OffloadAnswer", "offload: no worker asks anything"),
        ("OffloadApply", "offload: no task has changes to apply"),
        ("OffloadDiff", "offload: no task has changes to show"),
        ("OffloadUndo", "offload: no apply can be undone"),
        ("OffloadReject", "offload: no task has changes to reject"),
        ("OffloadCheck", "offload: no task has changes to check"),
        ("OffloadIntegrate", "offload: there are not two results to integrate"),
        ("OffloadTasks", "offload: no task is open"),
    ],
)
def test_a_command_that_fits_no_task_says_so(editor, command, told):
    editor.command(command)
    assert editor.said() == [told]


def test_a_finished_task_is_continued_and_closed(editor, about):
    tell(editor, about(phase="ready"))
    cursor_at(editor, 5)
    editor.command("OffloadContinue cover the empty cart too")
    editor.command("OffloadClose")
    assert seen(editor, "offload/continueTask") == [{"task_id": "task_1", "brief": "cover the empty cart too"}]
    assert seen(editor, "offload/closeTask") == [{"task_id": "task_1"}]


def test_a_permission_is_answered_by_picking_a_choice(editor, about):
    tell(editor, about(asks=[ASK]))
    cursor_at(editor, 4)
    will_pick(editor, 1)
    editor.command("OffloadAnswer")
    assert editor.lua("return listed") == ["allow", "deny"]
    assert seen(editor, "offload/answerTask") == [
        {"task_id": "task_1", "ask_id": "ask_1", "choice": "allow", "message": ""}
    ]


def test_a_denial_can_carry_a_message(editor, about):
    tell(editor, about(asks=[ASK]))
    cursor_at(editor, 4)
    editor.command("OffloadAnswer deny run one file only")
    (answer,) = seen(editor, "offload/answerTask")
    assert (answer["choice"], answer["message"]) == ("deny", "run one file only")


def test_a_question_is_answered_in_free_words(editor, about):
    tell(editor, about(asks=[QUESTION]))
    cursor_at(editor, 4)
    editor.command("OffloadAnswer plain functions")
    editor.lua("vim.ui.input = function(options, done) asked = options.prompt; done('classes') end")
    editor.command("OffloadAnswer")
    assert editor.lua("return asked") == "Style: Which style? "
    assert [answer["choice"] for answer in seen(editor, "offload/answerTask")] == ["plain functions", "classes"]


def test_an_applied_result_is_read_into_the_buffer(editor, about, workspace):
    tell(editor, about({"changes": CHANGES}, phase="ready"))
    cursor_at(editor, 4)
    (workspace / "cart.py").write_text("changed = True\n# by the result\n")
    editor.command("OffloadApply")
    editor.until("vim.api.nvim_buf_get_lines(0, 0, 1, true)[1] == 'changed = True'")
    assert run(editor) == [("offload.apply", {"task_id": "task_1"})]


def test_what_came_of_a_command_is_said_by_the_server_alone(editor, about):
    tell(editor, about({"changes": CHANGES}, phase="ready"))
    cursor_at(editor, 4)
    refused = {"code": -32803, "message": "cart.py was changed by you as well"}
    ask(editor, "test/answer", {"method": "workspace/executeCommand", "answer": {"error": refused}})
    editor.command("OffloadApply")
    for kind, text in ((1, "offload: refused"), (3, "offload: applied: cart.py on disk")):
        params = {"type": kind, "message": text}
        ask(editor, "test/notify", {"method": "window/showMessage", "params": params})
    assert editor.said() == ["offload: refused", "offload: applied: cart.py on disk"]


def test_what_was_applied_is_undone(editor, about):
    landing = {"apply_id": "a", "turn_id": "turn_1", "paths": [], "files": [], "hunks": [], "at": 1.0, "by": ""}
    tell(
        editor,
        about(task_id="task_1", phase="ready", landings=[landing | {"undone_at": 2.0}]),
        about(task_id="task_2", phase="ready", landings=[landing | {"undone_at": 2.0}, landing | {"undone_at": None}]),
    )
    cursor_at(editor, 4)
    editor.command("OffloadUndo")
    assert run(editor) == [("offload.undo", {"task_id": "task_2"})]


def test_changes_are_rejected_with_a_reason_and_sent_back_with_a_bang(editor, about):
    tell(editor, about({"changes": CHANGES}, phase="ready"))
    cursor_at(editor, 4)
    editor.command("OffloadReject not like this")
    editor.lua("vim.ui.input = function(options, done) asked = options.prompt; done('too long') end")
    editor.command("OffloadReject!")
    editor.lua("vim.ui.input = function(_, done) done(nil) end")
    editor.command("OffloadReject")
    assert editor.lua("return asked") == "Why? "
    assert run(editor) == [
        ("offload.reject", {"task_id": "task_1", "reason": "not like this", "send_back": False}),
        ("offload.reject", {"task_id": "task_1", "reason": "too long", "send_back": True}),
    ]


def test_a_result_is_checked_again(editor, about):
    tell(editor, about({"changes": CHANGES}, phase="ready"))
    cursor_at(editor, 4)
    editor.command("OffloadCheck")
    assert run(editor) == [("offload.check", {"task_id": "task_1"})]


def test_all_results_of_a_workspace_are_integrated(editor, about):
    changed = {"changes": CHANGES}
    made = {
        "task_ids": ["x"],
        "order": [],
        "overlaps": [],
        "left_out": [],
        "culprits": [],
        "before": False,
        "probes": 0,
    }
    tell(
        editor,
        about(changed, task_id="task_1", phase="ready", created_at=4.0),
        about(changed, task_id="task_2", phase="ready", created_at=3.0),
        about(changed, task_id="task_3", phase="ready", created_at=2.0, workspace="/elsewhere"),
        about(changed, task_id="task_4", phase="ready", created_at=1.0, integration=made),
        about(task_id="task_5", phase="ready", created_at=0.0),
    )
    editor.command("OffloadIntegrate")
    assert run(editor) == [("offload.integrate", {"task_ids": ["task_1", "task_2"]})]


def test_what_one_should_be_warned_of_is_listed(editor, about):
    tell(editor, about(warnings=["overlaps with task_2"]))
    editor.command("OffloadTasks")
    listed = editor.lua("return vim.tbl_map(function(i) return i.text end, vim.fn.getqflist())")
    assert listed == ["Tests for total (working) — warning: overlaps with task_2"]


def test_a_refusal_is_shown_in_the_servers_words(editor, about):
    tell(editor, about({"changes": CHANGES}, phase="ready"))
    cursor_at(editor, 4)
    refused = {"code": -32000, "message": "task_1 is being continued"}
    ask(editor, "test/answer", {"method": "offload/closeTask", "answer": {"error": refused}})
    editor.command("OffloadClose")
    editor.until("#said > 0")
    assert editor.said() == ["offload: task_1 is being continued"]


def test_changes_are_shown_as_a_patch_that_cannot_be_edited(editor, about):
    tell(editor, about({"changes": CHANGES}, phase="ready"))
    cursor_at(editor, 4)
    patch = "diff --git a/test_cart.py b/test_cart.py\n+one\n+two\n"
    will_answer(editor, "offload/getChanges", {"task_id": "task_1", "changes": CHANGES, "patch": patch})
    editor.command("OffloadDiff")
    editor.until("vim.bo.filetype == 'diff'")
    assert editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)") == patch.splitlines()
    assert editor.lua("return { vim.bo.modifiable, vim.bo.buftype }") == [False, "nofile"]


def test_open_tasks_are_listed_where_their_blocks_are_now(editor, about):
    tell(
        editor,
        about(task_id="task_1", created_at=3.0),
        about(task_id="task_2", created_at=2.0, anchor=None, title="Tidy up", phase="cancelled"),
        about(task_id="task_3", created_at=1.0, closed=True),
    )
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, { '# one' })")
    editor.command("OffloadTasks")
    assert editor.lua("return vim.bo.filetype") == "qf"
    listed = editor.lua("return vim.tbl_map(function(i) return { i.lnum, i.text } end, vim.fn.getqflist())")
    assert listed == [[5, "Tests for total (working)"], [0, "Tidy up (cancelled)"]]


def test_only_what_the_server_answers_is_asked():
    """The VS Code extension is held to the same by its types."""
    asked = {
        method
        for file in PLUGIN.rglob("*.lua")
        if file.name != "protocol.lua"
        for method in re.findall(r"'(offload/\w+)'", file.read_text(encoding="utf-8"))
    }
    assert asked - {TASK_CHANGED} <= set(REQUESTS)
    assert {"offload/startTask", TASK_CHANGED} <= asked
    run = {
        name
        for file in PLUGIN.rglob("*.lua")
        for name in re.findall(r"command\('(offload\.\w+)'", file.read_text(encoding="utf-8"))
    }
    assert {"offload.apply", "offload.undo"} <= run <= set(COMMANDS)


def test_without_a_server_a_command_says_what_to_do(idle_editor):
    idle_editor.lua("require('offload').setup({ cmd = { ... } })", sys.executable)
    idle_editor.command("Offload tests")
    assert idle_editor.said() == ["offload: no language server runs; open a file of a supported language first"]


def test_a_program_that_is_not_there_is_named_at_the_set_up_and_by_a_command(idle_editor):
    idle_editor.lua("require('offload').setup({ cmd = { 'no-such-offload', 'lsp' } })")
    told = "offload: the program `no-such-offload` was not found on PATH; set cmd in setup()"
    assert idle_editor.said() == [told]
    idle_editor.command("Offload tests")
    assert idle_editor.said() == [told, told]


def test_a_folder_of_help_that_cannot_be_written_to_is_no_trouble(idle_editor, tmp_path):
    (tmp_path / "plugin" / "doc" / "tags").mkdir(parents=True)
    shutil.copy(PLUGIN / "doc" / "offload.txt", tmp_path / "plugin" / "doc")
    os.utime(tmp_path / "plugin" / "doc" / "tags", (0, 0))
    idle_editor.command(f"set rtp^={tmp_path / 'plugin'}")
    idle_editor.lua("require('offload').setup({ cmd = { ... } })", sys.executable)
    assert idle_editor.said() == []


def test_the_set_up_makes_the_help_known(idle_editor, tmp_path):
    """`:helptags` fails on a tag that is given twice, `:help` on one that is missing."""
    plugin = tmp_path / "a plugin"
    shutil.copytree(PLUGIN / "doc", plugin / "doc", ignore=shutil.ignore_patterns("tags"))
    idle_editor.lua("vim.opt.runtimepath:prepend(...)", str(plugin))
    idle_editor.lua("require('offload').setup({ cmd = { ... } })", sys.executable)
    assert (plugin / "doc" / "tags").is_file()
    commands = idle_editor.lua("return vim.fn.getcompletion('Offload', 'command')")
    assert len(commands) == 12  # each of them is in the help
    for name in ("offload", "offload.setup()", *(f":{name}" for name in commands)):
        idle_editor.command(f"help {name}")
        assert idle_editor.lua("return vim.fn.expand('%:t')") == "offload.txt"
