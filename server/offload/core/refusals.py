"""What a task must be for what is asked of it; the errors say what stands in the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from offload.core.briefing import relative_path
from offload.core.idempotency import closing_of, told
from offload.domain.ask import Ask, AskId
from offload.domain.change import ChangeSet
from offload.domain.errors import InvalidRequest, UnknownAsk, WrongPhase
from offload.domain.review import Selection
from offload.domain.task import Task
from offload.domain.turn import TurnId

SHOWN = 10  # files that a refusal names


def must_rest(task: Task, what: str, *, closed_too: bool = False) -> None:
    """Raises `WrongPhase` for a task that is not over, or is closed; `what` is what was to be done to it."""
    if task.live:
        stands = "waits for an answer" if task.asking else f"is {task.phase}"
        raise WrongPhase(f"task {task.id} {stands}; it can be {what} when it is over: wait for it, or cancel it")
    if task.closed and not closed_too:
        raise WrongPhase(f"task {task.id} is closed and cannot be {what}; start a new one")


def open_ask(task: Task, ask_id: AskId) -> Ask:
    """The open ask of this id, or the only one for "". Raises `UnknownAsk`, which says how a closed one was closed."""
    if ask_id in task.asks:
        return task.asks[ask_id]
    if not ask_id and len(task.asks) == 1:
        return next(iter(task.asks.values()))
    closing = closing_of(task, ask_id)
    if closing is not None:
        raise UnknownAsk(f"{ask_id} of task {task.id} is closed: {told(closing)}")
    if not ask_id and not task.asks:
        raise UnknownAsk(f"task {task.id} asks nothing now")
    known = f"open are {', '.join(task.asks)}" if task.asks else "nothing is open"
    raise UnknownAsk(f"task {task.id} has no open ask {ask_id!r}; {known}")


def newest_changes(task: Task) -> tuple[TurnId, ChangeSet]:
    """The newest change set and its turn: each turn's holds everything since the task's base. Raises `WrongPhase`."""
    for turn in reversed(task.turns):
        if turn.changes is not None:
            return turn.id, turn.changes
    raise WrongPhase(f"task {task.id} has no changes yet; it is {task.phase}")


def selected(root: Path, changes: ChangeSet, selection: Selection) -> tuple[str, ...]:
    """The units that paths and ids name, in the order of the change set. Raises `InvalidRequest` for one that it does not have."""
    known = (*changes.units, *(file.id for file in changes.files))
    paths = frozenset(narrowed(root, changes, selection.paths))
    ids = frozenset(_whole(given, known) for given in selection.hunks)
    return tuple(
        unit for file in changes.files for unit in file.units if file.path in paths or file.id in ids or unit in ids
    )


def _whole(given: str, known: Sequence[str]) -> str:
    """The id of a hunk or file that is given, or that alone begins so. Raises `InvalidRequest`."""
    found = {each for each in known if each == given} or {each for each in known if given and each.startswith(given)}
    if not found:
        raise InvalidRequest(f"not in this result: {given}; get_changes gives the ids that are")
    if len(found) > 1:
        raise InvalidRequest(f"{len(found)} hunks or files of this result begin with {given!r}: give more of the id")
    return found.pop()


def narrowed(root: Path, changes: ChangeSet, paths: Sequence[str]) -> Sequence[str]:
    """`paths` relative to `root`. Raises `InvalidRequest` for one that was not changed."""
    wanted = [relative_path(root, path) for path in paths]
    missing = sorted(set(wanted) - {file.path for file in changes.files})
    if missing:
        named = [file.path for file in changes.files]
        more = f" and {len(named) - SHOWN} more" if len(named) > SHOWN else ""
        raise InvalidRequest(
            f"not changed by this task: {', '.join(missing)}; it changed {', '.join(named[:SHOWN]) or 'nothing'}{more}"
        )
    return wanted
