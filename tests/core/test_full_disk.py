"""A disk that is full: what is new is refused in plain words, what happened is kept until there is room again."""

import asyncio
import os
import shutil

import pytest

from offload.core.turns.record import RETRY_STORAGE_S
from offload.core.turns.verdict import MESSAGE, TRANSCRIPT
from offload.core.worker import AskOver
from offload.domain.ask import AskOutcome
from offload.domain.errors import StorageFailed
from offload.domain.events import AskClosed
from offload.domain.task import Phase
from offload.processes import Processes
from offload.storage import SqliteJournal
from offload.workspace import GitWorkspaces
from tests.fakes.house import open_house
from tests.fakes.workspace import FakeWorkspace
from tests.workspace.repositories import commit_all, git


@pytest.fixture
async def journal(tmp_path):
    journal = SqliteJournal(tmp_path / "journal.sqlite3")
    yield journal
    await journal.aclose()


@pytest.fixture
def full(journal):
    """`full()` takes all room from the journal, `full(now=False)` gives it back; SQLite itself says that the disk is full."""

    def fill(*, now=True):
        ((pages,),) = journal._connection.execute("PRAGMA page_count").fetchall()
        journal._connection.execute(f"PRAGMA max_page_count = {pages if now else 1_000_000}")

    return fill


async def tried_again(house, times=2):
    for _ in range(times):
        await house.clock.naps(RETRY_STORAGE_S)
        house.clock.advance(RETRY_STORAGE_S)
    await house.clock.naps(RETRY_STORAGE_S)


async def test_through_the_whole_house_nothing_is_lost_and_no_status_is_false(tmp_path, journal, full):
    """A start is refused, a turn at work goes on and ends well when there is room again, and a new hub reads the same."""
    big = "x" * 50_000
    async with open_house(tmp_path, journal=journal) as house, asyncio.timeout(20):
        task = await house.start(f"::gate door\n::text {big}")
        await house.worker.gate("door").reached.wait()
        full()
        with pytest.raises(StorageFailed, match=r"The disk is full, .*: free some space and try again"):
            await house.start(f"::text {big}")
        assert [one.id for one in house.delegation.tasks()] == [task.id]
        house.worker.gate("door").open()
        await tried_again(house)
        assert house.delegation.get(task.id).phase is Phase.WORKING
        full(now=False)
        house.clock.advance(RETRY_STORAGE_S)
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text) == (Phase.READY, big)
        assert (await house.rested((await house.start("::text after")).id)).phase is Phase.READY
    async with open_house(tmp_path, journal=journal, workspace=house.workspace) as house:
        assert house.delegation.get(task.id) == task


async def test_an_ask_that_was_withdrawn_meanwhile_does_not_fail_the_turn(tmp_path):
    async with open_house(tmp_path) as house, asyncio.timeout(20):
        task = await house.start("::question Which?\n::text done")
        task = await house.until(task.id, lambda task: task.asks)
        (ask,) = task.asks
        house.journal.fail_with = "The disk is full."
        await house.worker.stage(task.turn.id).withdraw(ask)
        await tried_again(house)
        assert {what for what, _ in house.defects} == {f"{AskClosed.__name__} of task {task.id} is not stored yet"}
        house.journal.fail_with = ""
        house.clock.advance(RETRY_STORAGE_S)
        assert (await house.rested(task.id)).phase is Phase.READY
        closings = [event for event in (await house.journal.read())[task.id] if isinstance(event, AskClosed)]
        assert [event.outcome for event in closings] == [AskOver(ask, AskOutcome.WITHDRAWN).outcome]


async def test_a_result_for_which_there_is_no_room_is_collected_when_there_is(tmp_path):
    """The worker is done and its work is in the folder: nothing has failed."""

    class Full(FakeWorkspace):
        full = True

        async def collect(self, task, root, base):
            if self.full:
                raise StorageFailed("The disk is full.")
            return await super().collect(task, root, base)

    workspace = Full(tmp_path / "state")
    async with open_house(tmp_path, workspace=workspace) as house, asyncio.timeout(20):
        task = await house.start("::write a.txt x\n::text done")
        await tried_again(house)
        assert house.delegation.get(task.id).live
        workspace.full = False
        house.clock.advance(RETRY_STORAGE_S)
        task = await house.rested(task.id)
        assert (task.phase, [file.path for file in task.turn.changes.files]) == (Phase.READY, ["a.txt"])


async def test_one_giant_line_of_a_worker_is_kept_up_to_a_limit_and_says_what_is_missing(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.rested((await house.start(f"::text {'y' * (TRANSCRIPT + 1234)}")).id)
        assert task.phase is Phase.READY
        assert task.turn.text == "y" * TRANSCRIPT + "\n[1234 more characters were left out]"


async def test_one_giant_reason_of_a_failure_is_cut_as_well(tmp_path):
    """Providers answer with whole pages of HTML."""
    async with open_house(tmp_path) as house:
        task = await house.rested((await house.start(f"::fail {'y' * (MESSAGE + 7)}")).id)
        assert task.turn.failure.message == "y" * MESSAGE + "\n[7 more characters were left out]"


async def test_the_users_git_can_tidy_up_at_any_time_of_a_task(tmp_path):
    """`git gc --prune=now`, with all history rewritten, between start, follow-up, patch and acceptance."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "shop.py").write_text("first\n")
    git(root, "init", "-q", "-b", "main")
    commit_all(root)
    (root / "shop.py").write_text("dirty\n")

    def tidy():
        """Nothing of what the snapshot borrowed stays in the user's repository."""
        shutil.rmtree(root / ".git")
        git(root, "init", "-q", "-b", "main")
        commit_all(root)
        git(root, "reflog", "expire", "--expire=now", "--all")
        git(root, "gc", "-q", "--prune=now")

    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace:
        await workspace.snapshot(root, {})  # what it borrows is packed once this is left
    async with (
        GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace,
        open_house(tmp_path, workspace=workspace) as house,
        asyncio.timeout(60),
    ):
        task = await house.start("::gate door\n::write new.txt one\n::text done")
        await house.worker.gate("door").reached.wait()
        tidy()
        house.worker.gate("door").open()
        task = await house.rested(task.id)
        assert (task.phase, [file.path for file in task.turn.changes.files]) == (Phase.READY, ["new.txt"])
        tidy()
        await house.delegation.continue_(house.caller, task.id, "::write shop.py worker\n::text again")
        task = await house.rested(task.id)
        assert [file.path for file in task.turn.changes.files] == ["new.txt", "shop.py"]
        tidy()
        assert "-dirty" in (await house.delegation.diff(task.id))[3]
        assert (await house.delegation.apply(house.caller, task.id))[1].paths
        assert (root / "shop.py").read_text().startswith("worker")
