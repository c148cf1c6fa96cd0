"""An editor over the installed `offload lsp`, the real hub and a real OpenCode."""

import json
import os
import signal
from contextlib import suppress

import psutil
import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from tests.e2e.editor import editing
from tests.e2e.stage import BOUND_S, SOURCE, brief, reached, write

DELEGATE = "Delegate tests for this block"
TESTS = "def test_area():\n    assert area(2, 3) == 6\n"


def with_steps(*steps):
    """The project's file as it is on the screen, not saved: the block tells the scripted model what to do."""
    lines = "\n".join(f"    {step}" for step in steps)
    return SOURCE.replace(
        "    return width * height", f'    """The area.\n\n{lines}\n    """\n    return width * height', 1
    )


def edit(path, old, new):
    return f"::tool edit {json.dumps({'filePath': path, 'oldString': old, 'newString': new})}"


def read(path):
    return f"::tool read {json.dumps({'filePath': path})}"


def kinds(reports):
    return [report.kind for report in reports]


async def progress_of(editor, state="end"):
    """The reports of the only progress that this editor was shown, as soon as one of the kind `state` is there."""

    def reports():
        found = list(editor.progress_reports.values())
        return found[0] if found and state in kinds(found[0]) else None

    return await editor.until(reports)


async def test_a_block_on_the_screen_is_delegated_watched_and_applied(stage, project, model):
    """What is not saved yet is what the worker sees, and what it changed is merged with what was typed meanwhile."""
    file = project / "shapes.py"
    gate = model.gate("editor-whole")
    screen = with_steps(
        write("tests/test_area.py", TESTS),
        read("shapes.py"),
        edit("shapes.py", 'f"<{name}>"', 'f"[{name}]"'),
        "::gate editor-whole The area is covered.",
    )
    async with editing(stage, project, takes_edits=True) as editor:
        editor.open(file, screen)
        offered = await editor.actions(file, 1)
        started = await editor.execute(offered[DELEGATE])
        task_id = started["task_id"]
        assert started["phase"] in {"queued", "starting", "working"}

        await editor.task_in(task_id, "working")
        titles = await editor.lens_saying(file.as_uri(), "working")
        assert titles[0].startswith("offload: tests — ")
        assert "cancel" in titles
        reports = await progress_of(editor, "report")
        assert reports[0].kind == "begin"
        assert reports[0].title == "offload: tests for area"
        assert reports[0].cancellable

        gate.opened.set()
        ready = await editor.task_in(task_id, "ready")
        assert "The area is covered." in ready["turns"][0]["text"]
        titles = await editor.lens_saying(file.as_uri(), "ready: 2 files")
        assert {"apply", "diff", "close"} <= set(titles)
        assert kinds(await progress_of(editor))[-1] == "end"
        assert kinds(await progress_of(editor)).count("end") == 1

        whole = await editor.ask("offload/getTask", task_id=task_id)
        assert [change["path"] for change in whole["turns"][0]["changes"]["files"]] == [
            "shapes.py",
            "tests/test_area.py",
        ]
        assert whole["anchor"] == {
            "path": "shapes.py", "symbol": "area", "kind": "function", "first_line": 1, "last_line": 9
        }  # fmt: skip
        assert file.read_text() == SOURCE, "nothing lands by itself"

        editor.type(file, "# typed meanwhile\n" + screen)
        landed = await editor.ask("offload/applyTask", task_id=task_id, include_outside=True)
        assert {each["path"]: each["place"] for each in landed["files"]} == {
            "shapes.py": "buffer",
            "tests/test_area.py": "disk",
        }
        assert editor.text(file) == "# typed meanwhile\n" + screen.replace('f"<{name}>"', 'f"[{name}]"')
        assert file.read_text() == SOURCE, "an open file is saved by its user alone"
        assert (project / "tests/test_area.py").read_text() == TESTS
        await editor.lens_saying(file.as_uri(), "applied: 2 files")

        undo = types.Command("undo", "offload.undo", arguments=[{"task_id": task_id}])
        await editor.execute(undo)
        assert editor.text(file) == "# typed meanwhile\n" + screen
        assert not (project / "tests/test_area.py").exists()
        await editor.lens_saying(file.as_uri(), "ready: 2 files")


async def test_in_an_editor_that_takes_no_edits_a_file_must_be_saved_first(stage, project, model):
    file = project / "shapes.py"
    async with editing(stage, project) as editor:
        editor.open(file)
        steps = brief(read("shapes.py"), edit("shapes.py", 'f"<{name}>"', 'f"[{name}]"'), "Done.")
        task_id = (await editor.ask("offload/startTask", brief=steps))["task_id"]
        await editor.task_in(task_id, "ready")
        typed = "# typed\n" + SOURCE
        editor.type(file, typed)
        with pytest.raises(JsonRpcException) as refused:
            await editor.ask("offload/applyTask", task_id=task_id)
        assert refused.value.data["code"] == "apply_refused"
        assert [reason.partition(":")[0] for reason in refused.value.data["reasons"]] == ["shapes.py"]
        assert "save" in refused.value.data["reasons"][0]
        assert file.read_text() == SOURCE

        editor.save(file, typed)
        landed = await editor.ask("offload/applyTask", task_id=task_id)
        assert [each["place"] for each in landed["files"]] == ["disk"]
        assert file.read_text() == typed.replace('f"<{name}>"', 'f"[{name}]"')


async def test_the_users_cancel_of_the_progress_stops_the_task(stage, project, model):
    gate = model.gate("editor-cancel")
    async with editing(stage, project) as editor:
        started = await editor.ask("offload/startTask", brief=brief("::gate editor-cancel never said"))
        await editor.task_in(started["task_id"], "working")
        await progress_of(editor, "report")
        assert await reached(gate)
        (token,) = editor.progress_reports
        editor.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
        cancelled = await editor.task_in(started["task_id"], "cancelled")
        assert "never said" not in cancelled["turns"][0]["text"]
        assert kinds(await progress_of(editor))[-1] == "end"


async def test_a_task_outlives_its_editor_that_is_killed_and_the_next_one_sees_it(stage, project, model):
    """The pipe of a killed editor may stay open, because another process holds it; here the test does."""
    gate = model.gate("editor-killed")
    async with editing(stage, project, by_a_shell=True) as editor:
        started = await editor.ask(
            "offload/startTask", brief=brief(write("a.txt", "a\n"), "::gate editor-killed Done.")
        )
        await editor.task_in(started["task_id"], "working")
        assert await reached(gate)
        front = editor.front()
        assert front.pid != editor.process.pid
        os.kill(editor.process.pid, signal.SIGKILL)
        with suppress(psutil.NoSuchProcess):  # ended already
            front.wait(BOUND_S)
    async with editing(stage, project) as other:
        (seen,) = (await other.ask("offload/showTasks", workspace=str(project)))["tasks"]
        assert (seen["task_id"], seen["phase"]) == (started["task_id"], "working")
        gate.opened.set()
        ready = await other.task_in(started["task_id"], "ready")
        assert [change["path"] for change in ready["turns"][0]["changes"]["files"]] == ["a.txt"]


async def test_two_editors_see_the_same_task_and_the_exit_of_one_ends_nothing(stage, project, model):
    gate = model.gate("editor-two")
    hub = stage.hub_pid()
    async with editing(stage, project) as one, editing(stage, project) as other:
        started = await one.ask("offload/startTask", brief=brief("::gate editor-two Done."))
        for editor in (one, other):
            await editor.task_in(started["task_id"], "working")
        assert not other.progress_reports, "progress is for the editor that started the task"
        assert await one.leave() == 0
        gate.opened.set()
        await other.task_in(started["task_id"], "ready")
        assert await other.leave() == 0
    assert stage.hub_pid() == hub
