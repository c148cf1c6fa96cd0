"""What becomes of a result: shown, applied, released."""

import asyncio

import pytest

from offload.domain.errors import ApplyRefused, GitFailed, InvalidRequest, WorkerBroken, WrongPhase
from offload.domain.review import Selection
from offload.domain.task import Phase, Place
from tests.fakes.house import SHOP, open_house
from tests.fakes.worker import FakeWorker
from tests.fakes.workspace import FakeWorkspace

TWO_FILES = "::write shop.py new\n::write more.py x = 1\n::text done"


class HeldWorkspace(FakeWorkspace):
    """`write` waits until the test lets it go on; `trouble` is what `release` and `open_folder` raise."""

    def __init__(self, folder):
        super().__init__(folder)
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        self.trouble = None

    async def write(self, root, plan):
        self.reached.set()
        await self.opened.wait()
        await super().write(root, plan)

    async def open_folder(self, task, root, base, carry=(), never_send=()):
        if self.trouble:
            raise self.trouble
        return await super().open_folder(task, root, base, carry, never_send)

    async def release(self, task, root):
        if self.trouble:
            raise self.trouble
        await super().release(task, root)


class BrokenWorker(FakeWorker):
    async def release(self, session, environment):
        raise WorkerBroken("it is gone")


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


async def done(house, brief=TWO_FILES):
    return await house.rested((await house.start(brief)).id)


async def apply(house, task, *paths):
    return await house.delegation.apply(house.caller, task.id, Selection(paths))


async def test_a_diff_is_the_whole_patch(house):
    task = await done(house)
    shown, turn, changes, patch = await house.delegation.diff(task.id[:6])
    assert (shown, turn, changes) == (task, task.turn, task.turn.changes)
    assert "--- a/shop.py" in patch
    assert "+x = 1" in patch


@pytest.mark.parametrize("absolute", [False, True])
async def test_a_diff_is_narrowed_to_files(house, absolute):
    task = await done(house)
    path = str(house.root / "more.py") if absolute else "./more.py"
    *_, patch = await house.delegation.diff(task.id, Selection((path,)))
    assert "shop.py" not in patch
    assert "+x = 1" in patch


async def test_a_path_that_was_not_changed_is_refused(house):
    (house.root / "other.py").write_text("")
    task = await done(house)
    for what in (
        house.delegation.diff(task.id, Selection(("more.py", "other.py", "else.py"))),
        apply(house, task, "other.py", "else.py"),
    ):
        with pytest.raises(
            InvalidRequest, match=r"not changed by this task: else\.py, other\.py; it changed more\.py, shop\.py$"
        ):
            await what
    with pytest.raises(InvalidRequest, match="is not a file in the workspace"):
        await apply(house, task, "../more.py")
    assert (house.root / "shop.py").read_text() == SHOP


async def test_a_task_without_a_result_yet_has_no_diff(house):
    task = await house.start("::gate door\n::text done")
    with pytest.raises(WrongPhase, match=f"task {task.id} has no changes yet; it is queued"):
        await house.delegation.diff(task.id)
    house.worker.gate("door").open()
    await house.rested(task.id)


async def test_a_result_is_written_to_disk_and_its_landing_recorded(house):
    task = await done(house)
    house.clock.advance(5)
    task, landing = await apply(house, task)
    assert landing.paths == ("more.py", "shop.py")
    assert (house.root / "shop.py").read_text() == "new"
    assert (house.root / "more.py").read_text() == "x = 1"
    assert task.landings == (landing,)
    assert (landing.turn, landing.result, landing.at, landing.by) == (
        task.turn.id,
        task.turn.changes.result,
        house.clock.now(),
        "test",
    )
    assert landing.units == task.turn.changes.units
    assert landing.place("shop.py") is Place.DISK
    assert task.phase is Phase.READY


async def test_files_of_a_result_land_one_by_one(house):
    task = await done(house)
    _, landing = await apply(house, task, "more.py")
    assert (landing.paths, landing.wanted) == (("more.py",), ("more.py",))
    assert (house.root / "shop.py").read_text() == SHOP
    task, _ = await apply(house, task, "shop.py")
    assert [landing.paths for landing in task.landings] == [("more.py",), ("shop.py",)]


async def test_a_conflict_is_refused_and_nothing_is_written_or_recorded(house):
    task = await done(house)
    (house.root / "shop.py").write_text("mine")
    with pytest.raises(ApplyRefused) as refused:
        await apply(house, task)
    assert [path for path, _ in refused.value.reasons] == ["shop.py"]
    assert (house.root / "shop.py").read_text() == "mine"
    assert not (house.root / "more.py").exists()
    assert house.delegation.get(task.id) == task


async def test_a_task_that_changed_nothing_has_nothing_to_apply(house):
    task = await done(house, "::text only words")
    with pytest.raises(ApplyRefused, match=f"task {task.id} changed no file"):
        await apply(house, task)


async def test_nothing_is_applied_while_a_turn_runs(house):
    task = await done(house)
    await house.delegation.continue_(house.caller, task.id, "::gate door\n::text done")
    with pytest.raises(WrongPhase, match="it can be applied when it is over: wait for it, or cancel it"):
        await apply(house, task)
    assert (house.root / "shop.py").read_text() == SHOP
    house.worker.gate("door").open()
    await house.rested(task.id)


async def test_a_follow_up_waits_until_an_apply_is_through(tmp_path):
    """Else files would be written of which the task could not say that they were."""
    workspace = HeldWorkspace(tmp_path / "state")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await done(house)
        applying = asyncio.create_task(apply(house, task))
        await workspace.reached.wait()
        following = asyncio.create_task(house.delegation.continue_(house.caller, task.id, "::text more"))
        workspace.opened.set()
        assert len((await applying)[0].landings) == 1
        assert len((await following).turns) == 2
        await house.rested(task.id)


async def test_an_apply_whose_caller_goes_away_in_the_middle_is_recorded(tmp_path):
    workspace = HeldWorkspace(tmp_path / "state")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await done(house)
        applying = asyncio.create_task(apply(house, task))
        await workspace.reached.wait()
        applying.cancel()
        await asyncio.wait([applying])
        workspace.opened.set()
        await house.until(task.id, lambda task: task.landings)
        assert (house.root / "shop.py").read_text() == "new"


async def test_the_changes_of_an_earlier_turn_can_be_applied_and_are_named(tmp_path):
    """A turn that failed before its folder was there has none of its own."""
    workspace = HeldWorkspace(tmp_path / "state")
    workspace.opened.set()
    async with open_house(tmp_path, workspace=workspace) as house:
        first = await done(house)
        workspace.trouble = GitFailed("the folder is busy")
        await house.delegation.continue_(house.caller, first.id, "::text more")
        task = await house.rested(first.id)
        assert (task.phase, task.turn.changes) == (Phase.FAILED, None)
        assert (await house.delegation.diff(task.id))[1:3] == (first.turn, first.turn.changes)
        task, _ = await apply(house, task)
        assert task.landings[0].turn == first.turn.id


async def test_a_closed_task_gives_back_session_and_folder_and_stays_readable(house):
    task = await done(house)
    folder = house.worker.orders[0].folder
    task = await house.delegation.close(house.caller, task.id)
    assert task.closed
    assert house.worker.released == [task.turn.session]
    assert not folder.exists()
    assert "+x = 1" in (await house.delegation.diff(task.id))[3]
    task, landing = await apply(house, task)
    assert (task.closed, landing.paths) == (True, ("more.py", "shop.py"))


async def test_a_task_without_a_session_can_be_closed(house):
    house.worker.refuses = WorkerBroken("not now")
    task = await house.rested((await house.start()).id)
    assert (await house.delegation.close(house.caller, task.id)).closed
    assert house.worker.released == []


async def test_a_live_task_is_not_closed_and_a_closed_one_neither_closed_nor_continued(house):
    task = await house.start("::gate door\n::text done")
    with pytest.raises(WrongPhase, match="it can be closed when it is over"):
        await house.delegation.close(house.caller, task.id)
    with pytest.raises(WrongPhase, match="it can be continued when it is over"):
        await house.delegation.continue_(house.caller, task.id, "::text more")
    house.worker.gate("door").open()
    await house.rested(task.id)
    await house.delegation.close(house.caller, task.id)
    with pytest.raises(WrongPhase, match="is closed and cannot be closed; start a new one"):
        await house.delegation.close(house.caller, task.id)
    with pytest.raises(WrongPhase, match="is closed and cannot be continued; start a new one"):
        await house.delegation.continue_(house.caller, task.id, "::text more")


async def test_trouble_in_giving_back_is_told_and_the_task_is_closed(tmp_path):
    workspace = HeldWorkspace(tmp_path / "state")
    async with open_house(tmp_path, workspace=workspace, worker=BrokenWorker()) as house:
        task = await done(house)
        workspace.trouble = GitFailed("the folder is busy")
        assert (await house.delegation.close(house.caller, task.id)).closed
        assert [what for what, _ in house.defects] == [
            f"the session of task {task.id} could not be released",
            f"the folder of task {task.id} could not be removed",
        ]


async def test_a_task_that_asks_is_not_said_to_be_at_work(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.until((await house.start("::shell rm -r x")).id, lambda task: task.asks)
        with pytest.raises(WrongPhase, match=f"task {task.id} waits for an answer; it can be closed when it is over"):
            await house.delegation.close(house.caller, task.id)
