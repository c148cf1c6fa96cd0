"""Before the worker: what a task waits for, and what its folder is brought to before a turn begins in it.

The folder of a new task holds the user's files, the results of the tasks that it comes after, and what the project's set-up
command leaves. A follow-up may bring it onto newer files. What is there when the worker begins is no change of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from offload.core.landing.accepted import accepted
from offload.core.ledger import Ledger
from offload.core.ports import Checks, Workspace
from offload.core.turns.record import Record
from offload.core.turns.run import Run
from offload.domain.change import ChangeSet, Conflict
from offload.domain.check import Check, told
from offload.domain.events import ActivityChanged, Rebased
from offload.domain.task import Phase, Task, TaskId
from offload.domain.turn import Activity, ActivityKind, Failure, Turn

FILES = "files"  # what a follow-up is brought onto: the user's own files as they are then
SETUP = "setup"
SETUP_FAILED = "setup_failed"
AFTER_FAILED = "after_failed"
MARKED = (
    "Some places were changed on both sides. They are marked in these files, as git marks conflicts; resolve them first, so "
    "that what both sides meant holds: "
)
TAIL = 2000  # characters of what a set-up command printed that are told, the last ones

Unsaved = Callable[[Path], Awaitable[Mapping[str, str]]]


class Unprepared(Exception):
    """The turn cannot begin, for `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Preparing:
    """`unsaved` gives the texts of a workspace's open documents that are not on disk, by path."""

    def __init__(
        self,
        ledger: Ledger,
        workspace: Workspace,
        checks: Checks,
        record: Record,
        unsaved: Unsaved,
    ) -> None:
        self._ledger = ledger
        self._workspace = workspace
        self._checks = checks
        self._record = record
        self._unsaved = unsaved

    async def others(self, task: Task) -> None:
        """Wait until the tasks that this one comes after are over. Raises `Unprepared` when one did not end well, and
        `UnknownTask` for one that was removed meanwhile."""
        with self._ledger.feed.watching() as watcher:
            while any(other.live for other in self._before(task)):
                await watcher.changes()
        others = self._before(task)
        failed = [f"task {other.id}, which is {other.phase}" for other in others if other.phase is not Phase.READY]
        if failed:
            words = (
                f"it was to begin from the result of {' and '.join(failed)}; continue that one, then resume this one"
            )
            raise Unprepared(Failure(AFTER_FAILED, words))

    def waits(self, task: Task) -> bool:
        """Whether the task comes after others, and has not begun from their results."""
        return bool(task.spec.after) and _is_new(task)

    async def folder(self, task: Task, run: Run) -> Path:
        """The task's folder as the worker of the last turn shall find it; made ready once, for as long as it takes.

        Raises `Unprepared`, `Interrupted`, `UnknownTask`, and what the `Workspace` port raises.
        """
        root, spec = Path(task.spec.workspace), task.spec
        is_new = _is_new(task)
        base = await self._with_others(task, root) if is_new and spec.after else task.base
        folder = await self._workspace.open_folder(task.id, root, base, spec.carry, spec.never_send)
        if is_new and spec.setup:
            base = await self._set_up(task, run, root, folder, base)
        if task.turn.onto and not task.turn.start:
            await self._bring_onto(task, run, root, base)
        elif is_new and (spec.after or spec.setup):
            await self._record.event(
                task.id, Rebased(at=self._ledger.clock.now(), turn=run.turn, base=base, start=base)
            )
        return folder

    def _before(self, task: Task) -> list[Task]:
        return [self._ledger.get(other) for other in task.spec.after]

    def _all_before(self, task: Task) -> list[Task]:
        """Those that it comes after, each with those before it that itself began from: its result holds only what it added. One
        of these that was removed was taken, or was not wanted."""
        known = {other.id: other for other in self._ledger.all()}
        found: dict[TaskId, Task] = {}
        for direct in self._before(task):
            line, ids = {direct.id}, [direct.id]
            while ids:
                new = [each for each in known[ids.pop()].spec.after if each in known and each not in line]
                line.update(new)
                ids.extend(new)
            found.update(
                (each, other) for each, other in known.items() if each in line
            )  # in the order of their creation
        return list(found.values())

    async def _with_others(self, task: Task, root: Path) -> str:
        """The user's files with the results of the tasks that come before, one after another."""
        base = task.base
        for other in self._all_before(task):
            merged = await self._workspace.merge(root, base, await accepted(self._workspace, other))
            if merged.conflicts:
                words = f"the result of task {other.id} does not go together with what comes before it: "
                raise Unprepared(Failure(AFTER_FAILED, words + ", ".join(_paths(merged.conflicts))))
            base = merged.commit
        return base

    async def _set_up(self, task: Task, run: Run, root: Path, folder: Path, base: str) -> str:
        """The commit that the folder holds when the project's command has run in it."""
        activity = Activity(ActivityKind.TOOL, "running the set-up")
        changed = ActivityChanged(at=self._ledger.clock.now(), turn=run.turn, activity=activity)
        await self._record.event(task.id, changed)
        check = Check(SETUP, task.spec.setup)
        result = await run.interruptible(lambda: self._checks.run(folder, check, run.environment))
        if not result.passed:
            printed = f":\n{result.tail.strip()[-TAIL:]}" if result.tail.strip() else ""
            words = (
                f"the project's set-up command failed ({task.spec.setup}; one that is mended counts for new tasks): "
                f"{told(result)}{printed}"
            )
            raise Unprepared(Failure(SETUP_FAILED, words))
        return (await self._collect(task, root, base)).result

    async def _bring_onto(self, task: Task, run: Run, root: Path, base: str) -> None:
        """Bring what the folder holds onto other files, with conflicts marked in it."""
        onto, notes = await self._target(task, root)
        own = await self._collect(task, root, base)
        merged = await self._workspace.merge(root, onto, own)
        await self._workspace.reset_folder(task.id, root, onto, merged.commit)
        marked = _paths(merged.conflicts)
        if marked:
            notes = (*notes, f"conflicts were marked for the worker in {', '.join(marked)}")
        now = self._ledger.clock.now()
        rebased = Rebased(at=now, turn=run.turn, base=onto, start=merged.commit, notes=notes, marked=marked)
        await self._record.event(task.id, rebased)

    async def _target(self, task: Task, root: Path) -> tuple[str, tuple[str, ...]]:
        """The commit to be brought onto, and what was left out of it."""
        if task.turn.onto != FILES:
            return (await accepted(self._workspace, self._ledger.get(TaskId(task.turn.onto)))).result, ()
        taken = await self._workspace.snapshot(root, await self._unsaved(root), task.spec.never_send)
        return taken.base, tuple(note for note in taken.notes if note not in task.notes)

    async def _collect(self, task: Task, root: Path, base: str) -> ChangeSet:
        return await self._record.stored(task.id, "the folder", lambda: self._workspace.collect(task.id, root, base))


def prompt_of(turn: Turn) -> str:
    """What the worker is sent: where its folder holds marks of conflicts, that comes first."""
    return f"{MARKED}{', '.join(turn.marked)}\n\n{turn.prompt}" if turn.marked else turn.prompt


def _is_new(task: Task) -> bool:
    """Whether its folder was never made ready."""
    return not any(turn.start for turn in task.turns)


def _paths(conflicts: Sequence[Conflict]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(conflict.path for conflict in conflicts))
