"""One task and all three fronts at once, and more tasks than there are places."""

import asyncio

from lsprotocol import types

from tests.e2e.editor import editing
from tests.e2e.host import facts, hosting, until
from tests.e2e.stage import brief, reached, write


async def test_a_task_is_started_by_a_model_watched_in_the_terminal_and_cancelled_in_an_editor(stage, project, model):
    gate = model.gate("together")
    async with editing(stage, project) as editor, hosting(stage, project) as client:
        started = await facts(client, "start_task", brief=brief(write("a.txt", "a\n"), "::gate together never"))
        task_id = started["task_id"]
        assert await reached(gate)
        waiting = asyncio.create_task(facts(client, "wait_for_tasks", task_ids=[task_id], timeout_s=45))
        (listed,) = stage.json("list-tasks", "--live", "--workspace", project)["tasks"]
        assert (listed["task_id"], listed["phase"]) == (task_id, "working")
        seen = await editor.task_in(task_id, "working")
        assert seen["front"] == "mcp"
        assert seen["title"] == listed["title"] == started["title"]
        stopped = await editor.execute(types.Command("cancel", "offload.cancel", arguments=[{"task_id": task_id}]))
        assert stopped["phase"] in {"cancelling", "cancelled"}
        (waited,) = (await waiting)["tasks"]
        assert waited["phase"] == "cancelled"
        view = await editor.task_in(task_id, "cancelled")
        (listed,) = stage.json("list-tasks", "--workspace", project)["tasks"]
        assert listed["phase"] == "cancelled"
        assert listed["revision"] == waited["revision"] == view["revision"], "one task, one count of its events"


async def test_five_tasks_work_at_a_time_and_the_sixth_waits_in_line(stage, project, model):
    gates = [model.gate(f"queue-{number}") for number in range(6)]
    async with hosting(stage, project) as client:

        async def start(number):
            steps = brief(write(f"{number}.txt", "x\n"), f"::gate queue-{number} Done.")
            return (await facts(client, "start_task", brief=steps))["task_id"]

        tasks = [await start(number) for number in range(5)]
        for gate in gates[:5]:
            assert await reached(gate)
        tasks.append(await start(5))
        queued = await until(client, tasks[5], lambda task: task.get("place"))
        assert (queued["phase"], queued["place"]) == ("queued", 1)
        listed = (await facts(client, "list_tasks", workspace=str(project), live=True))["tasks"]
        assert sorted(task["phase"] for task in listed) == ["queued", *["working"] * 5]
        assert not gates[5].reached.is_set()

        gates[3].opened.set()
        assert await reached(gates[5])
        working = await facts(client, "get_task_status", task_id=tasks[5])
        assert (working["phase"], working.get("place")) == ("working", None)
        for gate in gates:
            gate.opened.set()
        ready = await facts(client, "wait_for_tasks", task_ids=tasks, timeout_s=45)
        assert [task["phase"] for task in ready["tasks"]] == ["ready"] * 6
        for number, task_id in enumerate(tasks):
            changed = (await facts(client, "get_task_result", task_id=task_id))["changes"]["files"]
            assert [file["path"] for file in changed] == [f"{number}.txt"], "each has a folder of its own"
