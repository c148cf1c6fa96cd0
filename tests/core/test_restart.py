"""The hub ends and another one begins on the same journal."""

import asyncio

import pytest

from offload.core.delegation import RESUMED
from offload.core.limits import Limits
from offload.domain.ask import Answer
from offload.domain.errors import GitFailed, StorageFailed, TurnLost, WorkerMissing, WrongPhase
from offload.domain.events import SessionOpened, StopRequested, WorkLost
from offload.domain.task import Phase
from offload.domain.turn import Failure
from tests.core.journals import HeldJournal
from tests.fakes.house import open_house
from tests.fakes.journal import MemoryJournal
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


async def test_a_start_that_was_begun_is_recorded_and_run_by_the_next_house(tmp_path):
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house:
        journal.hold()
        starting = asyncio.create_task(house.start())
        await journal.reached.wait()
        asyncio.get_running_loop().call_soon(journal.release)  # which is when the house is on its way out
    task = await starting
    assert (house.worker.orders, task.phase) == ([], Phase.QUEUED)
    async with await restart(house, tmp_path) as house:
        assert (await house.rested(task.id)).phase is Phase.READY


async def test_a_turn_that_goes_on_is_met_again_and_its_prompt_is_not_sent_twice(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
    async with await restart(house, tmp_path, worker=house.worker) as house:
        found = house.delegation.get(task.id)
        assert (found.phase, found.turn.id) == (Phase.RECOVERING, task.turn.id)
        await house.until(task.id, lambda task: task.phase is Phase.WORKING)
        house.worker.gate("door").open()
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text, task.turn.session) == (Phase.READY, "done", "session_1")
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]
        assert len(house.worker.prompts) == 1
        assert [(order.resume, order.session) for order in house.worker.orders] == [(False, ""), (True, "session_1")]
        assert house.worker.orders[1].environment["HUB"] == "own", "a caller's environment is never stored"


async def test_a_turn_that_ended_while_no_hub_was_there_is_collected(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
    house.worker.gate("door").open()
    await house.worker.over(task.turn.id)
    async with await restart(house, tmp_path, worker=house.worker) as house:
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text) == (Phase.READY, "done")
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_an_open_ask_is_asked_again_and_an_answered_one_is_not(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.start("::shell rm a\n::shell rm b\n::text done")
        await house.until(task.id, lambda task: task.asks)
        await house.delegation.answer(house.caller, task.id, "", Answer("allow"))
        asking = await house.until(task.id, lambda task: [ask.detail for ask in task.asks.values()] == ["rm b"])
    async with await restart(house, tmp_path, worker=house.worker) as house:
        assert house.delegation.get(task.id).asks == {}
        again = await house.until(task.id, lambda task: task.asks)
        assert again.asks == asking.asks
        await house.delegation.answer(house.caller, task.id, "", Answer("allow"))
        assert (await house.rested(task.id)).phase is Phase.READY


async def lost(house, task):
    await house.worker.stage(task.turn.id).lose("the worker was restarted")


async def test_what_nobody_works_on_any_more_is_interrupted_with_its_words_and_changes_and_can_be_resumed(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house, "::write a.txt x\n::text so far\n::gate door")
    await lost(house, task)
    async with await restart(house, tmp_path, worker=house.worker) as house:
        task = await house.rested(task.id)
        assert (task.phase, task.turn.failure) == (
            Phase.INTERRUPTED,
            Failure("interrupted", "the worker was restarted"),
        )
        assert (task.turn.text, [file.path for file in task.turn.changes.files]) == ("so far", ["a.txt"])
        house.worker.gate("door").open()
        resumed = await house.delegation.resume(house.caller, task.id)
        assert len(resumed.turns) == 2
        task = await house.rested(task.id)
        assert (task.phase, task.turn.session) == (Phase.READY, "session_1")
        assert task.turn.prompt.startswith(RESUMED)
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_a_resumed_turn_that_is_resumed_tells_the_task_once(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.rested((await house.start("::fail it broke")).id)
        first = task.turn.prompt
        await house.delegation.resume(house.caller, task.id)
        await house.rested(task.id)
        await house.delegation.resume(house.caller, task.id)
        task = await house.rested(task.id)
        assert [turn.prompt for turn in task.turns] == [first, f"{RESUMED}{first}", f"{RESUMED}{first}"]


async def test_a_task_that_went_well_or_that_runs_cannot_be_resumed(tmp_path):
    async with open_house(tmp_path) as house:
        ready = await house.rested((await house.start()).id)
        with pytest.raises(WrongPhase, match="is ready; send a follow-up with continue_task"):
            await house.delegation.resume(house.caller, ready.id)
        task = await working(house)
        with pytest.raises(WrongPhase, match="is working"):
            await house.delegation.resume(house.caller, task.id)


async def test_a_worker_that_cannot_be_reached_after_a_restart_interrupts_the_turn(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
    missing = FakeWorker()
    missing.refuses = WorkerMissing("OpenCode is not there any more")
    async with await restart(house, tmp_path, worker=missing) as house:
        task = await house.rested(task.id)
        assert (task.phase, task.turn.failure.message) == (Phase.INTERRUPTED, "OpenCode is not there any more")
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_a_worker_that_goes_away_under_a_live_hub_is_looked_for_once(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
        await lost(house, task)
        task = await house.rested(task.id)
        assert (task.phase, task.turn.failure.message) == (Phase.INTERRUPTED, "the worker was restarted")
        assert [order.resume for order in house.worker.orders] == [False, True, True]


async def test_queued_tasks_wait_again_behind_those_that_were_at_work(tmp_path):
    async with open_house(tmp_path, limits=Limits(tasks_per_workspace=2)) as house:
        at_work = [await working(house) for _ in range(2)]
        queued = await house.start("::text late")
        await house.until(queued.id, lambda task: house.delegation.live(task.id).place == 1)
    limits = Limits(tasks_per_workspace=1)
    async with await restart(house, tmp_path, worker=house.worker, limits=limits) as house:
        for task in at_work:
            await house.until(task.id, lambda task: task.phase is Phase.WORKING)
        assert house.delegation.get(queued.id).phase is Phase.QUEUED
        await house.until(queued.id, lambda task: house.delegation.live(task.id).place == 1)
        house.worker.gate("door").open()
        assert (await house.rested(queued.id)).turn.text == "late"


@pytest.mark.parametrize("goes_on", [True, False])
async def test_a_stop_that_was_asked_is_carried_out(tmp_path, goes_on):
    worker = FakeWorker()
    worker.stubborn = True
    async with open_house(tmp_path, worker=worker) as house:
        task = await working(house)
        await house.delegation.cancel(house.caller, task.id)
    worker.stubborn = False
    if not goes_on:
        await lost(house, task)
    async with await restart(house, tmp_path, worker=worker) as house:
        task = await house.rested(task.id)
        assert (task.phase, task.turn.stopped) == (Phase.CANCELLED, True)
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_a_stop_of_work_that_is_being_looked_for_is_carried_out(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
    async with await restart(house, tmp_path, worker=house.worker) as house:
        assert (await house.delegation.cancel(house.caller, task.id)).phase is Phase.CANCELLING
        assert (await house.rested(task.id)).phase is Phase.CANCELLED


async def test_a_stop_before_the_prompt_was_sent_sends_none(tmp_path):
    """The session was recorded, and the hub ended before the prompt went out."""
    worker = FakeWorker()
    async with open_house(tmp_path, worker=worker) as house:
        task = await house.rested((await house.start()).id)
    journal, events = MemoryJournal(), list((await house.journal.read())[task.id])
    cut = next(number for number, event in enumerate(events, start=1) if isinstance(event, SessionOpened))
    stop = StopRequested(at=1.0)
    await journal.append(task.id, [*events[:cut], stop], expect=0)
    other = FakeWorker()
    async with await restart(house, tmp_path, journal=journal, worker=other) as house:
        assert (await house.rested(task.id)).phase is Phase.CANCELLED
    assert other.prompts == {}


async def test_a_hub_that_ends_while_it_recovers_is_recovered_from(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
    task = house.delegation.get(task.id)
    gone = WorkLost(at=1.0, turn=task.turn.id, reason="the hub ended")
    await house.journal.append(task.id, [gone], expect=task.revision)
    house.worker.gate("door").open()
    async with await restart(house, tmp_path, worker=house.worker) as house:
        assert (await house.rested(task.id)).phase is Phase.READY


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
        assert (await house.delegation.apply(house.caller, ready.id))[1].paths == ("a.txt",)
    async with await restart(house, tmp_path) as house:
        await house.until(live.id, lambda task: task.phase is Phase.WORKING)
        assert house.delegation.get(live.id).revision == len((await house.journal.read())[live.id])


async def test_a_task_whose_changes_cannot_be_read_does_not_keep_the_hub_from_starting(tmp_path):
    class TroubledWorkspace(FakeWorkspace):
        async def collect(self, task, root, base):
            raise GitFailed("git is not well")

    async with open_house(tmp_path, workspace=TroubledWorkspace(tmp_path / "state")) as house:
        task = await working(house)
    await lost(house, task)
    async with await restart(house, tmp_path, worker=house.worker) as house:
        task = await house.rested(task.id)
        assert (task.phase, task.turn.changes) == (Phase.FAILED, None)
        assert "git is not well" in task.turn.failure.message


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
    async with await restart(house, tmp_path, worker=house.worker) as house:
        assert (await house.rested(task.id)).phase is Phase.READY


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
    assert house.delegation.get(task.id).phase is Phase.WORKING


async def test_a_stop_that_comes_before_the_worker_is_met_again_reaches_it_all_the_same(tmp_path):
    """The crash matrix found it: the task was called cancelled, and its worker went on."""
    async with open_house(tmp_path) as house:
        task = await working(house)
    async with await restart(house, tmp_path, worker=house.worker) as again:
        assert again.delegation.get(task.id).phase is Phase.RECOVERING
        await again.delegation.cancel(again.caller, task.id)
        assert (await again.rested(task.id)).phase is Phase.CANCELLED
        assert house.worker.stage(task.turn.id).stop_asked.is_set()
