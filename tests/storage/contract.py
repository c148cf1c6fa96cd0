"""What every journal must do, whichever way it keeps events."""

import asyncio

import pytest

from offload.domain.errors import Defect
from offload.domain.events import Admitted, Closed, Created, StopRequested
from offload.domain.route import Route
from offload.domain.task import TaskId, TaskSpec
from offload.domain.turn import TurnId

ONE, TWO = TaskId("task_1"), TaskId("task_2")


def created(at=1.0, brief="write tests", buffers=()):
    spec = TaskSpec("/w", "tests", brief, brief, Route("fake"), "instruction", buffers=dict(buffers))
    return Created(at=at, turn=TurnId("turn_1"), spec=spec)


def admitted(at=2.0):
    return Admitted(at=at, turn=TurnId("turn_1"))


class JournalContract:
    """A subclass gives a fixture `journal`."""

    async def test_a_new_journal_holds_nothing(self, journal):
        assert dict(await journal.read()) == {}

    async def test_events_come_back_in_their_order_and_tasks_in_the_order_of_their_creation(self, journal):
        assert await journal.append(TWO, [created()], expect=0) == 1
        assert await journal.append(ONE, [created(3.0), admitted()], expect=0) == 2
        assert await journal.append(TWO, [admitted(), StopRequested(at=4.0)], expect=1) == 3
        read = await journal.read()
        assert list(read) == [TWO, ONE]
        assert list(read[TWO]) == [created(), admitted(), StopRequested(at=4.0)]
        assert list(read[ONE]) == [created(3.0), admitted()]

    @pytest.mark.parametrize("expect", [0, 1, 3])
    async def test_a_writer_that_expects_another_count_is_refused_and_nothing_is_written(self, journal, expect):
        await journal.append(ONE, [created(), admitted()], expect=0)
        with pytest.raises(Defect, match=f"task_1 has 2 events, not {expect}"):
            await journal.append(ONE, [StopRequested(at=3.0), Closed(at=4.0)], expect=expect)
        assert list((await journal.read())[ONE]) == [created(), admitted()]

    async def test_a_refused_append_takes_no_other_along(self, journal):
        outcomes = await asyncio.gather(
            journal.append(ONE, [created()], expect=0),
            journal.append(TWO, [created()], expect=7),
            journal.append(ONE, [admitted()], expect=1),
            return_exceptions=True,
        )
        assert [type(outcome) for outcome in outcomes] == [int, Defect, int]
        assert {task: len(events) for task, events in (await journal.read()).items()} == {ONE: 2}

    async def test_no_events_are_no_task(self, journal):
        assert await journal.append(ONE, [], expect=0) == 0
        assert dict(await journal.read()) == {}

    async def test_what_was_read_does_not_change_with_what_is_written_later(self, journal):
        await journal.append(ONE, [created()], expect=0)
        before = await journal.read()
        await journal.append(ONE, [admitted()], expect=1)
        assert len(before[ONE]) == 1

    async def test_a_forgotten_task_is_gone_and_leaves_the_others(self, journal):
        await journal.append(ONE, [created(), admitted()], expect=0)
        await journal.append(TWO, [created()], expect=0)
        await journal.forget(ONE)
        await journal.forget(ONE)
        assert list(await journal.read()) == [TWO]
        assert await journal.append(ONE, [created()], expect=0) == 1

    async def test_many_tasks_can_write_at_once(self, journal):
        async def live(number):
            task = TaskId(f"task_{number}")
            await journal.append(task, [created(buffers={"a.py": "x" * number})], expect=0)
            for revision in range(1, 5):
                assert await journal.append(task, [admitted(revision)], expect=revision) == revision + 1

        await asyncio.gather(*(live(number) for number in range(40)))
        read = await journal.read()
        assert {len(events) for events in read.values()} == {5}
        assert len(read) == 40
