"""What a task may use: counted while it works, and ended with its work kept."""

import asyncio

import pytest

from offload.core.limits import DAY_S, TICK_S, Limits
from offload.core.turns.watch import LOOK_S
from offload.core.worker import Alive, Doing, Used
from offload.domain.ask import Answer
from offload.domain.budget import Budget
from offload.domain.errors import BudgetSpent
from offload.domain.task import Phase
from offload.domain.turn import Activity, ActivityKind
from offload.domain.usage import Usage
from tests.fakes.house import open_house
from tests.fakes.worker import FakeWorker, read_prompt

GATE = "::write a.txt one\n::gate door"


async def tick(house, seconds):
    """Let so much time pass in steps that the house counts."""
    for _ in range(int(seconds / TICK_S)):
        await house.clock.naps(TICK_S)
        house.clock.advance(TICK_S)
    await house.clock.naps(TICK_S)


async def over(house, task):
    """The task at rest, a few steps of time later at the most: what the worker said last may have been noted after a step."""
    resting = asyncio.ensure_future(house.rested(task.id))
    for _ in range(3):
        napping = asyncio.ensure_future(house.clock.naps(TICK_S))
        await asyncio.wait({resting, napping}, return_when=asyncio.FIRST_COMPLETED)
        napping.cancel()
        if not resting.done():
            house.clock.advance(TICK_S)
    return await resting


async def at_the_gate(house, brief=GATE, **request):
    task = await house.start(brief, **request)
    await house.worker.gate("door").reached.wait()
    if house.worker.script is read_prompt:  # What it has done until then is noted.
        await house.until(task.id, lambda task: task.activity is not None)
    return task


def using(*usages):
    async def script(stage):
        await stage.seen()
        stage.write("a.txt", "one")
        for usage in usages:
            await stage.used(usage)
        gate = stage.worker.gate("door")
        gate.reached.set()
        await gate.opened.wait()

    return FakeWorker(script)


@pytest.mark.parametrize(
    ("budget", "usage", "words"),
    [
        (Budget(tokens=100), Usage(60, 41), "it has used 101 tokens, and max_tokens is 100"),
        (Budget(cost=0.5), Usage(1, 1, cost=0.51), r"it has cost \$0.51, and max_cost is \$0.5"),
    ],
)
async def test_a_task_that_uses_too_much_is_stopped_and_its_work_is_kept(tmp_path, budget, usage, words):
    async with open_house(tmp_path, worker=using(Usage(1), usage)) as house:
        task = await house.rested((await house.start(budget=budget)).id)
        assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "budget")
        assert task.turn.failure.message == f"stopped by a limit: {words}; its work is kept".replace("\\", "")
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]
        assert house.worker.stage(task.turn.id).over
        assert house.defects == []


async def test_what_reaches_a_limit_and_no_more_is_not_stopped(tmp_path):
    async with open_house(tmp_path, worker=using(Usage(100, cost=0.5))) as house:
        task = await at_the_gate(house, budget=Budget(tokens=100, cost=0.5))
        house.worker.gate("door").open()
        task = await house.rested(task.id)
        assert (task.phase, task.turn.usage.total_tokens) == (Phase.READY, 107)


async def test_a_price_that_is_not_known_counts_as_nothing(tmp_path):
    async with open_house(tmp_path, worker=using(Usage(10**6))) as house:
        task = await at_the_gate(house, budget=Budget(cost=0.0))
        house.worker.gate("door").open()
        assert (await house.rested(task.id)).phase is Phase.READY


async def test_a_task_that_works_too_long_is_stopped(tmp_path):
    async with open_house(tmp_path) as house:
        task = await at_the_gate(house, budget=Budget(minutes=1))
        await tick(house, 60)
        assert house.delegation.get(task.id).live
        task = await over(house, task)
        assert task.turn.failure.code == "budget"
        assert "it has worked for 1.1 minutes, and max_minutes is 1" in task.turn.failure.message
        assert task.turn.worked_s == 60 + TICK_S


async def test_waiting_for_a_person_is_no_work(tmp_path):
    async with open_house(tmp_path, limits=Limits(ask_timeout_s=10**6)) as house:
        task = await house.start(f"::shell rm x\n{GATE}", budget=Budget(minutes=1))
        task = await house.until(task.id, lambda task: task.asks)
        await tick(house, 600)
        await house.delegation.answer(house.caller, task.id, "", Answer("allow"))
        await house.worker.gate("door").reached.wait()
        house.worker.gate("door").open()
        task = await house.rested(task.id)
        assert (task.phase, task.turn.worked_s) == (Phase.READY, 0.0)


async def test_the_sleep_of_the_machine_and_a_clock_that_is_set_are_no_work(tmp_path):
    async with open_house(tmp_path) as house:
        task = await at_the_gate(house, budget=Budget(minutes=1))
        for jump in (8 * 3600, -7200):
            await house.clock.naps(TICK_S)
            house.clock.advance(jump)
        house.clock.advance(7200)
        house.worker.gate("door").open()
        task = await house.rested(task.id)
        assert task.phase is Phase.READY
        assert task.turn.worked_s <= 2 * TICK_S


async def test_all_turns_of_a_task_count_together(tmp_path):
    usage = Usage(60, cost=0.1)
    async with open_house(tmp_path, worker=using(usage)) as house:
        task = await at_the_gate(house, budget=Budget(tokens=150))
        house.worker.gate("door").open()
        await house.rested(task.id)
        house.worker.gate("door").opened.clear()
        await house.delegation.continue_(house.caller, task.id, "more")
        task = await house.rested(task.id)
        assert task.turn.failure.code == "budget"
        with pytest.raises(
            BudgetSpent, match=r"nothing left for another turn: it has used 167 tokens, and max_tokens is 150"
        ):
            await house.delegation.continue_(house.caller, task.id, "more")
        with pytest.raises(BudgetSpent):
            await house.delegation.resume(house.caller, task.id)
        raised = await house.delegation.continue_(house.caller, task.id, "more", Budget(tokens=10**6))
        assert raised.turn.budget == Budget(tokens=10**6)


async def test_a_task_has_so_many_turns(tmp_path):
    async with open_house(tmp_path, limits=Limits(budget=Budget(turns=2))) as house:
        task = await house.rested((await house.start()).id)
        await house.delegation.continue_(house.caller, task.id, "::text more")
        await house.rested(task.id)
        with pytest.raises(BudgetSpent, match="it has had 2 turns, and max_turns is 2; continue_task can raise it"):
            await house.delegation.continue_(house.caller, task.id, "::text more")


async def test_a_workspace_has_its_money_for_a_day(tmp_path):
    limits = Limits(daily_cost=1.0, tasks_per_workspace=1)
    async with open_house(tmp_path, worker=using(Usage(1, cost=1.2)), limits=limits) as house:
        house.clock.advance(DAY_S - house.clock.now() % DAY_S)
        first, second = await house.start("one"), await house.start("two")
        first = await house.rested(first.id)
        words = rf"the tasks of {house.root} have cost \$1.20 today \(UTC\), and the setting max_daily_cost is \$1.00"
        assert first.turn.failure.code == "budget"
        second = await house.rested(second.id)
        assert second.turn.failure.message.startswith("it was not begun: the tasks of")
        with pytest.raises(BudgetSpent, match=words):
            await house.start("three")
        with pytest.raises(BudgetSpent, match=words):
            await house.delegation.continue_(house.caller, first.id, "more")
        (house.root / "sub").mkdir()
        assert await house.start("elsewhere", workspace="sub")
        house.clock.advance(DAY_S)
        assert (await house.start("three")).phase is Phase.QUEUED


async def test_a_stop_that_was_asked_for_is_a_stop_whatever_the_limits_say(tmp_path):
    worker = using(Usage(1))
    worker.stubborn = True
    async with open_house(tmp_path, worker=worker) as house:
        task = await at_the_gate(house, budget=Budget(tokens=10))
        stage = house.worker.stage(task.turn.id)
        await stage.used(Usage(100))
        await stage.stop_asked.wait()
        await house.delegation.cancel(house.caller, task.id)
        await stage.halt()
        assert (await house.rested(task.id)).phase is Phase.CANCELLED


async def test_a_worker_that_is_done_before_it_is_stopped_is_done(tmp_path):
    worker = using(Usage(1))
    worker.stubborn = True
    async with open_house(tmp_path, worker=worker) as house:
        task = await at_the_gate(house, budget=Budget(tokens=10))
        stage = house.worker.stage(task.turn.id)
        await stage.used(Usage(100))
        await stage.stop_asked.wait()
        await stage.used(Usage(200))
        await stage.finish("done")
        assert (await house.rested(task.id)).phase is Phase.READY


# Silence.

STALL_S = 600


@pytest.fixture
async def quiet(tmp_path):
    async with open_house(tmp_path, limits=Limits(stall_after_s=STALL_S, ask_timeout_s=10**6)) as house:
        yield house


async def test_a_turn_without_a_sign_of_life_is_stopped_and_its_work_is_kept(quiet):
    task = await at_the_gate(quiet)
    await tick(quiet, STALL_S - TICK_S)
    assert quiet.delegation.get(task.id).live
    task = await over(quiet, task)
    assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "stalled")
    words = "no sign of life from the worker, its tools or its files for 10 minutes (stall_after_s)"
    assert task.turn.failure.message == f"{words}; it was stopped, and its work is kept"
    assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_a_stall_that_is_shown_is_no_sign_of_life(quiet):
    task = await at_the_gate(quiet)
    await tick(quiet, STALL_S / 2)
    stalled = Activity(ActivityKind.STALLED, since=quiet.clock.now())
    await quiet.worker.stage(task.turn.id).emit(Doing(stalled))
    await quiet.until(task.id, lambda task: task.activity == stalled)
    await tick(quiet, STALL_S / 2 - TICK_S)
    assert (await over(quiet, task)).turn.failure.code == "stalled"


async def test_a_word_of_the_worker_or_of_its_tools_is_a_sign_of_life(quiet):
    task = await at_the_gate(quiet)
    stage = quiet.worker.stage(task.turn.id)
    for number in range(3):
        await tick(quiet, STALL_S - TICK_S)
        await stage.emit(Alive())
        label = f"step {number}"
        await stage.doing(label)
        await quiet.until(task.id, lambda task, label=label: task.activity.label == label)
    quiet.worker.gate("door").open()
    assert (await quiet.rested(task.id)).phase is Phase.READY


async def test_a_file_that_changes_is_a_sign_of_life(quiet):
    task = await at_the_gate(quiet)
    folder = quiet.worker.orders[0].folder
    for number in range(20):
        await tick(quiet, LOOK_S)
        (folder / f"made-{number}.txt").write_text("x")
        await quiet.clock.naps(TICK_S)
    assert quiet.delegation.get(task.id).live
    quiet.worker.gate("door").open()
    assert (await quiet.rested(task.id)).phase is Phase.READY


async def test_waiting_for_a_person_is_no_silence(quiet):
    task = await quiet.start("::shell rm x\n::text done")
    task = await quiet.until(task.id, lambda task: task.asks)
    await tick(quiet, 2 * STALL_S)
    await quiet.delegation.answer(quiet.caller, task.id, "", Answer("allow"))
    assert (await quiet.rested(task.id)).phase is Phase.READY


async def test_waiting_for_the_provider_is_no_silence(quiet):
    task = await at_the_gate(quiet)
    retry = Activity(ActivityKind.RETRYING, "slow down", until=quiet.clock.now() + 2 * STALL_S)
    await quiet.worker.stage(task.turn.id).emit(Doing(retry))
    await quiet.until(task.id, lambda task: task.activity == retry)
    await tick(quiet, 2 * STALL_S)
    quiet.worker.gate("door").open()
    assert (await quiet.rested(task.id)).phase is Phase.READY


async def test_a_provider_that_wants_more_waiting_than_the_task_has_time_fails_it_at_once(quiet):
    """An hour of `retry-after` is waited for by OpenCode (reported: #21960, #26675)."""
    task = await at_the_gate(quiet, budget=Budget(minutes=30))
    retry = Activity(ActivityKind.RETRYING, "slow down", until=quiet.clock.now() + 3600)
    await quiet.worker.stage(task.turn.id).emit(Doing(retry))
    task = await quiet.rested(task.id)
    assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "rate_limited")
    assert task.turn.failure.message == (
        "the provider wants 60 minutes of waiting before the next try (slow down), and the task has 30 minutes left; "
        "its work is kept"
    )


async def test_a_short_stall_limit_needs_no_second_look(tmp_path):
    async with open_house(tmp_path, limits=Limits(stall_after_s=20)) as house:
        task = await at_the_gate(house)
        await tick(house, 15)
        assert (await over(house, task)).turn.failure.code == "stalled"


async def test_the_time_of_work_outlives_the_hub(tmp_path):
    async with open_house(tmp_path) as house:
        task = await at_the_gate(house, budget=Budget(minutes=1))
        await tick(house, 40)
        await house.worker.stage(task.turn.id).emit(Used(Usage(1), house.worker.stage(task.turn.id).ran))
        await house.until(task.id, lambda task: task.turn.worked_s == 40)
