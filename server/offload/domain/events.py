"""What can happen to a task; the journal keeps these, and `lifecycle` says what may follow what."""

from __future__ import annotations

from dataclasses import dataclass

from offload.domain.ask import Ask, AskId, AskOutcome
from offload.domain.budget import Budget
from offload.domain.change import ChangeSet
from offload.domain.check import CheckPlan, CheckResult
from offload.domain.integration import Integration
from offload.domain.route import Route
from offload.domain.task import Landing, Rejection, TaskSpec
from offload.domain.turn import Activity, Failure, Survivor, TurnId
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
class Rebased(TurnEvent):
    """The task folder was brought onto another commit before the worker began: `base` is what its changes are measured against
    from now on, `start` what the folder held then. `notes` says what a person should know of it; `marked` are the files in which
    conflicts are marked for the worker."""

    base: str
    start: str
    notes: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrated(TurnEvent):
    """What was made of several results, as far as it is known."""

    integration: Integration


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
    None when that is the same. `to_check` says whether checks follow; `claims` are the files that the worker says it wrote."""

    text: str
    changes: ChangeSet
    ran: Route | None = None
    usage: Usage | None = None
    needs_review: str = ""
    to_check: bool = False
    own: ChangeSet | None = None
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequested(Event):
    """Somebody asked for the checks of a ready result to be run, perhaps again, by `plan`."""

    plan: CheckPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksEnded(TurnEvent):
    """`changes` and `own` are those of the turn with what the formatter did, None when it changed nothing. `cause` is what was
    found out about why checks fail."""

    results: tuple[CheckResult, ...]
    changes: ChangeSet | None = None
    own: ChangeSet | None = None
    cause: str = ""


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
    that are new, `key` is the caller's own. `onto` says what the folder is brought onto first, `fix_round` counts the turns in a
    row that failing checks began."""

    turn: TurnId
    brief: str
    prompt: str
    route: Route
    budget: Budget = Budget()
    key: str = ""
    onto: str = ""
    fix_round: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(Event):
    """Somebody asked to stop. Nothing has stopped yet, unless the task was only queued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed(Event):
    landing: Landing


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone(Event):
    """The landing of this id was taken back; `given` is the commit of what the user has of the result then."""

    landing: str
    given: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(Event):
    rejection: Rejection


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentAsked(Event):
    """A model wants to apply the result, which needs a person's word."""

    ask: Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentClosed(Event):
    """That was answered, by `by`, or is not needed any more."""

    ask: AskId
    outcome: AskOutcome
    choice: str = ""
    message: str = ""
    by: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed(Event):
    """The worker's session and the task folder are released; what the task changed can still be read and landed."""
