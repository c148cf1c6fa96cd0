"""What a cleaning removes, what it keeps, and that it says why."""

import asyncio
import os

import pytest

from offload.core.housekeeping import AFTER_START_S, DAY_S, keep_tidy
from offload.core.limits import Limits
from offload.domain.errors import GitFailed, InvalidRequest, StorageFailed, UnknownTask
from offload.domain.events import Landed
from offload.domain.review import Selection
from offload.domain.task import Landing, Phase
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.core.journals import HeldJournal
from tests.core.results import TEXT, changed, reject, result, undo
from tests.fakes.house import open_house
from tests.fakes.workspace import FakeWorkspace
from tests.workspace.repositories import commit_all, git

WRITE = "::write new.txt hello\n::text done"
MONTH = 30 * DAY_S


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path, limits=Limits(keep_days=30)) as house:
        yield house


async def done(house, brief=WRITE):
    return await house.rested((await house.start(brief)).id)


async def applied(house, brief=WRITE):
    task = await done(house, brief)
    await house.delegation.apply(house.caller, task.id)
    return task


async def clean(house, *tasks, **how):
    return await house.delegation.clean(house.caller, tasks=tasks, **how)


def ids(looked):
    return [one.task.id for one in looked]


def known(house):
    return {task.id for task in house.delegation.tasks(closed=True)}


async def test_what_was_accepted_goes_when_it_is_old_and_for_good(house, tmp_path):
    old = await applied(house)
    house.clock.advance(MONTH)
    young = await applied(house, "::write other.txt x\n::text done")
    cleaned = await clean(house)
    assert (ids(cleaned.removed), cleaned.kept, cleaned.younger) == ([old.id], (), 1)
    assert cleaned.removed[0].size > 0
    assert house.worker.released == [old.turn.session]
    assert not (tmp_path / "state" / old.id).exists()
    with pytest.raises(UnknownTask):
        house.delegation.get(old.id)
    assert list(await house.journal.read()) == [young.id]


async def test_a_dry_run_lists_the_same_and_changes_nothing(house, tmp_path):
    task = await applied(house)
    house.clock.advance(MONTH)
    house.worker.left_over = 7
    dry = await clean(house, dry_run=True)
    assert (house.delegation.get(task.id).closed, house.worker.released) == (False, [])
    wet = await clean(house)
    assert (ids(dry.removed), ids(wet.removed)) == ([task.id], [task.id])
    assert (dry.left_over, wet.left_over) == (7, 7)
    assert [dry_run for _, dry_run in house.worker.cleaned] == [True, False]


@pytest.mark.parametrize(
    ("brief", "note"),
    [
        (WRITE, "1 changed file was never applied"),
        ("::write a x\n::write b y\n::text done", "2 changed files were never applied"),
        ("::write a x\n::fail broke", "1 changed file was never applied"),
    ],
)
async def test_what_was_never_applied_is_listed_and_kept(house, brief, note):
    task = await done(house, brief)
    house.clock.advance(MONTH)
    cleaned = await clean(house)
    assert [(one.task.id, one.note) for one in cleaned.kept] == [(task.id, note)]
    assert cleaned.removed == ()
    assert house.delegation.get(task.id).closed is False


async def test_what_was_interrupted_with_changes_is_listed_and_kept(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.start("::write a x\n::gate door")
        async with asyncio.timeout(20):
            await house.worker.gate("door").reached.wait()
        await house.delegation.cancel(house.caller, task.id)
        task = await house.rested(task.id)
        assert task.phase is Phase.CANCELLED
        cleaned = await clean(house, task.id)
        assert [one.note for one in cleaned.kept] == ["1 changed file was never applied"]


async def test_a_part_that_was_applied_does_not_let_the_rest_go(house):
    task = await done(house, "::write a x\n::write b y\n::text done")
    await house.delegation.apply(house.caller, task.id, Selection(("a",)))
    assert [one.note for one in (await clean(house, task.id)).kept] == ["1 changed file was never applied"]
    await house.delegation.apply(house.caller, task.id, Selection(("b",)))
    assert ids((await clean(house, task.id)).removed) == [task.id]


async def test_what_a_follow_up_changed_after_the_last_acceptance_is_kept(house):
    task = await applied(house)
    await house.delegation.continue_(house.caller, task.id, "::text only words")
    await house.rested(task.id)
    assert ids((await clean(house, task.id, dry_run=True)).removed) == [task.id]
    await house.delegation.continue_(house.caller, task.id, "::write new.txt again\n::text done")
    await house.rested(task.id)
    assert ids((await clean(house, task.id)).kept) == [task.id]


async def test_what_appeared_in_the_folder_after_the_end_is_looked_for(house, tmp_path):
    task = await applied(house)
    (tmp_path / "state" / task.id / "project" / "late.txt").write_text("by a process that outlived the turn")
    house.clock.advance(MONTH)
    cleaned = await clean(house)
    assert [(one.task.id, one.note) for one in cleaned.kept] == [(task.id, "1 changed file was never applied")]


def dirty(folder):
    (folder / "shop.py").write_text("changed\n")


def untracked(folder):
    (folder / "new.txt").write_text("new\n")


def detached(folder):
    dirty(folder)
    commit_all(folder)


def ahead(folder):
    git(folder, "switch", "-q", "-c", "topic")
    detached(folder)


@pytest.mark.parametrize("left", [dirty, untracked, detached, ahead])
async def test_whatever_form_the_work_has_it_is_listed_kept_and_reachable(tmp_path, left):
    """H20: a time-based clean-up took dirty trees and unpushed commits. The turn itself reported no change."""
    async with (
        GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace,
        open_house(tmp_path, workspace=workspace, limits=Limits(keep_days=30)) as house,
    ):
        task = await done(house, "::text only words")
        left(tmp_path / "state" / "tasks" / task.id / "project")
        house.clock.advance(12 * MONTH)
        for dry_run in (True, False):
            cleaned = await clean(house, dry_run=dry_run)
            assert [(one.task.id, one.note) for one in cleaned.kept] == [(task.id, "1 changed file was never applied")]
            assert cleaned.kept[0].size > 0
            assert cleaned.removed == ()
        (result,) = (await workspace.collect(task.id, house.root, task.base)).files
    (private,) = (tmp_path / "state" / "repositories").iterdir()
    commits = git(private, "for-each-ref", "--format=%(objectname)", "refs/offload").split()
    assert any(result.path in git(private, "diff", "--name-only", task.base, commit) for commit in commits)


async def test_unaccepted_work_goes_only_when_its_task_is_named_and_it_is_said(house):
    one, two = await done(house), await done(house)
    with pytest.raises(InvalidRequest, match="name the tasks whose unaccepted work is to go"):
        await clean(house, include_unaccepted=True)
    cleaned = await clean(house, one.id, include_unaccepted=True)
    assert [(gone.task.id, gone.note) for gone in cleaned.removed] == [(one.id, "1 changed file was never applied")]
    assert known(house) == {two.id}


async def test_hunks_count_by_themselves_and_rejected_ones_are_decided(tmp_path):
    async with open_house(tmp_path, files={"a.txt": TEXT, "b.txt": TEXT}) as house:
        task = await result(house, {"a.txt": changed(2, 30), "b.txt": changed(3)})
        first, second, third = task.turn.changes.units
        await house.delegation.apply(house.caller, task.id, Selection(hunks=(first, third)))
        assert [one.note for one in (await clean(house, task.id)).kept] == ["1 changed file was never applied"]
        await reject(house, task, second)
        assert ids((await clean(house, task.id, dry_run=True)).removed) == [task.id]
        await undo(house, task)
        assert [one.note for one in (await clean(house, task.id)).kept] == ["2 changed files were never applied"]


async def test_what_an_earlier_version_applied_counts_by_its_files(house):
    """Its records do not say which hunks they brought."""
    task = await done(house)
    old = Landing(task.turn.id, task.turn.changes.result, ("new.txt",), 1.0)
    await house.delegation._ledger.record(task.id, Landed(at=1.0, landing=old))
    assert ids((await clean(house, task.id)).removed) == [task.id]


async def test_the_commits_of_applies_go_with_their_task(tmp_path):
    """Else they would be kept for ever: what was given, and the files before and after it."""
    forgotten = []

    class Told(FakeWorkspace):
        async def forget(self, root, commits, keep):
            forgotten.append(commits)

    async with open_house(tmp_path, workspace=Told(tmp_path / "state"), files={"a.txt": TEXT}) as house:
        task = await result(house, {"a.txt": changed(2, 30)})
        task, landing = await house.delegation.apply(
            house.caller, task.id, Selection(hunks=task.turn.changes.units[:1])
        )
        assert landing.result != task.turn.changes.result
        await clean(house, task.id, include_unaccepted=True)
        assert forgotten[0] >= {landing.result, landing.before, landing.after, task.base, task.turn.changes.result}


async def test_a_closed_task_counts_as_decided(house):
    task = await done(house)
    await house.delegation.close(house.caller, task.id)
    cleaned = await clean(house, task.id[:5], task.id)
    assert (ids(cleaned.removed), cleaned.removed[0].size) == ([task.id], 0)
    assert set(house.worker.released) == {task.turn.session}  # again, in case the first time failed


async def test_a_task_without_a_change_and_one_that_never_began_have_nothing_to_lose(house):
    words = await done(house, "::text only words")
    house.clock.advance(MONTH)
    assert ids((await clean(house)).removed) == [words.id]


async def test_a_task_that_is_not_over_is_never_removed(house):
    task = await house.start("::gate door")
    async with asyncio.timeout(20):
        await house.worker.gate("door").reached.wait()
    house.clock.advance(MONTH)
    cleaned = await clean(house, task.id, include_unaccepted=True)
    assert [(one.task.id, one.note) for one in cleaned.kept] == [(task.id, "it is working")]


async def test_work_that_cannot_be_read_is_kept_with_the_reason(tmp_path):
    class Unreadable(FakeWorkspace):
        broken = False

        async def collect(self, task, root, base):
            if self.broken:
                raise GitFailed("the index is damaged")
            return await super().collect(task, root, base)

    workspace = Unreadable(tmp_path / "state")
    async with open_house(tmp_path, workspace=workspace) as house:
        workspace.broken = True
        task = await done(house)
        assert task.phase is Phase.FAILED
        cleaned = await clean(house, task.id)
        assert [one.note for one in cleaned.kept] == ["what it changed cannot be read: the index is damaged"]
        assert ids((await clean(house, task.id, include_unaccepted=True)).removed) == [task.id]


async def test_what_cannot_be_removed_stays_closed_and_is_met_again(tmp_path):
    class Stubborn(FakeWorkspace):
        trouble = "the disk is busy"

        async def forget(self, root, commits, keep):
            if self.trouble:
                raise GitFailed(self.trouble)

    workspace = Stubborn(tmp_path / "state")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await applied(house)
        cleaned = await clean(house, task.id)
        assert [one.note for one in cleaned.kept] == ["it is closed, but not removed: the disk is busy"]
        assert house.delegation.get(task.id).closed
        workspace.trouble = ""
        assert ids((await clean(house, task.id)).removed) == [task.id]


async def test_what_others_name_is_kept_of_a_workspace(tmp_path):
    """Two tasks of the same moment share their snapshot."""
    forgotten = []

    class Told(FakeWorkspace):
        async def forget(self, root, commits, keep):
            forgotten.append((root, commits, keep))

    async with open_house(tmp_path, workspace=Told(tmp_path / "state")) as house:
        one, two = await done(house), await done(house, "::text words")
        await clean(house, one.id, include_unaccepted=True)
        assert one.base == two.base
        assert forgotten == [(house.root, {one.base, one.turn.changes.result}, {two.base})]
        await clean(house, two.id)
        assert forgotten[1] == (house.root, {two.base}, set())


async def test_nothing_is_forgotten_while_a_snapshot_of_the_same_project_is_on_its_way(tmp_path):
    """It may be given a commit that is about to go."""

    class Slow(FakeWorkspace):
        def __init__(self, folder):
            super().__init__(folder)
            self.taking, self.go_on = asyncio.Event(), asyncio.Event()
            self.go_on.set()

        async def snapshot(self, root, buffers, never_send=()):
            self.taking.set()
            await self.go_on.wait()
            return await super().snapshot(root, buffers, never_send)

    workspace = Slow(tmp_path / "state")
    async with open_house(tmp_path, workspace=workspace) as house, asyncio.timeout(20):
        task = await applied(house)
        workspace.taking.clear()
        workspace.go_on.clear()
        other = await house.start("::text hi")
        await workspace.taking.wait()
        cleaned = await clean(house, task.id)
        assert [one.note for one in cleaned.kept] == [
            "it is closed, but not removed: a task is being started in its project; try again"
        ]
        workspace.go_on.set()
        await house.rested(other.id)
        assert ids((await clean(house, task.id)).removed) == [task.id]


async def test_a_task_that_is_taken_up_while_it_is_looked_at_stays(tmp_path):
    """Somebody continues it between the look and the removal."""

    class Looking(FakeWorkspace):
        async def collect(self, task, root, base):
            if self.then is not None:
                then, self.then = self.then, None
                await then()
            return await super().collect(task, root, base)

    workspace = Looking(tmp_path / "state")
    workspace.then = None
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await applied(house)

        async def take_up():
            await house.delegation.continue_(house.caller, task.id, "::text more")

        workspace.then = take_up
        cleaned = await clean(house, task.id)
        assert [one.note for one in cleaned.kept] == ["something happened to it in the meantime"]
        assert (await house.rested(task.id)).turn.text == "more"


async def test_a_journal_that_cannot_forget_now_leaves_the_task_to_the_next_cleaning(house):
    task = await applied(house)
    await house.delegation.close(house.caller, task.id)
    house.journal.fail_with = "The disk is full."
    cleaned = await clean(house, task.id)
    assert [one.note for one in cleaned.kept] == ["it is closed, but not removed: The disk is full."]
    house.journal.fail_with = ""
    assert ids((await clean(house, task.id)).removed) == [task.id]


async def test_what_workers_left_goes_only_when_no_task_that_stays_can_need_it(house):
    house.clock.advance(MONTH)
    task = await done(house)
    house.clock.advance(MONTH)
    await clean(house)
    await clean(house, older_than_days=90)
    assert [before for before, _ in house.worker.cleaned] == [task.created_at, house.clock.now() - 90 * DAY_S]
    await clean(house, task.id, include_unaccepted=True)
    assert len(house.worker.cleaned) == 2


async def test_without_a_number_anywhere_it_asks_for_one(tmp_path):
    async with open_house(tmp_path) as house:
        with pytest.raises(InvalidRequest, match="say older_than_days, or name tasks"):
            await clean(house)


async def test_a_clock_that_was_set_back_makes_nothing_old(house):
    task = await applied(house)
    house.clock.advance(-MONTH)
    assert (await clean(house)).younger == 1
    assert known(house) == {task.id}


async def test_who_still_tells_of_a_task_that_is_gone_can(house):
    """A slow watcher reads its end after it was cleaned away."""
    with house.delegation.watching() as watcher:
        task = await applied(house)
        await clean(house, task.id)
        (last,) = await watcher.changes()
        assert (last.id, last.closed) == (task.id, True)
        live = house.delegation.live(last.id)
        assert (live.place, live.text) == (None, "")


async def test_whoever_waits_for_a_lock_of_a_task_that_is_forgotten_is_told(tmp_path):
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house:
        task = await applied(house)
        await clean(house, task.id)
        with pytest.raises(UnknownTask):
            await house.delegation.close(house.caller, task.id)
        ledger = house.delegation._ledger
        with pytest.raises(UnknownTask):
            await ledger.decide(task.id, lambda _: [])
        await ledger.forget(task.id)


async def test_the_hub_cleans_after_its_start_and_every_day_whatever_went_wrong(tmp_path):
    async with open_house(tmp_path, limits=Limits(keep_days=30)) as house, asyncio.timeout(20):
        told, defects = [], []

        async def clean_now():
            if not house.clock.now() % 2:
                raise StorageFailed("The disk is full.")
            return await house.delegation.clean(house.caller)

        task = await applied(house)
        tidying = asyncio.create_task(
            keep_tidy(clean_now, house.clock, told.append, lambda what, error: defects.append((what, str(error))))
        )
        await house.clock.naps(AFTER_START_S)
        house.clock.advance(AFTER_START_S + MONTH)
        await house.clock.naps(DAY_S)
        assert defects == [("the daily cleaning", "The disk is full.")]
        house.clock.advance(DAY_S + 1)
        await house.clock.naps(DAY_S)
        house.clock.advance(DAY_S + 2)  # nothing is left that could be told of
        await house.clock.naps(DAY_S)
        tidying.cancel()
        await asyncio.wait([tidying])
        assert [ids(cleaned.removed) for cleaned in told] == [[task.id]]
