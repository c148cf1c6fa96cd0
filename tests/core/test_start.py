"""Starting a task: durable, at once, the same for the same key."""

import asyncio

import pytest

from offload.domain.anchor import LineRange
from offload.domain.errors import InvalidRequest, KeyReused, NotAWorkspace, StorageFailed, UnknownWorker
from offload.domain.lifecycle import fold
from offload.domain.route import Route
from offload.domain.task import Phase
from tests.core.journals import HeldJournal
from tests.fakes.house import open_house
from tests.fakes.worker import FakeWorker

GATE = "::gate door\n::text done"


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


def other_worker():
    worker = FakeWorker()
    worker.info = type(worker.info)("other", "1.0")
    return worker


async def test_a_start_returns_while_the_worker_is_at_work(house):
    task = await house.start(GATE)
    assert task.phase is Phase.QUEUED
    await house.until(task.id, lambda task: task.phase is Phase.WORKING)
    house.worker.gate("door").open()
    assert (await house.rested(task.id)).phase is Phase.READY


async def test_a_task_is_in_the_journal_when_its_id_is_given_out(house):
    task = await house.start(GATE)
    (created, *_) = (await house.journal.read())[task.id]
    assert created.spec == task.spec


async def test_nothing_is_started_that_could_not_be_stored(house):
    house.journal.fail_with = "the disk is full"
    with pytest.raises(StorageFailed, match="the disk is full"):
        await house.start()
    assert house.delegation.tasks() == []
    house.journal.fail_with = ""
    task = await house.start()
    assert (await house.rested(task.id)).phase is Phase.READY
    assert len(house.worker.orders) == 1


async def test_the_worker_gets_what_was_asked_for(house):
    task = await house.start(
        "Test it.\n::text done",
        file="shop.py",
        symbol="total",
        recipe="tests",
        route=Route("", "build", "fake/other", "high"),
    )
    await house.rested(task.id)
    (order,) = house.worker.orders
    assert (order.task, order.turn, order.title) == (task.id, task.turn.id, "tests for Cart.total")
    assert (order.route, order.session) == (Route("fake", "build", "fake/other", "high"), "")
    assert (order.commands, order.environment) == (task.spec.commands, {"PATH": "/usr/bin"})
    assert order.prompt == task.spec.prompt == house.worker.prompts[task.turn.id]
    assert (order.folder / "shop.py").read_text() == (house.root / "shop.py").read_text()
    assert not order.folder.is_relative_to(house.root)


async def test_a_start_whose_caller_goes_away_in_the_middle_is_run_all_the_same(tmp_path):
    """A request is not a task: a cancelled tool call never ends one."""
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house:
        journal.hold()
        starting = asyncio.create_task(house.start("::text still here", key="k"))
        await journal.reached.wait()
        starting.cancel()
        await asyncio.wait([starting])
        journal.release()
        task = await house.start("::text still here", key="k")
        assert (await house.rested(task.id)).turn.text == "still here"
        assert len(house.delegation.tasks()) == 1


async def test_the_same_key_gives_the_same_task(house):
    first = await house.start(file="shop.py", symbol="total", key="k")
    await house.rested(first.id)
    again = await house.start(file=str(house.root / "shop.py"), symbol="Cart.total", key="k")
    assert again == house.delegation.get(first.id)
    assert len(house.worker.orders) == 1


async def test_the_same_key_gives_the_same_task_even_when_the_files_have_changed_since(house):
    first = await house.start(file="shop.py", symbol="total", key="k")
    (house.root / "shop.py").write_text("nothing is left\n")
    assert (await house.start(file="shop.py", symbol="total", key="k")).id == first.id


@pytest.mark.parametrize(
    ("asked", "other"),
    [
        ({}, {"brief": "::text other"}),
        ({}, {"file": "shop.py"}),
        ({}, {"route": Route("", model="fake/other")}),
        ({"file": "shop.py"}, {}),
        ({"file": "shop.py"}, {"file": "more.py"}),
        ({"file": "shop.py"}, {"file": "shop.py", "symbol": "price"}),
        ({"file": "shop.py"}, {"file": "shop.py", "recipe": "docs"}),
        ({"file": "shop.py", "symbol": "price"}, {"file": "shop.py", "symbol": "Cart"}),
        ({"file": "shop.py", "symbol": "price"}, {"file": "shop.py"}),
        ({"file": "shop.py", "lines": LineRange(1, 2)}, {"file": "shop.py", "lines": LineRange(1, 3)}),
        ({"file": "shop.py", "lines": LineRange(1, 7)}, {"file": "shop.py"}),
        ({"file": "shop.py"}, {"file": "shop.py", "lines": LineRange(1, 7)}),
    ],
)
async def test_a_key_that_comes_with_another_request_is_refused(house, asked, other):
    (house.root / "more.py").write_text("def price():\n    pass\n")
    first = await house.start(key="k", **asked)
    assert (await house.start(key="k", **asked)).id == first.id
    with pytest.raises(
        KeyReused, match=rf"the key 'k' was used for another request \(task {first.id}\); use a new key"
    ):
        await house.start(key="k", **other)
    assert len(house.delegation.tasks()) == 1


async def test_two_starts_with_one_key_at_once_are_one_task(house):
    tasks = await asyncio.gather(*(house.start(key="k") for _ in range(5)))
    assert len({task.id for task in tasks}) == len(house.delegation.tasks()) == 1


async def test_a_key_belongs_to_its_workspace(house):
    (house.root / "sub").mkdir()
    assert (await house.start(key="k")).id != (await house.start(key="k", workspace="sub")).id


async def test_starts_without_a_key_are_tasks_of_their_own(house):
    assert (await house.start()).id != (await house.start()).id


async def test_an_unknown_worker_is_refused(house):
    with pytest.raises(UnknownWorker, match="there is no worker 'nobody'; there are fake"):
        await house.start(route=Route("nobody"))


@pytest.mark.parametrize(
    ("asked", "used"),
    [
        (Route(""), Route("fake", "build", "fake/worker", "high")),
        (Route("fake", variant="low"), Route("fake", "build", "fake/worker", "low")),
        (Route("", model="fake/other"), Route("fake", "build", "fake/other")),
        (Route("", "plan", "fake/other", "low"), Route("fake", "plan", "fake/other", "low")),
        (Route("other"), Route("other")),
    ],
)
async def test_agent_and_model_of_the_settings_belong_to_the_default_worker(tmp_path, asked, used):
    default = Route("fake", "build", "fake/worker", "high")
    async with open_house(tmp_path, others=[other_worker()], route=default) as house:
        assert (await house.start(route=asked)).spec.route == used
        assert house.delegation.default_worker == "fake"


async def test_five_tasks_work_at_a_time_and_the_rest_knows_its_place(house):
    tasks = [await house.start(GATE) for _ in range(7)]
    await house.until(tasks[6].id, lambda task: house.delegation.live(task.id).place == 2)
    phases = [house.delegation.get(task.id).phase for task in tasks]
    assert phases[5:] == [Phase.QUEUED, Phase.QUEUED]
    assert house.delegation.live(tasks[5].id).place == 1
    assert house.delegation.live(tasks[0].id).place is None
    house.worker.gate("door").open()
    for task in tasks:
        assert (await house.rested(task.id)).phase is Phase.READY
    assert [order.task for order in house.worker.orders] == [task.id for task in tasks]


async def test_a_follow_up_goes_on_in_the_same_session_and_folder(house):
    first = await house.rested((await house.start("::write a.txt one")).id)
    second = await house.delegation.continue_(house.caller, first.id, "::write b.txt two")
    assert (second.phase, second.turn.prompt) == (Phase.QUEUED, "::write b.txt two")
    done = await house.rested(first.id)
    assert [turn.session for turn in done.turns] == [first.turn.session] * 2
    assert [order.session for order in house.worker.orders] == ["", first.turn.session]
    assert [file.path for file in done.turn.changes.files] == ["a.txt", "b.txt"]
    assert done.base == first.base


async def test_a_follow_up_to_a_worker_that_was_never_reached_says_everything(house):
    house.worker.refuses = InvalidRequest("not now")
    task = await house.rested((await house.start("::text first")).id)
    assert (task.phase, task.turn.session) == (Phase.FAILED, "")
    house.worker.refuses = None
    await house.delegation.continue_(house.caller, task.id, "::text again")
    task = await house.rested(task.id)
    assert task.turn.prompt == "::text first\n\n::text again"
    assert (task.phase, task.turn.text) == (Phase.READY, "again")


async def test_a_follow_up_right_at_the_end_is_run(house):
    """Whoever sees the task rest can go on at once: its place is free, and the run that ended takes nothing along."""
    task = await house.start("::text 0")
    for number in range(1, 6):
        with house.delegation.watching() as watcher:
            while house.delegation.get(task.id).live:
                await watcher.changes()
        await house.delegation.continue_(house.caller, task.id, f"::text {number}")
    assert [turn.text for turn in (await house.rested(task.id)).turns] == ["0", "1", "2", "3", "4", "5"]


async def test_a_follow_up_whose_caller_goes_away_in_the_middle_is_run_all_the_same(tmp_path):
    journal = HeldJournal()
    async with open_house(tmp_path, journal=journal) as house:
        task = await house.rested((await house.start()).id)
        journal.hold()
        asking = asyncio.create_task(house.delegation.continue_(house.caller, task.id, "::text more"))
        await journal.reached.wait()
        asking.cancel()
        await asyncio.wait([asking])
        journal.release()
        task = await house.until(task.id, lambda task: len(task.turns) == 2 and not task.live)
        assert task.turn.text == "more"


@pytest.mark.parametrize("brief", ["", " \n"])
async def test_an_empty_follow_up_is_refused(house, brief):
    task = await house.rested((await house.start()).id)
    with pytest.raises(InvalidRequest, match="brief is empty: say what is to be done next"):
        await house.delegation.continue_(house.caller, task.id, brief)


async def test_the_journal_alone_tells_the_whole_task(house):
    task = await house.rested((await house.start("::write a.txt one\n::text done")).id)
    events = (await house.journal.read())[task.id]
    assert fold(task.id, events) == task
    assert house.defects == []


async def test_a_workspace_that_is_not_there_is_refused_at_once(house):
    with pytest.raises(NotAWorkspace, match="nowhere"):
        await house.start(workspace="nowhere")
    assert house.delegation.tasks() == []
