"""Waiting for tasks: for all, for one, for news, for a time. A wait is not the task."""

import asyncio

import pytest

from offload.domain.ask import Answer, AskId
from offload.domain.errors import UnknownTask
from offload.domain.task import Phase
from tests.fakes.house import open_house


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


async def gated(house, *names):
    tasks = [await house.start(f"::gate {name}\n::text {name}") for name in names]
    for task in tasks:
        await house.until(task.id, lambda task: task.phase is Phase.WORKING)
    return [task.id for task in tasks]


async def settle():
    for _ in range(30):
        await asyncio.sleep(0)


async def test_a_wait_for_all_ends_with_the_last_one(house):
    ids = await gated(house, "a", "b")
    waiting = asyncio.create_task(house.wait(*ids))
    house.worker.gate("a").open()
    await house.rested(ids[0])
    await settle()
    assert not waiting.done()
    house.worker.gate("b").open()
    waited = await waiting
    assert waited.done
    assert [(task.id, task.phase) for task in waited.tasks] == [(each, Phase.READY) for each in ids]


async def test_a_wait_for_any_ends_with_the_first_one(house):
    ids = await gated(house, "a", "b")
    waiting = asyncio.create_task(house.wait(*ids, every=False))
    house.worker.gate("b").open()
    waited = await waiting
    assert waited.done
    assert [task.phase for task in waited.tasks] == [Phase.WORKING, Phase.READY]


async def test_a_wait_for_what_is_over_returns_at_once(house):
    task = await house.rested((await house.start()).id)
    for every in (True, False):
        assert (await house.wait(task.id, every=every, timeout_s=0)).done


async def test_a_wait_ends_when_its_time_is_over_and_says_so(house):
    (task_id,) = await gated(house, "a")
    waiting = asyncio.create_task(house.wait(task_id, timeout_s=45))
    await house.clock.naps(45)
    house.clock.advance(45)
    waited = await waiting
    assert not waited.done
    assert [task.phase for task in waited.tasks] == [Phase.WORKING]


async def test_a_wait_without_time_says_how_it_stands(house):
    (task_id,) = await gated(house, "a")
    assert not (await house.wait(task_id, timeout_s=0)).done


async def test_a_wait_with_a_revision_ends_at_any_news(house):
    (task_id,) = await gated(house, "a")
    seen = house.delegation.get(task_id).revision
    waiting = asyncio.create_task(house.wait(task_id, after_revision={task_id: seen}))
    await settle()
    assert not waiting.done()
    await house.worker.stage(house.delegation.get(task_id).turn.id).doing("thinking hard")
    waited = await waiting
    assert not waited.done
    assert waited.tasks[0].revision > seen
    assert waited.tasks[0].activity.label == "thinking hard"


async def test_a_wait_with_an_old_revision_returns_at_once(house):
    ids = await gated(house, "a", "b")
    waited = await house.wait(*ids, after_revision={ids[1]: 1}, timeout_s=0)
    assert not waited.done
    assert [task.id for task in waited.tasks] == ids


async def test_news_of_other_tasks_does_not_end_a_wait(house):
    ids = await gated(house, "a", "b")
    waiting = asyncio.create_task(house.wait(ids[0], after_revision={ids[0]: house.delegation.get(ids[0]).revision}))
    house.worker.gate("b").open()
    await house.rested(ids[1])
    await settle()
    assert not waiting.done()
    waiting.cancel()


async def test_a_cancelled_wait_ends_no_task(house):
    (task_id,) = await gated(house, "a")
    waiting = asyncio.create_task(house.wait(task_id))
    await house.clock.naps(45)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    house.worker.gate("a").open()
    assert (await house.rested(task_id)).phase is Phase.READY


async def test_ids_may_be_shortened_in_a_wait(house):
    (task_id,) = await gated(house, "a")
    house.worker.gate("a").open()
    waited = await house.wait(task_id[:5], after_revision={task_id[:5]: 1})
    assert [task.id for task in waited.tasks] == [task_id]


async def test_a_wait_for_an_unknown_task_is_refused(house):
    (task_id,) = await gated(house, "a")
    with pytest.raises(UnknownTask):
        await house.wait(task_id, "none")
    with pytest.raises(UnknownTask):
        await house.wait(task_id, after_revision={"none": 3})


async def test_a_watcher_sees_every_task_that_changes(house):
    seen = {}

    async def watch():
        async for task in house.delegation.watch():
            seen[task.id] = task.phase
            if list(seen.values()).count(Phase.READY) == 2:
                return

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    ids = {(await house.start()).id for _ in range(2)}
    async with asyncio.timeout(20):
        await watching
    assert set(seen) == ids


@pytest.mark.parametrize("every", [True, False])
async def test_an_open_ask_ends_every_wait(house, every):
    """Nothing goes on until somebody answers, so who waits has to be told: a model waited 40 s beside an open question."""
    (held,) = await gated(house, "a")
    task = await house.start("::shell rm -r build")
    waited = await house.wait(held, task.id, every=every)
    assert not waited.done
    assert [each.asking for each in waited.tasks] == [False, True]


async def test_an_ask_that_is_known_does_not_end_a_wait_and_its_answer_does(house):
    task = await house.until((await house.start("::shell rm -r build")).id, lambda task: task.asks)
    waiting = asyncio.create_task(house.wait(task.id, after_revision={task.id: task.revision}))
    await settle()
    assert not waiting.done()
    await house.delegation.answer(house.caller, task.id, AskId(""), Answer("deny"))
    assert (await waiting).tasks[0].revision > task.revision
