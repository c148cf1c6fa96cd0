"""A journal in memory, for tests of what stands above it; held to the same contract as the one on SQLite."""

from collections.abc import Mapping, Sequence

from offload.domain.errors import Defect, StorageFailed
from offload.domain.events import Event
from offload.domain.task import TaskId


class MemoryJournal:
    """`fail_with` set to a sentence makes every write fail, as a full disk does, until it is cleared."""

    def __init__(self) -> None:
        self.fail_with = ""
        self._events: dict[TaskId, list[Event]] = {}

    async def append(self, task: TaskId, events: Sequence[Event], *, expect: int) -> int:
        self._check()
        known = self._events.get(task, [])
        if len(known) != expect:
            raise Defect(f"{task} has {len(known)} events, not {expect}: somebody else wrote to the journal")
        if events:
            self._events[task] = [*known, *events]
        return expect + len(events)

    async def forget(self, task: TaskId) -> None:
        self._check()
        self._events.pop(task, None)

    async def read(self) -> Mapping[TaskId, Sequence[Event]]:
        return {task: tuple(events) for task, events in self._events.items()}

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _check(self) -> None:
        if self.fail_with:
            raise StorageFailed(self.fail_with)
