"""Stopping: a phase says what has happened, never what was asked."""

import asyncio

import pytest

from offload.core.limits import Limits
from offload.core.worker import Unstopped
from offload.domain.errors import GitFailed, StorageFailed, UnknownTask, WorkerBroken
from offload.domain.events import StopRequested, TurnEnded
from offload.domain.lifecycle import advance
from offload.domain.task import Phase
from offload.domain.turn import Survivor
from tests.core.journals import HeldJournal
from tests.fakes.house import open_house
from tests.fakes.worker import FakeTurn, FakeWorker
from tests.fakes.workspace import FakeWorkspace

GATE = "::write a.txt x\n::text so far\n::gate door\n::text done"


class HeldWorkspace(FakeWorkspace):
    """Snapshot and folder wait at their gates; `cancelled` names those that were cancelled there."""

    def __init__(self, folder, held):
        super().__init__(folder)
        self.held = held
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        self.cancelled = []

    async def _wait(self, name):
        if name == self.held:
            self.reached.set()
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise

    async def snapshot(self, root, buffers, never_send=()):
        await self._wait("snapshot")
        return await super().snapshot(root, buffers, never_send)

    async def open_folder(self, task, root, base, carry=(), never_send=()):
        await self._wait("open_folder")
        return await super().open_folder(task, root, base, carry, never_send)

    async def collect(self, task, root, base):
        await self._wait("collect")
        return await super().collect(task, root, base)


class DeafWorker(FakeWorker):
    """`deaf` is what its turns raise when they are told to stop."""

    deaf = None
    entered = None

    def turn(self, order):
        return DeafContext(self, super().turn(order))


class DeafContext:
    def __init__(self, worker, context):
        self.worker, self.context = worker, context

    async def __aenter__(self):
        turn = await self.context.__aenter__()
        if self.worker.entered:
            await self.worker.entered()
        return DeafTurn(self.worker, turn._order, turn._session)

    async def __aexit__(self, *error):
        return await self.context.__aexit__(*error)


class DeafTurn(FakeTurn):
    async def stop(self):
        if self._worker.deaf:
            raise self._worker.deaf
        await super().stop()


async def cancel(house, task):
    return await house.delegation.cancel(house.caller, task.id)


async def working(house, brief=GATE):
    task = await house.start(brief)
    await house.worker.gate("door").reached.wait()
    return await house.until(task.id, lambda task: task.phase is Phase.WORKING)


async def test_a_working_task_is_cancelling_until_the_worker_is_gone(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
        assert (await cancel(house, task)).phase is Phase.CANCELLING
        task = await house.rested(task.id)
        assert (task.phase, task.turn.stopped, task.turn.failure) == (Phase.CANCELLED, True, None)
        assert task.turn.text == "so far"
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_a_stubborn_worker_keeps_the_task_cancelling(tmp_path):
    async def script(stage):
        await stage.seen()
        stage.worker.gate("door").reached.set()
        await stage.stop_asked.wait()
        await stage.say("not yet")
        await stage.worker.gate("out").opened.wait()
        await stage.halt()

    worker = FakeWorker(script)
    worker.stubborn = True
    async with open_house(tmp_path, worker=worker) as house:
        task = await working(house)
        await cancel(house, task)
        with house.delegation.watching() as watcher:
            waited = asyncio.create_task(house.wait(task.id, timeout_s=30))
            await house.clock.naps(30)
            house.clock.advance(30)
            assert not (await waited).done
            assert house.delegation.get(task.id).phase is Phase.CANCELLING
            worker.gate("out").open()
            await watcher.changes()
        assert (await house.rested(task.id)).phase is Phase.CANCELLED


async def test_a_worker_that_finishes_first_wins(tmp_path):
    async def script(stage):
        await stage.seen()
        stage.worker.gate("door").reached.set()
        await stage.stop_asked.wait()
        await stage.finish("done before I heard you")

    worker = FakeWorker(script)
    worker.stubborn = True
    async with open_house(tmp_path, worker=worker) as house:
        task = await working(house)
        await cancel(house, task)
        task = await house.rested(task.id)
        assert (task.phase, task.turn.stopped, task.turn.text) == (Phase.READY, False, "done before I heard you")


async def test_a_stop_while_the_result_is_read_is_too_late(tmp_path):
    workspace = HeldWorkspace(tmp_path / "state", "collect")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await house.start()
        await workspace.reached.wait()
        assert (await cancel(house, task)).phase is Phase.CANCELLING
        workspace.opened.set()
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text, task.stop_requested) == (Phase.READY, "hello", False)


async def test_a_queued_task_is_cancelled_at_once_and_leaves_the_line(tmp_path):
    async with open_house(tmp_path, limits=Limits(tasks_per_workspace=1)) as house:
        first = await working(house)
        second, third = await house.start("::text 2"), await house.start("::text 3")
        await house.until(third.id, lambda task: house.delegation.live(task.id).place == 2)
        assert (await cancel(house, second)).phase is Phase.CANCELLED
        await house.until(third.id, lambda task: house.delegation.live(task.id).place == 1)
        house.worker.gate("door").open()
        await house.rested(first.id)
        await house.rested(third.id)
        assert [order.task for order in house.worker.orders] == [first.id, third.id]
        assert house.delegation.get(second.id).turn.stopped


async def test_a_queued_task_that_is_cancelled_and_continued_at_once_is_run_once(tmp_path):
    async with open_house(tmp_path, limits=Limits(tasks_per_workspace=1)) as house:
        first = await working(house)
        second = await house.start("::text never")
        await house.until(second.id, lambda task: house.delegation.live(task.id).place == 1)
        await asyncio.gather(cancel(house, second), house.delegation.continue_(house.caller, second.id, "::text 2"))
        await house.until(second.id, lambda task: house.delegation.live(task.id).place == 1)
        house.worker.gate("door").open()
        await house.rested(first.id)
        second = await house.rested(second.id)
        assert [turn.text for turn in second.turns] == ["", "2"]
        assert [order.turn for order in house.worker.orders] == [first.turn.id, second.turn.id]


async def test_a_task_that_is_cancelled_while_its_snapshot_is_taken_can_be_taken_up_again(tmp_path):
    workspace = HeldWorkspace(tmp_path / "state", "snapshot")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await house.start()
        await workspace.reached.wait()
        assert (await cancel(house, task)).phase is Phase.CANCELLED
        assert (await cancel(house, task)).phase is Phase.CANCELLED
        workspace.opened.set()
        await house.delegation.continue_(house.caller, task.id, "::text now")
        task = await house.rested(task.id)
        assert workspace.cancelled == ["snapshot"]
        assert (task.phase, task.turn.text, task.base != "") == (Phase.READY, "now", True)
        assert len(house.worker.orders) == 1


async def test_a_task_that_is_cancelled_in_the_moment_of_its_start_never_runs(tmp_path):
    async with open_house(tmp_path) as house:
        with house.delegation.watching() as watcher:
            starting = asyncio.create_task(house.start())
            (task,) = await watcher.changes()
        assert (await cancel(house, task)).phase is Phase.CANCELLED
        await starting
        task = await house.rested(task.id)
        assert (task.phase, task.base, house.worker.orders) == (Phase.CANCELLED, "", [])


@pytest.mark.parametrize("moment", ["snapshot", "admission"])
async def test_a_stop_and_an_admission_in_one_moment_leave_a_cancelled_task(tmp_path, moment):
    """The admission is recorded, or not, before the stop or after it; the task is over in any case."""
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house:
        task = await house.start()
        if moment == "admission":
            await house.until(task.id, lambda task: task.base)
        journal.hold()
        stopping = asyncio.create_task(cancel(house, task))
        await journal.reached.wait()
        journal.release()
        await stopping
        task = await house.rested(task.id)
        assert task.phase is Phase.CANCELLED
        assert house.worker.prompts == {}


async def test_a_starting_task_is_stopped_before_its_worker_is_called(tmp_path):
    workspace = HeldWorkspace(tmp_path / "state", "open_folder")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await house.start()
        await workspace.reached.wait()
        assert (await cancel(house, task)).phase is Phase.CANCELLING
        workspace.opened.set()
        task = await house.rested(task.id)
        assert (task.phase, workspace.cancelled, house.worker.orders) == (Phase.CANCELLED, [], [])


async def test_a_stop_while_the_worker_is_being_started_keeps_the_prompt_back(tmp_path):
    entered, opened = asyncio.Event(), asyncio.Event()

    async def wait():
        entered.set()
        await opened.wait()

    worker = DeafWorker()
    worker.entered = wait
    async with open_house(tmp_path, worker=worker) as house:
        task = await house.start()
        await entered.wait()
        assert (await cancel(house, task)).phase is Phase.CANCELLING
        opened.set()
        assert (await house.rested(task.id)).phase is Phase.CANCELLED
        assert worker.prompts == {}


async def test_a_task_with_an_open_ask_is_cancelled_with_it(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.start("::shell rm -r x")
        await house.until(task.id, lambda task: task.asks)
        assert (await cancel(house, task)).asks
        task = await house.rested(task.id)
        assert (task.phase, task.asks) == (Phase.CANCELLED, {})


async def test_a_second_stop_records_nothing_and_tells_the_worker_again(tmp_path):
    worker = DeafWorker()
    worker.deaf = WorkerBroken("it does not answer")
    async with open_house(tmp_path, worker=worker) as house:
        task = await working(house)
        await cancel(house, task)
        async with asyncio.timeout(20):
            while not house.defects:  # noqa: ASYNC110 - a log is not watched
                await asyncio.sleep(0)
        assert house.defects == [(f"the stop of task {task.id}", worker.deaf)]
        before = house.delegation.get(task.id)
        assert before.phase is Phase.CANCELLING
        worker.deaf = None
        assert (await cancel(house, task)).revision == before.revision
        assert (await house.rested(task.id)).phase is Phase.CANCELLED


async def test_a_mistake_in_stopping_does_not_end_the_house(tmp_path):
    worker = DeafWorker()
    worker.deaf = KeyError("oops")
    async with open_house(tmp_path, worker=worker) as house:
        task = await working(house)
        await cancel(house, task)
        house.worker.gate("door").open()
        assert (await house.rested(task.id)).phase is Phase.READY
        assert [error for _, error in house.defects] == [worker.deaf]


@pytest.mark.parametrize("brief", ["::text done", "::fail it broke"])
async def test_a_stop_after_the_end_changes_nothing(tmp_path, brief):
    async with open_house(tmp_path) as house:
        task = await house.rested((await house.start(brief)).id)
        assert await cancel(house, task) == task
        assert await cancel(house, task) == task


async def test_a_stop_of_an_unknown_task_is_refused(tmp_path):
    async with open_house(tmp_path) as house:
        with pytest.raises(UnknownTask):
            await house.delegation.cancel(house.caller, "none")


async def test_a_stop_whose_caller_goes_away_in_the_middle_is_done_all_the_same(tmp_path):
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house:
        task = await working(house)
        journal.hold()
        stopping = asyncio.create_task(cancel(house, task))
        await journal.reached.wait()
        stopping.cancel()
        await asyncio.wait([stopping])
        journal.release()
        assert (await house.rested(task.id)).phase is Phase.CANCELLED


async def test_a_stop_that_cannot_be_stored_is_told_to_the_caller_and_stops_nothing(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house, "::gate door\n::text done")
        house.journal.fail_with = "the disk is full"
        with pytest.raises(StorageFailed):
            await cancel(house, task)
        house.journal.fail_with = ""
        assert house.delegation.get(task.id) == task
        house.worker.gate("door").open()
        assert (await house.rested(task.id)).phase is Phase.READY


async def test_a_late_stop_does_not_meet_the_follow_up(tmp_path):
    """The stop is still on its way when the worker ends by itself; the next turn runs in the same session."""
    stops = []

    class SlowTurn(FakeTurn):
        async def stop(self):
            self._worker.gate("stopping").reached.set()
            await self._worker.gate("stopping").opened.wait()
            stops.append(self._order.turn)

    class SlowWorker(DeafWorker):
        def turn(self, order):
            context = super().turn(order)

            class Context(DeafContext):
                async def __aenter__(self):
                    turn = await super().__aenter__()
                    return SlowTurn(self.worker, turn._order, turn._session)

            return Context(self, context.context)

    async with open_house(tmp_path, worker=SlowWorker()) as house:
        task = await working(house)
        await cancel(house, task)
        await house.worker.gate("stopping").reached.wait()
        house.worker.gate("door").open()
        assert (await house.rested(task.id)).phase is Phase.READY
        await house.delegation.continue_(house.caller, task.id, "::text more")
        house.worker.gate("stopping").open()
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text, stops) == (Phase.READY, "more", [])


async def test_a_stop_is_one_event(tmp_path):
    async with open_house(tmp_path) as house:
        task = await working(house)
        await asyncio.gather(*(cancel(house, task) for _ in range(5)))
        await house.rested(task.id)
        events = (await house.journal.read())[task.id]
        assert len([event for event in events if isinstance(event, StopRequested)]) == 1


UNSTOPPED = Unstopped((Survivor(4711, "sleep 600"), Survivor(4712, "make watch")), "so far")


def cannot_be_stopped(end=UNSTOPPED):
    async def script(stage):
        await stage.seen()
        stage.write("a.txt", "x")
        stage.worker.gate("door").reached.set()
        await stage.stop_asked.wait()
        await stage.emit(end)

    worker = FakeWorker(script)
    worker.stubborn = True
    return worker


async def test_what_could_not_be_ended_is_named_and_the_task_is_not_called_cancelled(tmp_path):
    """Report H06: "cancelled" is not shown while writes go on; the survivor is named."""
    async with open_house(tmp_path, worker=cannot_be_stopped()) as house:
        task = await working(house)
        await cancel(house, task)
        task = await house.rested(task.id)
        assert (task.phase, task.turn.stopped, task.turn.text) == (Phase.FAILED, False, "so far")
        assert task.turn.failure.code == "stop_incomplete"
        assert "4711 (sleep 600), 4712 (make watch)" in task.turn.failure.message
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_what_could_not_be_ended_is_named_though_the_changes_cannot_be_read(tmp_path):
    class Unreadable(FakeWorkspace):
        async def collect(self, task, root, base):
            raise GitFailed("git is gone")

    async with open_house(tmp_path, worker=cannot_be_stopped(), workspace=Unreadable(tmp_path / "state")) as house:
        task = await working(house)
        await cancel(house, task)
        task = await house.rested(task.id)
        assert (task.turn.failure.code, task.turn.changes) == ("stop_incomplete", None)


async def test_nothing_that_comes_after_the_end_changes_it(tmp_path):
    """Reported of many systems: failed or even done after a cancel."""
    async with open_house(tmp_path) as house:
        task = await working(house)
        await cancel(house, task)
        task = await house.rested(task.id)
        stage = house.worker.stage(task.turn.id)
        await stage.say("late")
        await stage.finish("late")
        late = TurnEnded(at=house.clock.now(), turn=task.turn.id, text="late", changes=task.turn.changes)
        after = advance(task, late)
        assert (after.phase, after.turn) == (Phase.CANCELLED, task.turn)
        assert house.delegation.get(task.id) == task
