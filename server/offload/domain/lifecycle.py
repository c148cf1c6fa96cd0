"""The life of a task: its events, one table of transitions and one function, `advance`.

A task is the fold of its events and its revision is their count. An event that cannot happen in a phase raises
`IllegalTransition` and changes nothing. An event of a turn that has ended is stale: it counts, and changes nothing else.
The state diagram in docs/ARCHITECTURE.md is drawn from `TRANSITIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from offload.domain.ask import Ask, AskId, AskOutcome, Closing
from offload.domain.budget import Budget
from offload.domain.change import ChangeSet
from offload.domain.check import CheckResult
from offload.domain.errors import Defect
from offload.domain.route import Route
from offload.domain.task import RESTING, Landing, Phase, Task, TaskId, TaskSpec
from offload.domain.turn import INTERRUPTED, STOP_INCOMPLETE, Activity, Failure, Survivor, Turn, TurnId
from offload.domain.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened; `at` is seconds since the epoch by the hub's clock."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEvent(Event):
    """What happened in one turn; `worked_s` is what it has worked by then, None when nobody counted."""

    turn: TurnId
    worked_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Created(TurnEvent):
    """The first event of a task: everything that is needed to do it."""

    spec: TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshotted(TurnEvent):
    """The user's files were recorded as commit `base`; `notes` says what was left out."""

    base: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted(TurnEvent):
    """A place is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened(TurnEvent):
    """The worker gave a session; recorded before the prompt goes out, so that a restart can look for it."""

    session: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSeen(TurnEvent):
    """The worker was seen at work on this turn's prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityChanged(TurnEvent):
    activity: Activity


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSeen(TurnEvent):
    """`usage` is the whole turn's so far."""

    usage: Usage
    ran: Route | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(TurnEvent):
    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class AskClosed(TurnEvent):
    """`by` is who answered; `key` is that caller's own."""

    ask: AskId
    outcome: AskOutcome
    choice: str = ""
    message: str = ""
    by: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnded(TurnEvent):
    """The worker finished and its changes were read from git: `changes` since the task's base, `own` since the turn began,
    None when that is the same. `to_check` says whether checks follow."""

    text: str
    changes: ChangeSet
    ran: Route | None = None
    usage: Usage | None = None
    needs_review: str = ""
    to_check: bool = False
    own: ChangeSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksEnded(TurnEvent):
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFailed(TurnEvent):
    """The turn is over without a result; what it changed so far, if that could be read, is kept."""

    failure: Failure
    text: str = ""
    changes: ChangeSet | None = None
    own: ChangeSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped(TurnEvent):
    """The worker is confirmed gone after a stop."""

    text: str = ""
    changes: ChangeSet | None = None
    own: ChangeSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StopIncomplete(TurnEvent):
    """The turn was stopped, but some of its processes could not be ended and may still write."""

    survivors: tuple[Survivor, ...]
    text: str = ""
    changes: ChangeSet | None = None
    own: ChangeSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLost(TurnEvent):
    """The hub or the worker went away while the turn ran. What is asked and done is unknown until the worker is met again."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CannotResume(TurnEvent):
    """Nobody works on the turn any more; what it said and changed so far is kept."""

    reason: str
    text: str = ""
    changes: ChangeSet | None = None
    own: ChangeSet | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued(Event):
    """A follow-up: a new turn in the worker's session, from where the last one left the folder. `budget` holds the limits
    that are new, `key` is the caller's own."""

    turn: TurnId
    brief: str
    prompt: str
    route: Route
    budget: Budget = Budget()
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(Event):
    """Somebody asked to stop. Nothing has stopped yet, unless the task was only queued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed(Event):
    landing: Landing


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Event):
    """The worker's session and the task folder are released; what the task changed can still be read and landed."""


class IllegalTransition(Defect):
    """The event cannot happen to a task in this phase; nothing was changed."""

    def __init__(self, phase: Phase | None, event: Event) -> None:
        super().__init__(f"{type(event).__name__} cannot happen to a task that is {phase or 'not there'}")
        self.phase = phase
        self.event = event


Target = Phase | Callable[[Task, Any], Phase]


def _seen(task: Task, _: TurnSeen) -> Phase:
    return Phase.CANCELLING if task.stop_requested else Phase.WORKING


def _ended(task: Task, event: TurnEnded) -> Phase:
    """No checks follow when a stop was asked for: the worker was first, and that is all."""
    return Phase.CHECKING if event.to_check and not task.stop_requested else Phase.READY


def _cannot_resume(task: Task, _: CannotResume) -> Phase:
    return Phase.CANCELLED if task.stop_requested else Phase.INTERRUPTED


def _stay(task: Task, _: Event) -> Phase:
    return task.phase


_CONTINUE: Mapping[type[Event], Target] = {Continued: Phase.QUEUED, Landed: _stay, Closed: _stay}

TRANSITIONS: Mapping[Phase, Mapping[type[Event], Target]] = {
    Phase.QUEUED: {
        Snapshotted: Phase.QUEUED,
        Admitted: Phase.STARTING,
        StopRequested: Phase.CANCELLED,
        TurnFailed: Phase.FAILED,
        WorkLost: Phase.RECOVERING,
    },
    Phase.STARTING: {
        SessionOpened: Phase.STARTING,
        TurnSeen: _seen,
        StopRequested: Phase.CANCELLING,
        StopIncomplete: Phase.FAILED,
        TurnFailed: Phase.FAILED,
        WorkLost: Phase.RECOVERING,
    },
    Phase.WORKING: {
        ActivityChanged: Phase.WORKING,
        UsageSeen: Phase.WORKING,
        Asked: Phase.WORKING,
        AskClosed: Phase.WORKING,
        TurnEnded: _ended,
        StopRequested: Phase.CANCELLING,
        StopIncomplete: Phase.FAILED,
        TurnFailed: Phase.FAILED,
        WorkLost: Phase.RECOVERING,
    },
    Phase.CHECKING: {
        ChecksEnded: Phase.READY,
        StopRequested: Phase.CANCELLING,
        TurnFailed: Phase.FAILED,
        WorkLost: Phase.RECOVERING,
    },
    # The worker may win the race: what it says happened, happened.
    Phase.CANCELLING: {
        SessionOpened: Phase.CANCELLING,
        TurnSeen: Phase.CANCELLING,
        ActivityChanged: Phase.CANCELLING,
        UsageSeen: Phase.CANCELLING,
        Asked: Phase.CANCELLING,
        AskClosed: Phase.CANCELLING,
        StopRequested: Phase.CANCELLING,
        TurnEnded: Phase.READY,
        Stopped: Phase.CANCELLED,
        StopIncomplete: Phase.FAILED,
        TurnFailed: Phase.FAILED,
        WorkLost: Phase.RECOVERING,
        CannotResume: Phase.CANCELLED,
    },
    Phase.RECOVERING: {
        Snapshotted: Phase.RECOVERING,
        SessionOpened: Phase.RECOVERING,
        TurnSeen: _seen,
        StopRequested: Phase.CANCELLING,
        TurnEnded: _ended,
        Stopped: Phase.CANCELLED,
        StopIncomplete: Phase.FAILED,
        TurnFailed: Phase.FAILED,
        CannotResume: _cannot_resume,
    },
    Phase.READY: _CONTINUE,
    Phase.FAILED: _CONTINUE,
    Phase.CANCELLED: _CONTINUE,
    Phase.INTERRUPTED: _CONTINUE,
}


def begin(task_id: TaskId, event: Event) -> Task:
    """The task that its first event makes."""
    if not isinstance(event, Created):
        raise IllegalTransition(None, event)
    spec = event.spec
    turn = Turn(event.turn, spec.brief, spec.prompt, spec.route, queued_at=event.at, budget=spec.budget)
    return Task(
        id=task_id,
        spec=spec,
        phase=Phase.QUEUED,
        revision=1,
        created_at=event.at,
        changed_at=event.at,
        turns=(turn,),
    )


def advance(task: Task, event: Event) -> Task:
    """The task after `event`. Raises `IllegalTransition` and changes nothing if it cannot happen now."""
    counted = replace(task, revision=task.revision + 1)
    if isinstance(event, TurnEvent) and _is_stale(task, event):
        return counted
    target = TRANSITIONS[task.phase].get(type(event))
    too_late = task.closed and not isinstance(event, Landed)
    if target is None or too_late or (isinstance(event, TurnEvent) and event.turn != task.turn.id):
        raise IllegalTransition(task.phase, event)
    phase = target if isinstance(target, Phase) else target(task, event)
    moved = replace(_apply(counted, event), phase=phase, changed_at=event.at)
    if isinstance(event, TurnEvent) and event.worked_s is not None:
        moved = _with_turn(moved, worked_s=event.worked_s)
    if phase in RESTING and task.phase not in RESTING:
        moved = _rest(moved, event.at)
    return moved


def fold(task_id: TaskId, events: Iterable[Event]) -> Task:
    """The task that `events`, in order, make; the first one must be `Created`."""
    remaining = iter(events)
    task = begin(task_id, next(remaining))
    for event in remaining:
        task = advance(task, event)
    return task


def _is_stale(task: Task, event: TurnEvent) -> bool:
    return any(turn.id == event.turn and turn.ended_at is not None for turn in task.turns)


def _rest(task: Task, at: float) -> Task:
    """A turn that is over has no activity and no open asks, and a stop that was asked has been dealt with."""
    over = replace(task.turn, ended_at=at, stopped=task.phase is Phase.CANCELLED)
    return replace(task, turns=(*task.turns[:-1], over), activity=None, asks={}, stop_requested=False)


def _apply(task: Task, event: Event) -> Task:  # noqa: PLR0912 - one case per event is the point of it
    """What an event says, written into the task; its phase is the table's business."""
    match event:
        case Snapshotted():
            return replace(task, base=event.base, notes=event.notes)
        case Admitted():
            return _with_turn(task, started_at=event.at)
        case SessionOpened():
            return _with_turn(task, session=event.session)
        case ActivityChanged():
            return replace(task, activity=event.activity)
        case UsageSeen():
            return _with_turn(task, usage=event.usage, ran=event.ran or task.turn.ran)
        case Asked():
            return replace(task, asks={**task.asks, event.ask.id: event.ask})
        case AskClosed():
            return _close(task, event)
        case TurnEnded():
            return _with_turn(
                task,
                text=event.text,
                changes=event.changes,
                own=event.own,
                ran=event.ran or task.turn.ran,
                usage=event.usage or task.turn.usage,
                needs_review=event.needs_review,
            )
        case ChecksEnded():
            return _with_turn(task, checks=event.results)
        case TurnFailed():
            return _with_turn(task, failure=event.failure, text=event.text, changes=event.changes, own=event.own)
        case Stopped():
            return _with_turn(task, text=event.text, changes=event.changes, own=event.own)
        case StopIncomplete():
            failure = Failure(STOP_INCOMPLETE, _survival(event.survivors))
            return _with_turn(task, failure=failure, text=event.text, changes=event.changes, own=event.own)
        case CannotResume():
            failure = Failure(code=INTERRUPTED, message=event.reason)
            return _with_turn(task, failure=failure, text=event.text, changes=event.changes, own=event.own)
        case WorkLost():
            return replace(task, activity=None, asks={})
        case Continued():
            session = task.turn.session
            turn = Turn(
                id=event.turn,
                brief=event.brief,
                prompt=event.prompt,
                asked=event.route,
                queued_at=event.at,
                session=session,
                budget=event.budget.over(task.turn.budget),
                key=event.key,
            )
            return replace(task, turns=(*task.turns, turn))
        case StopRequested():
            return replace(task, stop_requested=True)
        case Landed():
            return replace(task, landings=(*task.landings, event.landing))
        case Closed():
            return replace(task, closed=True)
        case _:  # TurnSeen says only that the phase changed.
            return task


def _survival(survivors: Iterable[Survivor]) -> str:
    named = ", ".join(f"{one.pid} ({one.command})" for one in survivors)
    return (
        f"it was stopped, but these processes of it could not be ended and may still write: {named}; end them by hand"
    )


def _close(task: Task, event: AskClosed) -> Task:
    """An ask that is not open was closed before: the first one counts."""
    open_asks = dict(task.asks)
    ask = open_asks.pop(event.ask, None)
    if ask is None:
        return task
    closing = Closing(ask, event.outcome, event.at, event.choice, event.message, event.by, event.key)
    return replace(task, asks=open_asks, closings=(*task.closings, closing))


def _with_turn(task: Task, **changes: Any) -> Task:
    return replace(task, turns=(*task.turns[:-1], replace(task.turn, **changes)))
