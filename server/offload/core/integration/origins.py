"""The other tasks that one may begin from, or be brought onto."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from offload.core.ledger import Ledger
from offload.core.refusals import must_rest, newest_changes
from offload.core.turns.preparing import FILES
from offload.domain.errors import InvalidRequest, WrongPhase
from offload.domain.task import Phase, Task, TaskId


def whole_ids(ledger: Ledger, wanted: Sequence[TaskId]) -> tuple[TaskId, ...]:
    """The ids of the tasks that are named by those or their beginnings, each once. Raises `UnknownTask`."""
    return tuple({task.id: None for task in map(ledger.get, wanted)})


def must_be_begun_from(ledger: Ledger, root: Path, others: Sequence[TaskId]) -> None:
    """Raises `InvalidRequest` for a task of another workspace, `WrongPhase` for one that is over and has no result."""
    for other in map(ledger.get, others):
        _must_be_here(other, str(root))
        if not other.live and other.phase is not Phase.READY:
            raise WrongPhase(
                f"task {other.id} is {other.phase}, so there is no result to begin from; continue it first"
            )


def brought_onto(ledger: Ledger, task: Task, onto: str) -> str:
    """What a follow-up names to be brought onto: "", "files", or the whole id of a task. Raises `UnknownTask`, `InvalidRequest`,
    and `WrongPhase` for a task that is not over or has no result."""
    if onto in ("", FILES):
        return onto
    other = ledger.get(TaskId(onto))
    if other.id == task.id:
        raise InvalidRequest(
            f"task {task.id} cannot be brought onto its own result; say {FILES!r} for the user's files"
        )
    _must_be_here(other, task.spec.workspace)
    must_rest(other, "built upon", closed_too=True)
    newest_changes(other)
    return other.id


def _must_be_here(other: Task, workspace: str) -> None:
    if other.spec.workspace != workspace:
        raise InvalidRequest(
            f"task {other.id} is of another workspace, {other.spec.workspace}; name one of {workspace}"
        )
