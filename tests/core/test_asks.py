"""What a worker asks in a turn: answered once, or denied in words when nobody is there."""

import asyncio

import pytest

from offload.core.limits import Limits
from offload.core.turns.asks import NOBODY_ANSWERED
from offload.core.worker import AskOver
from offload.domain.ask import Answer, AskKind, AskOutcome
from offload.domain.errors import InvalidRequest, StorageFailed, UnknownAsk, WorkerBroken
from offload.domain.events import AskClosed
from offload.domain.task import Phase
from tests.core.journals import HeldJournal
from tests.fakes.house import open_house
from tests.fakes.worker import FakeTurn, FakeWorker

SHELL = "::shell rm -r x"
ALLOW, DENY = Answer("allow"), Answer("deny", "Use git clean.")
TIMEOUT_S = Limits().ask_timeout_s


class SlowWorker(FakeWorker):
    """Its turns wait at the gate "answer" before they take an answer; `trouble` is what they raise then, and `told` makes
    them say in their events that the ask is over before the answer has come back to core."""

    def __init__(self):
        super().__init__()
        self.gate("answer").open()
        self.trouble = None
        self.told = None
        self.answers = []

    def turn(self, order):
        context = super().turn(order)

        class Context:
            async def __aenter__(_):  # noqa: N805
                turn = await context.__aenter__()
                return SlowTurn(self, turn._order, turn._session)

            async def __aexit__(_, *error):  # noqa: N805
                return await context.__aexit__(*error)

        return Context()

    def hold(self):
        self._gates.pop("answer")
        return self.gate("answer")


class SlowTurn(FakeTurn):
    async def answer(self, ask, answer):
        worker = self._worker
        worker.answers.append(answer)
        gate = worker.gate("answer")
        gate.reached.set()
        await gate.opened.wait()
        if worker.trouble:
            raise worker.trouble
        if worker.told:
            await worker.stage(self._order.turn).emit(AskOver(ask, worker.told))
            worker.gate("told").reached.set()
            await worker.gate("told").opened.wait()
        await super().answer(ask, answer)


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path, worker=SlowWorker(), journal=HeldJournal()) as house:
        yield house


async def asking(house, brief=SHELL):
    task = await house.start(brief)
    task = await house.until(task.id, lambda task: task.asks)
    return task, next(iter(task.asks))


def answer(house, task, ask, given):
    return house.delegation.answer(house.caller, task.id, ask, given)


async def closings(house, task):
    return [
        (event.outcome, event.choice) for event in (await house.journal.read())[task.id] if isinstance(event, AskClosed)
    ]


async def expire(house):
    await house.clock.sleepers(1)
    house.clock.advance(TIMEOUT_S)


async def until_told(house, count=1):
    async with asyncio.timeout(20):
        while len(house.defects) < count:  # noqa: ASYNC110 - a log is not watched
            await asyncio.sleep(0)


@pytest.mark.parametrize(("given", "text"), [(ALLOW, "rm -r x"), (DENY, "Use git clean.")])
async def test_an_answer_reaches_the_worker_and_closes_the_ask(house, given, text):
    task, ask = await asking(house)
    assert (task.phase, task.asks[ask].kind, task.asks[ask].detail) == (Phase.WORKING, AskKind.PERMISSION, "rm -r x")
    task = await answer(house, task, ask, given)
    assert task.asks == {}
    task = await house.rested(task.id)
    assert (task.phase, task.turn.text) == (Phase.READY, text)
    assert await closings(house, task) == [(AskOutcome.ANSWERED, given.choice)]


async def test_an_allowed_command_is_run_without_asking(house):
    task = await house.start("::shell python3 -m pytest\n::text ran", file="shop.py", symbol="total", recipe="tests")
    task = await house.rested(task.id)
    assert (task.phase, await closings(house, task)) == (Phase.READY, [])


async def test_the_only_open_ask_needs_no_name(house):
    task, _ = await asking(house)
    assert (await answer(house, task, "", ALLOW)).asks == {}


async def test_of_several_open_asks_one_must_be_named(tmp_path):
    async def script(stage):
        await stage.seen()
        answers = await asyncio.gather(stage.ask("bash", "one"), stage.ask("bash", "two"))
        await stage.say(" ".join(answer.choice for answer in answers))

    async with open_house(tmp_path, worker=FakeWorker(script)) as house:
        task = await house.start()
        task = await house.until(task.id, lambda task: len(task.asks) == 2)
        one, two = task.asks
        with pytest.raises(UnknownAsk, match=f"has no open ask ''; open are {one}, {two}"):
            await answer(house, task, "", ALLOW)
        await answer(house, task, two, ALLOW)
        await answer(house, task, one, DENY)
        assert (await house.rested(task.id)).turn.text == "deny allow"


@pytest.mark.parametrize("given", ["Red", "Blue", "something quite different"])
async def test_a_question_takes_one_of_its_choices_or_free_text(house, given):
    task, ask = await asking(house, "::question Which?")
    assert (task.asks[ask].kind, task.asks[ask].choices) == (AskKind.QUESTION, ("Red", "Blue"))
    await answer(house, task, ask, Answer(given))
    assert (await house.rested(task.id)).turn.text == given


async def test_a_permission_takes_nothing_but_its_choices(house):
    task, ask = await asking(house)
    with pytest.raises(InvalidRequest, match="choice must be one of allow, always, deny, not 'yes'"):
        await answer(house, task, ask, Answer("yes"))
    assert house.delegation.get(task.id) == task


async def test_an_unknown_ask_is_refused(house):
    task, ask = await asking(house)
    with pytest.raises(UnknownAsk, match=f"has no open ask 'none'; open are {ask}"):
        await answer(house, task, "none", ALLOW)
    await answer(house, task, ask, ALLOW)
    task = await house.rested(task.id)
    for named, words in ((ask, "is closed: test answered 'allow'"), ("", "asks nothing now")):
        with pytest.raises(UnknownAsk, match=words):
            await answer(house, task, named, ALLOW)


async def test_the_first_of_two_answers_wins(house):
    """Public trouble report: two front-ends that answer must give one reply (H03)."""
    gate = house.worker.hold()
    task, ask = await asking(house)
    first = asyncio.create_task(answer(house, task, ask, ALLOW))
    await gate.reached.wait()
    second = asyncio.create_task(answer(house, task, ask, DENY))
    gate.open()
    assert (await first).asks == {}
    with pytest.raises(UnknownAsk, match=f"{ask} is closed: test answered 'allow'"):
        await second
    task = await house.rested(task.id)
    assert (task.turn.text, house.worker.answers) == ("rm -r x", [ALLOW])


async def test_an_answer_that_did_not_reach_the_worker_can_be_given_again(house):
    task, ask = await asking(house)
    house.worker.trouble = WorkerBroken("it does not answer")
    with pytest.raises(WorkerBroken):
        await answer(house, task, ask, ALLOW)
    house.worker.trouble = None
    await answer(house, house.delegation.get(task.id), ask, ALLOW)
    assert (await house.rested(task.id)).turn.text == "rm -r x"


async def test_an_answer_whose_caller_goes_away_in_the_middle_is_given_all_the_same(house):
    gate = house.worker.hold()
    task, ask = await asking(house)
    caller = asyncio.create_task(answer(house, task, ask, ALLOW))
    await gate.reached.wait()
    caller.cancel()
    await asyncio.wait([caller])
    gate.open()
    task = await house.rested(task.id)
    assert task.turn.text == "rm -r x"


async def test_an_ask_that_the_worker_knows_no_more_is_withdrawn(house):
    task, ask = await asking(house)
    house.worker.trouble = UnknownAsk("the worker has no such ask")
    with pytest.raises(UnknownAsk, match="the worker has no such ask"):
        await answer(house, task, ask, ALLOW)
    task = house.delegation.get(task.id)
    assert (task.asks, await closings(house, task)) == ({}, [(AskOutcome.WITHDRAWN, "")])


async def test_an_ask_that_nobody_answers_is_denied_in_words_and_the_turn_goes_on(house):
    """Public trouble report: what asked with nobody there hung for ever and looked busy (H02)."""
    task, _ = await asking(house)
    await expire(house)
    task = await house.rested(task.id)
    assert (task.phase, task.turn.text) == (Phase.READY, NOBODY_ANSWERED)
    assert await closings(house, task) == [(AskOutcome.TIMED_OUT, "deny")]


async def test_an_ask_is_open_until_its_time_is_over(house):
    task, _ = await asking(house)
    await house.clock.sleepers(1)
    house.clock.advance(TIMEOUT_S - 1)
    await answer(house, task, "", ALLOW)
    house.clock.advance(TIMEOUT_S)
    task = await house.rested(task.id)
    assert await closings(house, task) == [(AskOutcome.ANSWERED, "allow")]


async def test_time_that_is_over_while_an_answer_is_on_its_way_changes_nothing(house):
    gate = house.worker.hold()
    task, ask = await asking(house, f"{SHELL}\n::gate door\n::text done")
    caller = asyncio.create_task(answer(house, task, ask, ALLOW))
    await gate.reached.wait()
    await expire(house)
    gate.open()
    await caller
    await house.worker.gate("door").reached.wait()
    house.worker.gate("door").open()
    task = await house.rested(task.id)
    assert (house.worker.answers, await closings(house, task)) == ([ALLOW], [(AskOutcome.ANSWERED, "allow")])


async def test_an_answer_while_the_denial_is_on_its_way_is_too_late(house):
    gate = house.worker.hold()
    task, ask = await asking(house)
    await expire(house)
    await gate.reached.wait()
    caller = asyncio.create_task(answer(house, task, ask, ALLOW))
    gate.open()
    with pytest.raises(UnknownAsk):
        await caller
    task = await house.rested(task.id)
    assert await closings(house, task) == [(AskOutcome.TIMED_OUT, "deny")]


async def test_time_that_is_over_while_an_answer_fails_still_denies(house):
    """Nobody may be left waiting because an answer went wrong in the wrong moment."""
    gate = house.worker.hold()
    house.worker.trouble = WorkerBroken("it does not answer")
    task, ask = await asking(house)
    caller = asyncio.create_task(answer(house, task, ask, ALLOW))
    await gate.reached.wait()
    await expire(house)
    gate.open()
    with pytest.raises(WorkerBroken):
        await caller
    await until_told(house)
    house.worker.trouble = None
    await expire(house)
    task = await house.rested(task.id)
    assert await closings(house, task) == [(AskOutcome.TIMED_OUT, "deny")]


async def test_a_denial_that_does_not_reach_the_worker_is_told_and_tried_again(house):
    task, ask = await asking(house)
    house.worker.trouble = WorkerBroken("it does not answer")
    await expire(house)
    await until_told(house)
    assert house.defects == [(f"ask {ask} of task {task.id} could not be denied", house.worker.trouble)]
    house.worker.trouble = None
    await expire(house)
    task = await house.rested(task.id)
    assert (task.phase, task.turn.text) == (Phase.READY, NOBODY_ANSWERED)


async def test_a_denial_that_cannot_be_stored_is_told_and_the_turn_goes_on(house):
    task, ask = await asking(house, f"{SHELL}\n::gate door\n::text done")
    house.journal.fail_with = "the disk is full"
    await expire(house)
    await house.worker.gate("door").reached.wait()
    await until_told(house)
    assert [what for what, _ in house.defects] == [f"ask {ask} of task {task.id} could not be denied"]
    house.journal.fail_with = ""
    await expire(house)
    await house.until(task.id, lambda task: not task.asks)
    house.worker.gate("door").open()
    assert (await house.rested(task.id)).turn.text == "done"


async def test_a_mistake_in_a_denial_does_not_end_the_house(house):
    task, ask = await asking(house)
    house.worker.trouble = KeyError("oops")
    await expire(house)
    await until_told(house)
    assert house.defects == [(f"ask {ask} of task {task.id}", house.worker.trouble)]
    house.worker.trouble = None
    await answer(house, task, ask, ALLOW)
    assert (await house.rested(task.id)).phase is Phase.READY


@pytest.mark.parametrize(
    ("told", "closing"),
    [(AskOutcome.ANSWERED, (AskOutcome.ANSWERED, "allow")), (AskOutcome.WITHDRAWN, (AskOutcome.WITHDRAWN, ""))],
)
async def test_a_worker_may_say_that_an_ask_is_over_before_our_answer_has_come_back(house, told, closing):
    """Its events and its replies come on two connections. The answer that was given is the one that is recorded."""
    house.worker.told = told
    task, ask = await asking(house)
    caller = asyncio.create_task(answer(house, task, ask, ALLOW))
    await house.worker.gate("told").reached.wait()
    await house.until(task.id, lambda task: not task.asks)
    house.worker.gate("told").open()
    assert (await caller).asks == {}
    task = await house.rested(task.id)
    assert await closings(house, task) == [closing]


async def test_an_ask_that_the_worker_withdraws_is_closed_and_its_time_ends_quietly(tmp_path):
    async def script(stage):
        await stage.seen()
        asking = asyncio.create_task(stage.ask("bash", "ls"))
        await stage.worker.gate("withdraw").opened.wait()
        await stage.withdraw(*stage._asks)
        await asking
        await stage.say("went on")
        await stage.worker.gate("door").opened.wait()

    async with open_house(tmp_path, worker=FakeWorker(script)) as house:
        task = await house.start()
        await house.until(task.id, lambda task: task.asks)
        house.worker.gate("withdraw").open()
        task = await house.until(task.id, lambda task: not task.asks)
        assert await closings(house, task) == [(AskOutcome.WITHDRAWN, "")]
        await expire(house)
        for _ in range(5):  # time for what must not happen
            await asyncio.sleep(0)
        house.worker.gate("door").open()
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text) == (Phase.READY, "went on")
        assert len(await closings(house, task)) == 1
        assert house.defects == []


async def test_an_answer_that_cannot_be_stored_is_told_and_the_turn_goes_on(house):
    """The worker has it; only the ask stands open until the turn is over."""
    task, ask = await asking(house, f"{SHELL}\n::gate door\n::text done")
    house.journal.fail_with = "the disk is full"
    with pytest.raises(StorageFailed):
        await answer(house, task, ask, ALLOW)
    house.journal.fail_with = ""
    await expire(house)
    task = await house.until(task.id, lambda task: not task.asks)
    assert await closings(house, task) == [(AskOutcome.WITHDRAWN, "")]
    house.worker.gate("door").open()
    assert (await house.rested(task.id)).turn.text == "done"


async def test_an_answer_after_the_worker_is_done_is_too_late(house):
    """The turn ends with the ask still open: the asks of the task are there until the end is recorded."""
    gate = house.worker.hold()
    task, ask = await asking(house)
    callers = [asyncio.create_task(answer(house, task, ask, ALLOW))]
    await gate.reached.wait()
    callers.append(asyncio.create_task(answer(house, task, ask, DENY)))
    await house.worker.stage(task.turn.id).finish("no need any more")
    await house.rested(task.id)
    gate.open()
    outcomes = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(outcomes[1], UnknownAsk)
    assert house.delegation.get(task.id).asks == {}


ALWAYS = Answer("always")


async def test_always_allows_the_very_same_again_in_this_task_and_no_worker_is_told_so(house):
    task, ask = await asking(house, f"{SHELL}\n{SHELL}\n::shell rm -r x y\n::text on")
    assert task.asks[ask].choices == ("allow", "always", "deny")
    await answer(house, task, ask, ALWAYS)
    task = await house.until(task.id, lambda task: [each.detail for each in task.asks.values()] == ["rm -r x y"])
    told = [(each.choice, each.by) for each in task.closings]
    assert told == [("always", "test"), ("allow", "an earlier answer for the whole task")]
    assert [each.choice for each in house.worker.answers] == ["allow", "allow"]
    await answer(house, task, "", DENY)
    await house.rested(task.id)
    follow_up = await house.delegation.continue_(house.caller, task.id, f"{SHELL}\n::text again")
    assert (await house.rested(follow_up.id)).turn.text == "again"
    other, _ = await asking(house)
    assert other.closings == ()


async def test_always_closes_the_same_that_is_open_beside_it(tmp_path):
    async def script(stage):
        await stage.seen()
        await asyncio.gather(*(stage.ask("bash", "make") for _ in range(3)), stage.ask("edit", "make"))
        await stage.say("done")

    async with open_house(tmp_path, worker=FakeWorker(script)) as house:
        task = await house.start("go")
        task = await house.until(task.id, lambda task: len(task.asks) == 4)
        first, *_ = task.asks
        await answer(house, task, first, ALWAYS)
        task = await house.until(task.id, lambda task: len(task.asks) == 1)
        assert [each.subject for each in task.asks.values()] == ["edit"]
        await answer(house, task, "", ALLOW)
        assert (await house.rested(task.id)).turn.text == "done"
        assert house.defects == []


async def test_always_is_no_choice_of_a_question(house):
    task, ask = await asking(house, "::question Which one?")
    assert task.asks[ask].choices == ("Red", "Blue")


@pytest.mark.parametrize(
    ("close", "words"),
    [
        (lambda house, task, ask: answer(house, task, ask, DENY), "is closed: test answered 'deny'"),
        (lambda house, task, ask: expire(house), "is closed: nobody answered in time, so it was denied"),
        (
            lambda house, task, ask: house.worker.stage(task.turn.id).withdraw(ask),
            "is closed: the worker does not wait for it any more",
        ),
    ],
)
async def test_whoever_comes_too_late_is_told_how_it_was_closed(house, close, words):
    task, ask = await asking(house, f"{SHELL}\n::gate door\n::text done")
    await close(house, task, ask)
    await house.until(task.id, lambda task: not task.asks)
    with pytest.raises(UnknownAsk, match=words):
        await answer(house, task, ask, ALLOW)
