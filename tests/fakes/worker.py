"""A `Worker` in this process, for tests of core and for the worker contract: it plays a script instead of asking a model.

A script is an async function that is given the `Stage` of its turn; the one that is used by default reads the prompt, in which
every line that begins with `::` is one step:

    ::text WORDS           say WORDS (the last ones are the turn's final text)
    ::write PATH TEXT      write a file in the task folder
    ::claim PATH           say that a tool wrote a file, without doing it
    ::shell COMMAND        run one of the order's commands at once, ask for any other; the answer becomes the turn's text
    ::question WORDS       ask a question with the choices Red and Blue; the answer becomes the turn's text
    ::gate NAME            hold until the test opens `worker.gate(NAME)`
    ::fail WORDS           end the turn as failed

A prompt without a step gets the text "Hello from the fake model.". A turn that is left goes on by itself, and is met again under
the same session and turn id, as with a real worker; `aclose` ends what still plays.
"""

import asyncio
import contextlib
import difflib
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from offload.core.worker import (
    AgentInfo,
    AskOpened,
    AskOver,
    Doing,
    End,
    Failed,
    Finished,
    Halted,
    Lost,
    ModelInfo,
    Opened,
    Said,
    Seen,
    TurnOrder,
    Used,
    WorkerEvent,
    WorkerInfo,
)
from offload.domain.ask import ALLOW, DENY, Answer, Ask, AskId, AskKind, AskOutcome
from offload.domain.errors import OffloadError, UnknownAgent, UnknownAsk, UnknownModel
from offload.domain.profile import Profile
from offload.domain.route import Route
from offload.domain.turn import Activity, ActivityKind, Failure
from offload.domain.usage import Usage

STEP = re.compile(r"^[ \t]*::(\w+)[ \t]*(.*)$", re.MULTILINE)


@dataclass
class Gate:
    """Holds a turn: `reached` is set when one stands before it, `opened` lets it through."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)

    def open(self) -> None:
        self.opened.set()


class Stage:
    """What a script can do in its turn; nothing follows the end."""

    def __init__(self, worker: "FakeWorker", order: TurnOrder, session: str) -> None:
        self.worker = worker
        self.order = order
        self.session = session
        self.text = ""
        self.stop_asked = asyncio.Event()
        self.events: list[WorkerEvent] = []
        self.claims: list[str] = []
        self.over = False
        self._asks: dict[AskId, asyncio.Future[Answer]] = {}
        self._more = asyncio.Condition()
        self.ran = Route(
            worker.name, order.route.agent or "build", order.route.model or "fake/worker", order.route.variant
        )

    async def emit(self, event: WorkerEvent) -> None:
        """Any event at all, for scripts of rare turns."""
        async with self._more:
            if not self.over:
                self.events.append(event)
                self.over = isinstance(event, End)
                self._more.notify_all()

    async def seen(self) -> None:
        await self.emit(Seen())

    async def doing(self, label: str, tool: str = "bash") -> None:
        await self.emit(Doing(Activity(ActivityKind.TOOL, label, tool)))

    async def say(self, text: str) -> None:
        self.text = text
        await self.emit(Said(text))

    async def used(self, usage: Usage) -> None:
        await self.emit(Used(usage, self.ran))

    def write(self, path: str, text: str) -> None:
        target = self.order.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        self.claims.append(str(target))

    async def ask(self, subject: str, detail: str, choices: tuple[str, ...] = (ALLOW, DENY)) -> Answer:
        """Open an ask and wait for its answer; other choices than allow and deny make it a question."""
        kind = AskKind.PERMISSION if choices == (ALLOW, DENY) else AskKind.QUESTION
        ask = Ask(AskId(f"ask_{next(self.worker.numbers)}"), kind, subject, detail, choices)
        answered = self._asks[ask.id] = asyncio.get_running_loop().create_future()
        await self.emit(AskOpened(ask))
        return await answered

    async def withdraw(self, ask: AskId) -> None:
        """Close an ask as if somebody else had ended it; its script goes on as if it was denied."""
        self._asks.pop(ask).set_result(Answer(DENY))
        await self.emit(AskOver(ask, AskOutcome.WITHDRAWN))

    async def finish(self, text: str | None = None, doubt: str = "") -> None:
        usage = Usage(62, 5, 0, 40, 0, 0.000076)
        said = self.text if text is None else text
        await self.emit(Finished(said, self.ran, usage, doubt, tuple(self.claims)))

    async def fail(self, code: str, message: str) -> None:
        await self.emit(Failed(Failure(code, message), self.text))

    async def halt(self) -> None:
        await self.emit(Halted(self.text))

    async def lose(self, reason: str) -> None:
        """The worker goes away in the middle of the turn, and never comes back to it."""
        self.worker.silence(self)
        await self.emit(Lost(reason, self.text))

    def reply(self, ask: AskId, answer: Answer) -> None:
        waiting = self._asks.pop(ask, None)
        if waiting is None:
            raise UnknownAsk(f"{ask} is not open any more.")
        waiting.set_result(answer)

    async def from_the_start(self) -> AsyncIterator[WorkerEvent]:
        for index in itertools.count():
            async with self._more:
                while len(self.events) <= index:
                    await self._more.wait()
            event = self.events[index]
            if isinstance(event, AskOpened) and event.ask.id not in self._asks:
                continue  # Whoever comes later is not asked what was answered.
            yield event
            if isinstance(event, End):
                return


Script = Callable[[Stage], Awaitable[None]]


async def read_prompt(stage: Stage) -> None:
    """The script that is written in the prompt."""
    await stage.seen()
    steps = STEP.findall(stage.order.prompt) or [("text", "Hello from the fake model.")]
    for step, argument in steps:
        match step:
            case "text":
                await stage.say(argument)
            case "write":
                path, _, text = argument.partition(" ")
                await stage.doing(f"editing {path}", "write")
                stage.write(path, text)
            case "claim":
                stage.claims.append(argument)
            case "shell":
                await stage.doing(f"running {argument}")
                if argument not in stage.order.commands:
                    answer = await stage.ask("bash", argument)
                    stage.text = answer.message if answer.choice == DENY else argument
            case "question":
                stage.text = (await stage.ask("Colour", argument, ("Red", "Blue"))).choice
            case "gate":
                gate = stage.worker.gate(argument)
                gate.reached.set()
                await gate.opened.wait()
            case "fail":
                await stage.fail("scripted", argument)
            case _:
                raise AssertionError(f"the fake worker knows no step {step!r}")


class FakeTurn:
    def __init__(self, worker: "FakeWorker", order: TurnOrder, session: str) -> None:
        self._worker = worker
        self._order = order
        self._session = session
        self._stopped = False

    async def events(self) -> AsyncIterator[WorkerEvent]:
        """As with a real worker the prompt goes out when the iteration goes on after `Opened`."""
        yield Opened(self._session)
        if self._stopped:
            yield Halted()
            return
        stage = self._worker.play(self._order, self._session)
        async for event in stage.from_the_start():
            yield event

    async def answer(self, ask: AskId, answer: Answer) -> None:
        self._worker.play(self._order, self._session).reply(ask, answer)

    async def stop(self) -> None:
        if self._worker.plays(self._order, self._session):
            await self._worker.stop(self._worker.play(self._order, self._session))
        else:
            self._stopped = True


class FakeWorker:
    """`prompts` are those that were sent, by turn; `released` are the sessions that were given back; `stubborn` leaves what
    comes of a stop to the script, which waits for `stage.stop_asked`; `problem` makes the worker unusable."""

    def __init__(self, script: Script = read_prompt, *, name: str = "fake", info: WorkerInfo | None = None) -> None:
        self.script = script
        self.stubborn = False
        self.refuses: OffloadError | None = None
        self.prompts: dict[str, str] = {}
        self.orders: list[TurnOrder] = []
        self.released: list[str] = []
        self.cleaned: list[tuple[float, bool]] = []
        self.left_over = 0
        self.closed = False
        self.adopted = False
        self.numbers = itertools.count(1)
        self.info = info or WorkerInfo(
            name,
            "1.0",
            agents=(AgentInfo("build", "Writes code."),),
            models=(ModelInfo("fake/worker", "Worker", ("high", "low"), 1.0, 2.0), ModelInfo("fake/other", "Other")),
            default_model="fake/worker",
            profiles=(Profile.READ_ONLY, Profile.WORKSPACE_WRITE, Profile.FULL),
        )
        self.profiles = frozenset({Profile.READ_ONLY, Profile.WORKSPACE_WRITE, Profile.FULL})
        self._gates: dict[str, Gate] = {}
        self._stages: dict[tuple[str, str], Stage] = {}
        self._playing: dict[tuple[str, str], asyncio.Task[None]] = {}

    @property
    def name(self) -> str:
        return self.info.name

    def gate(self, name: str) -> Gate:
        """The gate of this name; made when a test or a script first speaks of it."""
        return self._gates.setdefault(name, Gate())

    def stage(self, turn: str) -> Stage:
        """The stage of a turn whose prompt was sent."""
        return next(stage for (_, id_), stage in self._stages.items() if id_ == turn)

    def plays(self, order: TurnOrder, session: str) -> bool:
        """Whether the turn's prompt was sent."""
        return (session, order.turn) in self._stages

    def silence(self, stage: Stage) -> None:
        """Nothing more comes of the turn's script."""
        self._playing[stage.session, stage.order.turn].cancel()

    async def over(self, turn: str) -> None:
        """Once the turn's script is at its end."""
        async for _ in self.stage(turn).from_the_start():
            pass

    def play(self, order: TurnOrder, session: str) -> Stage:
        """The turn's stage; the prompt is sent if that was not done before."""
        key = session, order.turn
        if key not in self._stages:
            self.prompts[order.turn] = order.prompt
            stage = self._stages[key] = Stage(self, order, session)
            self._playing[key] = asyncio.create_task(self._perform(stage))
        return self._stages[key]

    async def _perform(self, stage: Stage) -> None:
        await self.script(stage)
        await stage.finish()

    async def stop(self, stage: Stage) -> None:
        stage.stop_asked.set()
        if not self.stubborn:
            playing = self._playing[stage.session, stage.order.turn]
            playing.cancel()
            await asyncio.gather(playing, return_exceptions=True)
            await stage.halt()

    async def check(self, route: Route, environment: Mapping[str, str], session: str = "") -> None:
        if self.refuses:
            raise self.refuses
        agents = [agent.name for agent in self.info.agents]
        if route.agent and route.agent not in agents:
            raise UnknownAgent(f"{self.name} has no agent {route.agent!r}.{_near(route.agent, agents)}")
        models = [model.id for model in self.info.models]
        if route.model and route.model not in models:
            raise UnknownModel(f"{self.name} has no model {route.model!r}.{_near(route.model, models)}")

    async def describe(self, environment: Mapping[str, str]) -> WorkerInfo:
        return self.info

    @contextlib.asynccontextmanager
    async def turn(self, order: TurnOrder) -> AsyncIterator[FakeTurn]:
        await self.check(order.route, order.environment)
        self.orders.append(order)
        yield FakeTurn(self, order, order.session or f"session_{next(self.numbers)}")

    async def release(self, session: str, environment: Mapping[str, str]) -> None:
        self.released.append(session)

    async def clean(self, before: float, *, dry_run: bool) -> int:
        """`left_over` is what there is to be removed."""
        self.cleaned.append((before, dry_run))
        return self.left_over

    async def adopt(self) -> None:
        self.adopted = True

    async def aclose(self) -> None:
        self.closed = True
        for task in self._playing.values():
            task.cancel()
        await asyncio.gather(*self._playing.values(), return_exceptions=True)


def _near(wanted: str, known: list[str]) -> str:
    near = difflib.get_close_matches(wanted, known)
    return f" Near: {', '.join(near)}." if near else f" It has {', '.join(known)}."
