"""One turn from the worker's first sign to its end, and everything that can go wrong on the way."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from offload.core.limits import Limits
from offload.core.turns.record import RETRY_STORAGE_S
from offload.core.worker import Opened, Said, Seen, Used
from offload.domain.ask import Answer
from offload.domain.errors import GitFailed, NotAWorkspace, TurnLost, UnknownAsk, UnknownModel, WorkerMissing
from offload.domain.events import ActivityChanged, SessionOpened, TurnEnded
from offload.domain.route import Route
from offload.domain.task import Phase
from offload.domain.turn import Activity, ActivityKind
from offload.domain.usage import Usage
from tests.core.journals import HeldJournal
from tests.fakes.house import open_house
from tests.fakes.worker import FakeTurn, FakeWorker
from tests.fakes.workspace import FakeWorkspace


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


class TroubledWorkspace(FakeWorkspace):
    """`troubles` holds what a method raises, by the method's name; `calls` those that were called."""

    def __init__(self, folder):
        super().__init__(folder)
        self.troubles = {}
        self.calls = []

    def _meet(self, name):
        self.calls.append(name)
        if name in self.troubles:
            raise self.troubles[name]

    async def snapshot(self, root, buffers, never_send=()):
        self._meet("snapshot")
        return await super().snapshot(root, buffers, never_send)

    async def open_folder(self, task, root, base, carry=(), never_send=()):
        self._meet("open_folder")
        return await super().open_folder(task, root, base, carry, never_send)

    async def collect(self, task, root, base):
        self._meet("collect")
        return await super().collect(task, root, base)


class TroubledWorker(FakeWorker):
    """`on_entering` and `on_leaving` are raised there; `around` may put its own events around those of a turn."""

    def __init__(self, *args, around=None, **kwargs):
        super().__init__(*args, **kwargs)
        self.on_entering = self.on_leaving = None
        self.around = around
        self.stopped = []

    @asynccontextmanager
    async def turn(self, order):
        if self.on_entering:
            raise self.on_entering
        async with super().turn(order) as turn:
            yield AroundTurn(self, order, turn) if self.around else turn
        if self.on_leaving:
            raise self.on_leaving


class AroundTurn(FakeTurn):
    def __init__(self, worker, order, turn):
        super().__init__(worker, order, turn._session)

    def events(self):
        return self._worker.around(super().events())

    async def stop(self):
        self._worker.stopped.append(self._order.turn)
        await super().stop()


async def script_of_everything(stage):
    await stage.seen()
    await stage.say("One. ")
    await stage.doing("running the test suite")
    await stage.used(Usage(10, 2))
    await stage.say("Two.")
    stage.worker.gate("door").reached.set()
    await stage.worker.gate("door").opened.wait()
    stage.write("a.txt", "new\n")
    await stage.finish("All done.")


async def test_what_the_worker_does_is_seen_while_it_does_it(tmp_path):
    async with open_house(tmp_path, worker=FakeWorker(script_of_everything)) as house:
        task = await house.start()
        task = await house.until(
            task.id, lambda task: house.delegation.live(task.id).text.endswith("Two.") or task.turn.ran
        )
        await house.until(task.id, lambda task: task.turn.usage.total_tokens)
        task = house.delegation.get(task.id)
        assert task.activity == Activity(ActivityKind.TOOL, "running the test suite", "bash")
        assert (task.turn.usage, task.turn.ran) == (Usage(10, 2), Route("fake", "build", "fake/worker"))
        assert task.turn.session == "session_1"
        house.worker.gate("door").open()
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text, task.activity) == (Phase.READY, "All done.", None)
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]
        assert task.turn.usage == Usage(62, 5, 0, 40, 0, 0.000076)
        assert task.turn.needs_review == ""
        assert house.delegation.live(task.id).text == ""


async def test_only_the_end_of_a_long_text_is_kept_for_showing(tmp_path):
    async with open_house(tmp_path, limits=Limits(live_text=8)) as house:
        task = await house.start("::text 12345\n::text 67890\n::gate door")
        await house.worker.gate("door").reached.wait()
        async with asyncio.timeout(20):
            while not (text := house.delegation.live(task.id).text).endswith("0"):  # noqa: ASYNC110 - text is told to nobody
                await asyncio.sleep(0)
        assert text == "34567890"


async def test_the_session_is_recorded_before_the_prompt_goes_out(tmp_path):
    """A restarted hub must be able to look for a turn whose prompt it may have sent."""
    journal = HeldJournal()
    held = asyncio.Event()

    async def around(events):
        async for event in events:
            if isinstance(event, Opened):
                journal.hold()
                held.set()
            yield event

    async with open_house(tmp_path, worker=TroubledWorker(around=around), journal=journal) as house:
        task = await house.start()
        await held.wait()
        await journal.reached.wait()
        assert house.worker.prompts == {}
        journal.release()
        await house.rested(task.id)
        assert house.worker.prompts == {task.turn.id: task.turn.prompt}
        kinds = [type(event) for event in (await journal.read())[task.id]]
        assert SessionOpened in kinds


async def test_an_end_is_told_after_its_changes_were_read_and_its_place_is_free(tmp_path):
    async with open_house(tmp_path, limits=Limits(tasks_per_workspace=1)) as house:
        first = await house.start("::gate one\n::write a.txt x")
        second = await house.start("::gate two\n::text done")
        await house.until(second.id, lambda task: house.delegation.live(task.id).place == 1)
        house.worker.gate("one").open()
        with house.delegation.watching() as watcher:
            while house.delegation.get(first.id).live:
                await watcher.changes()
        assert house.delegation.get(first.id).turn.changes.files
        assert house.delegation.live(second.id).place is None
        house.worker.gate("two").open()
        await house.rested(second.id)


async def test_a_worker_that_neither_said_nor_changed_anything_has_failed(house):
    task = await house.rested((await house.start("::text  ")).id)
    assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "nothing_produced")
    assert task.turn.changes.files == ()


async def test_a_change_without_a_word_is_a_result(house):
    task = await house.rested((await house.start("::write a.txt x")).id)
    assert (task.phase, task.turn.text) == (Phase.READY, "")


async def test_doubts_of_the_worker_and_another_route_than_asked_need_a_review(tmp_path):
    async def script(stage):
        await stage.seen()
        stage.ran = Route("fake", "build", "fake/other")
        await stage.finish("Done.", doubt="the model was cut off")

    async with open_house(tmp_path, worker=FakeWorker(script)) as house:
        task = await house.rested((await house.start(route=Route("", model="fake/worker"))).id)
        assert task.phase is Phase.READY
        assert task.turn.needs_review == "the model was cut off; asked for model fake/worker, ran fake/other"


async def test_a_failed_turn_keeps_its_words_and_its_changes(house):
    task = await house.rested((await house.start("::write a.txt x\n::text so far\n::fail it broke")).id)
    assert (task.phase, task.turn.failure.code, task.turn.failure.message) == (Phase.FAILED, "scripted", "it broke")
    assert task.turn.text == "so far"
    assert [file.path for file in task.turn.changes.files] == ["a.txt"]


@pytest.mark.parametrize("error", [WorkerMissing("install it"), UnknownModel("no such model")])
async def test_a_worker_that_cannot_begin_says_why(tmp_path, error):
    async with open_house(tmp_path, worker=TroubledWorker()) as house:
        house.worker.on_entering = error
        task = await house.rested((await house.start()).id)
        assert (task.phase, task.turn.failure.code, task.turn.failure.message) == (Phase.FAILED, error.code, str(error))
        assert task.turn.changes.files == ()
        assert house.defects == []
        house.worker.on_entering = None
        await house.delegation.continue_(house.caller, task.id, "::text better")
        assert (await house.rested(task.id)).phase is Phase.READY


async def test_a_worker_that_is_registered_no_more_says_so(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.rested((await house.start()).id)
    async with open_house(
        tmp_path, journal=house.journal, worker=FakeWorker(name="new"), workspace=house.workspace
    ) as house:
        await house.delegation.continue_(house.caller, task.id, "::text more")
        task = await house.rested(task.id)
        assert task.turn.failure.code == "unknown_worker"
        assert task.turn.failure.message == "the worker 'fake' is not there any more; there are new"


async def test_a_mistake_of_ours_ends_the_turn_and_not_the_house(tmp_path):
    async with open_house(tmp_path, worker=TroubledWorker()) as house:
        house.worker.on_entering = KeyError("oops")
        task = await house.rested((await house.start()).id)
        assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "defect")
        assert "KeyError('oops')" in task.turn.failure.message
        assert house.defects == [(f"task {task.id}", house.worker.on_entering)]
        house.worker.on_entering = None
        assert (await house.rested((await house.start()).id)).phase is Phase.READY


async def test_a_worker_that_goes_away_without_an_end_has_lost_the_turn(tmp_path):
    async def around(events):
        async for event in events:
            yield event
            if isinstance(event, Said):
                return

    async with open_house(tmp_path, worker=TroubledWorker(around=around)) as house:
        task = await house.rested((await house.start("::write a.txt x\n::text so far")).id)
        assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "turn_lost")
        assert task.turn.text == "so far"
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_a_turn_that_the_worker_gives_up_twice_keeps_its_words_and_changes(tmp_path):
    """A worker that went away may have finished before, so it is looked for once."""

    async def around(events):
        async for event in events:
            yield event
            if isinstance(event, Said):
                raise TurnLost("the server went away")

    async with open_house(tmp_path, worker=TroubledWorker(around=around)) as house:
        task = await house.rested((await house.start("::write a.txt x\n::text so far")).id)
        assert (task.phase, task.turn.failure.code) == (Phase.INTERRUPTED, "interrupted")
        assert task.turn.failure.message == "the server went away"
        assert [order.resume for order in house.worker.orders] == [False, True, True]
        assert len(house.worker.prompts) == 1
        assert task.turn.text == "so far"
        assert task.turn.changes.files


async def test_a_worker_that_nobody_can_follow_is_stopped(tmp_path):
    """What it does out of order is a defect; it must not go on in a folder whose task is told to be over."""

    async def around(events):
        async for event in events:
            if isinstance(event, Seen):
                yield Used(Usage(1), Route("fake"))
            yield event

    async with open_house(tmp_path, worker=TroubledWorker(around=around)) as house:
        task = await house.rested((await house.start("::gate door")).id)
        assert task.turn.failure.code == "defect"
        assert "UsageSeen cannot happen to a task that is starting" in task.turn.failure.message
        assert house.worker.stopped == [task.turn.id]
        assert [what for what, _ in house.defects] == [f"task {task.id}"]


async def test_trouble_on_leaving_the_worker_does_not_undo_the_end(tmp_path):
    async with open_house(tmp_path, worker=TroubledWorker()) as house:
        house.worker.on_leaving = TurnLost("the connection broke")
        task = await house.rested((await house.start()).id)
        assert (task.phase, task.turn.text) == (Phase.READY, "hello")
        assert house.defects == [(f"the worker of task {task.id} after its end", house.worker.on_leaving)]


@pytest.mark.parametrize("where", ["snapshot", "open_folder"])
async def test_a_folder_that_cannot_be_made_fails_the_task_before_the_worker(tmp_path, where):
    workspace = TroubledWorkspace(tmp_path / "state")
    workspace.troubles[where] = NotAWorkspace("this is no folder")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await house.rested((await house.start()).id)
        assert (task.phase, task.turn.failure.code, task.turn.changes) == (Phase.FAILED, "not_a_workspace", None)
        assert house.worker.orders == []
        assert "collect" not in workspace.calls
        del workspace.troubles[where]
        await house.delegation.continue_(house.caller, task.id, "::text now")
        task = await house.rested(task.id)
        assert (task.phase, task.base != "") == (Phase.READY, True)


async def test_changes_that_cannot_be_read_are_a_failure_with_the_folder_kept(tmp_path):
    """Never "nothing produced": the work is there."""
    workspace = TroubledWorkspace(tmp_path / "state")
    workspace.troubles["collect"] = GitFailed("git is not well")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await house.rested((await house.start("::write a.txt x\n::text done")).id)
        assert (task.phase, task.turn.failure.code, task.turn.changes) == (Phase.FAILED, "collect", None)
        assert "git is not well; its folder is kept" in task.turn.failure.message
        assert task.turn.text == "done"
        assert (house.worker.orders[0].folder / "a.txt").read_text() == "x"
        workspace.troubles.clear()
        await house.delegation.continue_(house.caller, task.id, "::text go on")
        task = await house.rested(task.id)
        assert [file.path for file in task.turn.changes.files] == ["a.txt"]


async def test_a_failure_is_not_hidden_by_changes_that_cannot_be_read(tmp_path):
    workspace = TroubledWorkspace(tmp_path / "state")
    workspace.troubles["collect"] = GitFailed("git is not well")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await house.rested((await house.start("::fail it broke")).id)
        assert task.turn.failure.message == "it broke"


async def test_a_mistake_while_changes_are_read_ends_the_turn_and_not_the_house(tmp_path):
    workspace = TroubledWorkspace(tmp_path / "state")
    workspace.troubles["collect"] = KeyError("oops")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await house.rested((await house.start()).id)
        assert task.turn.failure.code == "defect"
        workspace.troubles.clear()
        assert (await house.rested((await house.start()).id)).phase is Phase.READY


@pytest.mark.parametrize("kind", [ActivityChanged, TurnEnded])
async def test_what_cannot_be_stored_is_tried_again_until_it_can(tmp_path, kind):
    """A full disk loses nothing: the worker's word is kept until it can be written."""

    class FullJournal(HeldJournal):
        full = False

        async def append(self, task, events, *, expect):
            if self.full and isinstance(events[0], kind):
                self.fail_with = "the disk is full"
            return await super().append(task, events, expect=expect)

    journal = FullJournal()
    async with open_house(tmp_path, journal=journal) as house:
        journal.full = True
        task = await house.start("::write a.txt x\n::text done")
        for _ in range(3):
            await house.clock.naps(RETRY_STORAGE_S)
            house.clock.advance(RETRY_STORAGE_S)
        await house.clock.naps(RETRY_STORAGE_S)
        assert house.delegation.get(task.id).live
        assert len(house.defects) == 4
        assert house.defects[0][0] == f"{kind.__name__} of task {task.id} is not stored yet"
        journal.full, journal.fail_with = False, ""
        house.clock.advance(RETRY_STORAGE_S)
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text) == (Phase.READY, "done")


async def test_an_end_that_the_journal_refuses_for_good_does_not_end_the_house(tmp_path):
    class BrokenJournal(HeldJournal):
        broken = False

        async def append(self, task, events, *, expect):
            if self.broken and expect > 1:
                raise KeyError("oops")
            return await super().append(task, events, expect=expect)

    journal = BrokenJournal()
    async with open_house(tmp_path, journal=journal) as house:
        task = await house.start("::shell rm -r x")
        task = await house.until(task.id, lambda task: task.asks)
        journal.broken = True
        await house.worker.stage(task.turn.id).finish("done without it")
        async with asyncio.timeout(20):
            while len(house.defects) < 2:  # noqa: ASYNC110 - nothing is recorded any more that could be waited for
                await asyncio.sleep(0)
        journal.broken = False
        assert (await house.rested((await house.start()).id)).phase is Phase.READY
        assert house.delegation.get(task.id).live
        with pytest.raises(UnknownAsk, match="is not open any more"):
            await house.delegation.answer(house.caller, task.id, "", Answer("allow"))
        assert (await house.delegation.cancel(house.caller, task.id)).phase is Phase.CANCELLING
    async with open_house(tmp_path, journal=journal, workspace=house.workspace, worker=house.worker) as house:
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text) == (Phase.READY, "done without it"), "the worker was first"
