"""Memory and journal go in step, whoever fails, goes away or comes in between."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload.core.feed import Feed
from offload.core.ledger import Ledger
from offload.domain.errors import StorageFailed, UnknownTask
from offload.domain.events import Admitted, Created, Snapshotted, StopRequested, TurnSeen, UsageSeen
from offload.domain.lifecycle import IllegalTransition, fold
from offload.domain.task import Phase, TaskId
from offload.domain.usage import Usage
from tests.core.journals import HeldJournal
from tests.domain.events import TASK, TO_WORKING, event, events
from tests.fakes.clock import ManualClock

OTHER = TaskId("other")


@pytest.fixture
def journal():
    return HeldJournal()


@pytest.fixture
async def ledger(journal):
    async with Ledger(journal, Feed(), ManualClock()) as ledger:
        yield ledger


async def in_step(ledger, journal):
    kept = await journal.read()
    assert {task.id: task for task in ledger.all()} == {key: fold(key, kept[key]) for key in kept}


async def test_a_task_is_durable_when_its_creation_returns(ledger, journal):
    task = await ledger.create(TASK, event(Created))
    assert ledger.get(TASK) is task
    assert dict(await journal.read()) == {TASK: (event(Created),)}


async def test_a_ledger_begins_with_what_the_journal_has_in_the_order_of_creation(journal):
    await journal.append(OTHER, events(*TO_WORKING), expect=0)
    await journal.append(TASK, events(Created), expect=0)
    async with Ledger(journal, Feed(), ManualClock()) as ledger:
        assert [(task.id, task.phase) for task in ledger.all()] == [(OTHER, Phase.WORKING), (TASK, Phase.QUEUED)]


async def test_a_task_is_found_by_a_beginning_of_its_id_that_no_other_has(ledger):
    for name in ("ab12", "ab34", "cd"):
        await ledger.create(TaskId(name), event(Created))
    assert ledger.get(TaskId("c")).id == "cd"
    assert ledger.get(TaskId("ab1")).id == "ab12"
    with pytest.raises(UnknownTask, match="2 tasks begin with 'ab'"):
        ledger.get(TaskId("ab"))
    for wrong in ("x", "", "cd1"):
        with pytest.raises(UnknownTask, match=f"there is no task '{wrong}'"):
            ledger.get(TaskId(wrong))


async def test_a_whole_id_is_meant_even_when_another_begins_with_it(ledger):
    for name in ("ab", "abc"):
        await ledger.create(TaskId(name), event(Created))
    assert ledger.get(TaskId("ab")).id == "ab"


async def test_several_events_are_one_append(ledger, journal):
    await ledger.create(TASK, event(Created))
    task = await ledger.record(TASK, event(Snapshotted), event(Admitted))
    assert (task.phase, task.revision) == (Phase.STARTING, 3)
    await in_step(ledger, journal)


async def test_an_event_that_cannot_be_is_not_written(ledger, journal):
    await ledger.create(TASK, event(Created))
    with pytest.raises(IllegalTransition):
        await ledger.record(TASK, event(Admitted), event(UsageSeen))
    assert ledger.get(TASK).revision == 1
    await in_step(ledger, journal)


async def test_a_decision_for_nothing_writes_nothing(ledger, journal):
    task, told = await ledger.create(TASK, event(Created)), []
    assert await ledger.decide(TASK, lambda _: [], told.append) is task
    assert told == [task]
    await in_step(ledger, journal)


async def test_a_failing_journal_changes_nothing_and_is_told_to_the_caller(ledger, journal):
    await ledger.create(TASK, event(Created))
    journal.fail_with, told = "the disk is full", []
    with ledger.feed.watching() as watcher:
        with pytest.raises(StorageFailed, match="the disk is full"):
            await ledger.decide(TASK, lambda _: [event(Admitted)], told.append)
        with pytest.raises(StorageFailed):
            await ledger.create(OTHER, event(Created), told.append)
        assert [task.id for task in ledger.all()] == [TASK]
        assert ledger.get(TASK).phase is Phase.QUEUED
        assert told == []
        journal.fail_with = ""
        await ledger.record(TASK, event(Admitted))
        assert [task.revision for task in await watcher.changes()] == [2]
    await in_step(ledger, journal)


async def test_a_caller_that_goes_away_in_the_middle_leaves_memory_and_journal_in_step(ledger, journal):
    """The journal cannot take back what it has begun to write, so the ledger must not forget it."""
    await ledger.create(TASK, event(Created))
    journal.hold()
    told = []
    caller = asyncio.create_task(ledger.decide(TASK, lambda _: [event(Admitted)], told.append))
    await journal.reached.wait()
    caller.cancel()
    await asyncio.wait([caller])
    assert caller.cancelled()
    later = asyncio.create_task(ledger.record(TASK, event(TurnSeen)))
    journal.release()
    assert (await later).revision == 3
    assert [task.phase for task in told] == [Phase.STARTING]
    await in_step(ledger, journal)


async def test_nobody_decides_before_what_follows_from_a_creation_has_followed(ledger, journal):
    """A stop must meet the run that it stops."""
    journal.hold()
    followed = []
    creating = asyncio.create_task(ledger.create(TASK, event(Created), lambda task: followed.append(task.phase)))
    await journal.reached.wait()
    journal.release()
    with ledger.feed.watching() as watcher:
        await watcher.changes()
    await ledger.decide(TASK, lambda task: followed.append(task.phase) or [event(StopRequested)])
    await creating
    assert followed == [Phase.QUEUED, Phase.QUEUED]


async def test_decisions_about_one_task_come_one_after_another(ledger, journal):
    await ledger.create(TASK, event(Created))
    await ledger.record(TASK, *events(*TO_WORKING)[1:])

    def count(task):
        return [event(UsageSeen, usage=Usage(task.turn.usage.input_tokens + 1))]

    await asyncio.gather(*(ledger.decide(TASK, count) for _ in range(30)))
    assert ledger.get(TASK).turn.usage.input_tokens == 30
    await in_step(ledger, journal)


async def test_what_was_begun_is_finished_before_the_ledger_is_left(journal):
    async def leave():
        async with Ledger(journal, Feed(), ManualClock()) as ledger:
            await ledger.create(TASK, event(Created))
            journal.hold()
            caller = asyncio.create_task(ledger.record(TASK, event(Admitted)))
            await journal.reached.wait()
            caller.cancel()
            raise KeyError("why it is left does not matter")

    leaving = asyncio.create_task(leave())
    await journal.reached.wait()
    journal.reached.clear()
    await journal.reached.wait()
    journal.release()
    with pytest.raises(KeyError):
        await leaving
    assert len((await journal.read())[TASK]) == 2


async def test_work_goes_on_to_its_end_when_its_caller_goes_away(ledger):
    begun, gate, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work():
        begun.set()
        await gate.wait()
        done.set()

    caller = asyncio.create_task(ledger.to_the_end(work()))
    await begun.wait()
    caller.cancel()
    await asyncio.wait([caller])
    assert not done.is_set()
    gate.set()
    async with asyncio.timeout(5):
        await done.wait()


async def test_work_gives_its_value_or_raises_its_error(ledger):
    async def work(error=None):
        if error:
            raise error
        return "value"

    assert await ledger.to_the_end(work()) == "value"
    with pytest.raises(KeyError):
        await ledger.to_the_end(work(KeyError("any")))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["record", "cancel", "fail", "illegal"]), st.integers(0, 3)), max_size=25))
def test_memory_and_journal_are_in_step_after_anything(steps):
    async def play():
        journal = HeldJournal()
        async with Ledger(journal, Feed(), ManualClock()) as ledger:
            for number in range(4):
                await ledger.create(TaskId(f"task_{number}"), event(Created))
                await ledger.record(TaskId(f"task_{number}"), *events(*TO_WORKING)[1:])
            callers = []
            for what, number in steps:
                wanted = event(Created if what == "illegal" else UsageSeen)
                callers.append(asyncio.create_task(ledger.record(TaskId(f"task_{number}"), wanted)))
                journal.fail_with = "the disk is full" if what == "fail" else ""
                for _ in range(number):
                    await asyncio.sleep(0)
                if what == "cancel":
                    callers[-1].cancel()
            await asyncio.gather(*callers, return_exceptions=True)
        await in_step(ledger, journal)

    asyncio.run(play())
