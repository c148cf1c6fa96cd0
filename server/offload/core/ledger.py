"""The tasks: read, decide, append. A task in memory is never ahead of what is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from types import TracebackType
from typing import Any, TypeVar

from offload.core.feed import Feed
from offload.core.ports import Clock, Journal
from offload.domain.errors import UnknownTask
from offload.domain.events import Created, Event
from offload.domain.lifecycle import advance, begin, fold
from offload.domain.task import Task, TaskId

T = TypeVar("T")

Decide = Callable[[Task], Sequence[Event]]
Then = Callable[[Task], None]


class Ledger:
    """Folds events into tasks and keeps both in step. To be used as an async context manager: what was begun is finished
    before it is left, whoever asked for it and whether he still waits."""

    def __init__(self, journal: Journal, feed: Feed, clock: Clock) -> None:
        self.feed = feed
        self.clock = clock
        self._journal = journal
        self._tasks: dict[TaskId, Task] = {}
        self._locks: dict[TaskId, asyncio.Lock] = {}
        self._begun = asyncio.TaskGroup()

    async def __aenter__(self) -> Ledger:
        for task_id, events in (await self._journal.read()).items():
            self._tasks[task_id] = fold(task_id, events)
        await self._begun.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Whatever the house is left for, the group is told of no error, because on one it would cancel what was begun.
        await self._begun.__aexit__(None, None, None)

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

    async def create(self, task_id: TaskId, created: Created, then: Then | None = None) -> Task:
        """A new task, durable when this returns; `then` as for `decide`."""
        return await self.to_the_end(self._create(task_id, created, then))

    async def record(self, task_id: TaskId, *events: Event) -> Task:
        """Append what happened. Raises `IllegalTransition` and changes nothing if it cannot have."""
        return await self.decide(task_id, lambda _: events)

    async def decide(self, task_id: TaskId, decide: Decide, then: Then | None = None) -> Task:
        """Append what `decide` makes of the task as it stands; nobody else appends in between.

        `then` is given the task as it stands afterwards, before anybody else can decide and even if the caller is gone by
        then: what must follow from an event follows from it alone.
        """
        return await self.to_the_end(self._decide(task_id, decide, then))

    async def forget(self, task_id: TaskId) -> None:
        """Remove a task for good."""
        await self.to_the_end(self._forget(task_id))

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` gives or raises. A caller that goes away in the middle does not end it."""

        async def outcome() -> tuple[list[T], Exception | None]:
            try:
                return [await work], None
            except Exception as error:  # noqa: BLE001 - the edge of the work: whoever asked gets it raised, the group goes on.
                return [], error

        given, error = await asyncio.shield(self._begun.create_task(outcome()))
        if error is not None:
            raise error
        return given[0]

    async def _create(self, task_id: TaskId, created: Created, then: Then | None) -> Task:
        async with self._locks.setdefault(task_id, asyncio.Lock()):
            return await self._append(task_id, begin(task_id, created), [created], 0, then)

    async def _decide(self, task_id: TaskId, decide: Decide, then: Then | None) -> Task:
        async with self._locks.setdefault(task_id, asyncio.Lock()):
            task = self.get(task_id)  # it may have been forgotten meanwhile
            events = list(decide(task))
            moved = task
            for event in events:
                moved = advance(moved, event)
            return await self._append(task_id, moved, events, task.revision, then)

    async def _forget(self, task_id: TaskId) -> None:
        async with self._locks.setdefault(task_id, asyncio.Lock()):
            await self._journal.forget(task_id)
            self._tasks.pop(task_id, None)

    async def _append(
        self, task_id: TaskId, moved: Task, events: Sequence[Event], expect: int, then: Then | None
    ) -> Task:
        if events:
            await self._journal.append(task_id, events, expect=expect)
            self._tasks[task_id] = moved
            self.feed.publish(moved)
        if then is not None:
            then(moved)
        return moved
