"""What can be asked without changing anything."""

import pytest

from offload.domain.anchor import Block
from offload.domain.errors import InvalidRequest, UnknownWorker
from tests.fakes.house import SHOP, open_house
from tests.fakes.worker import FakeWorker


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path, others=[FakeWorker(name="other")]) as house:
        yield house


async def test_tasks_are_listed_newest_first_and_filtered(house):
    (house.root / "sub").mkdir()
    ready = await house.rested((await house.start()).id)
    closed = await house.rested((await house.start()).id)
    await house.delegation.close(house.caller, closed.id)
    live = await house.start("::gate door\n::text done", workspace="sub")

    def ids(*args, **filters):
        return [task.id for task in house.delegation.tasks(*args, **filters)]

    assert ids() == [live.id, ready.id]
    assert ids(closed=True) == [live.id, closed.id, ready.id]
    assert ids(live=True) == ids(live=True, closed=True) == [live.id]
    assert ids(str(house.root), closed=True) == [closed.id, ready.id]
    assert ids(str(house.root / "sub")) == [live.id]
    assert ids(str(house.root), live=True) == ids("/nowhere") == []
    house.worker.gate("door").open()
    await house.rested(live.id)


async def test_a_turn_is_found_by_its_id_and_the_last_one_without(house):
    task = await house.rested((await house.start()).id)
    await house.delegation.continue_(house.caller, task.id, "::text more")
    task = await house.rested(task.id)
    first, last = task.turns
    assert house.delegation.turn(task, first.id) is first
    assert house.delegation.turn(task, "") is last
    with pytest.raises(InvalidRequest, match=f"has no turn 'none'; it has {first.id}, {last.id}"):
        house.delegation.turn(task, "none")


async def test_nothing_is_known_live_of_a_task_that_rests(house):
    task = await house.rested((await house.start()).id)
    live = house.delegation.live(task.id)
    assert (live.place, live.text) == (None, "")
    gone = house.delegation.live("none")  # cleaned away, while somebody slow still tells of it
    assert (gone.place, gone.text) == (None, "")


async def test_every_worker_says_what_it_offers(house):
    infos = await house.delegation.list_agents(house.caller)
    assert [info.name for info in infos] == ["fake", "other"]
    assert [model.id for model in infos[0].models] == ["fake/worker", "fake/other"]


async def test_one_worker_can_be_asked_alone(house):
    (info,) = await house.delegation.list_agents(house.caller, "other")
    assert info.name == "other"
    with pytest.raises(UnknownWorker, match="there is no worker 'nobody'; there are fake, other"):
        await house.delegation.list_agents(house.caller, "nobody")


async def test_the_block_at_a_position_is_the_sources_to_say(house):
    assert await house.delegation.block_at("shop.py", SHOP, 6, 4) == Block("Cart.total", "function", 5, 6)
    assert await house.delegation.block_at("shop.py", SHOP, 2, 0) == Block("price", "function", 0, 3)
