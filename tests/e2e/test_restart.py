"""What becomes of tasks, fronts and workers when the hub is killed, on a stage of its own; asks are denied there after a second."""

import asyncio
import json
import os
import signal

import pytest

from offload.cli.exits import Exit
from offload.hub.forward import LOST
from offload.processes import identify
from tests.e2e.editor import editing
from tests.e2e.host import BareHost, facts, hosting, rested, until
from tests.e2e.stage import BOUND_S, SOURCE, Stage, brief, reached, rewriting, shell, write


@pytest.fixture(scope="module")
def stage(model):
    stage = Stage(model, OFFLOAD_ASK_TIMEOUT_S="1")
    yield stage
    stage.close()


@pytest.fixture
def host(stage, project):
    host = BareHost(stage, project).open()
    yield host
    host.process.kill()
    host.process.communicate()


async def test_what_nobody_answers_in_time_is_denied_in_words_and_the_turn_goes_on(stage, project):
    async with hosting(stage, project) as client:
        started = await facts(client, "start_task", brief=brief(shell("echo x > y.txt"), "::echo"))
        await until(client, started["task_id"], lambda task: task["state"] == "input_required")
        done = await until(client, started["task_id"], lambda task: task["state"] == "completed")
        assert done.get("files_changed", 0) == 0
        result = await facts(client, "get_task_result", task_id=started["task_id"])
        assert "Nobody was there to allow this." in result["text"]


async def test_after_a_crash_of_everything_the_task_is_there_with_its_changes_and_can_go_on(
    stage, project, model, host
):
    """Hub and worker are killed. The host's front answers what was open and goes on with the next hub, which it starts."""
    gate = model.gate("restart")
    started = host.call("start_task", brief=brief(write("a.txt", "a\n"), "::gate restart never"))["structuredContent"]
    task_id = started["task_id"]
    assert gate.reached.wait(BOUND_S)
    waiting = host.start("tools/call", {"name": "wait_for_tasks", "arguments": {"task_ids": [task_id]}})
    terminal = BareHost(stage, project, ("wait", task_id, "--json"))
    stage.connected("rpc")
    hub, (worker,) = stage.hub_pid(), stage.opencode()
    os.kill(hub, signal.SIGKILL)
    os.kill(worker["pid"], signal.SIGKILL)

    lost = host.answer(waiting)["error"]
    assert (lost["code"], lost["data"]["code"]) == (-32000, "hub_unavailable")
    assert "call list_tasks" in lost["message"]
    listed = host.call("list_tasks", workspace=str(project))["structuredContent"]["tasks"]
    assert [task["task_id"] for task in listed] == [task_id]
    code, told, _ = terminal.close()
    assert (code, json.loads(told)["error"]["code"]) == (Exit.NO_HUB, "hub_unavailable")

    async with hosting(stage, project) as client:
        (listed,) = (await facts(client, "list_tasks", workspace=str(project)))["tasks"]
        assert listed["task_id"] == task_id
        task = await rested(client, task_id)
        assert (task["phase"], task["state"], task["files_changed"]) == ("interrupted", "failed", 1)
        result = await facts(client, "get_task_result", task_id=task_id)
        assert [file["path"] for file in result["changes"]["files"]] == ["a.txt"]
        assert "resume_task" in task["next_step"]
        steps = brief(write("b.txt", "b\n"), "::text Both.")
        await facts(client, "continue_task", task_id=task_id, brief=steps)
        continued = await rested(client, task_id)
        assert (continued["phase"], continued.get("failure")) == ("ready", None)
        assert continued["files_changed"] == 2
    assert stage.hub_pid() not in {hub, None}


async def test_a_task_whose_hub_alone_is_killed_is_met_again_where_it_is(stage, project, model):
    """Its worker goes on without a hub; the next one follows the same turn of the same server to its end."""
    gate = model.gate("left-over")
    async with hosting(stage, project) as client:
        started = await facts(client, "start_task", brief=brief(write("a.txt", "a\n"), "::gate left-over Done."))
        assert await reached(gate)
        left = stage.opencode()
        os.kill(stage.hub_pid(), signal.SIGKILL)
    async with hosting(stage, project, "legacy") as client:
        gate.opened.set()
        task = await rested(client, started["task_id"])
        assert (task["phase"], task["files_changed"]) == ("ready", 1)
        assert stage.opencode() == left
        again = await facts(client, "continue_task", task_id=task["task_id"], brief=brief("::text Again."), wait_s=45)
        assert again["phase"] == "ready"


async def test_an_apply_that_is_cut_off_while_an_editor_takes_it_is_not_called_applied_and_can_be_done_again(
    stage, project
):
    """The hub is killed when the buffer has changed, before the disk and before anything was recorded."""
    file, typed = project / "shapes.py", "# typed\n" + SOURCE  # what is not saved is in the worker's folder, too
    after = typed + "\n\nMORE = 1\n"
    async with editing(stage, project, takes_edits=True) as editor:
        editor.open(file, typed)
        steps = brief(*rewriting("shapes.py", after), write("new.txt", "new\n"), "::text Done.")
        task_id = (await editor.ask("offload/startTask", brief=steps))["task_id"]
        await editor.task_in(task_id, "ready")
        hub = identify(stage.hub_pid())
        editor.taken = lambda: os.kill(hub.pid, signal.SIGKILL)
        applying = asyncio.create_task(editor.ask("offload/applyTask", task_id=task_id))
        async with asyncio.timeout(BOUND_S):
            assert await editor.process.wait() == LOST
        applying.cancel()
        assert editor.text(file) == after

    task = stage.json("show-task", task_id)
    assert (task["phase"], task["landings"]) == ("ready", [])
    assert stage.json("task-status", task_id)["hunks_pending"] == 2
    assert file.read_text() == SOURCE
    assert not (project / "new.txt").exists()
    async with editing(stage, project, takes_edits=True) as editor:
        editor.open(file, after)
        landed = await editor.ask("offload/applyTask", task_id=task_id)
        told = {each["path"]: (each["place"], each["unchanged"]) for each in landed["files"]}
        assert told == {"shapes.py": ("buffer", True), "new.txt": ("disk", False)}
        assert editor.text(file) == after
    assert (project / "new.txt").read_text() == "new\n"
    assert file.read_text() == SOURCE
