"""The journal on SQLite, and the one in memory: one contract; then what only a disk can do."""

import asyncio
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, contextmanager

import pytest

from offload.domain.errors import Defect, StorageFailed
from offload.domain.events import Event
from offload.domain.task import TaskId
from offload.storage.journal import SqliteJournal
from offload.storage.salvage import SCHEMA_VERSION
from tests.fakes.journal import MemoryJournal
from tests.storage.contract import ONE, TWO, JournalContract, admitted, created


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    async def journal(self):
        journal = MemoryJournal()
        yield journal
        await journal.aclose()

    async def test_it_can_be_told_to_fail_and_then_holds_what_it_had(self, journal):
        await journal.append(ONE, [created()], expect=0)
        journal.fail_with = "The disk is full."
        with pytest.raises(StorageFailed, match="full"):
            await journal.append(ONE, [admitted()], expect=1)
        journal.fail_with = ""
        assert await journal.append(ONE, [admitted()], expect=1) == 2


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a folder #1 ?" / "journal.sqlite3"


@pytest.fixture
async def journal(path):
    path.parent.mkdir()
    journal = SqliteJournal(path)
    yield journal
    await journal.aclose()


class TestSqliteJournal(JournalContract):
    @pytest.fixture
    def journal(self, journal):
        return journal


async def test_a_reopened_journal_holds_what_was_written(journal, path):
    await journal.append(ONE, [created(), admitted()], expect=0)
    await journal.aclose()
    again = SqliteJournal(path)
    assert list((await again.read())[ONE]) == [created(), admitted()]
    assert await again.append(ONE, [admitted()], expect=2) == 3
    await again.aclose()


async def test_only_its_owner_may_read_it(journal, path):
    """It holds briefs and unsaved texts."""
    await journal.append(ONE, [created()], expect=0)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {path.name: 0o600, f"{path.name}-wal": 0o600, f"{path.name}-shm": 0o600}


async def test_every_commit_is_synced(journal):
    rows = [journal._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]
    assert rows == ["wal", 2]  # 2 is FULL


def test_what_was_acknowledged_survives_a_killed_process(tmp_path):
    """docs: an id is given out only after its task is on disk."""
    program = """
import asyncio, os, signal, sys
from pathlib import Path
from offload.storage.journal import SqliteJournal
from tests.storage.contract import ONE, created
async def main():
    journal = SqliteJournal(Path(sys.argv[1]))
    await journal.append(ONE, [created()], expect=0)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    path = tmp_path / "journal.sqlite3"
    died = subprocess.run(
        [sys.executable, "-c", program, path], env={**os.environ, "PYTHONPATH": os.curdir}, check=False
    )
    assert died.returncode == -signal.SIGKILL

    async def read():
        journal = SqliteJournal(path)
        try:
            return await journal.read()
        finally:
            await journal.aclose()

    assert list(asyncio.run(read())[ONE]) == [created()]


async def test_appends_that_come_together_share_a_commit(journal):
    """One sync for many tasks: the writer takes all that came while it was busy."""
    commits = []
    journal._connection.set_trace_callback(
        lambda statement: commits.append(statement) if statement == "COMMIT" else None
    )
    with held(journal):
        writes = [asyncio.create_task(journal.append(TaskId(f"t{n}"), [created()], expect=0)) for n in range(50)]
        await until_taken(writes)
    assert await asyncio.gather(*writes) == [1] * 50
    # The first may have been taken alone, before the others came.
    assert 1 <= len(commits) <= 2


async def test_a_full_disk_is_told_loses_nothing_and_is_survived(journal):
    """SQLITE_FULL, provoked by a bound on the number of pages."""
    await journal.append(ONE, [created()], expect=0)
    ((pages,),) = journal._connection.execute("PRAGMA page_count").fetchall()
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageFailed, match=r"disk is full.*free some space and try again"):
        await journal.append(TWO, [created(brief="x" * 100_000)], expect=0)
    assert await journal.append(ONE, [admitted()], expect=1) == 2
    journal._connection.execute("PRAGMA max_page_count = 1000000")
    assert await journal.append(TWO, [created(brief="x" * 100_000)], expect=0) == 1
    assert {task: len(events) for task, events in (await journal.read()).items()} == {ONE: 2, TWO: 1}


async def test_an_append_that_finds_no_space_takes_no_other_of_its_group_along(journal):
    await journal.append(ONE, [created()], expect=0)
    ((pages,),) = journal._connection.execute("PRAGMA page_count").fetchall()
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    with held(journal):
        small = asyncio.create_task(journal.append(ONE, [admitted()], expect=1))
        big = asyncio.create_task(journal.append(TWO, [created(brief="x" * 100_000)], expect=0))
        await until_taken([small, big])
    outcomes = await asyncio.gather(small, big, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [int, StorageFailed]
    assert list(await journal.read()) == [ONE]


async def test_a_refused_write_is_told_and_survived(journal, path):
    """The operating system refuses to let the file grow: an I/O error inside a commit."""
    await journal.append(ONE, [created()], expect=0)
    with growth_refused(path.with_name(f"{path.name}-wal").stat().st_size + 4096):
        with pytest.raises(StorageFailed, match=r"cannot be written: .*Nothing was recorded"):
            await journal.append(TWO, [created(brief="x" * 1_000_000)], expect=0)
        assert list(await journal.read()) == [ONE]
    assert await journal.append(TWO, [created(brief="x" * 1_000_000)], expect=0) == 1
    assert list(await journal.read()) == [ONE, TWO]


async def test_an_append_that_is_cancelled_before_the_writer_took_it_is_not_written(journal):
    with held(journal):
        first = asyncio.create_task(journal.append(ONE, [created()], expect=0))
        await until_taken([first])
        while journal._queue.qsize():  # noqa: ASYNC110 the writer thread takes it and then waits for the lock
            await asyncio.sleep(0)
        second = asyncio.create_task(journal.append(TWO, [created()], expect=0))
        await until_taken([second])
        second.cancel()
        await asyncio.wait([second])
    assert await first == 1
    await journal.append(ONE, [admitted()], expect=1)
    assert list(await journal.read()) == [ONE]


async def test_an_event_that_cannot_be_stored_is_a_defect_of_its_caller_and_the_writer_lives(journal):
    with pytest.raises(KeyError, match="Event"):
        await journal.append(ONE, [Event(at=1.0)], expect=0)
    assert await journal.append(ONE, [created()], expect=0) == 1


async def test_a_closed_journal_says_so_and_can_be_closed_again(journal, path):
    write = asyncio.create_task(journal.append(ONE, [created()], expect=0))
    await until_taken([write])
    await journal.aclose()
    assert await write == 1
    with pytest.raises(StorageFailed, match="closed: the hub is ending"):
        await journal.append(TWO, [created()], expect=0)
    await journal.aclose()
    assert not path.with_name(f"{path.name}-wal").exists()


async def test_a_record_of_a_newer_version_names_the_journal_and_what_to_do(journal, path):
    await journal.append(ONE, [created()], expect=0)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE events SET kind = 'Teleported'")
    with pytest.raises(StorageFailed, match=r"journal\.sqlite3 cannot be read: .*'Teleported' of a newer version"):
        await journal.read()


def test_a_journal_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "journal.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StorageFailed, match="newer version of offload: install that version"):
        SqliteJournal(path)


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(StorageFailed, match=r"no-such-folder.*cannot be read: .*No such file"):
        SqliteJournal(tmp_path / "no-such-folder" / "journal.sqlite3")


def test_a_folder_in_its_place_is_told(tmp_path):
    with pytest.raises(StorageFailed, match="cannot be read"):
        SqliteJournal(tmp_path)


async def test_a_file_that_goes_away_is_told_to_the_reader(journal, path):
    path.unlink()
    with pytest.raises(StorageFailed, match="cannot be read: unable to open"):
        await journal.read()


async def test_a_task_id_that_sqlite_cannot_hold_is_refused_and_the_writer_lives(journal):
    with pytest.raises(UnicodeEncodeError):
        await journal.append(TaskId("\ud800"), [created()], expect=0)
    with pytest.raises(Defect):
        await journal.append(ONE, [created()], expect=1)


@contextmanager
def held(journal):
    """Keeps the writer from beginning a transaction, as another writer would."""
    with closing(sqlite3.connect(journal._path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def until_taken(writes):
    """Lets the appends run up to where they wait for the writer."""
    for _ in writes:
        await asyncio.sleep(0)


@contextmanager
def growth_refused(limit):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
