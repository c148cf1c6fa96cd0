"""What is kept, for how long, and what goes.

Work that was never accepted goes only when somebody names its task and says so. A task that goes is closed first, then what
its worker and its workspace hold is given back, and its events go last: a hub that dies in between leaves a closed task, which
the next cleaning meets again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from offload.core.integration.starting import taken_with_others
from offload.core.ledger import Ledger
from offload.core.ports import Clock, Workspace
from offload.core.turns.supervisor import Supervisor
from offload.core.worker import Worker
from offload.domain.change import ChangeSet
from offload.domain.errors import InvalidRequest, OffloadError, WrongPhase
from offload.domain.events import Closed
from offload.domain.review import review
from offload.domain.task import Task, TaskId

DAY_S = 24 * 3600
AFTER_START_S = 300.0


@dataclass(frozen=True, slots=True)
class CleanRequest:
    """`tasks` names some, whatever their age; else all that have not changed for `older_than_days` are looked at.

    `include_unaccepted` lets named tasks go whose changes were never applied.
    """

    older_than_days: float
    tasks: tuple[TaskId, ...] = ()
    include_unaccepted: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Looked:
    """A task that was looked at. `size` is that of its folder in bytes; `note` says why it is kept, or what goes with it that
    was never accepted."""

    task: Task
    size: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What has gone, or would go. `younger` counts the tasks that were not looked at; `left_over` is the size in bytes of what
    workers had left behind."""

    removed: tuple[Looked, ...] = ()
    kept: tuple[Looked, ...] = ()
    younger: int = 0
    left_over: int = 0


@dataclass
class _Plan:
    remove: list[Looked] = field(default_factory=list)
    keep: list[Looked] = field(default_factory=list)


class Housekeeping:
    """One cleaning at a time."""

    def __init__(
        self, ledger: Ledger, supervisor: Supervisor, workspace: Workspace, workers: Mapping[str, Worker]
    ) -> None:
        self._ledger = ledger
        self._supervisor = supervisor
        self._workspace = workspace
        self._workers = workers
        self._alone = asyncio.Lock()

    async def clean(self, request: CleanRequest, environment: Mapping[str, str]) -> Cleaned:
        """Raises `InvalidRequest` when unaccepted work is to go without being named, `UnknownTask`."""
        if request.include_unaccepted and not request.tasks:
            raise InvalidRequest("name the tasks whose unaccepted work is to go; a dry run lists them")
        async with self._alone:
            chosen, plan = self._chosen(request), _Plan()
            younger = 0 if request.tasks else len(self._ledger.all()) - len(chosen)
            for task in chosen:
                await self._look(task, request, plan)
            if not request.dry_run:
                await self._remove(plan, environment)
            left_over = 0 if request.tasks else await self._clean_workers(request, plan)
            return Cleaned(tuple(plan.remove), tuple(plan.keep), younger, left_over)

    def _chosen(self, request: CleanRequest) -> Sequence[Task]:
        """Oldest first."""
        if request.tasks:
            return list({task.id: task for task in map(self._ledger.get, request.tasks)}.values())
        before = self._ledger.clock.now() - request.older_than_days * DAY_S
        return [task for task in self._ledger.all() if task.changed_at <= before]

    async def _look(self, task: Task, request: CleanRequest, plan: _Plan) -> None:
        root = Path(task.spec.workspace)
        looked = Looked(task, await self._workspace.size(task.id, root) or 0)
        if task.live:
            plan.keep.append(replace(looked, note=f"it is {task.phase}"))
            return
        unaccepted = "" if task.closed else await self._unaccepted(task, root)
        if unaccepted and not request.include_unaccepted:
            plan.keep.append(replace(looked, note=unaccepted))
        else:
            plan.remove.append(replace(looked, note=unaccepted))

    async def _unaccepted(self, task: Task, root: Path) -> str:
        """What would be lost with the task, in words; "" for nothing. What was rejected is decided, and so is what was applied
        with the results of other tasks."""
        try:
            recorded = next((turn.changes for turn in reversed(task.turns) if turn.changes is not None), None)
            waiting = await self._never_applied(task, root, recorded)
            # The folder may hold more than the last turn recorded: somebody worked in it, or it could not be read then.
            if not waiting and task.base and await self._workspace.size(task.id, root) is not None:
                waiting = await self._never_applied(task, root, await self._workspace.collect(task.id, root, task.base))
        except OffloadError as error:
            return f"what it changed cannot be read: {error}"
        if not waiting:
            return ""
        return f"{len(waiting)} changed {'file was' if len(waiting) == 1 else 'files were'} never applied"

    async def _never_applied(self, task: Task, root: Path, changes: ChangeSet | None) -> set[str]:
        if changes is None:
            return set()
        decided = review(task).keys() | taken_with_others(task, self._ledger.all())
        waiting = {file.path for file in changes.files if not decided >= set(file.units)}
        for landing in task.landings:
            if not landing.id:  # It was made by a version that did not record what it brought.
                later = await self._workspace.between(root, landing.result, changes.result)
                waiting -= set(landing.paths) - {file.path for file in later.files}
        return waiting

    async def _remove(self, plan: _Plan, environment: Mapping[str, str]) -> None:
        workspaces: defaultdict[str, list[Looked]] = defaultdict(list)
        for looked in plan.remove:
            workspaces[looked.task.spec.workspace].append(looked)
        plan.remove = []
        for workspace, all_looked in workspaces.items():
            closed = [looked for looked in all_looked if await self._close(looked, environment, plan)]
            try:
                await self._forget(Path(workspace), {looked.task.id for looked in closed})
            except OffloadError as error:
                plan.keep.extend(replace(looked, note=f"it is closed, but not removed: {error}") for looked in closed)
            else:
                plan.remove.extend(closed)

    async def _close(self, looked: Looked, environment: Mapping[str, str], plan: _Plan) -> bool:
        """Release what the task holds, unless something has happened to it since it was looked at."""

        def closed(task: Task) -> list[Closed]:
            if task.revision != looked.task.revision:
                raise WrongPhase("something happened to it in the meantime")
            return [] if task.closed else [Closed(at=self._ledger.clock.now())]

        try:
            task = await self._ledger.decide(looked.task.id, closed)
        except OffloadError as error:
            plan.keep.append(replace(looked, note=str(error)))
            return False
        await self._supervisor.release(task, environment)
        return True

    async def _forget(self, root: Path, gone: set[TaskId]) -> None:
        """From the look at the other tasks to the workspace's own lock there must be no pause: a snapshot that is on its way
        may give a commit that is to go."""
        others = [task for task in self._ledger.all() if task.spec.workspace == str(root) and task.id not in gone]
        if any(task.live and not task.base for task in others):
            raise WrongPhase("a task is being started in its project; try again")
        mine = [task for task in self._ledger.all() if task.id in gone]
        await self._workspace.forget(root, _commits(mine), _commits(others))
        for task_id in gone:
            await self._ledger.forget(task_id)

    async def _clean_workers(self, request: CleanRequest, plan: _Plan) -> int:
        """What workers left may hold the sessions of tasks that stay, so none goes that may be as young as they are."""
        going = {looked.task.id for looked in plan.remove}
        staying = [task.created_at for task in self._ledger.all() if not task.closed and task.id not in going]
        before = min([self._ledger.clock.now() - request.older_than_days * DAY_S, *staying])
        return sum([await worker.clean(before, dry_run=request.dry_run) for worker in self._workers.values()])


def _commits(tasks: Sequence[Task]) -> set[str]:
    found: set[str] = set()
    for task in tasks:
        sets = [changes for turn in task.turns for changes in (turn.changes, turn.own) if changes is not None]
        found.update(
            (task.base, task.given, *(commit for changes in sets for commit in (changes.base, changes.result)))
        )
        found.update(turn.start for turn in task.turns)
        found.update(task.integration.steps if task.integration is not None else ())
        for landing in task.landings:
            found.update((landing.result, landing.earlier, landing.before, landing.after))
    return found - {""}


async def keep_tidy(
    clean: Callable[[], Awaitable[Cleaned]],
    clock: Clock,
    told: Callable[[Cleaned], None],
    defect: Callable[[str, BaseException], None],
) -> None:
    """Clean every day, for the first time when the start of the hub is over, until cancelled."""
    await clock.sleep(AFTER_START_S)
    while True:
        try:
            cleaned = await clean()
        except Exception as error:  # noqa: BLE001 - the edge of a task: what goes wrong today may go well tomorrow.
            defect("the daily cleaning", error)
        else:
            if cleaned.removed:
                told(cleaned)
        await clock.sleep(DAY_S)
