"""Writes down what happened in a turn, until it is written: nobody else will say it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from offload.core.ledger import Ledger
from offload.domain.errors import Defect, OffloadError, StorageFailed
from offload.domain.events import TurnEvent
from offload.domain.task import Task, TaskId
from offload.domain.turn import Failure

T = TypeVar("T")

RETRY_STORAGE_S = 1.0


class Record:
    """`defect` is told what could not be written at once, and what should not have happened."""

    def __init__(self, ledger: Ledger, defect: Callable[[str, BaseException], None]) -> None:
        self._ledger = ledger
        self._defect = defect

    async def event(self, task_id: TaskId, event: TurnEvent) -> Task:
        """The task with `event` in it."""
        return await self.stored(task_id, type(event).__name__, lambda: self._ledger.record(task_id, event))

    async def stored(self, task_id: TaskId, what: str, store: Callable[[], Awaitable[T]]) -> T:
        """What cannot be written now, because the disk is full, is tried again: what happened happened."""
        while True:
            try:
                return await store()
            except StorageFailed as error:
                self._defect(f"{what} of task {task_id} is not stored yet", error)
                await self._ledger.clock.sleep(RETRY_STORAGE_S)

    def failure(self, task_id: TaskId, error: Exception) -> Failure:
        """What is told of an error. What should not happen goes to the log as well."""
        if isinstance(error, OffloadError) and not isinstance(error, Defect):
            return Failure(error.code, str(error))
        self._defect(f"task {task_id}", error)
        return Failure(Defect.code, f"offload made a mistake: {error!r}; see the hub's log")
