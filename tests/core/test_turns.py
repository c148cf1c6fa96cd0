"""Each turn keeps what it did itself; what is applied is all since the task's base."""

import pytest

from offload.domain.errors import WrongPhase
from offload.domain.review import claimed_only
from offload.domain.task import Phase
from tests.fakes.house import open_house


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


def paths(changes):
    return [file.path for file in changes.files]


async def test_each_turn_has_its_own_changes_and_the_task_has_all_of_them(house):
    task = await house.rested((await house.start("::write a.txt one\n::write b.txt one")).id)
    assert task.turn.own is None
    await house.delegation.continue_(house.caller, task.id, "::write b.txt two\n::write c.txt two")
    task = await house.rested(task.id)
    first, second = task.turns
    assert (paths(first.own_changes), paths(second.own_changes)) == (["a.txt", "b.txt"], ["b.txt", "c.txt"])
    assert paths(second.changes) == ["a.txt", "b.txt", "c.txt"]
    _, _, whole, patch = await house.delegation.diff(task.id)
    assert (paths(whole), "+two" in patch, "a.txt" in patch) == (["a.txt", "b.txt", "c.txt"], True, True)
    _, _, own, patch = await house.delegation.diff(task.id, turn_id=second.id)
    assert (paths(own), "-one" in patch, "a.txt" in patch) == (["b.txt", "c.txt"], True, False)
    _, landing = await house.delegation.apply(house.caller, task.id)
    assert list(landing.paths) == ["a.txt", "b.txt", "c.txt"]


async def test_a_follow_up_that_did_nothing_is_a_failure_whatever_was_done_before(house):
    task = await house.rested((await house.start("::write a.txt one")).id)

    async def silent(stage):
        await stage.seen()

    house.worker.script = silent
    await house.delegation.continue_(house.caller, task.id, "more")
    task = await house.rested(task.id)
    assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "nothing_produced")
    assert paths(task.turn.changes) == ["a.txt"]


async def test_a_turn_that_has_no_changes_yet_is_told(house):
    task = await house.rested((await house.start("::write a.txt one")).id)
    await house.delegation.continue_(house.caller, task.id, "::gate door")
    await house.worker.gate("door").reached.wait()
    task = house.delegation.get(task.id)
    with pytest.raises(WrongPhase, match=f"turn {task.turn.id} of task {task.id} has no changes yet"):
        await house.delegation.diff(task.id, turn_id=task.turn.id)
    house.worker.gate("door").open()
    await house.rested(task.id)


@pytest.mark.parametrize("end", ["::fail no", "::gate stop"])
async def test_a_turn_that_did_not_end_well_keeps_its_own_changes_too(house, end):
    task = await house.rested((await house.start("::write a.txt one")).id)
    await house.delegation.continue_(house.caller, task.id, f"::write b.txt two\n{end}")
    if "gate" in end:
        await house.worker.gate("stop").reached.wait()
        await house.delegation.cancel(house.caller, task.id)
    task = await house.rested(task.id)
    assert (paths(task.turn.own_changes), paths(task.turn.changes)) == (["b.txt"], ["a.txt", "b.txt"])


async def test_what_the_worker_says_it_wrote_is_kept_beside_what_git_shows(house):
    """Relative to the folder, and only what is in it."""
    claims = "::claim a.txt\n::claim src/../b.txt\n::claim ../outside.txt\n::claim /etc/hosts\n::claim not/there.py"
    task = await house.rested((await house.start(f"::write a.txt one\n{claims}")).id)
    assert task.turn.claims == ("a.txt", "b.txt", "not/there.py")
    assert claimed_only(task.turn, task.turn.changes) == ("b.txt", "not/there.py")
