"""What a task's folder holds, measured by git: all since the task's base, and what its last turn did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from offload.core.ports import Workspace
from offload.domain.change import ChangeSet
from offload.domain.task import Task


@dataclass(frozen=True, slots=True)
class Collected:
    """`changes` are all since the task's base, `own` those of the last turn where something was there before it, else None;
    `marked` are the files in which conflicts were marked for that turn or an earlier one, and still are."""

    changes: ChangeSet
    own: ChangeSet | None = None
    marked: tuple[str, ...] = ()


async def collected(workspace: Workspace, task: Task) -> Collected:
    """Raises `GitFailed`, `StorageFailed`."""
    root = Path(task.spec.workspace)
    changes = await workspace.collect(task.id, root, task.base)
    start = _start(task)
    own = None if start == task.base else await workspace.between(root, start, changes.result)
    return Collected(changes, own, await still_marked(workspace, task, changes))


async def still_marked(workspace: Workspace, task: Task, changes: ChangeSet) -> tuple[str, ...]:
    """The files in which conflicts were marked for a worker of the task, and still are in the result of `changes`."""
    root = Path(task.spec.workspace)
    given = dict.fromkeys(path for turn in task.turns for path in turn.marked)
    return tuple([path for path in given if _is_marked(await workspace.read(root, changes.result, path))])


async def put_back(workspace: Workspace, task: Task, changes: ChangeSet) -> None:
    """Let the folder hold the result of `changes`, if it does not: what a check leaves there is no part of it."""
    root = Path(task.spec.workspace)
    now = await workspace.collect(task.id, root, changes.base)
    if (await workspace.between(root, changes.result, now.result)).files:
        await workspace.reset_folder(task.id, root, changes.base, changes.result)


def _is_marked(content: bytes | None) -> bool:
    return any(line.startswith(b"<" * 7) for line in (content or b"").splitlines())


def _start(task: Task) -> str:
    """The commit that the folder held when the last turn began."""
    if task.turn.start:
        return task.turn.start
    for turn in reversed(task.turns[:-1]):
        if turn.changes is not None or turn.start:
            return turn.start if turn.changes is None else turn.changes.result
    return task.base
