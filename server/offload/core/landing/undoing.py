"""Which apply is to be undone, and what to say of one that cannot be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from offload.domain.errors import ApplyRefused, NothingToUndo
from offload.domain.review import standing
from offload.domain.task import Landing, Task


def to_be_undone(task: Task, apply_id: str) -> Landing:
    """The landing of this id; for "" the last that stands and brought something, because one that found all of it there already
    would be taken back without a change. Raises `NothingToUndo`."""
    stand = standing(task)
    named = [landing for landing in task.landings if apply_id and landing.id == apply_id]
    if apply_id and not named:
        known = ", ".join(landing.id for landing in stand if landing.id) or "none"
        raise NothingToUndo(f"task {task.id} has no apply {apply_id!r}; those that can be undone: {known}")
    if not apply_id and not stand:
        raise NothingToUndo(f"no apply of task {task.id} stands")
    landing = named[0] if named else next(filter(_brought, reversed(stand)), stand[-1])
    if landing.undone_at is not None:
        raise NothingToUndo(f"{apply_id} of task {task.id} was undone before")
    if not landing.id:
        raise NothingToUndo(
            f"task {task.id} was applied by an earlier version of offload, which kept nothing to undo it with"
        )
    return landing


def _brought(landing: Landing) -> bool:
    """Whether it wrote something or decided on a part of the result. A record of a version that kept no id tells neither."""
    return not landing.id or bool(landing.units) or not set(landing.paths) <= set(landing.unchanged)


def cannot_go_back(task: Task, landing: Landing, tasks: Iterable[Task], refusal: ApplyRefused) -> ApplyRefused:
    """The refusal of an undo. A conflict is with what was changed since: there is nothing to send to a worker, but later applies
    of the same files may have to go first."""
    if not refusal.conflicts:
        return refusal
    since = {
        each.path: f"was {'changed' if each.first_line else 'changed, deleted or renamed'} since it was applied"
        for each in refusal.conflicts
    }
    reasons = tuple((path, since.get(path, why)) for path, why in refusal.reasons)
    # The hunks of the way back are none of the task's, so that nobody could name them.
    conflicts = tuple(replace(each, reason=since[each.path], unit="") for each in refusal.conflicts)
    told = "; ".join(f"{path}: {why}" for path, why in reasons)
    later = ", ".join(_later(task, landing, tasks, {str(Path(task.spec.workspace, path)) for path in since}))
    way_out = f"Undo first what was applied to it later: {later}" if later else "Put it as it was then, and undo again"
    return ApplyRefused(f"Nothing was taken back. {told}. {way_out}.", reasons, conflicts)


def _later(task: Task, landing: Landing, tasks: Iterable[Task], paths: set[str]) -> list[str]:
    """The applies after this one that stand and have touched one of these paths, the last one first."""
    found = [
        (each.at, f"{each.id} of task {other.id}")
        for other in tasks
        for place, each in enumerate(other.landings)
        if each.undone_at is None
        and paths & _touched(other, each)
        and (place > task.landings.index(landing) if other.id == task.id else each.at >= landing.at)
    ]
    return [told for _, told in sorted(found, key=lambda one: one[0], reverse=True)]


def _touched(task: Task, landing: Landing) -> set[str]:
    """Where a landing has changed files, and where those that it renamed were."""
    changed = set(landing.paths).difference(landing.unchanged)
    before = {
        file.old_path
        for turn in task.turns
        if turn.id == landing.turn and turn.changes is not None
        for file in turn.changes.files
        if file.old_path and file.path in changed
    }
    return {str(Path(task.spec.workspace, path)) for path in changed | before}
