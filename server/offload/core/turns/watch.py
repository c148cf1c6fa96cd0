"""Beside a turn that runs: counts its work and its silence, and says why it must end. Ending it is not its business."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from offload.core.limits import TICK_S, Limits, minutes_left, overdrawn, overrun
from offload.core.ports import Clock, Workspace
from offload.core.worker import Doing, Happening
from offload.domain.task import Task
from offload.domain.turn import Activity, ActivityKind, Failure

BUDGET = "budget"
STALLED = "stalled"
RATE_LIMITED = "rate_limited"
LOOK_S = 60.0  # of silence between two looks at the files: a look walks through the whole folder


class Watch:
    """Of one turn. `why` is None until the turn must end; `ended` is set then, and nothing changes any more."""

    def __init__(
        self,
        task: Callable[[], Task],
        tasks: Callable[[], Sequence[Task]],
        workspace: Workspace,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._task = task
        self._tasks = tasks
        self._workspace = workspace
        self._clock = clock
        self._limits = limits
        self._silent_s = 0.0
        self._next_look_s = LOOK_S
        self._last_change: float | None = None
        self.worked_s = task().turn.worked_s
        self.why: Failure | None = None
        self.ended = asyncio.Event()

    def noted(self, event: Happening) -> None:
        """The worker did something; to be called when that is recorded."""
        if isinstance(event, Doing) and event.activity.kind is ActivityKind.STALLED:
            return
        self._alive()
        self._last_change = None
        if isinstance(event, Doing) and event.activity.kind is ActivityKind.RETRYING:
            self._look_at_retry(event.activity)
        self._look_at_use()

    async def run(self) -> None:
        """Count until the turn must end; to be cancelled when it ends by itself. What has no limit is not counted."""
        self._look_at_use()
        counts = self._limits.stall_after_s is not None or self._task().turn.budget.minutes is not None
        while counts and self.why is None:
            # Counted are naps, not what the clock shows: a machine that sleeps ends none, and clocks can be set.
            await self._clock.sleep(TICK_S)
            task = self._task()
            if task.asks:
                continue
            self.worked_s += TICK_S
            self._look_at_use()
            if not _waits_for_its_provider(task.activity, self._clock.now()):
                self._silent_s += TICK_S
                await self._look_at_silence(task)

    def _look_at_use(self) -> None:
        task = self._task()
        reached = overrun(task, self.worked_s) or overdrawn(
            self._tasks(), task.spec.workspace, self._limits.daily_cost, self._clock.now()
        )
        if reached:
            self._end(BUDGET, f"stopped by a limit: {reached}; its work is kept")

    def _look_at_retry(self, activity: Activity) -> None:
        left = minutes_left(self._task(), self.worked_s)
        wait = ((activity.until or 0.0) - self._clock.now()) / 60
        if left is not None and wait > left:
            words = f"the provider wants {wait:.0f} minutes of waiting before the next try ({activity.label or 'no reason given'})"
            self._end(RATE_LIMITED, f"{words}, and the task has {left:.0f} minutes left; its work is kept")

    async def _look_at_silence(self, task: Task) -> None:
        after = self._limits.stall_after_s
        if after is None or self._silent_s < min(self._next_look_s, after):
            return
        self._next_look_s = self._silent_s + LOOK_S
        last, self._last_change = (
            self._last_change,
            await self._workspace.last_change(task.id, Path(task.spec.workspace)),
        )
        if last is not None and last != self._last_change:
            self._alive()
        elif self._silent_s >= after:
            minutes = self._silent_s / 60
            words = f"no sign of life from the worker, its tools or its files for {minutes:.0f} minutes (stall_after_s)"
            self._end(STALLED, f"{words}; it was stopped, and its work is kept")

    def _alive(self) -> None:
        self._silent_s, self._next_look_s = 0.0, LOOK_S

    def _end(self, code: str, message: str) -> None:
        if self.why is None:
            self.why = Failure(code, message)
            self.ended.set()


def _waits_for_its_provider(activity: Activity | None, now: float) -> bool:
    return activity is not None and activity.kind is ActivityKind.RETRYING and (activity.until or 0.0) > now
