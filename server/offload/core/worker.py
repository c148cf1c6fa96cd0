"""The port `Worker`: what core asks of an agent, and what it is told of a turn.

Every method may raise an `OffloadError` of the kind that the port names; anything else that an adapter raises is a defect.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from offload.domain.ask import Answer, Ask, AskId, AskOutcome
from offload.domain.profile import Profile
from offload.domain.route import Route
from offload.domain.task import TaskId
from offload.domain.turn import Activity, Failure, Survivor, TurnId
from offload.domain.usage import Usage


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """`id` is "PROVIDER/MODEL"; prices are US dollars per million tokens, None when unknown."""

    id: str
    name: str
    variants: tuple[str, ...] = ()
    input_price: float | None = None
    output_price: float | None = None


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """One of a worker's own profiles ("build")."""

    name: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """`problem` is "" when the worker can be used, else a plain sentence that says what to do; `note` is what a person should
    know all the same, such as where code would be sent."""

    name: str
    version: str = ""
    agents: tuple[AgentInfo, ...] = ()
    models: tuple[ModelInfo, ...] = ()
    default_model: str = ""
    problem: str = ""
    profiles: tuple[Profile, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class TurnOrder:
    """One turn to be run. `session` is "" for a new one; `environment` is that of the caller, never stored.

    With `resume` the turn was begun before and left: it is met again if it is still there, and its prompt goes out only if it
    never did. `environment` is the hub's own then.
    """

    task: TaskId
    turn: TurnId
    title: str
    folder: Path
    prompt: str
    route: Route
    commands: tuple[str, ...]
    session: str
    environment: Mapping[str, str]
    resume: bool = False
    profile: Profile = Profile.WORKSPACE_WRITE


@dataclass(frozen=True, slots=True)
class Opened:
    session: str


@dataclass(frozen=True, slots=True)
class Seen:
    """The worker is at work on the prompt."""


@dataclass(frozen=True, slots=True)
class Doing:
    activity: Activity


@dataclass(frozen=True, slots=True)
class Said:
    """Another piece of the worker's text; shown while it runs, not recorded."""

    text: str


@dataclass(frozen=True, slots=True)
class Used:
    """`usage` is the whole turn's so far, `ran` what the worker reports of the route."""

    usage: Usage
    ran: Route


@dataclass(frozen=True, slots=True)
class AskOpened:
    ask: Ask


@dataclass(frozen=True, slots=True)
class AskOver:
    """The worker no longer waits for this ask (answered elsewhere, or withdrawn)."""

    ask: AskId
    outcome: AskOutcome


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a good turn. `doubt` is "" for a clean end, else the reason why a person should look. `claims` are the
    files, as absolute paths or relative to the folder, that the worker's own tools say they wrote."""

    text: str
    ran: Route
    usage: Usage
    doubt: str = ""
    claims: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a turn that went wrong."""

    failure: Failure
    text: str = ""


@dataclass(frozen=True, slots=True)
class Halted:
    """The last event after `stop`: the turn and its tools' processes are verified to be over. `text` is what the worker had said so far."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Lost:
    """The last event of a turn whose worker went away in the middle of it; what it had started is ended. `text` is what it had
    said so far. It is `sure` when what is stored was read after that, and the turn is not finished there."""

    reason: str
    text: str = ""
    sure: bool = False


@dataclass(frozen=True, slots=True)
class Alive:
    """The worker gave a sign of life that is nothing to tell of: a tool that prints, say. Every now and then is enough."""


@dataclass(frozen=True, slots=True)
class Unstopped:
    """The last event after `stop` when processes of the turn could not be ended. `text` is what the worker had said so far."""

    survivors: tuple[Survivor, ...]
    text: str = ""


Happening = Opened | Seen | Doing | Said | Used | AskOpened | AskOver | Alive
End = Finished | Failed | Halted | Lost | Unstopped
WorkerEvent = Happening | End


class WorkerTurn(Protocol):
    """A turn that runs."""

    def events(self) -> AsyncIterator[WorkerEvent]:
        """What happens, ending with exactly one `Finished`, `Failed`, `Halted`, `Lost` or `Unstopped`. To be iterated once."""
        ...

    async def answer(self, ask: AskId, answer: Answer) -> None:
        """Answer an open ask. Raises `UnknownAsk` when it is not open any more."""
        ...

    async def stop(self) -> None:
        """Abort the turn; `events` ends with `Halted` once the worker is verified idle and its tools' processes are gone, with
        `Unstopped` when some cannot be ended, or with what came first."""
        ...


class Worker(Protocol):
    """A kind of agent. Raises `WorkerMissing`, `WorkerBroken`, `UnknownAgent`, `UnknownModel`, `TurnLost`."""

    @property
    def name(self) -> str: ...

    @property
    def profiles(self) -> frozenset[Profile]:
        """Those that it can enforce; a task with another one is refused."""
        ...

    async def check(self, route: Route, environment: Mapping[str, str], session: str = "") -> None:
        """Raises what entering a turn with this route, in this session if it has one, would raise; for one that has to wait."""
        ...

    async def describe(self, environment: Mapping[str, str]) -> WorkerInfo:
        """What the worker offers; a missing or broken one is described by `problem`, not raised."""
        ...

    def turn(self, order: TurnOrder) -> AbstractAsyncContextManager[WorkerTurn]:
        """Run one turn. Agent and model are checked on entering; the prompt is sent, once, when the iteration of `events`
        goes on after `Opened`, so that the session is recorded by then. Leaving the context without an end detaches from
        the worker without stopping it."""
        ...

    async def release(self, session: str, environment: Mapping[str, str]) -> None:
        """The session is not needed any more."""
        ...

    async def clean(self, before: float, *, dry_run: bool) -> int:
        """Remove what its programs have left, unless it was used since `before` or is in use; gives its size in bytes."""
        ...

    async def adopt(self) -> None:
        """The hub has begun: what an earlier one left running is found again. Returns at once."""
        ...

    async def aclose(self) -> None:
        """The hub is ending: stop what was started."""
        ...
