"""Time limits by the hub's clock."""

import asyncio

import pytest

from offload.core.timing import within
from tests.fakes.clock import ManualClock


class Work:
    def __init__(self):
        self.gate = asyncio.Event()
        self.cancelled = False

    async def __call__(self):
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "done"


async def test_work_that_is_done_in_time_gives_its_value():
    clock, work = ManualClock(), Work()
    work.gate.set()
    assert await within(clock, 5, work()) == "done"
    work.gate.clear()
    waiting = asyncio.create_task(within(clock, 5, work()))
    await clock.sleepers(1)
    clock.advance(4)
    work.gate.set()
    assert await waiting == "done"


async def test_work_that_takes_longer_is_cancelled_and_gives_nothing():
    clock, work = ManualClock(), Work()
    waiting = asyncio.create_task(within(clock, 5, work()))
    await clock.sleepers(1)
    clock.advance(5)
    assert await waiting is None
    assert work.cancelled


async def test_no_time_at_all_is_time_for_what_is_there_already():
    clock, work = ManualClock(), Work()
    work.gate.set()
    assert await within(clock, 0, work()) == "done"
    work.gate.clear()
    assert await within(clock, 0, work()) is None


async def test_an_error_of_the_work_is_raised():
    async def work():
        raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        await within(ManualClock(), 5, work())


async def test_a_caller_that_goes_away_takes_the_work_along():
    clock, work = ManualClock(), Work()
    waiting = asyncio.create_task(within(clock, 5, work()))
    await clock.sleepers(1)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert work.cancelled
