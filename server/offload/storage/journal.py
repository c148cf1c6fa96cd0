"""The journal on SQLite: an append-only table, one writer thread, every commit synced.

Appends that arrive while a commit runs share the next one, so that many tasks cost few syncs. It knows nothing of the
lifecycle: it counts events and keeps their order.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from offload.domain.errors import Defect, OffloadError, StorageFailed
from offload.domain.lifecycle import Event
from offload.domain.task import TaskId
from offload.storage import records

SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    task TEXT NOT NULL,
    revision INTEGER NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (task, revision)
);
"""


@dataclass(frozen=True, slots=True)
class _Append:
    """One call of `append`, on its way to the writer thread."""

    task: TaskId
    events: tuple[Event, ...]
    expect: int
    done: Future[int] = field(default_factory=Future)


class SqliteJournal:
    """Fits `core.ports.Journal`. Made once per hub, which holds the state folder's lock; `aclose` ends it.

    An append that is cancelled before the writer has taken it is not written; later it is, and only the answer is lost.
    """

    def __init__(self, path: Path) -> None:
        """Open the journal at `path`, or make it. Raises `StorageFailed` when that cannot be done."""
        self._path = path
        self._closed = False
        self._queue: queue.SimpleQueue[_Append | None] = queue.SimpleQueue()
        self._connection = _open(path)
        self._writer = threading.Thread(target=self._write, name="journal", daemon=True)
        self._writer.start()

    async def append(self, task: TaskId, events: Sequence[Event], *, expect: int) -> int:
        if self._closed:
            raise StorageFailed(f"The journal {self._path} is closed: the hub is ending.")
        request = _Append(task, tuple(events), expect)
        self._queue.put(request)
        return await asyncio.wrap_future(request.done)

    async def read(self) -> Mapping[TaskId, Sequence[Event]]:
        return await asyncio.to_thread(self._read)

    async def aclose(self) -> None:
        """Write what was handed in, then let go of the file."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        await asyncio.to_thread(self._writer.join)

    def _read(self) -> dict[TaskId, list[Event]]:
        """Row by row on a connection of its own, which in WAL mode sees all that is committed and delays no writer."""
        found: dict[TaskId, list[Event]] = {}
        try:
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                for task, kind, body in connection.execute("SELECT task, kind, body FROM events ORDER BY seq"):
                    found.setdefault(TaskId(task), []).append(records.decode(kind, body))
        except sqlite3.Error as problem:
            raise _unreadable(self._path, problem) from problem
        except StorageFailed as problem:
            raise StorageFailed(f"The journal {self._path} cannot be read: {problem}.") from problem
        return found

    def _write(self) -> None:
        """The writer thread: takes what has come, commits it at once, answers, and so on until the end."""
        with closing(self._connection):
            ending = False
            while not ending:
                batch: list[_Append] = []
                request = self._queue.get()
                while request is not None:
                    if request.done.set_running_or_notify_cancel():
                        batch.append(request)
                    if self._queue.empty():
                        break
                    request = self._queue.get()
                ending = request is None
                self._commit(batch)

    def _commit(self, batch: Sequence[_Append]) -> None:
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

    def _transaction(self, batch: Sequence[_Append]) -> list[int | Exception]:
        """The new count of each request, or why it was refused, which leaves the others alone."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            outcomes = [self._outcome(request) for request in batch]
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self._connection.rollback()  # does nothing where SQLite has rolled back by itself, as it may on a full disk
            raise
        return outcomes

    def _outcome(self, request: _Append) -> int | Exception:
        try:
            return self._insert(request)
        except sqlite3.Error:
            raise
        except Exception as problem:  # noqa: BLE001 the edge of a request: its caller is told, the writer lives
            return problem

    def _insert(self, request: _Append) -> int:
        ((count,),) = self._connection.execute(
            "SELECT coalesce(max(revision), 0) FROM events WHERE task = ?", (request.task,)
        )
        if count != request.expect:
            raise Defect(f"{request.task} has {count} events, not {request.expect}: somebody else wrote to the journal")
        encoded = [records.encode(event) for event in request.events]
        self._connection.executemany(
            "INSERT INTO events (task, revision, kind, body) VALUES (?, ?, ?, ?)",
            [(request.task, count + number, kind, body) for number, (kind, body) in enumerate(encoded, start=1)],
        )
        return request.expect + len(encoded)


def _open(path: Path) -> sqlite3.Connection:
    """A connection to a journal of this version. SQLite gives its side files the mode of the database."""
    try:
        path.touch(mode=0o600)
        path.chmod(0o600)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except (OSError, sqlite3.Error) as problem:
        raise _unreadable(path, problem) from problem
    try:
        _prepare(connection)
    except (sqlite3.Error, StorageFailed) as problem:
        connection.close()
        raise _unreadable(path, problem) from problem
    return connection


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    ((version,),) = connection.execute("PRAGMA user_version")
    if version > SCHEMA_VERSION:
        raise StorageFailed("it was written by a newer version of offload: install that version")
    if version == 0:
        connection.executescript(f"BEGIN; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")


def _unreadable(path: Path, problem: Exception) -> OffloadError:
    if isinstance(problem, sqlite3.DatabaseError) and not isinstance(problem, sqlite3.OperationalError):
        return StorageFailed(
            f"The journal {path} is damaged ({problem}): move it away to start with an empty list of tasks."
        )
    return StorageFailed(f"The journal {path} cannot be read: {problem}.")


def _unwritable(path: Path, problem: sqlite3.Error) -> OffloadError:
    if getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return StorageFailed(
            f"The disk is full, so the journal {path} cannot be written: free some space and try again."
        )
    return StorageFailed(f"The journal {path} cannot be written: {problem}. Nothing was recorded; try again.")
