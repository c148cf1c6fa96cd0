"""One exchange with a worker: a brief, what happened, and how it ended. A turn is final; a task goes on."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NewType

from offload.domain.budget import Budget
from offload.domain.change import ChangeSet
from offload.domain.check import Checked, CheckResult, checked, told
from offload.domain.route import Route
from offload.domain.usage import Usage

TurnId = NewType("TurnId", str)  # "turn_" + 12 hex digits of time + 14 letters or digits: sorts by time

INTERRUPTED = "interrupted"  # the code of a failure: the work was lost and could not be resumed

STOP_INCOMPLETE = "stop_incomplete"  # the code of a failure: the turn or a process of it goes on after a stop


class ActivityKind(enum.StrEnum):
    THINKING = "thinking"
    WRITING = "writing"  # text of the answer is arriving
    TOOL = "tool"
    RETRYING = "retrying"  # the provider refused; `until` is the next try
    STALLED = "stalled"  # no sign of life; `since` is the last one


@dataclass(frozen=True, slots=True)
class Activity:
    """What the worker is doing now. `label` is plain English ("running the test suite"); `tool` is the worker's own name
    of the tool; times are seconds since the epoch."""

    kind: ActivityKind
    label: str = ""
    tool: str = ""
    until: float | None = None
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed: `code` is a word of the error tree or of the worker, `message` one plain sentence."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Survivor:
    """A process of a turn's tools that could not be ended; `command` is its command line, shortened."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class Turn:
    """`brief` is what the caller wrote, `prompt` what the worker is sent; `asked` is the route that was wanted, `ran` the
    one that the worker reported; `text` is the worker's final words; `needs_review` says why a clean end is in doubt;
    `stopped` is true when it ended because somebody asked for it.

    `changes` is all since the task's base, which is what can be applied; `own` what this turn changed, None when that is the
    same. `budget` is the task's from this turn on; `worked_s` counts no waiting for a person; `key` is that of the follow-up.

    `claims` are the files that the worker's own tools say they wrote. `fix_round` counts the turns in a row, up to this one,
    that failing checks began by themselves; `cause` is what was found out about why checks fail. `onto` says what the folder is brought onto before the worker begins ("files" for
    the user's files as they are then, or the id of a task), "" for nothing; `start` is the commit of the folder as it was then,
    "" where that is the result of the turn before; `marked` are the files that held marks of conflicts then.
    """

    id: TurnId
    brief: str
    prompt: str
    asked: Route
    queued_at: float
    started_at: float | None = None
    ended_at: float | None = None
    session: str = ""
    ran: Route | None = None
    usage: Usage = Usage()
    text: str = ""
    changes: ChangeSet | None = None
    failure: Failure | None = None
    needs_review: str = ""
    checks: tuple[CheckResult, ...] = ()
    stopped: bool = False
    own: ChangeSet | None = None
    budget: Budget = Budget()
    worked_s: float = 0.0
    key: str = ""
    claims: tuple[str, ...] = ()
    fix_round: int = 0
    onto: str = ""
    start: str = ""
    marked: tuple[str, ...] = ()
    cause: str = ""

    @property
    def own_changes(self) -> ChangeSet | None:
        return self.changes if self.own is None else self.own

    @property
    def checked(self) -> Checked:
        return checked(self.checks)

    @property
    def doubts(self) -> str:
        """Why a person should look at a result that ended well: what was found when it ended, and checks that fail."""
        failing = [told(result) for result in self.checks if not result.passed]
        return "; ".join(filter(None, (self.needs_review, *failing, self.cause)))
