"""A delegated task: the fold of its events (see `lifecycle`)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from offload.domain.anchor import Anchor
from offload.domain.ask import ALWAYS, Ask, AskId, Closing
from offload.domain.budget import Budget
from offload.domain.check import CheckPlan
from offload.domain.ids import TaskId
from offload.domain.integration import Integration
from offload.domain.profile import Profile
from offload.domain.route import Route
from offload.domain.turn import Activity, Turn, TurnId

__all__ = ["LIVE", "RESTING", "Front", "Landing", "Phase", "Place", "Rejection", "Task", "TaskId", "TaskSpec"]


class Phase(enum.StrEnum):
    """What has happened to a task, never what was asked for."""

    QUEUED = "queued"  # waits for a free place
    STARTING = "starting"  # folder and session are being made; the worker has not been seen at work
    WORKING = "working"
    CHECKING = "checking"  # the worker is done; checks run over its result
    CANCELLING = "cancelling"  # a stop was asked for; the worker is not confirmed gone
    RECOVERING = "recovering"  # the hub or the worker went away; what is left is being looked for
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"  # the work was lost and cannot be resumed by itself


RESTING = frozenset({Phase.READY, Phase.FAILED, Phase.CANCELLED, Phase.INTERRUPTED})
LIVE = frozenset(Phase) - RESTING


class Place(enum.StrEnum):
    """Where an accepted change went."""

    BUFFER = "buffer"  # an editor's open document, not saved yet
    DISK = "disk"


class Front(enum.StrEnum):
    """Where a call came from."""

    EDITOR = "lsp"
    MODEL = "mcp"
    TERMINAL = "rpc"


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What was asked for at the start; never changes. `workspace` is an absolute folder; `title` is one short line.

    `buffers` holds the unsaved texts of attached editors at the start, by path relative to the workspace. `commands` are
    the shell commands that the worker may run without asking. `budget` holds the limits at the start. `key` is the caller's
    idempotency key, "" for none.

    `allowed_paths` are the patterns (see `scope`) that the result is held against, empty for all of the workspace;
    `paths_named` says that the caller gave them, not the recipe. `setup`,
    `plan` and `carry` are the project's trusted ones as they were at the start. `after` are tasks whose results this one
    begins from; `integrates` are those that this one makes one result of: it has no worker then. `warnings` are plain
    sentences that were told at the start.
    """

    workspace: str
    title: str
    brief: str
    prompt: str
    route: Route
    recipe: str
    anchor: Anchor | None = None
    commands: tuple[str, ...] = ()
    buffers: Mapping[str, str] = field(default_factory=dict)
    front: Front = Front.TERMINAL
    caller: str = ""
    key: str = ""
    profile: Profile = Profile.WORKSPACE_WRITE
    budget: Budget = Budget()
    allowed_paths: tuple[str, ...] = ()
    setup: str = ""
    plan: CheckPlan = CheckPlan()
    carry: tuple[str, ...] = ()
    never_send: tuple[str, ...] = ()
    after: tuple[TaskId, ...] = ()
    integrates: tuple[TaskId, ...] = ()
    warnings: tuple[str, ...] = ()
    paths_named: bool = False


@dataclass(frozen=True, slots=True)
class Landing:
    """One acceptance of a result into the user's files. `paths` are relative to the workspace; `wanted` and `wanted_hunks` are
    those that were asked for, empty for all, `wanted_outside` says whether those out of scope were, and `key` came with them; `unchanged` are those of `paths` that held the result
    before.

    `units` are the ids of the hunks and files that it brought and no standing one before it, `buffers` those of `paths` that went to an editor's buffer, the
    others went to disk; `removed` are those that are not there any more. `result` is the commit of what the user was given of this task so far, `earlier` of what he had been
    given until then. `before` and `after` are commits
    of the touched files alone, as they were and as they were left: what an undo needs, "" in records of a version without it.
    """

    turn: TurnId
    result: str
    paths: tuple[str, ...]
    at: float
    wanted: tuple[str, ...] = ()
    key: str = ""
    unchanged: tuple[str, ...] = ()
    id: str = ""
    units: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    wanted_hunks: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    wanted_outside: bool = False
    by: str = ""
    earlier: str = ""
    undone_at: float | None = None

    def place(self, path: str) -> Place:
        return Place.BUFFER if path in self.buffers else Place.DISK


@dataclass(frozen=True, slots=True)
class Rejection:
    """Parts of a result that a person does not want; `units` are ids of hunks and files, `reason` may be empty. `landings` is
    how many landings there were before it."""

    turn: TurnId
    units: tuple[str, ...]
    at: float
    reason: str = ""
    landings: int = 0


@dataclass(frozen=True, slots=True)
class Task:
    """`revision` counts the task's events; `base` is the snapshot's commit in the private repository, "" before it is taken. `plan` is what its
    result is checked by: that of the start, until somebody asks for the checks again. `given` is the commit of what the user was given of the
    result since its base and has not undone, "" for nothing. `integration` is that of a task that makes one result of several."""

    id: TaskId
    spec: TaskSpec
    phase: Phase
    revision: int
    created_at: float
    changed_at: float
    turns: tuple[Turn, ...]
    base: str = ""
    notes: tuple[str, ...] = ()
    activity: Activity | None = None
    asks: Mapping[AskId, Ask] = field(default_factory=dict)
    closings: tuple[Closing, ...] = ()
    stop_requested: bool = False
    landings: tuple[Landing, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    given: str = ""
    integration: Integration | None = None
    plan: CheckPlan = CheckPlan()
    closed: bool = False

    @property
    def turn(self) -> Turn:
        """The last turn: the one that runs, or that ran last."""
        return self.turns[-1]

    @property
    def asking(self) -> bool:
        """Whether it waits for a person's answer: the worker's ask, or whether a model may apply the result."""
        return bool(self.asks) and (self.phase is Phase.WORKING or self.phase in RESTING)

    def granted(self, ask: Ask) -> bool:
        """Whether somebody allowed the very same before, and said so for the whole task."""
        same = (ask.kind, ask.subject, ask.detail)
        return any(
            closing.choice == ALWAYS and (closing.ask.kind, closing.ask.subject, closing.ask.detail) == same
            for closing in self.closings
        )

    @property
    def live(self) -> bool:
        return self.phase in LIVE
