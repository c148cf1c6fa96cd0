"""A start whose answer never came to its terminal is not done twice."""

from tests.fakes.house import open_house
from tests.rpc.test_serve import connected, house

__all__ = ["house"]

HELD = {"brief": "::gate held\n::text done", "wait_s": 45}


async def test_a_start_whose_terminal_was_killed_before_the_answer_is_met_again(house):
    async with connected(house) as wire:
        wire.send("start_task", **HELD)
        await house.worker.gate("held").reached.wait()
        (first,) = house.delegation.tasks()
        wire.writer.transport.abort()  # as a kill does
        house.worker.gate("held").open()
        await wire.served
    async with connected(house) as again:
        assert (await again.result("start_task", **HELD))["task_id"] == first.id
        assert (await again.result("start_task", **HELD))["task_id"] != first.id


async def test_a_start_is_met_again_while_the_call_of_the_killed_terminal_still_waits(house):
    async with connected(house) as wire, connected(house) as again:
        wire.send("start_task", **HELD)
        await house.worker.gate("held").reached.wait()
        (first,) = house.delegation.tasks()
        wire.writer.write_eof()
        # The end of the input is read before anything of a connection that is made later.
        assert (await again.result("list_tasks"))["left_out"] == 0
        assert (await again.result("start_task", **{**HELD, "wait_s": 0}))["task_id"] == first.id
        house.worker.gate("held").open()


async def test_two_starts_that_are_answered_are_two_tasks(house):
    async with connected(house) as wire:
        first = await wire.result("start_task", brief="::text done")
        assert (await wire.result("start_task", brief="::text done"))["task_id"] != first["task_id"]


async def test_an_answer_that_is_read_after_the_end_of_the_input_is_delivered(tmp_path):
    """As with `echo … | nc -N`."""
    async with open_house(tmp_path) as house, connected(house) as wire:
        wire.send("start_task", **HELD)
        await house.worker.gate("held").reached.wait()
        wire.writer.write_eof()
        house.worker.gate("held").open()
        first = (await wire.read())["result"]["task_id"]
        await wire.served
        async with connected(house) as other:
            assert (await other.result("start_task", **HELD))["task_id"] != first
