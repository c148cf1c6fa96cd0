"""What core may rely on from any worker: the same tests on the fake that core is tested with and on the real OpenCode."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from offload.core.worker import AskOpened, Doing, Failed, Finished, Halted, Opened, Said, Seen
from offload.domain.ask import ALLOW, DENY, Answer, AskKind
from offload.domain.errors import UnknownAgent, UnknownAsk, UnknownModel
from offload.domain.route import Route
from tests.fakes.worker import FakeWorker
from tests.workers.conftest import BOUND_S, Bench, play

pytestmark = pytest.mark.asyncio(loop_scope="session")


def of(events, kind):
    return [event for event in events if isinstance(event, kind)]


@dataclass
class Subject:
    """A worker, and how the same thing is asked of its model."""

    bench: Bench
    worker: Any
    lines: dict[str, Any] = field(default_factory=dict)

    def order(self, *steps, **changes):
        return self.bench.order("\n".join(steps), **changes)

    def sent(self, order):
        """How often the model was given this prompt at the beginning of a turn."""
        return self.lines["sent"](order)


def tool(name, **arguments):
    return f"::tool {name} {json.dumps(arguments)}"


FAKE = {
    "text": lambda words: f"::text {words}",
    "write": lambda path, text: f"::write {path} {text}",
    "shell": lambda command: f"::shell {command}",
    "question": lambda words: f"::question {words}",
    "echo": lambda: "",
    "gate": lambda name: f"::gate {name}",
}
REAL = {
    "text": FAKE["text"],
    "write": lambda path, text: tool("write", filePath=path, content=text),
    "shell": lambda command: tool("bash", command=command, description="scripted"),
    "question": lambda words: tool(
        "question",
        questions=[
            {
                "question": words,
                "header": "Colour",
                "options": [{"label": "Red", "description": ""}, {"label": "Blue", "description": ""}],
            }
        ],
    ),
    "echo": lambda: "::echo",
    "gate": lambda name: f"::gate {name} on",
}


@pytest.fixture(params=["fake", pytest.param("opencode", marks=pytest.mark.opencode)])
def subject(request):
    bench = request.getfixturevalue("bench")
    if request.param == "fake":
        worker = FakeWorker()
        return Subject(bench, worker, {**FAKE, "sent": lambda order: list(worker.prompts).count(order.turn)})
    prompts = bench.model.requests
    return Subject(
        bench,
        bench.worker,
        {**REAL, "sent": lambda order: sum(1 for made in prompts if made["prompt"] == order.prompt)},
    )


async def test_a_turn_opens_a_session_is_seen_speaks_and_ends_once(subject):
    order = subject.order(subject.lines["text"]("hello there"))
    events = await play(subject.worker, order)
    assert isinstance(events[0], Opened)
    assert isinstance(events[1], Seen)
    assert "".join(said.text for said in of(events, Said)) == "hello there"
    assert len(of(events, Finished | Failed | Halted)) == len(of(events, Opened)) == len(of(events, Seen)) == 1
    end = events[-1]
    assert (end.text, end.doubt) == ("hello there", "")
    assert end.ran == Route(subject.worker.name, "build", "fake/worker")
    assert end.usage.total_tokens > 0


async def test_what_the_worker_writes_is_in_the_task_folder_and_said_at_the_end(subject):
    order = subject.order(subject.lines["write"]("made.txt", "words"), subject.lines["text"]("wrote"))
    events = await play(subject.worker, order)
    assert (order.folder / "made.txt").read_text() == "words"
    assert "editing made.txt" in [doing.activity.label for doing in of(events, Doing)]
    assert [order.folder / claim for claim in events[-1].claims] == [order.folder / "made.txt"]


async def test_the_prompt_goes_out_only_when_reading_goes_on_after_the_session_is_known(subject):
    """So that a restarted hub finds the session of every prompt that was sent."""
    order = subject.order(subject.lines["text"]("once"))
    async with asyncio.timeout(BOUND_S), subject.worker.turn(order) as turn:
        events = turn.events()
        assert isinstance(await anext(events), Opened)
        assert subject.sent(order) == 0
        assert isinstance([event async for event in events][-1], Finished)
    assert subject.sent(order) == 1


async def test_a_follow_up_runs_in_the_same_session(subject):
    first = await play(subject.worker, subject.order(subject.lines["text"]("one")))
    session = of(first, Opened)[0].session
    events = await play(subject.worker, subject.order(subject.lines["text"]("two"), session=session))
    assert of(events, Opened)[0].session == session
    assert events[-1].text == "two"
    await subject.worker.release(session, subject.bench.environment)


async def test_a_turn_that_was_left_goes_on_and_is_met_again_without_a_second_prompt(subject):
    order = subject.order(subject.lines["gate"](f"left-{subject.worker.name}"))
    gates = subject.bench.model if subject.worker is subject.bench.worker else subject.worker
    async with asyncio.timeout(BOUND_S), subject.worker.turn(order) as turn:
        async for event in turn.events():
            if isinstance(event, Opened):
                session = event.session
            if isinstance(event, Seen):
                break
    gates.gate(f"left-{subject.worker.name}").opened.set()
    again = subject.bench.order(order.prompt, session=session, turn=order.turn, folder=order.folder)
    events = await play(subject.worker, again)
    assert isinstance(events[-1], Finished)
    assert subject.sent(order) == 1


@pytest.mark.parametrize(("choice", "message"), [(ALLOW, ""), (DENY, "use another way")])
async def test_a_command_that_was_not_declared_asks_and_the_turn_goes_on_with_the_answer(subject, choice, message):
    order = subject.order(subject.lines["shell"]("touch asked.txt"), subject.lines["echo"]())
    asked = []

    async def answer(turn, event):
        if isinstance(event, AskOpened):
            asked.append(event.ask)
            await turn.answer(event.ask.id, Answer(choice, message))
            with pytest.raises(UnknownAsk):
                await turn.answer(event.ask.id, Answer(choice, message))

    events = await play(subject.worker, order, answer)
    (ask,) = asked
    assert (ask.kind, ask.subject, ask.detail) == (AskKind.PERMISSION, "bash", "touch asked.txt")
    assert ask.choices == (ALLOW, DENY)
    assert isinstance(events[-1], Finished)
    assert message in events[-1].text


async def test_a_declared_command_runs_without_asking(subject):
    order = subject.order(subject.lines["shell"]("echo test"), subject.lines["text"]("ran"), commands=("echo test",))
    events = await play(subject.worker, order)
    assert not of(events, AskOpened)
    assert events[-1].text == "ran"


async def test_a_question_is_answered_with_one_of_its_choices(subject):
    order = subject.order(subject.lines["question"]("Which colour?"), subject.lines["echo"]())

    async def answer(turn, event):
        if isinstance(event, AskOpened):
            assert (event.ask.kind, event.ask.choices) == (AskKind.QUESTION, ("Red", "Blue"))
            await turn.answer(event.ask.id, Answer("Blue"))

    events = await play(subject.worker, order, answer)
    assert "Blue" in events[-1].text


async def test_a_stopped_turn_ends_as_halted_with_what_was_said(subject):
    order = subject.order(subject.lines["gate"](f"stopped-{subject.worker.name}"))

    async def stop(turn, event):
        if isinstance(event, Seen):
            await turn.stop()

    events = await play(subject.worker, order, stop)
    assert isinstance(events[-1], Halted)
    assert len(of(events, Finished | Failed | Halted)) == 1


@pytest.mark.parametrize(
    ("route", "error"),
    [(Route("", agent="biuld"), UnknownAgent), (Route("", model="fake/workr"), UnknownModel)],
)
async def test_an_unknown_route_is_refused_on_entering_with_near_names(subject, route, error):
    order = subject.order(subject.lines["text"]("never"), route=route)
    with pytest.raises(error, match=r"build|fake/worker"):
        async with subject.worker.turn(order):
            raise AssertionError
    assert subject.sent(order) == 0


async def test_a_worker_says_what_it_offers(subject):
    info = await subject.worker.describe(subject.bench.environment)
    assert (info.name, info.problem) == (subject.worker.name, "")
    assert info.version
    assert "build" in [agent.name for agent in info.agents]
    assert info.default_model == "fake/worker"
    models = {model.id: model for model in info.models}
    assert {"high", "low"} <= set(models["fake/worker"].variants)
    assert (models["fake/worker"].input_price, models["fake/other"].input_price) == (1, None)
