"""The hub ends and another one begins on the same journal."""

import asyncio

import pytest

from offload.core.recovery import REASON
from offload.domain.errors import GitFailed, StorageFailed, TurnLost
from offload.domain.lifecycle import WorkLost
from offload.domain.task import Phase
from offload.domain.turn import Failure
from tests.core.journals import HeldJournal
from tests.fakes.house import open_house
from tests.fakes.worker import FakeWorker
from tests.fakes.workspace import FakeWorkspace

GATE = "::write a.txt x\n::gate door\n::text done"


async def restart(house, tmp_path, **parts):
    """The parts that outlive a hub."""
    kept = {"journal": house.journal, "workspace": house.workspace, "clock": house.clock, **parts}
    return open_house(tmp_path, **kept)


async def working(house, brief=GATE):
    task = await house.start(brief)
    await house.worker.gate("door").reached.wait()
    return await house.until(task.id, lambda task: task.phase is Phase.WORKING)


async def test_a_house_that_is_left_lets_its_turns_go_on(tmp_path):
    """The worker may be outlived by nobody; what it does is the next hub's to find."""
    async with asyncio.timeout(20):
        async with open_house(tmp_path) as house:
            task = await working(house)
            await house.start("::shell ls")
        assert house.delegation.get(task.id).phase is Phase.WORKING
        assert not house.worker.stage(task.turn.id).stop_asked.is_set()
        assert house.defects == []


async def test_what_a_house_is_left_for_is_raised_as_it_is(tmp_path):
    async def leave():
        async with open_house(tmp_path) as house:
            await working(house)
            raise KeyError("why")

    with pytest.raises(KeyError, match="why"):
        await leave()


async def test_a_start_that_was_begun_is_recorded_and_not_run_by_a_house_that_ends(tmp_path):
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house:
        journal.hold()
        starting = asyncio.create_task(house.start())
        await journal.reached.wait()
        asyncio.get_running_loop().call_soon(journal.release)  # which is when the house is on its way out
    task = await starting
    assert (house.worker.orders, task.phase) == ([], Phase.QUEUED)
    async with await restart(house, tmp_path) as house:
        assert house.delegation.get(task.id).phase is Phase.INTERRUPTED


async def test_live_tasks_are_interrupted_with_their_changes_kept_and_can_be_taken_up(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
    async with await restart(house, tmp_path) as house:
        task = house.delegation.get(task.id)
        assert (task.phase, task.turn.failure) == (Phase.INTERRUPTED, Failure("interrupted", REASON))
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]
        await house.delegation.continue_(house.caller, task.id, "::text went on")
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text, task.turn.session) == (Phase.READY, "went on", "session_1")
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_queued_tasks_are_interrupted_without_a_change(tmp_path):
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house:
        tasks = [await house.start(GATE) for _ in range(7)]
        await house.until(tasks[6].id, lambda task: house.delegation.live(task.id).place == 2)
    async with await restart(house, tmp_path) as house:
        task = house.delegation.get(tasks[6].id)
        assert (task.phase, task.turn.changes) == (Phase.INTERRUPTED, None)


async def test_a_stop_that_was_asked_is_done(tmp_path):
    worker = FakeWorker()
    worker.stubborn = True
    async with open_house(tmp_path, worker=worker) as house:
        task = await working(house)
        await house.delegation.cancel(house.caller, task.id)
    async with await restart(house, tmp_path) as house:
        task = house.delegation.get(task.id)
        assert (task.phase, task.turn.stopped) == (Phase.CANCELLED, True)
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_a_hub_that_ends_while_it_recovers_is_recovered_from(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
    task = house.delegation.get(task.id)
    lost = WorkLost(at=1.0, turn=task.turn.id, reason="the hub ended")
    await house.journal.append(task.id, [lost], expect=task.revision)
    async with await restart(house, tmp_path) as house:
        assert house.delegation.get(task.id).phase is Phase.INTERRUPTED


async def test_resting_tasks_are_as_they_were_and_all_are_listed(tmp_path):
    async with open_house(tmp_path) as house:
        ready = await house.rested((await house.start("::write a.txt x")).id)
        failed = await house.rested((await house.start("::fail it broke")).id)
        closed = await house.rested((await house.start()).id)
        closed = await house.delegation.close(house.caller, closed.id)
        live = await working(house)
    async with await restart(house, tmp_path) as house:
        assert [task.id for task in house.delegation.tasks(closed=True)] == [live.id, closed.id, failed.id, ready.id]
        assert [house.delegation.get(task.id) for task in (ready, failed, closed)] == [ready, failed, closed]
        assert (await house.delegation.apply(house.caller, ready.id))[1] == ("a.txt",)
    async with await restart(house, tmp_path) as house:
        assert house.delegation.get(live.id).phase is Phase.INTERRUPTED
        assert house.delegation.get(live.id).revision == len((await house.journal.read())[live.id])


@pytest.mark.parametrize("trouble", [GitFailed("git is not well"), KeyError("oops")])
async def test_a_task_whose_changes_cannot_be_read_does_not_keep_the_hub_from_starting(tmp_path, trouble):
    class TroubledWorkspace(FakeWorkspace):
        async def collect(self, task, root, base):
            raise trouble

    async with open_house(tmp_path, workspace=TroubledWorkspace(tmp_path / "state")) as house:
        task = await working(house)
    async with await restart(house, tmp_path) as house:
        task = house.delegation.get(task.id)
        assert (task.phase, task.turn.changes) == (Phase.INTERRUPTED, None)
        assert house.defects == [(f"the changes of task {task.id} could not be read", trouble)]


async def test_a_journal_that_cannot_be_written_is_told_to_who_starts_the_hub(tmp_path):
    async with open_house(tmp_path) as house:
        await working(house)
    house.journal.fail_with = "the disk is full"
    with pytest.raises(StorageFailed, match="the disk is full"):
        async with await restart(house, tmp_path):
            pytest.fail("it opened all the same")


async def test_a_house_can_be_left_while_it_cannot_store_an_end(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
        house.journal.fail_with = "the disk is full"
        house.worker.gate("door").open()
        await house.clock.naps(1)
    house.journal.fail_with = ""
    async with await restart(house, tmp_path) as house:
        assert house.delegation.get(task.id).phase is Phase.INTERRUPTED


async def test_a_house_can_be_left_while_a_worker_ends_badly(tmp_path):
    class BadWorker(FakeWorker):
        def turn(self, order):
            context = super().turn(order)

            class Context:
                async def __aenter__(_):  # noqa: N805
                    return await context.__aenter__()

                async def __aexit__(_, *error):  # noqa: N805
                    raise TurnLost("it does not let go")

            return Context()

    async with open_house(tmp_path, worker=BadWorker()) as house:
        task = await working(house)
    assert house.delegation.get(task.id).phase in (Phase.WORKING, Phase.FAILED)
