"""What is not wanted of a result is noted, and goes back to the worker with the reason."""

import pytest

from offload.core.landing.landings import SENT_BACK_LIMIT
from offload.core.limits import Limits
from offload.domain.budget import Budget
from offload.domain.errors import BudgetSpent, InvalidRequest, WrongPhase
from offload.domain.review import ReviewState, review
from offload.domain.task import Rejection
from tests.core.results import TEXT, apply, changed, on_disk, reject, result, undo, writes
from tests.fakes.house import open_house

APART = changed(2, 30)


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path, files={"a.txt": TEXT, "b.txt": TEXT}) as house:
        yield house


def units(task, path="a.txt"):
    return next(file.units for file in task.turn.changes.files if file.path == path)


async def test_hunks_are_rejected_with_a_reason(house):
    task = await result(house, {"a.txt": APART})
    first, second = units(task)
    task = await reject(house, task, first, reason="ugly")
    assert task.rejections == (Rejection(task.turn.id, (first,), house.clock.now(), "ugly"),)
    assert review(task) == {first: ReviewState.REJECTED}
    task, landing = await apply(house, task)
    assert (landing.units, on_disk(house)) == ((second,), changed(30))


async def test_without_a_selection_all_that_is_not_applied_is_rejected(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)}, allowed_paths=("a.txt",))
    await apply(house, task, units(task)[0])
    task = await reject(house, task)
    assert task.rejections[0].units == (units(task)[1], *units(task, "b.txt"))


async def test_what_is_applied_cannot_be_rejected_until_it_is_undone(house):
    task = await result(house, {"a.txt": APART})
    await apply(house, task)
    first, _ = units(task)
    with pytest.raises(InvalidRequest, match=f"{first} of task {task.id} is applied; undo_apply takes it back"):
        await reject(house, task, first)
    with pytest.raises(InvalidRequest, match=r"nothing of task .* is left to be rejected; undo_apply takes back"):
        await reject(house, task)
    await undo(house, task)
    task = await reject(house, task)
    assert set(review(task).values()) == {ReviewState.REJECTED}


async def test_what_came_last_counts_whatever_the_clock_says(house):
    task = await result(house, {"a.txt": APART})
    first, second = units(task)
    await reject(house, task)
    house.clock.advance(-3600)
    task, _ = await apply(house, task, first)
    assert review(task) == {first: ReviewState.APPLIED, second: ReviewState.REJECTED}
    await undo(house, task)
    task = await reject(house, task, first)
    assert review(task) == {first: ReviewState.REJECTED, second: ReviewState.REJECTED}


async def test_what_is_rejected_goes_back_to_the_worker_with_the_reason(house):
    task = await result(house, {"a.txt": APART, "b.txt": "```\n"})
    house.worker.script = writes({"a.txt": changed(2)})
    task = await reject(house, task, units(task)[1], paths=("b.txt",), reason=" Keep line 30. ", send_back=True)
    assert (len(task.turns), len(task.rejections)) == (2, 1)
    task = await house.rested(task.id)
    prompt = house.worker.prompts[task.turn.id]
    assert "+changed 30" in prompt
    assert "+changed 2\n" not in prompt
    assert "\n````diff\ndiff --git" in prompt
    assert "\n\nThe reason: Keep line 30.\n\nChange it accordingly" in prompt


async def test_no_reason_is_no_reason_and_a_long_patch_is_cut(house):
    task = await result(house, {"big.txt": "".join(f"{number} {'x' * 80}\n" for number in range(1000))})
    task = await reject(house, task, send_back=True)
    await house.rested(task.id)
    assert "The reason" not in task.turn.brief
    assert "more characters were left out]\n```" in task.turn.brief
    assert SENT_BACK_LIMIT < len(task.turn.brief) < SENT_BACK_LIMIT + 1000


async def test_a_rejected_hunk_that_the_worker_leaves_stays_rejected(house):
    task = await result(house, {"a.txt": APART})
    first, second = units(task)
    house.worker.script = writes({"b.txt": changed(3)})
    await reject(house, task, second, send_back=True)
    task = await house.rested(task.id)
    assert units(task) == (first, second)
    assert review(task) == {second: ReviewState.REJECTED}


async def test_when_nothing_is_left_for_another_turn_nothing_is_rejected_either(tmp_path):
    limits = Limits(budget=Budget(turns=1))
    async with open_house(tmp_path, files={"a.txt": TEXT}, limits=limits) as house:
        task = await result(house, {"a.txt": APART})
        with pytest.raises(BudgetSpent):
            await reject(house, task, send_back=True)
        assert house.delegation.get(task.id) == task
        assert (await reject(house, task)).rejections


async def test_a_closed_task_is_rejected_but_not_sent_back(house):
    task = await result(house, {"a.txt": APART})
    await house.delegation.close(house.caller, task.id)
    with pytest.raises(WrongPhase, match="is closed and cannot be rejected"):
        await reject(house, task, send_back=True)
    assert len((await reject(house, task)).rejections) == 1


async def test_a_task_that_runs_is_not_rejected(house):
    task = await house.start("::gate door")
    with pytest.raises(WrongPhase, match="it can be rejected when it is over"):
        await reject(house, task)
    house.worker.gate("door").open()
    await house.rested(task.id)
