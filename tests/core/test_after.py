"""A task that begins from the results of others: it waits until they are over, and holds what they made."""

import pytest

from offload.core.limits import Limits
from offload.domain.errors import InvalidRequest, KeyReused, UnknownTask, WrongPhase
from offload.domain.events import Rebased
from offload.domain.project import ProjectSettings
from offload.domain.review import Selection
from offload.domain.route import Route
from offload.domain.task import Phase
from tests.core.journals import HeldJournal
from tests.fakes.checks import FakeChecks
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


async def done(house, brief, **request):
    return await house.rested((await house.start(brief, **request)).id)


async def at_the_gate(house, brief="::write a.txt one\n::gate door"):
    task = await house.start(brief)
    await house.worker.gate("door").reached.wait()
    return task


def paths(changes):
    return [file.path for file in changes.files]


def names(order):
    return sorted(path.name for path in order.folder.iterdir())


async def test_a_task_begins_from_the_users_files_with_the_results_of_others(house):
    first, second = await done(house, "::write a.txt one"), await done(house, "::write b.txt two")
    task = await done(house, "::write c.txt three", after=(first.id[:12], second.id, first.id))
    assert task.spec.after == (first.id, second.id)
    assert names(house.worker.orders[2]) == ["a.txt", "b.txt", "c.txt", "shop.py"]
    assert (task.phase, paths(task.turn.changes), task.turn.own) == (Phase.READY, ["c.txt"], None)
    await house.delegation.continue_(house.caller, task.id, "::write d.txt four")
    task = await house.rested(task.id)
    assert (paths(task.turn.changes), paths(task.turn.own)) == (["c.txt", "d.txt"], ["d.txt"])


async def test_a_task_begins_from_all_that_those_before_it_began_from(house):
    """A result holds what its own task added, so the second alone would not be what the third is told to go on from."""
    first = await done(house, "::write a.txt one\\n")
    other = await done(house, "::write o.txt other")
    second = await done(house, "::write a.txt one\\ntwo\\n", after=(first.id, other.id))
    third = await done(house, "::write c.txt three", after=(second.id, first.id))
    assert (third.phase, third.turn.failure) == (Phase.READY, None)
    assert names(house.worker.orders[3]) == ["a.txt", "c.txt", "o.txt", "shop.py"]
    assert (house.worker.orders[3].folder / "a.txt").read_text() == (
        house.worker.orders[2].folder / "a.txt"
    ).read_text()


async def test_one_of_those_that_was_removed_is_looked_for_in_the_users_files(house):
    first = await done(house, "::write a.txt one")
    second = await done(house, "::write b.txt two", after=(first.id,))
    await house.delegation.apply(house.caller, first.id)
    await house.delegation.clean(house.caller, tasks=[first.id])
    await done(house, "::write c.txt three", after=(second.id,))
    assert names(house.worker.orders[2]) == ["a.txt", "b.txt", "c.txt", "shop.py"]


async def test_it_waits_for_them_without_a_place_in_the_line(tmp_path):
    async with open_house(tmp_path, limits=Limits(tasks_per_workspace=2)) as house:
        first = await at_the_gate(house)
        waiting = await house.start("::write c.txt three", after=(first.id,))
        await house.until(waiting.id, lambda task: task.base)
        assert (await done(house, "::text another")).phase is Phase.READY
        waiting = house.delegation.get(waiting.id)
        assert (waiting.phase, house.delegation.live(waiting.id).place) == (Phase.QUEUED, None)
        house.worker.gate("door").open()
        waiting = await house.rested(waiting.id)
        assert (waiting.phase, paths(waiting.turn.changes)) == (Phase.READY, ["c.txt"])
        assert names(house.worker.orders[-1]) == ["a.txt", "c.txt", "shop.py"]


async def test_one_that_does_not_end_well_fails_what_waits_for_it(house):
    first = await at_the_gate(house)
    waiting = await house.start("::write c.txt three", after=(first.id,))
    await house.delegation.cancel(house.caller, first.id)
    waiting = await house.rested(waiting.id)
    assert (waiting.phase, waiting.turn.failure.code) == (Phase.FAILED, "after_failed")
    assert (
        waiting.turn.failure.message
        == f"it was to begin from the result of task {first.id}, which is cancelled; continue that one, then resume this one"
    )
    assert len(house.worker.orders) == 1


async def test_when_that_one_is_well_again_the_other_can_be_resumed(house):
    first = await at_the_gate(house)
    waiting = await house.start("::write c.txt three", after=(first.id,))
    await house.delegation.cancel(house.caller, first.id)
    await house.rested(waiting.id)
    await house.delegation.continue_(house.caller, first.id, "::write a.txt two")
    await house.delegation.resume(house.caller, waiting.id)
    waiting = await house.rested(waiting.id)
    assert (waiting.phase, paths(waiting.turn.changes)) == (Phase.READY, ["c.txt"])
    assert (house.worker.orders[-1].folder / "a.txt").read_text() == "two"


async def test_results_that_do_not_go_together_are_named(house):
    first, second = await done(house, "::write a.txt one"), await done(house, "::write a.txt two")
    task = await done(house, "::text x", after=(first.id, second.id))
    assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "after_failed")
    assert task.turn.failure.message == (
        f"the result of task {second.id} does not go together with what comes before it: a.txt"
    )


async def test_only_what_is_not_rejected_and_in_scope_of_them_is_begun_from(house):
    first = await done(house, "::write a.txt one\n::write b.txt no\n::write c.md x", allowed_paths=("*.txt",))
    await house.delegation.reject(house.caller, first.id, Selection(paths=("b.txt",)), "not so", send_back=False)
    await done(house, "::text x", after=(first.id,))
    assert names(house.worker.orders[1]) == ["a.txt", "shop.py"]


async def test_what_the_user_has_taken_is_begun_from_wherever_it_is(house):
    first = await done(house, "::write a.txt one\n::write b.md x\n::write c.md x", allowed_paths=("*.txt",))
    await house.delegation.apply(house.caller, first.id, Selection(paths=("b.md",)))
    (house.root / "b.md").unlink()
    await done(house, "::text x", after=(first.id,))
    assert names(house.worker.orders[1]) == ["a.txt", "b.md", "shop.py"]


async def test_a_stop_of_a_task_that_waits_for_others_is_carried_out_at_once(house):
    first = await at_the_gate(house)
    waiting = await house.start("::text x", after=(first.id,))
    await house.until(waiting.id, lambda task: task.base)
    assert (await house.delegation.cancel(house.caller, waiting.id)).phase is Phase.CANCELLED
    house.worker.gate("door").open()
    await house.rested(first.id)
    assert len(house.worker.orders) == 1


async def test_a_route_that_is_wrong_is_told_while_it_waits(tmp_path):
    async with open_house(tmp_path) as house:
        first = await at_the_gate(house)
        waiting = await house.start("::text x", after=(first.id,), route=Route("", model="fake/gone"))
        waiting = await house.rested(waiting.id)
        assert (waiting.phase, waiting.turn.failure.code) == (Phase.FAILED, "unknown_model")
        house.worker.gate("door").open()


async def test_it_waits_again_after_a_restart(tmp_path):
    async with open_house(tmp_path) as house:
        first = await at_the_gate(house)
        waiting = await house.start("::write c.txt three", after=(first.id,))
        await house.until(waiting.id, lambda task: task.base)
    kept = {"journal": house.journal, "workspace": house.workspace, "clock": house.clock, "worker": house.worker}
    async with open_house(tmp_path, **kept) as house:
        house.worker.gate("door").open()
        waiting = await house.rested(waiting.id)
        assert (waiting.phase, names(house.worker.orders[-1])) == (Phase.READY, ["a.txt", "c.txt", "shop.py"])


async def test_a_hub_that_ended_before_the_results_were_merged_is_followed_by_one_that_merges_them(tmp_path):
    async with open_house(tmp_path) as house:
        first = await done(house, "::write a.txt one")
        task = await done(house, "::write c.txt three", after=(first.id,))
        events = {key: list(each) for key, each in (await house.journal.read()).items()}
    cut = next(number for number, event in enumerate(events[task.id]) if isinstance(event, Rebased))
    journal = HeldJournal()
    await journal.append(first.id, events[first.id], expect=0)
    await journal.append(task.id, events[task.id][:cut], expect=0)
    async with open_house(tmp_path, journal=journal, workspace=house.workspace, clock=house.clock) as house:
        task = await house.rested(task.id)
        assert (task.phase, paths(task.turn.changes)) == (Phase.READY, ["c.txt"])


async def test_the_set_up_runs_over_the_results_that_it_begins_from(tmp_path):
    seen = []
    checks = FakeChecks({"make ready": lambda folder: seen.append((folder / "a.txt").exists()) or True})
    async with open_house(tmp_path, checks=checks, projects=FakeProjects()) as house:
        first = await done(house, "::write a.txt one")
    projects = FakeProjects(ProjectSettings(setup="make ready", trusted=True))
    kept = {"journal": house.journal, "workspace": house.workspace, "clock": house.clock, "worker": house.worker}
    async with open_house(tmp_path, checks=checks, projects=projects, **kept) as house:
        task = await done(house, "::write c.txt three", after=(first.id,))
        assert (seen, paths(task.turn.changes)) == ([True], ["c.txt"])


async def test_what_cannot_be_begun_from_is_refused_at_the_start(house, tmp_path):
    with pytest.raises(UnknownTask):
        await house.start("::text x", after=("nothing",))
    failed = await done(house, "::fail no")
    with pytest.raises(WrongPhase, match="is failed, so there is no result to begin from; continue it first"):
        await house.start("::text x", after=(failed.id,))
    (tmp_path / "other").mkdir()
    other = await done(house, "::write a.txt x", workspace=str(tmp_path / "other"))
    with pytest.raises(InvalidRequest, match=f"task {other.id} is of another workspace"):
        await house.start("::text x", after=(other.id,))
    assert len(house.delegation.tasks()) == 2


async def test_the_same_start_gives_the_same_task_whatever_became_of_the_others(house):
    first = await at_the_gate(house)
    waiting = await house.start("::text x", after=(first.id,), key="k")
    await house.delegation.cancel(house.caller, first.id)
    await house.rested(waiting.id)
    assert (await house.start("::text x", after=(first.id[:12],), key="k")).id == waiting.id
    with pytest.raises(KeyReused):
        await house.start("::text x", key="k")


async def test_one_that_was_removed_meanwhile_is_named(tmp_path):
    async with open_house(tmp_path) as house:
        first, gate = await done(house, "::write a.txt one"), await at_the_gate(house)
        waiting = await house.start("::text x", after=(gate.id, first.id))
        await house.until(waiting.id, lambda task: task.base)
        await house.delegation.clean(house.caller, None, [first.id], include_unaccepted=True)
        house.worker.gate("door").open()
        waiting = await house.rested(waiting.id)
        assert (waiting.phase, waiting.turn.failure.code) == (Phase.FAILED, "unknown_task")
        assert first.id in waiting.turn.failure.message
