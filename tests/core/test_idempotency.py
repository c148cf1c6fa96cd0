"""The same request twice does its work once: by its key, or because nobody was told of the first."""

import asyncio
from dataclasses import replace

import pytest

from offload.core.caller import Caller, Delivery
from offload.core.delegation import StartRequest
from offload.core.idempotency import AGAIN_S
from offload.domain.ask import Answer
from offload.domain.budget import Budget
from offload.domain.errors import InvalidRequest, KeyReused, UnknownAsk
from offload.domain.review import Selection
from offload.domain.task import Front, Phase
from tests.fakes.house import open_house

SHELL = "::shell rm -r x"


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


async def again_in(tmp_path, house):
    """The house after a restart of the hub, on what the first one kept."""
    return open_house(
        tmp_path, journal=house.journal, workspace=house.workspace, worker=house.worker, clock=house.clock
    )


async def start(house, caller, brief="::text hello", **request):
    """As an edge does it whose answer is never written."""
    with Delivery() as delivery:
        return await house.delegation.start(replace(caller, delivery=delivery), StartRequest(brief=brief, **request))


async def told_start(house, caller, brief="::text hello", **request):
    with Delivery() as delivery:
        task = await house.delegation.start(replace(caller, delivery=delivery), StartRequest(brief=brief, **request))
        delivery.written()
        return task


async def test_a_follow_up_with_the_same_key_is_sent_once(house):
    task = await house.rested((await house.start()).id)
    follow_up = (house.caller, task.id, "::text more", Budget(turns=9), "k")
    first = await house.delegation.continue_(*follow_up)
    again = await house.delegation.continue_(*follow_up)
    await house.rested(task.id)
    later = await house.delegation.continue_(*follow_up)
    assert [len(each.turns) for each in (first, again, later)] == [2, 2, 2]
    assert len(house.worker.prompts) == 2


@pytest.mark.parametrize(("brief", "budget"), [("::text other", Budget(turns=9)), ("::text more", Budget(turns=8))])
async def test_a_key_of_a_follow_up_that_comes_with_another_is_refused(house, brief, budget):
    task = await house.rested((await house.start()).id)
    await house.delegation.continue_(house.caller, task.id, "::text more", Budget(turns=9), "k")
    await house.rested(task.id)
    with pytest.raises(KeyReused, match="the key 'k' was used for another request to this task; use a new key"):
        await house.delegation.continue_(house.caller, task.id, brief, budget, "k")


async def test_a_start_with_other_allowed_paths_is_another_request(house):
    task = await house.start(key="k", allowed_paths=("docs",))
    assert (await house.start(key="k", allowed_paths=("docs",))).id == task.id
    with pytest.raises(KeyReused):
        await house.start(key="k", allowed_paths=("src",))


async def test_follow_ups_without_a_key_are_turns_of_their_own(house):
    task = await house.rested((await house.start()).id)
    for _ in range(2):
        await house.delegation.continue_(house.caller, task.id, "::text more")
        await house.rested(task.id)
    assert len(house.delegation.get(task.id).turns) == 3


async def test_an_answer_with_the_same_key_is_given_once(house):
    task = await house.start(SHELL)
    task = await house.until(task.id, lambda task: task.asks)
    (ask,) = task.asks
    given = Answer("deny", "no")
    first, again = await asyncio.gather(
        *(house.delegation.answer(house.caller, task.id, "", given, "k") for _ in range(2))
    )
    later = await house.delegation.answer(house.caller, task.id, ask, given, "k")
    assert [len(each.closings) for each in (first, again, later)] == [1, 1, 1]
    with pytest.raises(KeyReused):
        await house.delegation.answer(house.caller, task.id, ask, Answer("allow"), "k")
    with pytest.raises(UnknownAsk):
        await house.delegation.answer(house.caller, task.id, ask, given, "other")


async def test_changes_are_applied_once_for_one_key(house):
    task = await house.rested((await house.start("::write a.txt one\n::write b.txt two")).id)
    wanted = Selection(("a.txt",))
    _, first = await house.delegation.apply(house.caller, task.id, wanted, "k")
    (house.root / "a.txt").write_text("mine\n")
    again, landing = await house.delegation.apply(house.caller, task.id, wanted, "k")
    assert (landing, len(again.landings)) == (first, 1)
    assert (house.root / "a.txt").read_text() == "mine\n"
    for other in (Selection(), Selection(hunks=first.units), replace(wanted, include_outside=True)):
        with pytest.raises(KeyReused):
            await house.delegation.apply(house.caller, task.id, other, "k")
    with pytest.raises(InvalidRequest):
        await house.delegation.apply(house.caller, task.id, Selection(("none",)), "another")


async def test_keys_hold_after_a_restart_of_the_hub(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.start(f"{SHELL}\n::write a.txt one", key="start")
        task = await house.until(task.id, lambda task: task.asks)
        await house.delegation.answer(house.caller, task.id, "", Answer("deny", "no"), "answer")
        await house.rested(task.id)
        await house.delegation.apply(house.caller, task.id, key="apply")
        await house.delegation.continue_(house.caller, task.id, "::text more", key="more")
        await house.rested(task.id)
    async with await again_in(tmp_path, house) as house:
        assert (await house.start(f"{SHELL}\n::write a.txt one", key="start")).id == task.id
        await house.delegation.answer(house.caller, task.id, "", Answer("deny", "no"), "answer")
        await house.delegation.apply(house.caller, task.id, key="apply")
        task = await house.delegation.continue_(house.caller, task.id, "::text more", key="more")
        assert (len(task.turns), len(task.closings), len(task.landings)) == (2, 1, 1)
        assert len(house.delegation.tasks()) == 1


async def test_a_start_whose_answer_was_lost_is_not_done_twice(house):
    first = await start(house, house.caller)
    again = await start(house, replace(house.caller, id="rpc-2"))
    assert again.id == (await told_start(house, house.caller)).id == first.id
    assert (await told_start(house, house.caller)).id != first.id


async def test_a_start_that_is_still_being_answered_is_not_taken_for_lost(house):
    """Whoever asks twice at the same time wants two."""
    with Delivery() as one, Delivery() as other:
        tasks = await asyncio.gather(
            *(
                house.delegation.start(replace(house.caller, delivery=each), StartRequest(brief="::text hi"))
                for each in (one, other)
            )
        )
    assert tasks[0].id != tasks[1].id


@pytest.mark.parametrize(
    "changed",
    [
        {"front": Front.MODEL},
        {"name": "another program"},
    ],
)
async def test_what_another_was_not_told_is_nothing_to_a_caller(house, changed):
    first = await start(house, house.caller)
    assert (await start(house, replace(house.caller, **changed))).id != first.id


async def test_another_request_is_another_task_whoever_was_told(house):
    first = await start(house, house.caller)
    assert (await start(house, house.caller, "::text other")).id != first.id
    assert (await start(house, house.caller, budget=Budget(turns=3))).id != first.id
    assert (await start(house, house.caller, key="k")).id != first.id


async def test_after_a_minute_the_same_start_is_a_new_task(house):
    first = await start(house, house.caller)
    house.clock.advance(AGAIN_S)
    assert (await start(house, house.caller)).id == first.id
    house.clock.advance(1)
    assert (await start(house, house.caller)).id != first.id


async def test_a_start_that_came_to_nothing_is_tried_again(house):
    first = await house.rested((await start(house, house.caller, "::fail no")).id)
    assert first.phase is Phase.FAILED
    assert (await start(house, house.caller, "::fail no")).id != first.id


async def test_after_a_restart_nothing_counts_as_told(tmp_path):
    """The answer may have been lost with the hub, and a second run costs more than a second look."""
    async with open_house(tmp_path) as house:
        first = await told_start(house, house.caller)
        await house.rested(first.id)
    async with await again_in(tmp_path, house) as house:
        assert (await told_start(house, house.caller)).id == first.id


async def test_a_delivery_is_lost_until_it_is_written():
    with Delivery() as delivery:
        assert not delivery.lost
        delivery.lose()
        assert delivery.lost
        delivery.written()
        delivery.lose()
    assert not delivery.lost
    with pytest.raises(ValueError, match="away"), Delivery() as delivery:
        raise ValueError("away")
    assert delivery.lost


@pytest.mark.parametrize(
    ("front", "who"), [(Front.EDITOR, "an editor"), (Front.MODEL, "a model"), (Front.TERMINAL, "a terminal")]
)
def test_a_caller_without_a_name_is_told_by_its_kind(tmp_path, front, who):
    assert Caller(front, "x", tmp_path).who == who
    assert Caller(front, "x", tmp_path, "Neovim").who == "Neovim"
