"""A host and the core, over a real socket pair, in both protocol eras."""

import asyncio
import logging

import pytest

from mcp import MCPError
from offload.core.worker import WorkerInfo
from offload.domain.errors import Defect
from offload.domain.task import Phase
from tests.fakes.house import open_house
from tests.fakes.journal import MemoryJournal
from tests.mcp.wires import MODES, bare, call, facts, host, refusal

both_eras = pytest.mark.parametrize("mode", MODES)


@both_eras
async def test_a_task_goes_from_start_to_result(house, mode):
    async with host(house, mode) as client:
        assert len((await client.list_tools()).tools) == 16
        started = await facts(client, "start_task", brief="::write a.txt hi\n::text All done.")
        waited = await facts(client, "wait_for_tasks", task_ids=[started["task_id"]])
        assert waited["done"] is True
        assert waited["tasks"][0]["state"] == "completed"
        result = await facts(client, "get_task_result", task_id=started["task_id"])
        assert result["text"] == "All done."
        assert [(file["path"], file["status"]) for file in result["changes"]["files"]] == [("a.txt", "added")]
        listed = await facts(client, "list_tasks")
        assert [task["task_id"] for task in listed["tasks"]] == [started["task_id"]]


@both_eras
async def test_the_server_says_who_it_is_and_how_the_tools_go_together(house, mode):
    async with host(house, mode) as client:
        if mode != "2026-07-28":  # with a pinned version nothing is discovered
            assert client.server_info.name == "offload"
            assert "wait_for_tasks" in client.instructions
            assert client.server_capabilities.tools is not None
            assert client.server_capabilities.prompts is not None
        (prompt,) = (await client.list_prompts()).prompts
        assert prompt.name == "delegate_task"
        assert [argument.name for argument in prompt.arguments] == ["goal"]


@both_eras
async def test_the_prompt_says_what_to_hand_over_to_whom_and_how_to_review(house, mode):
    async with host(house, mode) as client:
        got = await client.get_prompt("delegate_task", {"goal": "raise {coverage} to 90 %"})
        text = got.messages[0].content.text
        assert "Reach this goal by delegating what can be delegated: raise {coverage} to 90 %" in text
        for tool in ("start_task", "list_agents", "wait_for_tasks", "answer_task", "get_task_result", "continue_task"):
            assert tool in text


@both_eras
async def test_a_wrong_prompt_is_refused_with_what_there_is(house, mode):
    async with host(house, mode) as client:
        with pytest.raises(MCPError, match="there is no prompt 'other'; there is delegate_task"):
            await client.get_prompt("other", {"goal": "x"})
        with pytest.raises(MCPError, match="goal is missing"):
            await client.get_prompt("delegate_task")


@both_eras
async def test_what_went_wrong_is_a_result_that_says_what_to_do(house, mode):
    """A model reads results; a protocol error is the host's business and may never reach it."""
    async with host(house, mode) as client:
        unknown = await refusal(client, "get_task_status", task_id="nothere")
        assert unknown.startswith("unknown_task: there is no task 'nothere'")
        assert unknown.endswith("\nCall list_tasks for the ids.")
        assert "- timeout_s: " in await refusal(client, "wait_for_tasks", task_ids=["a"], timeout_s=99)
        assert "- task_id: Field required" in await refusal(client, "continue_task", brief="x")
        assert "there is no tool 'clean_tasks'; there are list_agents, " in await refusal(
            client, "clean_tasks", task_id="a"
        )
        assert "unknown_worker: " in await refusal(client, "start_task", brief="x", worker="nobody")
        assert "invalid_request: lines must look like" in await refusal(client, "start_task", brief="x", lines="ten")
        assert await facts(client, "list_tasks") == {"tasks": [], "left_out": 0}


@both_eras
async def test_a_null_counts_as_not_given(house, mode):
    """Some hosts fill every optional parameter of a schema with null."""
    async with host(house, mode) as client:
        await facts(client, "start_task", brief="::text hi", file=None, symbol=None, wait_s=None, key=None)


@both_eras
async def test_a_permission_is_asked_for_and_answered(house, mode):
    async with host(house, mode) as client:
        task_id = (await facts(client, "start_task", brief="::shell rm -r build"))["task_id"]
        await house.until(task_id, lambda task: task.asks)
        status = await facts(client, "get_task_status", task_id=task_id)
        assert status["state"] == "input_required"
        assert (
            status["next_step"] == "Call answer_task with allow, always (for this task) or deny, then wait_for_tasks."
        )
        (ask,) = status["asks"]
        assert (ask["subject"], ask["detail"], ask["choices"]) == ("bash", "rm -r build", ["allow", "always", "deny"])
        await facts(client, "answer_task", task_id=task_id, choice="deny", message="keep it")
        await facts(client, "wait_for_tasks", task_ids=[task_id])
        assert (await facts(client, "get_task_result", task_id=task_id))["text"] == "keep it"


@both_eras
async def test_a_model_reads_the_patch_piece_by_piece(house, mode):
    async with host(house, mode) as client:
        brief = "::write new.py " + "x" * 12_000
        task_id = (await facts(client, "start_task", brief=brief, wait_s=45))["task_id"]
        first = await facts(client, "get_changes", task_id=task_id)
        assert [file["path"] for file in first["changes"]["files"]] == ["new.py"]
        rest = await facts(client, "get_changes", task_id=task_id, patch_offset=first["next_patch_offset"])
        assert rest["patch_offset"] == len(first["patch"])
        assert "next_patch_offset" not in rest
        assert (first["patch"] + rest["patch"]).count("x") == 12_000


@both_eras
async def test_a_follow_up_can_be_waited_for_in_the_same_call(house, mode):
    async with host(house, mode) as client:
        task_id = (await facts(client, "start_task", brief="::text one", wait_s=45))["task_id"]
        again = await facts(client, "continue_task", task_id=task_id, brief="::text two", wait_s=45)
        assert again["state"] == "completed"
        assert (await facts(client, "get_task_result", task_id=task_id))["text"] == "two"


@both_eras
async def test_a_task_can_be_cancelled(house, mode):
    async with host(house, mode) as client:
        task_id = (await facts(client, "start_task", brief="::gate hold"))["task_id"]
        async with asyncio.timeout(20):
            await house.worker.gate("hold").reached.wait()
        await facts(client, "cancel_task", task_id=task_id)
        waited = await facts(client, "wait_for_tasks", task_ids=[task_id])
        assert waited["tasks"][0]["state"] == "cancelled"


async def test_agents_and_recipes_are_listed_and_searched(house):
    async with host(house) as client:
        found = await facts(client, "list_agents", search="other")
        (worker,) = found["workers"]
        assert worker["name"] == "fake"
        assert [model["id"] for model in worker["models"]] == ["fake/other"]
        assert {"tests", "docs", "instruction"} <= {recipe["name"] for recipe in found["recipes"]}


@both_eras
async def test_a_task_remembers_which_program_started_it(house, mode):
    async with host(house, mode) as client:
        task = house.delegation.get((await facts(client, "start_task", brief="::text hi"))["task_id"])
    assert (task.spec.front, task.spec.caller) == ("mcp", "claude-code")


async def test_a_relative_file_is_one_of_the_callers_folder(house):
    async with host(house) as client:
        task_id = (await facts(client, "start_task", recipe="tests", file="shop.py", symbol="Cart.total"))["task_id"]
    assert house.delegation.get(task_id).spec.anchor.block.symbol == "Cart.total"


@both_eras
async def test_progress_is_told_with_every_change_strictly_increasing(house, mode):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total, message))

    async with host(house, mode) as client:
        task_id = (await facts(client, "start_task", brief="::gate a\n::write a.txt x\n::gate b\n::text ok"))["task_id"]
        await house.worker.gate("a").reached.wait()
        waiting = asyncio.create_task(
            client.call_tool("wait_for_tasks", {"task_ids": [task_id[:6]]}, progress_callback=hear)
        )
        # The wait and its report each sleep on the clock: both are there.
        await house.clock.sleepers(2)
        house.worker.gate("a").open()
        await house.worker.gate("b").reached.wait()
        await until(lambda: any(message == f"{task_id} working: editing a.txt" for _, _, message in heard))
        house.worker.gate("b").open()
        assert not (await waiting).is_error
    numbers = [progress for progress, _, _ in heard]
    assert numbers == sorted(set(numbers))
    assert numbers[0] > 0
    assert {total for _, total, _ in heard} == {None}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("start_task", {"brief": "::gate hold\n::text ok"}),
        ("continue_task", {"task_id": "?", "brief": "::gate hold\n::text ok"}),
    ],
)
async def test_a_silent_task_gives_a_sign_of_life_every_10_seconds(house, tool, arguments):
    """Some hosts end a call that was silent; progress keeps those waiting that count it."""
    heard = asyncio.Queue()

    async def hear(progress, total, message):
        heard.put_nowait(message)

    first = await house.rested((await house.start("::text one")).id)
    arguments = {name: first.id if value == "?" else value for name, value in arguments.items()}
    async with host(house) as client, asyncio.timeout(20):
        waiting = asyncio.create_task(client.call_tool(tool, {**arguments, "wait_s": 45}, progress_callback=hear))
        await house.worker.gate("hold").reached.wait()
        while "working" not in await heard.get():
            pass
        for _ in range(3):
            await house.clock.sleepers(2)
            house.clock.advance(10)
            assert await heard.get() == "still waiting"
        house.worker.gate("hold").open()
        status = (await waiting).structured_content
        assert status["state"] == "completed"


async def test_other_peoples_tasks_are_not_told(house):
    heard = []

    async def hear(progress, total, message):
        heard.append(message)

    mine = await house.start("::gate hold\n::text ok")
    async with host(house) as client, asyncio.timeout(20):
        await house.worker.gate("hold").reached.wait()
        call_ = client.call_tool("wait_for_tasks", {"task_ids": [mine.id]}, progress_callback=hear)
        waiting = asyncio.create_task(call_)
        await house.clock.sleepers(2)
        other = await house.rested((await house.start("::text hello")).id)
        house.worker.gate("hold").open()
        await waiting
    assert other.phase is Phase.READY
    assert {message for message in heard if not message.startswith(mine.id)} == {"waiting"}


async def test_a_start_is_told_of_its_own_task_only(house):
    heard = []

    async def hear(progress, total, message):
        heard.append(message)

    async with host(house) as client, asyncio.timeout(20):
        arguments = {"brief": "::gate hold\n::text ok", "file": "shop.py", "symbol": "Cart.total", "wait_s": 45}
        waiting = asyncio.create_task(client.call_tool("start_task", arguments, progress_callback=hear))
        await house.worker.gate("hold").reached.wait()
        other = {**arguments, "symbol": "price"}
        starting = asyncio.create_task(client.call_tool("start_task", other))
        same_words = await house.start("::gate hold\n::text ok")
        house.worker.gate("hold").open()
        own = (await waiting).structured_content["task_id"]
        assert not (await starting).is_error
        await house.rested(same_words.id)
    assert heard
    assert {message for message in heard if not message.startswith(own)} == {"waiting"}


async def test_nothing_is_told_to_a_host_that_gave_no_token(house):
    async with bare(house) as wire:
        wire.write(call(1, "start_task", brief="::text hi", wait_s=45))
        assert (await wire.read())["id"] == 1


async def test_a_cancelled_call_does_not_end_its_task(house):
    async with bare(house) as wire, asyncio.timeout(20):
        wire.write(call(1, "start_task", {"progressToken": "p"}, brief="::gate hold\n::text still here", wait_s=45))
        await house.worker.gate("hold").reached.wait()
        wire.write({"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "too slow"}})
        wire.write(call(2, "list_tasks", live=True))
        (status,) = (await wire.until(2))["result"]["structuredContent"]["tasks"]
        assert status["phase"] == "working"
        house.worker.gate("hold").open()
        task = await house.rested(status["task_id"])
    assert (task.phase, task.turn.text) == (Phase.READY, "still here")


async def test_a_cancel_for_a_call_that_was_answered_is_ignored(house):
    """One host sends these after every answer."""
    async with bare(house) as wire:
        wire.write(call(1, "list_tasks"))
        await wire.until(1)
        wire.write({"method": "notifications/cancelled", "params": {"requestId": 1}})
        wire.write({"method": "notifications/cancelled", "params": {"requestId": "never"}})
        wire.write(call(2, "list_tasks"))
        assert (await wire.until(2))["result"]["isError"] is False


async def test_a_host_that_goes_away_leaves_its_tasks(house):
    async with bare(house) as wire, asyncio.timeout(20):
        wire.write(call(1, "start_task", brief="::gate hold\n::text still here", wait_s=45))
        await house.worker.gate("hold").reached.wait()
    house.worker.gate("hold").open()
    (task,) = house.delegation.tasks()
    assert (await house.rested(task.id)).turn.text == "still here"


class HeldJournal(MemoryJournal):
    """Writes nothing until the test opens it."""

    def __init__(self):
        super().__init__()
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    async def append(self, task, events, *, expect):
        self.reached.set()
        await self.opened.wait()
        return await super().append(task, events, expect=expect)


async def test_a_start_whose_host_goes_away_before_its_answer_runs_all_the_same(tmp_path):
    """It may be on disk already; a task that is there and never runs would be worst."""
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house, asyncio.timeout(20):
        with house.delegation.watching() as watcher:
            async with bare(house) as wire:
                wire.write(call(1, "start_task", brief="::text hi"))
                await journal.reached.wait()
            journal.opened.set()
            (task, *_) = await watcher.changes()
        assert (await house.rested(task.id)).turn.text == "hi"


async def test_the_tool_list_stays_the_same(house):
    async with bare(house) as wire:
        lists = []
        for request_id in range(2):
            wire.write({"id": request_id, "method": "tools/list"})
            lists.append((await wire.until(request_id))["result"]["tools"])
            await house.rested((await house.start("::text hi")).id)
    assert lists[0] == lists[1]


class Broken:
    """A core in which something that cannot happen happens."""

    def __init__(self, house, error):
        self.clock = house.clock
        self._error = error

    def tasks(self, *_, **__):
        raise self._error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError("secret"), "defect: list_tasks went wrong, see "),
        (Defect("two turns run"), "defect: two turns run"),
    ],
)
async def test_a_fault_of_ours_is_told_with_its_key_in_the_log_and_the_connection_lives(house, caplog, error, told):
    async with host(house, delegation=Broken(house, error)) as client:
        text = await refusal(client, "list_tasks")
        again = await refusal(client, "list_tasks")
    assert text.startswith(told)
    assert again.startswith(told)
    assert "secret" not in text
    (first, _) = [record for record in caplog.records if record.name == "offload.mcp.server"]
    assert first.levelno == logging.ERROR
    assert first.exc_info[1] is error
    assert first.getMessage().split(":")[0] in text


async def test_a_worker_that_is_missing_is_listed_with_what_to_do(house):
    house.worker.info = WorkerInfo("fake", problem="fake was not found; install it with `offload install fake`")
    async with host(house) as client:
        (worker,) = (await facts(client, "list_agents"))["workers"]
    assert worker["problem"] == "fake was not found; install it with `offload install fake`"


async def until(condition):
    """Lets everybody go on until it is true."""
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 the callbacks run on this loop, one turn each
            await asyncio.sleep(0)
