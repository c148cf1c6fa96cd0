"""How many tasks work at a time in one workspace; the others wait in line and know their place."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from offload.domain.task import TaskId


@dataclass(eq=False)
class _Waiting:
    """One entry of a line; a task that was cancelled and continued may have left one behind, so tasks do not name them."""

    task: TaskId
    place: int = 0
    admitted: asyncio.Event = field(default_factory=asyncio.Event)


class Admission:
    """`limit` places per workspace, given out in the order of asking; `moved` is called for each task whose place in the
    line changed."""

    def __init__(self, limit: int, moved: Callable[[TaskId], None]) -> None:
        self._limit = limit
        self._moved = moved
        self._working: defaultdict[str, int] = defaultdict(int)
        self._lines: defaultdict[str, list[_Waiting]] = defaultdict(list)

    def position(self, workspace: str, task: TaskId) -> int | None:
        """Place in the line, 1 is next; None for a task that does not wait."""
        return next((waiting.place for waiting in self._lines[workspace] if waiting.task == task), None)

    def full(self, workspace: str) -> bool:
        """Whether the next one has to wait."""
        return self._working[workspace] >= self._limit

    @asynccontextmanager
    async def place(self, workspace: str, task: TaskId, *, at_once: bool = False) -> AsyncIterator[None]:
        """Held while the task works; entering waits until one is free. `at_once` is for one that is at work already, which
        counts and does not wait."""
        waiting = _Waiting(task)
        if at_once:
            self._working[workspace] += 1
            waiting.admitted.set()
        else:
            self._lines[workspace].append(waiting)
            self._admit(workspace)
        try:
            await waiting.admitted.wait()
            yield
        finally:
            # One that is cancelled at the moment when it is admitted holds a place already, which goes to the next one.
            if waiting.admitted.is_set():
                self._working[workspace] -= 1
            else:
                self._lines[workspace].remove(waiting)
            self._admit(workspace)

    def _admit(self, workspace: str) -> None:
        line = self._lines[workspace]
        while line and self._working[workspace] < self._limit:
            self._working[workspace] += 1
            line.pop(0).admitted.set()
        for place, waiting in enumerate(line, start=1):
            if waiting.place != place:
                waiting.place = place
                self._moved(waiting.task)
