"""The checks of a result, run in the task's folder: first the formatter, whose changes join it, then the check commands.

What checks leave in the folder is no part of the result: it is put back afterwards. Which checks there are, and what follows from
how they end, is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from offload.core.ports import Checks, Clock, Workspace
from offload.core.turns.collecting import Collected, collected, put_back
from offload.core.turns.record import Record
from offload.core.turns.run import Interrupted, Run
from offload.domain.change import ChangeSet
from offload.domain.check import Check, CheckResult
from offload.domain.events import ActivityChanged, ChecksEnded
from offload.domain.task import Task
from offload.domain.turn import Activity, ActivityKind


class Checking:
    """Every method raises `Interrupted` when a stop was asked for, and what the `Workspace` port raises."""

    def __init__(self, workspace: Workspace, checks: Checks, record: Record, clock: Clock) -> None:
        self._workspace = workspace
        self._checks = checks
        self._record = record
        self._clock = clock

    async def result(self, task: Task, run: Run, *, found: bool) -> ChecksEnded:
        """Check what the last turn left, by the task's plan. `found` says that its folder was not just collected, so that it may
        hold what came after that."""
        assert task.turn.changes is not None
        before = Collected(task.turn.changes, task.turn.own)
        try:
            folder = await self._workspace.open_folder(task.id, Path(task.spec.workspace), task.base)
            if found:
                await self._put_back(task, before.changes)
            formatting, formatted = await self._format(task, run, folder, before)
            results = await self.run(task, run, folder, task.plan.checks)
        except Interrupted:
            await self._put_back(task, before.changes)
            raise
        after = formatted or before
        await self._put_back(task, after.changes)
        return ChecksEnded(
            at=self._clock.now(),
            turn=run.turn,
            results=(*formatting, *results),
            changes=None if formatted is None else formatted.changes,
            own=None if formatted is None else formatted.own,
        )

    async def run(self, task: Task, run: Run, folder: Path, checks: Sequence[Check]) -> tuple[CheckResult, ...]:
        """Run these, one after another, over what the folder holds; the task says which one it is at."""
        return tuple([await self._one(task, run, folder, check, f"running the check {check.name}") for check in checks])

    async def _format(
        self, task: Task, run: Run, folder: Path, before: Collected
    ) -> tuple[tuple[CheckResult, ...], Collected | None]:
        """What came of the formatter, and the result with what it changed, None when it changed nothing."""
        formatter = task.plan.format
        if formatter is None:
            return (), None
        result = await self._one(task, run, folder, formatter, "running the formatter")
        after = await self._record.stored(task.id, "the result", lambda: collected(self._workspace, task))
        root = Path(task.spec.workspace)
        changed = (await self._workspace.between(root, before.changes.result, after.changes.result)).files
        return (result,), after if changed else None

    async def _one(self, task: Task, run: Run, folder: Path, check: Check, label: str) -> CheckResult:
        activity = Activity(ActivityKind.TOOL, label)
        await self._record.event(task.id, ActivityChanged(at=self._clock.now(), turn=run.turn, activity=activity))
        return await run.interruptible(lambda: self._checks.run(folder, check, run.environment))

    async def _put_back(self, task: Task, changes: ChangeSet) -> None:
        await self._record.stored(task.id, "the folder", lambda: put_back(self._workspace, task, changes))
