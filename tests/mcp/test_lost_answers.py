"""A start whose answer never came to its host is not done twice."""

import asyncio

import pytest

from tests.mcp.wires import bare, call

HELD = {"brief": "::gate hold\n::text ok", "wait_s": 45}


async def begun(house, wire):
    wire.write(call(1, "start_task", **HELD))
    await house.worker.gate("hold").reached.wait()
    (task,) = house.delegation.tasks()
    return task


async def started(wire, number):
    wire.write(call(number, "start_task", **{**HELD, "wait_s": 0}))
    return (await wire.until(number))["result"]["structuredContent"]["task_id"]


async def test_a_start_whose_call_was_cancelled_is_met_again(house):
    async with bare(house) as wire, asyncio.timeout(20):
        first = await begun(house, wire)
        wire.write({"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "too slow"}})
        assert await started(wire, 2) == first.id
        assert await started(wire, 3) != first.id
        house.worker.gate("hold").open()


async def test_a_start_whose_host_was_killed_is_met_again_by_the_next_one(house):
    async with asyncio.timeout(20):
        async with bare(house) as wire:
            first = await begun(house, wire)
        async with bare(house) as wire:
            assert await started(wire, 1) == first.id
        house.worker.gate("hold").open()
        await house.rested(first.id)


@pytest.mark.parametrize("again", [2, 3])
async def test_a_start_whose_call_is_open_is_a_task_of_its_own(house, again):
    async with bare(house) as wire, asyncio.timeout(20):
        first = await begun(house, wire)
        assert await started(wire, again) != first.id
        house.worker.gate("hold").open()
