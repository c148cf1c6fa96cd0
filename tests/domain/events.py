"""One sample of every event, and a task in every phase, reached as a real one reaches it."""

from dataclasses import fields

from offload.domain import events as module
from offload.domain.ask import Ask, AskId, AskKind, AskOutcome
from offload.domain.change import ChangeSet, Conflict, FileChange, FileStatus
from offload.domain.check import Check, CheckPlan, CheckResult
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
from offload.domain.integration import Integration, LeftOut, Overlap
from offload.domain.lifecycle import fold
from offload.domain.route import Route
from offload.domain.task import Landing, Phase, Rejection, TaskId, TaskSpec
from offload.domain.turn import Activity, ActivityKind, Failure, Survivor, TurnId
from offload.domain.usage import Usage

TASK = TaskId("task")
FIRST, SECOND, STRANGE = TurnId("turn_1"), TurnId("turn_2"), TurnId("turn_9")
SPEC = TaskSpec("/w", "title", "brief", "prompt", Route("fake", model="fake/worker"), "instruction")
ASK = Ask(AskId("ask_1"), AskKind.PERMISSION, "bash", "ls", ("allow", "deny"))
CONSENT = Ask(AskId("ask_9"), AskKind.PERMISSION, "apply", "a.py", ("allow", "deny"))
CHANGES = ChangeSet("base", "result", (FileChange("a.py", FileStatus.MODIFIED, "100644", "100644", 3, 1),))

# Everything that an event says beside its time and its turn.
SAYS = {
    Created: {"spec": SPEC},
    Snapshotted: {"base": "base", "notes": ("left out: sub",)},
    Rebased: {"base": "onto", "start": "merged", "notes": ("marked: a.py",), "marked": ("a.py",)},
    Integrated: {
        "integration": Integration(
            order=(TASK,),
            overlaps=(Overlap(TASK, TaskId("other"), ("a.py",), hunks=True),),
            left_out=(LeftOut(TaskId("other"), (TASK,), (Conflict("a.py", "both sides changed it", "h1", 3),)),),
            culprits=(TASK,),
            probes=3,
            steps=("c" * 40,),
        )
    },
    Admitted: {},
    SessionOpened: {"session": "session_1"},
    TurnSeen: {},
    ActivityChanged: {"activity": Activity(ActivityKind.TOOL, "running the test suite", "bash")},
    UsageSeen: {"usage": Usage(10, 2), "ran": Route("fake", model="fake/worker")},
    Asked: {"ask": ASK},
    AskClosed: {"ask": ASK.id, "outcome": AskOutcome.ANSWERED, "choice": "allow"},
    TurnEnded: {"text": "done", "changes": CHANGES},
    CheckRequested: {"plan": CheckPlan(checks=(Check("pytest", "pytest -q"),))},
    ChecksEnded: {"results": (CheckResult("pytest", passed=True, seconds=1.5),)},
    TurnFailed: {"failure": Failure("turn_lost", "it went away"), "text": "so far", "changes": CHANGES},
    Stopped: {"text": "so far", "changes": CHANGES},
    StopIncomplete: {"survivors": (Survivor(4711, "sleep 600"),), "text": "so far", "changes": CHANGES},
    WorkLost: {"reason": "the hub ended"},
    CannotResume: {"reason": "the hub ended", "changes": CHANGES},
    Continued: {"turn": SECOND, "brief": "more", "prompt": "more", "route": Route("fake")},
    StopRequested: {},
    Landed: {"landing": Landing(FIRST, "result", ("a.py",), 9.0)},
    Undone: {"landing": "landing_1"},
    Rejected: {"rejection": Rejection(FIRST, ("h1",), 9.0, "not so")},
    ConsentAsked: {"ask": CONSENT},
    ConsentClosed: {"ask": CONSENT.id, "outcome": AskOutcome.ANSWERED, "choice": "allow"},
    Closed: {},
}

# Every kind of event that there is; nothing else names them all, so that a new one is forgotten nowhere.
EVENTS = tuple(
    each
    for each in vars(module).values()
    if isinstance(each, type) and issubclass(each, Event) and each not in (Event, TurnEvent)
)


def event(kind, *, at=50.0, **says):
    """An event of this kind; its turn, if it has one, is the first but for a follow-up."""
    has_turn = "turn" in {each.name for each in fields(kind)}
    says = {**({"turn": FIRST} if has_turn else {}), **SAYS[kind], **says}
    return kind(at=at, **says)


def events(*kinds):
    """Events of these kinds, one second after another."""
    return [event(kind, at=float(number)) for number, kind in enumerate(kinds, start=1)]


TO_STARTING = (Created, Snapshotted, Admitted)
TO_WORKING = (*TO_STARTING, SessionOpened, TurnSeen)

ROADS = {
    Phase.QUEUED: events(Created),
    Phase.STARTING: events(*TO_STARTING),
    Phase.WORKING: [*events(*TO_WORKING), event(ActivityChanged, at=6.0), event(Asked, at=7.0)],
    Phase.CHECKING: [*events(*TO_WORKING), event(TurnEnded, at=6.0, to_check=True)],
    Phase.CANCELLING: events(*TO_WORKING, Asked, StopRequested),
    Phase.RECOVERING: events(*TO_WORKING, WorkLost),
    Phase.READY: events(*TO_WORKING, TurnEnded),
    Phase.FAILED: events(*TO_WORKING, TurnFailed),
    Phase.CANCELLED: events(*TO_WORKING, StopRequested, Stopped),
    Phase.INTERRUPTED: events(*TO_WORKING, WorkLost, CannotResume),
}


def task_in(phase):
    return fold(TASK, ROADS[phase])
