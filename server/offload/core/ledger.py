"""The tasks: read, decide, append. A task in memory is never ahead of what is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType

from offload.core.feed import Feed
from offload.core.ports import Clock, Journal
from offload.domain.errors import UnknownTask
from offload.domain.lifecycle import Created, Event, advance, begin, fold
from offload.domain.task import Task, TaskId

Decide = Callable[[Task], Sequence[Event]]


class Ledger:
    """Folds events into tasks and keeps both in step. To be used as an async context manager: appends that were begun are
    finished before it is left, whoever asked for them."""

    def __init__(self, journal: Journal, feed: Feed, clock: Clock) -> None:
        self.feed = feed
        self.clock = clock
        self._journal = journal
        self._tasks: dict[TaskId, Task] = {}
        self._locks: dict[TaskId, asyncio.Lock] = {}
        self._appending = asyncio.TaskGroup()

    async def __aenter__(self) -> Ledger:
        for task_id, events in (await self._journal.read()).items():
            self._tasks[task_id] = fold(task_id, events)
        await self._appending.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._appending.__aexit__(None, None, None)

    def all(self) -> list[Task]:
        """In the order of their creation."""
        return list(self._tasks.values())

    def get(self, task_id: TaskId) -> Task:
        """The task with this id or with an id that alone begins so. Raises `UnknownTask`."""
        if found := self._tasks.get(task_id):
            return found
        matches = [task for key, task in self._tasks.items() if task_id and key.startswith(task_id)]
        if len(matches) == 1:
            return matches[0]
        if matches:
            raise UnknownTask(f"{len(matches)} tasks begin with {task_id!r}: give more of the id")
        raise UnknownTask(f"there is no task {task_id!r}: list_tasks shows those that exist")

    async def create(self, task_id: TaskId, created: Created) -> Task:
        """A new task, durable when this returns."""
        self._locks[task_id] = asyncio.Lock()
        return await self._append(task_id, begin(task_id, created), [created], expect=0)

    async def record(self, task_id: TaskId, *events: Event) -> Task:
        """Append what happened. Raises `IllegalTransition` and changes nothing if it cannot have."""
        return await self.decide(task_id, lambda _: events)

    async def decide(self, task_id: TaskId, decide: Decide) -> Task:
        """Append what `decide` makes of the task as it stands; nobody else appends in between."""
        async with self._locks.setdefault(task_id, asyncio.Lock()):
            task = self._tasks[task_id]
            events = list(decide(task))
            if not events:
                return task
            moved = task
            for event in events:
                moved = advance(moved, event)
            return await self._append(task_id, moved, events, expect=task.revision)

    async def _append(self, task_id: TaskId, moved: Task, events: Sequence[Event], *, expect: int) -> Task:
        # Shielded: a caller that goes away in the middle must not leave memory behind the disk.
        appending = self._appending.create_task(self._commit(task_id, moved, events, expect))
        error = await asyncio.shield(appending)
        if error is not None:
            raise error
        return moved

    async def _commit(self, task_id: TaskId, moved: Task, events: Sequence[Event], expect: int) -> Exception | None:
        try:
            await self._journal.append(task_id, events, expect=expect)
        except Exception as error:  # noqa: BLE001 - the edge of the append: whoever asked gets it raised, the group goes on.
            return error
        self._tasks[task_id] = moved
        self.feed.publish(moved)
        return None
