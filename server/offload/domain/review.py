"""What has become of each part of a result: derived from what was applied, undone and rejected, never stored."""

from __future__ import annotations

import enum
from collections.abc import Container
from dataclasses import dataclass

from offload.domain.change import ChangeSet, FileChange
from offload.domain.scope import in_scope
from offload.domain.task import Landing, Task
from offload.domain.turn import Turn


class ReviewState(enum.StrEnum):
    PENDING = "pending"
    APPLIED = "applied"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Selection:
    """What of a change set is meant: `paths` names whole files, `hunks` holds ids of hunks or files; nothing at all means all
    that is pending and in the task's scope. `include_outside` adds what is out of its scope."""

    paths: tuple[str, ...] = ()
    hunks: tuple[str, ...] = ()
    include_outside: bool = False

    @property
    def everything(self) -> bool:
        return not self.paths and not self.hunks


def review(task: Task) -> dict[str, ReviewState]:
    """The state of every unit that was ever applied or rejected; all others are pending. What came last counts."""
    states: dict[str, ReviewState] = {}
    for place in range(len(task.landings) + 1):
        for rejection in task.rejections:
            if rejection.landings == place:
                states.update(dict.fromkeys(rejection.units, ReviewState.REJECTED))
        for landing in task.landings[place : place + 1]:
            if landing.undone_at is None:
                states.update(dict.fromkeys(landing.units, ReviewState.APPLIED))
    return states


def standing(task: Task) -> tuple[Landing, ...]:
    """The landings that were not undone, oldest first."""
    return tuple(landing for landing in task.landings if landing.undone_at is None)


def outside(task: Task, changes: ChangeSet) -> tuple[FileChange, ...]:
    """The changed files that the task was not allowed to change. A renamed one must be in scope on both sides."""
    allowed = task.spec.allowed_paths
    return tuple(
        file
        for file in changes.files
        if not in_scope(file.path, allowed) or (file.old_path and not in_scope(file.old_path, allowed))
    )


def pending(changes: ChangeSet, states: Container[str]) -> tuple[str, ...]:
    """The units that are not among `states`."""
    return tuple(unit for unit in changes.units if unit not in states)


def claimed_only(turn: Turn, changes: ChangeSet) -> tuple[str, ...]:
    """The files that the worker says it wrote in `turn`, and that git shows no change of."""
    changed = {path for file in changes.files for path in (file.path, file.old_path)}
    return tuple(path for path in turn.claims if path not in changed)
