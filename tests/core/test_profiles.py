"""What a worker may do, and that nothing is started that could not be enforced; turns that wait in vain are told at once."""

import pytest

from offload.core.limits import Limits
from offload.domain.errors import UnsupportedProfile, WorkerBroken
from offload.domain.profile import Profile
from offload.domain.route import Route
from offload.domain.task import Phase
from tests.fakes.house import open_house


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path, limits=Limits(tasks_per_workspace=1)) as house:
        yield house


async def test_the_worker_is_given_the_profile_of_the_task_in_every_turn(house):
    task = await house.rested((await house.start(profile=Profile.READ_ONLY)).id)
    await house.delegation.continue_(house.caller, task.id, "::text more")
    task = await house.rested(task.id)
    assert task.spec.profile is Profile.READ_ONLY
    assert [order.profile for order in house.worker.orders] == [Profile.READ_ONLY] * 2


async def test_a_task_that_names_no_profile_gets_the_default(house):
    await house.rested((await house.start()).id)
    assert house.worker.orders[0].profile is Profile.WORKSPACE_WRITE


async def test_a_profile_that_the_worker_cannot_enforce_is_refused_by_name(house):
    words = "the worker 'fake' cannot enforce the profile no-network; it can read-only, workspace-write, full"
    with pytest.raises(UnsupportedProfile, match=words):
        await house.start(profile=Profile.NO_NETWORK)
    assert house.delegation.tasks() == []


@pytest.mark.parametrize(
    ("route", "code"), [(Route("", model="fake/worke"), "unknown_model"), (Route("", agent="biuld"), "unknown_agent")]
)
async def test_a_turn_that_waits_for_its_place_in_vain_is_told_at_once(house, route, code):
    first = await house.start("::gate door\n::text done")
    await house.worker.gate("door").reached.wait()
    task = await house.rested((await house.start(route=route)).id)
    assert (task.phase, task.turn.failure.code, task.turn.started_at) == (Phase.FAILED, code, None)
    assert "Near: " in task.turn.failure.message
    house.worker.gate("door").open()
    await house.rested(first.id)
    assert (await house.rested((await house.start()).id)).phase is Phase.READY
    assert house.defects == []


async def test_a_follow_up_that_waits_is_looked_at_where_its_session_is_kept(house):
    """The caller's environment may be another one by now, and what it offers says nothing about the session."""
    first = await house.rested((await house.start()).id)
    await house.start("::gate door\n::text done")
    await house.worker.gate("door").reached.wait()
    check, looked = house.worker.check, house.worker.gate("looked")

    async def look(route, environment, session):
        assert session == first.turn.session
        looked.open()

    house.worker.check = look
    await house.delegation.continue_(house.caller, first.id, "::text more")
    await looked.opened.wait()
    house.worker.check = check
    house.worker.gate("door").open()
    assert (await house.rested(first.id)).phase is Phase.READY
    assert house.defects == []


async def test_a_turn_that_was_cancelled_while_it_was_looked_at_stays_cancelled(house):
    await house.start("::gate door\n::text done")
    await house.worker.gate("door").reached.wait()
    looking, looked = house.worker.gate("look"), house.worker.gate("looked")

    async def check(route, environment, session):
        looking.reached.set()
        await looking.opened.wait()
        looked.reached.set()
        raise WorkerBroken("it is gone")

    house.worker.check = check
    task = await house.start("::text second")
    await looking.reached.wait()
    await house.delegation.cancel(house.caller, task.id)
    looking.open()
    await looked.reached.wait()
    house.worker.gate("door").open()
    assert (await house.rested(task.id)).phase is Phase.CANCELLED
