"""The manual clock is used by many tests, so it is held to its own words."""

import asyncio

from tests.fakes.clock import ManualClock


async def test_a_sleeper_wakes_when_its_time_has_come_and_not_before():
    clock, woken = ManualClock(now=100.0), []

    async def sleep(seconds):
        await clock.sleep(seconds)
        woken.append((seconds, clock.now()))

    async with asyncio.TaskGroup() as group:
        for seconds in (30, 10, 20):
            group.create_task(sleep(seconds))
        await clock.sleepers(3)
        clock.advance(20)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert woken == [(10, 120.0), (20, 120.0)]
        clock.advance(10)
    assert woken[-1] == (30, 130.0)


async def test_a_cancelled_sleeper_is_forgotten():
    clock = ManualClock()
    async with asyncio.TaskGroup() as group:
        given_up = group.create_task(clock.sleep(5))
        await clock.sleepers(1)
        given_up.cancel()
        await asyncio.wait([given_up])
        other = group.create_task(clock.sleep(7))
        await clock.sleepers(1)
        clock.advance(6)
        await asyncio.sleep(0)
        assert not other.done()
        clock.advance(1)


async def test_no_time_is_no_sleep():
    await ManualClock().sleep(0)
