"""Who waits for what: wakes watchers when a task changes. Holds the latest state of each task only, never a history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from offload.domain.task import Task, TaskId


class Watcher:
    """What changed since it was last read; a slow reader gets the latest state of each task, never a backlog."""

    def __init__(self) -> None:
        self._changed: dict[TaskId, Task] = {}
        self._wake = asyncio.Event()

    def put(self, task: Task) -> None:
        self._changed[task.id] = task
        self._wake.set()

    async def changes(self) -> list[Task]:
        """Waits for at least one change; oldest first."""
        await self._wake.wait()
        self._wake.clear()
        changed = list(self._changed.values())
        self._changed.clear()
        return changed


class Feed:
    """Every change of every task, for those who watch at that moment."""

    def __init__(self) -> None:
        self._watchers: set[Watcher] = set()

    def publish(self, task: Task) -> None:
        for watcher in self._watchers:
            watcher.put(task)

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Changes are kept from the moment of entering."""
        watcher = Watcher()
        self._watchers.add(watcher)
        try:
            yield watcher
        finally:
            self._watchers.discard(watcher)

    async def watch(self) -> AsyncIterator[Task]:
        """Every task that changes, from the first step of the iteration on."""
        with self.watching() as watcher:
            while True:
                for task in await watcher.changes():
                    yield task
