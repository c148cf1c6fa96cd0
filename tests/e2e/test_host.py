"""A model's host over the installed `offload mcp`, the real hub and a real OpenCode, by the MCP SDK's own stdio client."""

import asyncio
import json
import subprocess
import sys

import psutil
import pytest

from tests.e2e.host import MODES, facts, hosting, refusal, rested, until
from tests.e2e.stage import BOUND_S, OFFLOAD, brief, reached, shell, write

LONG = "word " * 3000

# A host of its own process: starts a task and waits in the call, until it is killed.
KILLED = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters

async def main():
    command, brief = sys.argv[1:]
    async with Client(StdioServerParameters(command=command, args=["mcp"], env=json.load(sys.stdin))) as client:
        await client.call_tool("start_task", {"brief": brief, "wait_s": 45, "key": "once"})

asyncio.run(main())
"""


@pytest.mark.parametrize("mode", MODES)
async def test_a_model_hands_over_a_block_follows_it_reads_the_result_and_sends_it_back(stage, project, model, mode):
    gate = model.gate(f"host-{mode}")
    steps = brief(write("area.txt", "one\ntwo\n"), f"::gate host-{mode} It is written. {LONG}")
    heard, listening = [], asyncio.Event()

    async def hear(progress, total, message):
        heard.append((progress, message))
        listening.set()

    async with hosting(stage, project, mode) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {
            "list_agents", "start_task", "continue_task", "resume_task", "cancel_task", "answer_task", "get_task_status",
            "get_task_result", "wait_for_tasks", "list_tasks", "get_changes", "apply_task", "reject_task", "undo_apply",
            "integrate_tasks", "run_checks",
        }  # fmt: skip

        started = await facts(client, "start_task", brief=steps, file="shapes.py", symbol="area", key=f"host-{mode}")
        task_id = started["task_id"]
        assert started["phase"] in {"queued", "starting", "working"}
        again = await facts(client, "start_task", brief=steps, file="shapes.py", symbol="area", key=f"host-{mode}")
        assert again["task_id"] == task_id, "a retry of the host starts nothing new"
        assert await reached(gate)
        working = await until(client, task_id, lambda task: "so far" in task.get("partial_text", ""))
        assert working["phase"] == "working"
        assert "lines 1-2" in model.requests[-1]["prompt"], "the block was found by its name"

        waiting = asyncio.create_task(facts(client, "wait_for_tasks", hear, task_ids=[task_id], timeout_s=45))
        await asyncio.wait_for(listening.wait(), BOUND_S)
        gate.opened.set()
        waited = await waiting
        assert waited["done"]
        assert waited["tasks"][0]["files_changed"] == 1
        numbers = [number for number, _ in heard]
        assert numbers == sorted(set(numbers))
        assert len(numbers) > 1, "the end was heard, too"

        result = await facts(client, "get_task_result", task_id=task_id)
        (file,) = result["changes"]["files"]
        assert (file["path"], file["status"], file["added_lines"]) == ("area.txt", "added", 2)
        text = result["text"]
        while (offset := result.get("next_text_offset")) is not None:
            result = await facts(client, "get_task_result", task_id=task_id, text_offset=offset)
            text += result["text"]
        assert text.strip().endswith(LONG.strip())
        assert "+two" in (await facts(client, "get_changes", task_id=task_id))["patch"]

        again = brief(write("more.txt", "three\n"), "::text And more.")
        continued = await facts(client, "continue_task", task_id=task_id, brief=again, wait_s=45)
        assert (continued["phase"], continued["files_changed"]) == ("ready", 2)
        assert continued["turn_id"] != started["turn_id"]
        listed = await facts(client, "list_tasks", workspace=str(project))
        assert [task["task_id"] for task in listed["tasks"]] == [task_id]


async def test_a_cancelled_task_is_gone_once_its_worker_is(stage, project, model):
    gate = model.gate("host-cancel")
    async with hosting(stage, project) as client:
        started = await facts(client, "start_task", brief=brief(write("a.txt", "a\n"), "::gate host-cancel never"))
        assert await reached(gate)
        asked = await facts(client, "cancel_task", task_id=started["task_id"])
        assert asked["phase"] in {"cancelling", "cancelled"}
        waited = await facts(client, "wait_for_tasks", task_ids=[started["task_id"]], timeout_s=45)
        assert waited["tasks"][0]["phase"] == "cancelled"
        result = await facts(client, "get_task_result", task_id=started["task_id"])
        assert [file["path"] for file in result["changes"]["files"]] == ["a.txt"], "what was done is kept"


@pytest.mark.parametrize("choice", ["allow", "deny"])
async def test_a_shell_command_that_is_not_allowed_is_asked_for_and_answered(stage, project, choice):
    async with hosting(stage, project) as client:
        steps = brief(shell("echo from-the-shell > shell.txt"), "::echo")
        started = await facts(client, "start_task", brief=steps)
        task_id = started["task_id"]
        asking = await until(client, task_id, lambda task: task["state"] == "input_required")
        (ask,) = asking["asks"]
        assert "echo from-the-shell" in ask["detail"]
        assert ask["choices"] == ["allow", "always", "deny"]
        message = "Not here, please." if choice == "deny" else ""
        await facts(client, "answer_task", task_id=task_id, ask_id=ask["ask_id"], choice=choice, message=message)
        done = await until(client, task_id, lambda task: task["state"] == "completed")
        assert done.get("files_changed", 0) == (1 if choice == "allow" else 0)
        late = await refusal(client, "answer_task", task_id=task_id, ask_id=ask["ask_id"], choice="allow")
        assert late.startswith("unknown_ask: ")


async def test_what_is_not_there_is_told_with_what_is(stage, project):
    """Each call is answered, and the connection goes on."""
    async with hosting(stage, project) as client:
        agents = await facts(client, "list_agents")
        assert [model["id"] for model in agents["workers"][0]["models"]] == ["fake/worker", "fake/other"]
        assert "unknown_task" in await refusal(client, "get_task_status", task_id="nothing")
        unknown = await refusal(client, "start_task", file="shapes.py", symbol="Area", recipe="tests")
        assert "no block 'Area'; did you mean area?" in unknown
        assert "unknown_worker" in await refusal(client, "start_task", brief="x", worker="nobody")
        assert "unknown_recipe" in await refusal(client, "start_task", brief="x", recipe="soup")
        assert "invalid_request" in await refusal(client, "start_task", brief="x", modell="typo")
        assert "not_a_workspace" in await refusal(client, "start_task", brief="x", workspace="/not/there")
        for code, told, wrong in (
            ("unknown_model", "fake/worker", {"model": "fake/workr"}),
            ("unknown_agent", "build", {"agent": "bild"}),
        ):
            started = await facts(client, "start_task", brief="x", **wrong)
            failed = await rested(client, started["task_id"])
            assert (failed["phase"], failed["failure"]["code"]) == ("failed", code)
            assert told in failed["failure"]["message"]


async def test_a_task_outlives_its_host_that_is_killed_in_the_middle_of_a_call(stage, project, model):
    gate = model.gate("host-killed")
    steps = brief(write("a.txt", "a\n"), "::gate host-killed Done.")
    command = [sys.executable, "-c", KILLED, str(OFFLOAD), steps]
    process = await asyncio.create_subprocess_exec(*command, cwd=project, stdin=subprocess.PIPE, env=stage.environ)
    try:
        process.stdin.write(json.dumps(stage.environ).encode())
        process.stdin.write_eof()
        assert await reached(gate)
        fronts = psutil.Process(process.pid).children()
    finally:
        process.kill()
        await process.wait()
    _, left = await asyncio.to_thread(psutil.wait_procs, fronts, BOUND_S)
    assert not left
    async with hosting(stage, project) as client:
        (task,) = (await facts(client, "list_tasks", workspace=str(project)))["tasks"]
        assert task["phase"] == "working"
        gate.opened.set()
        again = await facts(client, "start_task", brief=steps, key="once", wait_s=45)
        assert (again["task_id"], again["phase"], again["files_changed"]) == (task["task_id"], "ready", 1)
