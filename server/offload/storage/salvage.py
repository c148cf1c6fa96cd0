"""Sets a damaged journal aside and builds a new one of all that can be read.

The old file is kept under a name with the time, with a note beside it that says what was recovered. A task keeps its events up
to the first one that cannot be read, since what follows makes no sense without it. That events are missing after the last one
that can be read cannot be told.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from offload.domain.errors import StorageFailed
from offload.storage import pages, records

SCHEMA_VERSION = 1
SCHEMA = f"""
BEGIN;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    task TEXT NOT NULL,
    revision INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (task, revision)
);
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""
LOG = "-wal"
SIDE_FILES = (LOG, "-shm")
NAMED = 20  # at most so many tasks are named in a note


@dataclass(frozen=True, slots=True)
class _Row:
    seq: int
    task: str
    revision: int
    kind: str
    body: str


def salvage(path: Path) -> str:
    """Put a new journal in place of a damaged one; gives the note. Raises `OSError` and `sqlite3.Error`, and then the damaged
    one is still there."""
    old = _keep(path)
    kept, cut_short, lost = _whole(_readable(old))
    new = path.with_name(f"{path.name}.new")
    _remove(new)
    _build(new, kept)
    note = _note(old, kept, cut_short, lost)
    old.with_name(f"{old.name}.txt").write_text(f"{note}\n", encoding="utf-8")
    new.replace(_finished(path))  # from here on the damaged one is not looked at again
    finish(path)
    return note


def finish(path: Path) -> None:
    """Put the recovered journal in its place, if one is ready: a hub may have been killed before it could."""
    finished = _finished(path)
    if finished.exists():
        # The log of the damaged one must not be taken for that of the new one.
        for end in SIDE_FILES:
            path.with_name(f"{path.name}{end}").unlink(missing_ok=True)
        finished.replace(path)
        _sync_folder(path.parent)


def notes(path: Path) -> Iterator[str]:
    """What is told of the journals that were set aside beside this one, oldest first, until a person removes the notes."""
    for note in sorted(path.parent.glob(f"{path.name}.damaged-*.txt")):
        yield note.read_text(encoding="utf-8").strip()


def _keep(path: Path) -> Path:
    """The damaged journal under a name of its own; links, so that it is never without one."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number, old = 0, path.with_name(f"{path.name}.damaged-{stamp}")
    while old.exists():
        number += 1
        old = path.with_name(f"{path.name}.damaged-{stamp}-{number}")
    for end in ("", LOG):
        source = path.with_name(f"{path.name}{end}")
        if source.exists():
            os.link(source, old.with_name(f"{old.name}{end}"))
    return old


def _readable(old: Path) -> Iterator[_Row]:
    """The rows that are whole. What a newer version may have written is not told from damage."""
    for seq, values in pages.rows(old):
        match values:
            case [None, bytes() as task, int() as revision, bytes() as kind, bytes() as body]:
                with suppress(ValueError, StorageFailed, records.Unreadable):
                    row = _Row(seq, task.decode(), revision, kind.decode(), body.decode())
                    records.decode(row.kind, row.body)
                    yield row
            case _:  # a row of SQLite's own tables
                continue


def _whole(found: Iterable[_Row]) -> tuple[list[_Row], list[str], list[str]]:
    """The rows of each task up to the first gap; tasks that lost some; tasks of which nothing is left."""
    tasks: defaultdict[str, dict[int, _Row]] = defaultdict(dict)
    for row in found:
        tasks[row.task][row.revision] = row
    kept: list[_Row] = []
    cut_short, lost = [], []
    for task, events in tasks.items():
        count = next(number for number in range(len(events) + 1) if number + 1 not in events)
        kept.extend(events[revision] for revision in range(1, count + 1))
        if not count:
            lost.append(task)
        elif count < len(events):
            cut_short.append(task)
    return sorted(kept, key=lambda row: row.seq), sorted(cut_short), sorted(lost)


def _build(new: Path, kept: Sequence[_Row]) -> None:
    new.touch(mode=0o600)
    with closing(sqlite3.connect(new, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(SCHEMA)
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT INTO events (task, revision, kind, body) VALUES (?, ?, ?, ?)",
            [(row.task, row.revision, row.kind, row.body) for row in kept],
        )
        connection.execute("COMMIT")


def _note(old: Path, kept: Sequence[_Row], cut_short: Sequence[str], lost: Sequence[str]) -> str:
    tasks = len({row.task for row in kept})
    said = [
        f"The journal was damaged and was set aside as {old}; {len(kept)} events of {tasks} tasks were recovered.",
        f"Without their last events: {_named(cut_short)}." if cut_short else "",
        f"Without their beginning, and so not recovered: {_named(lost)}." if lost else "",
        f"Remove {old.name}* once nothing is missed.",
    ]
    return " ".join(sentence for sentence in said if sentence)


def _named(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - NAMED} more" if len(tasks) > NAMED else ""
    return ", ".join(tasks[:NAMED]) + more


def _finished(path: Path) -> Path:
    return path.with_name(f"{path.name}.recovered")


def _remove(path: Path) -> None:
    for end in ("", "-journal", *SIDE_FILES):
        path.with_name(f"{path.name}{end}").unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
