"""How many tasks work at a time in one workspace; the others wait in line and know their place."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from offload.domain.task import TaskId


class Admission:
    """`limit` places per workspace, given out in the order of asking; `moved` is called for each task whose place in the
    line changed."""

    def __init__(self, limit: int, moved: Callable[[TaskId], None]) -> None:
        self._limit = limit
        self._moved = moved
        self._working: defaultdict[str, int] = defaultdict(int)
        self._lines: defaultdict[str, dict[TaskId, asyncio.Event]] = defaultdict(dict)

    def position(self, workspace: str, task: TaskId) -> int | None:
        """Place in the line, 1 is next; None for a task that does not wait."""
        line = list(self._lines[workspace])
        return line.index(task) + 1 if task in line else None

    @asynccontextmanager
    async def place(self, workspace: str, task: TaskId) -> AsyncIterator[None]:
        """Held while the task works; entering waits until one is free."""
        turn = asyncio.Event()
        self._lines[workspace][task] = turn
        try:
            self._admit(workspace)
            await turn.wait()
        except asyncio.CancelledError:
            # Admitted and cancelled in the same moment: the place goes to the next one.
            if self._lines[workspace].pop(task, None) is None:
                self._working[workspace] -= 1
            self._admit(workspace)
            raise
        try:
            yield
        finally:
            self._working[workspace] -= 1
            self._admit(workspace)

    def _admit(self, workspace: str) -> None:
        line = self._lines[workspace]
        while line and self._working[workspace] < self._limit:
            task = next(iter(line))
            line.pop(task).set()
            self._working[workspace] += 1
        for waiting in line:
            self._moved(waiting)
