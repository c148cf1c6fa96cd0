"""The journal on SQLite: a table of events, one writer thread, every commit synced.

Writes that arrive while a commit runs share the next one, so that many tasks cost few syncs. A journal that is found damaged
is set aside, and what can be read of it is recovered (see `salvage`). It knows nothing of the lifecycle: it counts events and
keeps their order.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from offload.domain.errors import Defect, OffloadError, StorageFailed
from offload.domain.events import Event
from offload.domain.task import TaskId
from offload.storage import records, salvage

logger = logging.getLogger(__name__)

DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_LOWER_BITS = 0xFF  # of an extended error code: the plain one

Write = Callable[[sqlite3.Connection], int]


@dataclass(frozen=True, slots=True)
class _Request:
    """One call on its way to the writer thread; `write` gives the task's new count."""

    write: Write
    done: Future[int] = field(default_factory=Future)


class SqliteJournal:
    """Fits `core.ports.Journal`. Made once per hub, which holds the state folder's lock; `aclose` ends it.

    A write that is cancelled before the writer has taken it is not written; later it is, and only the answer is lost.
    """

    def __init__(self, path: Path) -> None:
        """Open the journal at `path`, or make it. Raises `StorageFailed` when that cannot be done."""
        self._path = path
        self._closed = False
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._connection = _open_or_recover(path)
        self._writer = self._start_writer()

    @property
    def notes(self) -> tuple[str, ...]:
        """What people must be told: damaged journals that were set aside, and what was recovered of them."""
        return tuple(salvage.notes(self._path))

    async def append(self, task: TaskId, events: Sequence[Event], *, expect: int) -> int:
        return await self._ask(partial(_insert, task, tuple(events), expect))

    async def forget(self, task: TaskId) -> None:
        await self._ask(partial(_delete, task))

    async def read(self) -> Mapping[TaskId, Sequence[Event]]:
        try:
            return await asyncio.to_thread(self._read)
        except _Damaged as damage:
            await asyncio.to_thread(self._recover, damage)
            return await asyncio.to_thread(self._read)

    async def _ask(self, write: Write) -> int:
        if self._closed:
            raise StorageFailed(f"The journal {self._path} is closed: the hub is ending.")
        request = _Request(write)
        self._queue.put(request)
        return await asyncio.wrap_future(request.done)

    async def aclose(self) -> None:
        """Write what was handed in, then let go of the file."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._writer.join)

    def _start_writer(self) -> threading.Thread:
        writer = threading.Thread(target=self._write, name="journal", daemon=True)
        writer.start()
        return writer

    def _recover(self, damage: _Damaged) -> None:
        """Nobody else has the file open meanwhile; what is handed in waits."""
        self._queue.put(None)
        self._writer.join()
        self._connection = _recover(self._path, damage)
        self._writer = self._start_writer()

    def _read(self) -> dict[TaskId, list[Event]]:
        """Row by row on a connection of its own, which in WAL mode sees all that is committed and delays no writer."""
        found: dict[TaskId, list[Event]] = {}
        try:
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                connection.text_factory = bytes  # so that text that is none is found out here, and not by SQLite
                for task, kind, body in connection.execute("SELECT task, kind, body FROM events ORDER BY seq"):
                    found.setdefault(TaskId(task.decode()), []).append(records.decode(kind.decode(), body))
        except sqlite3.Error as problem:
            raise _Damaged(problem) if _is_damage(problem) else _unreadable(self._path, problem) from problem
        except (records.Unreadable, UnicodeDecodeError) as problem:
            raise _Damaged(problem) from problem
        except StorageFailed as problem:
            raise _unreadable(self._path, problem) from problem
        return found

    def _write(self) -> None:
        """The writer thread: takes what has come, commits it at once, answers, and so on until the end."""
        with closing(self._connection):
            ending = False
            while not ending:
                batch: list[_Request] = []
                request = self._queue.get()
                while request is not None:
                    if request.done.set_running_or_notify_cancel():
                        batch.append(request)
                    if self._queue.empty():
                        break
                    request = self._queue.get()
                ending = request is None
                self._commit(batch)

    def _commit(self, batch: Sequence[_Request]) -> None:
        """Write all of `batch` in one transaction; if that fails, each alone, so that one cannot take the others along."""
        try:
            outcomes = self._transaction(batch)
        except sqlite3.Error as problem:
            if len(batch) > 1:
                for request in batch:
                    self._commit((request,))
                return
            outcomes = [_unwritable(self._path, problem)]
        for request, outcome in zip(batch, outcomes, strict=True):
            if isinstance(outcome, Exception):
                request.done.set_exception(outcome)
            else:
                request.done.set_result(outcome)

    def _transaction(self, batch: Sequence[_Request]) -> list[int | Exception]:
        """The new count of each request, or why it was refused, which leaves the others alone."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [self._outcome(request) for request in batch]
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._connection.rollback()  # does nothing where SQLite has rolled back by itself, as it may on a full disk
            raise
        return outcomes

    def _outcome(self, request: _Request) -> int | Exception:
        try:
            return request.write(self._connection)
        except sqlite3.Error:
            raise
        except Exception as problem:  # noqa: BLE001 the edge of a request: its caller is told, the writer lives
            return problem


def _insert(task: TaskId, events: Sequence[Event], expect: int, connection: sqlite3.Connection) -> int:
    ((count,),) = connection.execute("SELECT coalesce(max(revision), 0) FROM events WHERE task = ?", (task,))
    if count != expect:
        raise Defect(f"{task} has {count} events, not {expect}: somebody else wrote to the journal")
    encoded = [records.encode(event) for event in events]
    connection.executemany(
        "INSERT INTO events (task, revision, kind, body) VALUES (?, ?, ?, ?)",
        [(task, count + number, kind, body) for number, (kind, body) in enumerate(encoded, start=1)],
    )
    return expect + len(encoded)


def _delete(task: TaskId, connection: sqlite3.Connection) -> int:
    connection.execute("DELETE FROM events WHERE task = ?", (task,))
    return 0


class _Damaged(Exception):
    """What was found instead of a journal."""


def _is_damage(problem: Exception) -> bool:
    return getattr(problem, "sqlite_errorcode", 0) & _LOWER_BITS in DAMAGED


def _open_or_recover(path: Path) -> sqlite3.Connection:
    try:
        return _open(path)
    except _Damaged as damage:
        return _recover(path, damage)


def _recover(path: Path, damage: _Damaged) -> sqlite3.Connection:
    try:
        note = salvage.salvage(path)
    except (OSError, sqlite3.Error) as problem:
        raise StorageFailed(
            f"The journal {path} is damaged ({damage}), and what can be read of it could not be recovered ({problem}): "
            "free some space, or move it away to start with an empty list of tasks."
        ) from problem
    logger.error("a damaged journal was set aside", extra={"reason": str(damage), "note": note})
    return _open(path)


def _open(path: Path) -> sqlite3.Connection:
    """A connection to a journal of this version. SQLite gives its side files the mode of the database."""
    try:
        salvage.finish(path)
        path.touch(mode=0o600)
        path.chmod(0o600)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as problem:
        raise _unreadable(path, problem) from problem
    try:
        _prepare(connection)
    except _Damaged:
        connection.close()
        raise
    except (sqlite3.Error, StorageFailed) as problem:
        connection.close()
        raise _Damaged(problem) if _is_damage(problem) else _unreadable(path, problem) from problem
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA secure_delete = ON")  # the briefs of a task that is forgotten go, not only its name
    ((version,),) = connection.execute("PRAGMA user_version")
    if version > salvage.SCHEMA_VERSION:
        raise StorageFailed("it was written by a newer version of offload: install that version")
    if version == 0:
        connection.executescript(salvage.SCHEMA)
    ((verdict,),) = connection.execute("PRAGMA quick_check(1)")
    if verdict != "ok":
        raise _Damaged(verdict)


def _unreadable(path: Path, problem: Exception) -> OffloadError:
    return StorageFailed(f"The journal {path} cannot be read: {problem}.")


def _unwritable(path: Path, problem: sqlite3.Error) -> OffloadError:
    if getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return StorageFailed(
            f"The disk is full, so the journal {path} cannot be written: free some space and try again."
        )
    if _is_damage(problem):
        return StorageFailed(
            f"The journal {path} is damaged ({problem}): run `offload hub stop`; the next start recovers what it can."
        )
    return StorageFailed(f"The journal {path} cannot be written: {problem}. Nothing was recorded; try again.")
