"""A damaged journal: the hub starts, nothing that can be read is lost, and the damaged file is never deleted."""

import logging
import random
import shutil
import sqlite3
from contextlib import closing

import pytest

from offload.domain.errors import StorageFailed
from offload.domain.task import TaskId
from offload.storage import pages, salvage
from offload.storage.journal import SqliteJournal
from tests.storage.contract import ONE, TWO, admitted, created

PAGE = 4096


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.sqlite3"


async def fill(path, tasks=40, turns=3, brief="x" * 300):
    """A journal with so many tasks of so many events each, closed."""
    journal = SqliteJournal(path)
    for number in range(tasks):
        events = [created(brief=f"{number} {brief}"), *(admitted(float(turn)) for turn in range(2, turns + 1))]
        await journal.append(TaskId(f"task_{number:02}"), events, expect=0)
    written = await journal.read()
    await journal.aclose()
    return written


async def reopened(path):
    """What a new hub finds, and what it is told."""
    journal = SqliteJournal(path)
    try:
        return await journal.read(), journal.notes
    finally:
        await journal.aclose()


def overwrite(path, page, content=b"\xff" * PAGE):
    """`page` counts from 1, as SQLite does."""
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE)
        file.write(content)


def leaves(path):
    """The pages that hold events, without the first of all."""
    content = path.read_bytes()
    return [at // PAGE + 1 for at in range(PAGE, len(content), PAGE) if content[at] == pages.LEAF]


def set_aside(path):
    return [file for file in path.parent.glob("*.damaged-*") if not file.name.endswith((".txt", "-wal"))]


def is_prefix(found, written):
    return all(list(events) == list(written[task])[: len(events)] for task, events in found.items())


async def test_a_damaged_page_costs_its_own_events_and_no_others(path, caplog):
    written = await fill(path)
    damaged = leaves(path)[2]
    overwrite(path, damaged)
    before = path.read_bytes()
    with caplog.at_level(logging.ERROR):
        found, (note,) = await reopened(path)

    (old,) = set_aside(path)
    assert old.read_bytes() == before
    assert is_prefix(found, written)
    whole = [task for task in written if found.get(task) == written[task]]
    assert len(written) - 15 < len(whole) < len(written)
    assert list(found) == sorted(found)
    assert f"{sum(map(len, found.values()))} events of {len(found)} tasks were recovered" in note
    assert str(old) in note
    assert [(record.message, record.note) for record in caplog.records] == [("a damaged journal was set aside", note)]


async def test_tasks_that_lost_something_in_the_middle_are_named(path):
    await fill(path, tasks=3, turns=60)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM events WHERE task = 'task_00' AND revision = 5")
        connection.execute("DELETE FROM events WHERE task = 'task_01' AND revision = 1")
        connection.execute("UPDATE events SET body = '{' WHERE task = 'task_02' AND revision = 60")
    found, (note,) = await reopened(path)
    assert {task: len(events) for task, events in found.items()} == {"task_00": 4, "task_02": 59}
    assert "Without their last events: task_00." in note
    assert "Without their beginning, and so not recovered: task_01." in note


async def test_a_recovered_journal_is_written_to_as_any(path):
    await fill(path)
    overwrite(path, leaves(path)[1])
    journal = SqliteJournal(path)
    assert await journal.append(ONE, [created()], expect=0) == 1
    found = await journal.read()
    for task, events in found.items():
        assert await journal.append(task, [admitted(9.0)], expect=len(events)) == len(events) + 1
    await journal.aclose()
    found, notes = await reopened(path)
    assert ONE in found
    assert len(notes) == len(set_aside(path)) == 1


@pytest.mark.parametrize("damage", [b"\xff" * 100, b"\0" * 100, b"SQLite format 3\0" + b"\xff" * 84], ids=str)
async def test_without_its_header_it_still_gives_every_event(path, damage):
    written = await fill(path)
    overwrite(path, 1, damage)
    found, notes = await reopened(path)
    assert found == written
    assert len(notes) == 1


async def test_without_the_inner_pages_of_its_trees_it_still_gives_every_event(path):
    written = await fill(path)
    content = path.read_bytes()
    for at in range(PAGE, len(content), PAGE):
        if content[at] != pages.LEAF:
            overwrite(path, at // PAGE + 1)
    found, _ = await reopened(path)
    assert found == written


async def test_damage_inside_a_long_text_is_found_though_every_page_is_sound(path):
    """SQLite does not look into texts, which may go on over pages that hold nothing else."""
    await fill(path, tasks=2, brief="x" * 20_000)
    content = bytearray(path.read_bytes())
    at = content.index(b"x" * 3000, content.index(b"1 xxx") + 4000)
    content[at : at + 4] = b"\xff" * 4
    path.write_bytes(content)
    found, (note,) = await reopened(path)
    assert list(found) == ["task_00"]
    assert "Without their beginning, and so not recovered: task_01." in note


async def test_a_name_that_is_no_text_is_damage(path):
    await fill(path, tasks=2)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"task_01", b"tas\xff_01"))
    found, _ = await reopened(path)
    assert list(found) == ["task_00"]


async def test_what_only_the_log_held_is_recovered(path, tmp_path):
    """A killed hub leaves its newest events in the write-ahead log, and frames from before the last checkpoint behind them."""
    journal = SqliteJournal(path)
    for number in range(60):
        await journal.append(TaskId(f"task_{number:02}"), [created(brief="x" * 500)], expect=0)
    journal._connection.execute("PRAGMA wal_checkpoint(RESTART)")
    await journal.append(ONE, [created(), admitted()], expect=0)
    written = await journal.read()
    killed = tmp_path / "killed" / path.name
    killed.parent.mkdir()
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{killed}{end}")
    await journal.aclose()
    overwrite(killed, 1, b"\xff" * 100)

    salvage.salvage(killed)  # by itself: SQLite folds the log into the file when it lets go of it, damaged or not
    found, _ = await reopened(killed)
    assert list(found[ONE]) == [created(), admitted()]
    assert found == written
    (old,) = set_aside(killed)
    assert old.with_name(f"{old.name}-wal").exists()


async def test_a_frame_that_was_never_committed_is_no_part_of_it(tmp_path):
    """The log is read up to its last commit only."""
    file = tmp_path / "x"
    salts = b"saltsalt"
    header = b"\0" * 16 + salts + b"\0" * 8

    def frame(number, commit, fill):
        return number.to_bytes(4, "big") + commit.to_bytes(4, "big") + salts + b"\0" * 8 + fill * PAGE

    log = header + frame(1, 0, b"a") + frame(2, 2, b"b") + frame(1, 0, b"c")
    file.write_bytes(b"")
    file.with_name("x-wal").write_bytes(log)
    found, _ = pages._pages(file)
    assert found == {1: b"a" * PAGE, 2: b"b" * PAGE}


@pytest.mark.parametrize("size", [512, 1024, 65536])
async def test_other_page_sizes_are_read_too(tmp_path, size):
    file = tmp_path / "other"
    rows = [(number, "x" * number * 37, number % 2, -number) for number in range(1, 60)]
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(f"PRAGMA page_size = {size}")
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT, flag INTEGER, number INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO t VALUES (?, NULL, 0, ?)", (2**62, 2**62))
    found = {number: values for number, values in pages.rows(file) if len(values) == 4}
    expected = {number: [None, text.encode(), flag, value] for number, text, flag, value in rows}
    assert found == expected | {2**62: [None, None, 0, 2**62]}


@pytest.mark.parametrize("content", [b"no database, but long enough to be looked at" * 100, b"SQLite format 3\0" * 300])
async def test_a_file_that_never_was_a_journal_is_set_aside_as_well(path, content):
    path.write_bytes(content)
    found, (note,) = await reopened(path)
    assert found == {}
    (old,) = set_aside(path)
    assert old.read_bytes() == content
    assert "0 events of 0 tasks" in note


@pytest.mark.parametrize("seed", range(60))
async def test_whatever_is_damaged_the_journal_opens_and_holds_nothing_that_was_not_written(tmp_path_factory, seed):
    """Bytes, runs and whole pages at random, and files that were cut; every event that is given was written so."""
    chance = random.Random(seed)
    path = tmp_path_factory.mktemp("journal") / "journal.sqlite3"
    written = await fill(path, tasks=12, brief="y" * chance.choice([10, 300, 9000]))
    content = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(content))
        length = chance.choice([1, 16, PAGE])
        content[at : at + length] = chance.choice([b"\0", b"\xff", chance.randbytes(1)]) * min(
            length, len(content) - at
        )
    path.write_bytes(content[: chance.choice([len(content), chance.randrange(1, len(content))])])
    before = path.read_bytes()

    found, notes = await reopened(path)
    assert all(old.read_bytes() == before for old in set_aside(path))
    assert len(notes) == len(set_aside(path))
    for task, events in found.items():
        assert len(events) <= len(written.get(task, events))


async def test_a_second_damage_in_the_same_second_takes_no_file_away(path):
    for number in range(3):
        path.write_bytes(b"not a database %d" % number * 100)
        await reopened(path)
    contents = [old.read_bytes()[:16] for old in set_aside(path)]
    assert sorted(contents) == [b"not a database %d" % number for number in range(3)]


async def test_a_recovery_that_was_cut_off_before_the_end_is_finished_by_the_next_hub(path):
    """The damaged file's own log must not be taken for the new one's, or the new one would be damaged by it."""
    written = await fill(path)
    path.replace(path.with_name(f"{path.name}.recovered"))
    path.write_bytes(b"damaged" * 1000)
    path.with_name(f"{path.name}-wal").write_bytes(b"of the damaged one")
    found, notes = await reopened(path)
    assert (found, notes) == (written, ())


async def test_a_half_built_journal_of_an_earlier_try_is_built_anew(path):
    written = await fill(path)
    overwrite(path, 1, b"\xff" * 100)
    path.with_name(f"{path.name}.new").write_bytes(b"half")
    found, _ = await reopened(path)
    assert found == written


async def test_a_recovery_for_which_there_is_no_room_says_so_and_leaves_the_file_where_it_is(path):
    await fill(path)
    overwrite(path, 1, b"\xff" * 100)
    before = path.read_bytes()
    path.with_name(f"{path.name}.new").mkdir()  # what cannot be written
    with pytest.raises(StorageFailed, match=r"is damaged .* could not be recovered .*: free some space, or move it"):
        SqliteJournal(path)
    assert path.read_bytes() == before


async def test_damage_that_appears_while_it_is_used_is_told_with_what_to_do(path):
    await fill(path)
    journal = SqliteJournal(path)
    for page in leaves(path):
        overwrite(path, page)
    journal._connection.execute("PRAGMA shrink_memory")  # so that it must read again
    with pytest.raises(StorageFailed, match=r"is damaged .*: run `offload hub stop`"):
        await journal.append(TWO, [created()], expect=0)
    await journal.aclose()


def test_a_note_names_some_of_many_tasks():
    names = [f"t{number}" for number in range(salvage.NAMED + 3)]
    assert salvage._named(names).endswith("t19 and 3 more")


async def test_what_a_forgotten_task_was_told_is_nowhere_in_the_file(path):
    journal = SqliteJournal(path)
    await journal.append(ONE, [created(brief="the secret plan " * 1000)], expect=0)
    await journal.append(TWO, [created()], expect=0)
    await journal.forget(ONE)
    await journal.aclose()
    assert b"the secret plan" not in path.read_bytes()
