"""A delegated task: the fold of its events (see `lifecycle`)."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NewType

from offload.domain.anchor import Anchor
from offload.domain.ask import ALWAYS, Ask, AskId, Closing
from offload.domain.budget import Budget
from offload.domain.profile import Profile
from offload.domain.route import Route
from offload.domain.turn import Activity, Turn, TurnId

TaskId = NewType("TaskId", str)


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


class Front(enum.StrEnum):
    """Where a call came from."""

    EDITOR = "lsp"
    MODEL = "mcp"
    TERMINAL = "rpc"


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What was asked for at the start; never changes. `workspace` is an absolute folder; `title` is one short line.

    `buffers` holds the unsaved texts of attached editors at the start, by path relative to the workspace. `commands` are
    the shell commands that the worker may run without asking. `budget` holds the limits at the start. `key` is the caller's idempotency key, "" for none.
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


@dataclass(frozen=True, slots=True)
class Landing:
    """One acceptance of a result into the user's files. `paths` are relative to the workspace; `wanted` are those that were
    asked for, empty for all, and `key` came with them; `unchanged` are those of `paths` that held the result before."""

    turn: TurnId
    result: str
    paths: tuple[str, ...]
    at: float
    wanted: tuple[str, ...] = ()
    key: str = ""
    unchanged: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """`revision` counts the task's events; `base` is the snapshot's commit in the private repository, "" before it is taken."""

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
    closed: bool = False

    @property
    def turn(self) -> Turn:
        """The last turn: the one that runs, or that ran last."""
        return self.turns[-1]

    @property
    def asking(self) -> bool:
        """Whether it waits for a person's answer."""
        return self.phase is Phase.WORKING and bool(self.asks)

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
