"""The life of a task: its events, one table of transitions and one function, `advance`.

A task is the fold of its events and its revision is their count. An event that cannot happen in a phase raises
`IllegalTransition` and changes nothing. An event of a turn that has ended is stale: it counts, and changes nothing else.
The state diagram in docs/ARCHITECTURE.md is drawn from `TRANSITIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from offload.domain.ask import AskOutcome, Closing
from offload.domain.change import ChangeSet
from offload.domain.check import CheckResult
from offload.domain.errors import Defect
from offload.domain.events import (
    ActivityChanged,
    Admitted,
    AskClosed,
    Asked,
    CannotResume,
    CheckRequested,
    ChecksEnded,
    Closed,
    ConsentAsked,
    ConsentClosed,
    Continued,
    Created,
    Event,
    Integrated,
    Landed,
    Rebased,
    Rejected,
    SessionOpened,
    Snapshotted,
    StopIncomplete,
    Stopped,
    StopRequested,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnSeen,
    Undone,
    UsageSeen,
    WorkLost,
)
from offload.domain.task import RESTING, Landing, Phase, Task, TaskId
from offload.domain.turn import INTERRUPTED, STOP_INCOMPLETE, Failure, Survivor, Turn


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


_CONTINUE: Mapping[type[Event], Target] = {
    Continued: Phase.QUEUED,
    Landed: _stay,
    Undone: _stay,
    Rejected: _stay,
    ConsentAsked: _stay,
    ConsentClosed: _stay,
    Closed: _stay,
}
# What can happen to the files of a user after the task's own folder has gone.
_AFTER_CLOSING = (Landed, Undone, Rejected, ConsentAsked, ConsentClosed)

TRANSITIONS: Mapping[Phase, Mapping[type[Event], Target]] = {
    Phase.QUEUED: {
        Snapshotted: Phase.QUEUED,
        Admitted: Phase.STARTING,
        StopRequested: Phase.CANCELLED,
        TurnFailed: Phase.FAILED,
        WorkLost: Phase.RECOVERING,
    },
    Phase.STARTING: {
        ActivityChanged: Phase.STARTING,
        Rebased: Phase.STARTING,
        SessionOpened: Phase.STARTING,
        TurnSeen: _seen,
        StopRequested: Phase.CANCELLING,
        StopIncomplete: Phase.FAILED,
        TurnFailed: Phase.FAILED,
        WorkLost: Phase.RECOVERING,
    },
    Phase.WORKING: {
        Integrated: Phase.WORKING,
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
        ActivityChanged: Phase.CHECKING,
        Integrated: Phase.CHECKING,
        ChecksEnded: Phase.READY,
        StopRequested: Phase.CANCELLING,
        TurnFailed: Phase.FAILED,
    },
    # The worker may win the race, and so may the checks: what they say happened, happened.
    Phase.CANCELLING: {
        Rebased: Phase.CANCELLING,
        Integrated: Phase.CANCELLING,
        SessionOpened: Phase.CANCELLING,
        TurnSeen: Phase.CANCELLING,
        ActivityChanged: Phase.CANCELLING,
        UsageSeen: Phase.CANCELLING,
        Asked: Phase.CANCELLING,
        AskClosed: Phase.CANCELLING,
        StopRequested: Phase.CANCELLING,
        TurnEnded: Phase.READY,
        ChecksEnded: Phase.READY,
        Stopped: Phase.CANCELLED,
        StopIncomplete: Phase.FAILED,
        TurnFailed: Phase.FAILED,
        WorkLost: Phase.RECOVERING,
        CannotResume: Phase.CANCELLED,
    },
    Phase.RECOVERING: {
        Snapshotted: Phase.RECOVERING,
        ActivityChanged: Phase.RECOVERING,
        Rebased: Phase.RECOVERING,
        SessionOpened: Phase.RECOVERING,
        TurnSeen: _seen,
        StopRequested: Phase.CANCELLING,
        TurnEnded: _ended,
        Stopped: Phase.CANCELLED,
        StopIncomplete: Phase.FAILED,
        TurnFailed: Phase.FAILED,
        CannotResume: _cannot_resume,
    },
    Phase.READY: {**_CONTINUE, CheckRequested: Phase.CHECKING},
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
        plan=spec.plan,
    )


def advance(task: Task, event: Event) -> Task:
    """The task after `event`. Raises `IllegalTransition` and changes nothing if it cannot happen now."""
    counted = replace(task, revision=task.revision + 1)
    if isinstance(event, TurnEvent) and _is_stale(task, event):
        return counted
    target = TRANSITIONS[task.phase].get(type(event))
    too_late = task.closed and not isinstance(event, _AFTER_CLOSING)
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


def known_checks(task: Task, own: ChangeSet | None) -> tuple[CheckResult, ...]:
    """What the checks of the turn before say of the result of the last one, which changed `own`: as long as that is nothing, they
    hold."""
    if own is None or own.files or task.turn.start:
        return ()
    return task.turns[-2].checks


def _is_stale(task: Task, event: TurnEvent) -> bool:
    """The last turn of a live task goes on, even one that had ended and is being checked once more."""
    if task.live and event.turn == task.turn.id:
        return False
    return any(turn.id == event.turn and turn.ended_at is not None for turn in task.turns)


def _rest(task: Task, at: float) -> Task:
    """A turn that is over has no activity and no open asks, and a stop that was asked has been dealt with. One that is checked
    once more had its end before."""
    ended_at = at if task.turn.ended_at is None else task.turn.ended_at
    over = replace(task.turn, ended_at=ended_at, stopped=task.phase is Phase.CANCELLED)
    return replace(task, turns=(*task.turns[:-1], over), activity=None, asks={}, stop_requested=False)


def _apply(task: Task, event: Event) -> Task:  # noqa: PLR0912 - one case per event is the point of it
    """What an event says, written into the task; its phase is the table's business."""
    match event:
        case Snapshotted():
            return replace(task, base=event.base, notes=event.notes)
        case Rebased():
            moved = replace(task, base=event.base, notes=(*task.notes, *event.notes), given="")
            return _with_turn(moved, start=event.start, marked=event.marked)
        case Integrated():
            return replace(task, integration=event.integration)
        case Admitted():
            return _with_turn(task, started_at=event.at)
        case SessionOpened():
            return _with_turn(task, session=event.session)
        case ActivityChanged():
            return replace(task, activity=event.activity)
        case UsageSeen():
            return _with_turn(task, usage=event.usage, ran=event.ran or task.turn.ran)
        case Asked() | ConsentAsked():
            return replace(task, asks={**task.asks, event.ask.id: event.ask})
        case AskClosed() | ConsentClosed():
            return _close(task, event)
        case TurnEnded():
            return _with_turn(
                replace(task, activity=None, asks={}),
                text=event.text,
                changes=event.changes,
                own=event.own,
                ran=event.ran or task.turn.ran,
                usage=event.usage or task.turn.usage,
                needs_review=event.needs_review,
                claims=event.claims,
                checks=known_checks(task, event.own),
            )
        case CheckRequested():
            return _with_turn(replace(_withdrawn(task, event.at), plan=event.plan), checks=(), cause="")
        case ChecksEnded():
            return _checked(task, event)
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
                onto=event.onto,
                fix_round=event.fix_round,
            )
            return replace(_withdrawn(task, event.at), turns=(*task.turns, turn))
        case StopRequested():
            return replace(task, stop_requested=True)
        case Landed():
            given = event.landing.result if event.landing.id else task.given
            return replace(task, landings=(*task.landings, event.landing), given=given)
        case Undone():
            landings = tuple(_taken_back(each, event) for each in task.landings)
            return replace(task, landings=landings, given=event.given)
        case Rejected():
            return replace(task, rejections=(*task.rejections, event.rejection))
        case Closed():
            return replace(_withdrawn(task, event.at), closed=True)
        case _:  # TurnSeen: what was done before the worker came is over.
            return replace(task, activity=None)


def _survival(survivors: Iterable[Survivor]) -> str:
    named = ", ".join(f"{one.pid} ({one.command})" for one in survivors)
    return (
        f"it was stopped, but these processes of it could not be ended and may still write: {named}; end them by hand"
    )


def _checked(task: Task, event: ChecksEnded) -> Task:
    """A failing check is a reason to look, beside those that there were."""
    turn = task.turn
    return _with_turn(
        task,
        checks=event.results,
        changes=event.changes or turn.changes,
        own=event.own if event.changes is not None else turn.own,
        cause=event.cause,
    )


def _taken_back(landing: Landing, event: Undone) -> Landing:
    return replace(landing, undone_at=event.at) if landing.id == event.landing else landing


def _close(task: Task, event: AskClosed | ConsentClosed) -> Task:
    """An ask that is not open was closed before: the first one counts."""
    open_asks = dict(task.asks)
    ask = open_asks.pop(event.ask, None)
    if ask is None:
        return task
    closing = Closing(ask, event.outcome, event.at, event.choice, event.message, event.by, event.key)
    return replace(task, asks=open_asks, closings=(*task.closings, closing))


def _withdrawn(task: Task, at: float) -> Task:
    """What a model asks about the result of a task that is over is not asked about another one."""
    closings = (Closing(ask, AskOutcome.WITHDRAWN, at) for ask in task.asks.values())
    return replace(task, asks={}, closings=(*task.closings, *closings))


def _with_turn(task: Task, **changes: Any) -> Task:
    return replace(task, turns=(*task.turns[:-1], replace(task.turn, **changes)))
