"""Each row of the operations table, called on a whole core, as an edge calls it."""

import asyncio

import pytest
from pydantic import ValidationError

from offload.domain.errors import InvalidRequest, UnknownTask
from offload.domain.task import Front
from offload.wire.operations import BY_NAME, OPERATIONS
from tests.fakes.house import open_house


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


@pytest.fixture
def do(house):
    async def call(name, **params):
        operation = BY_NAME[name]
        result = await operation.call(house.delegation, house.caller, operation.params(**params))
        assert type(result) is operation.result
        return result

    return call


def test_no_two_rows_share_a_name_in_any_form():
    for form in ("name", "lsp", "command", "doc"):
        values = [getattr(operation, form) for operation in OPERATIONS]
        assert len(set(values)) == len(values), form


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_a_row_says_the_same_in_every_form(operation):
    words = operation.name.split("_")
    assert operation.lsp == words[0] + "".join(word.capitalize() for word in words[1:])
    assert set(operation.command.split("-")) & {*words, "agents", "check", "diff", "show", "status"}
    assert operation.doc.endswith(".")
    assert Front.EDITOR in operation.fronts
    assert Front.TERMINAL in operation.fronts


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.name)
def test_an_unknown_param_is_refused(operation):
    with pytest.raises(ValidationError, match="no_such_param"):
        operation.params.model_validate({"no_such_param": 1})


async def test_a_task_is_started_waited_for_read_applied_and_closed(house, do):
    started = await do("start_task", brief="::write new.txt hello\n::text Written.")
    waited = await do("wait_for_tasks", task_ids=[started.task_id], mode="any")
    assert (waited.done, waited.tasks[0].state) == (True, "completed")
    assert (await do("get_task_result", task_id=started.task_id)).text == "Written."
    assert (await do("get_task_status", task_id=started.task_id)).files_changed == 1
    assert "new.txt" in (await do("get_changes", task_id=started.task_id)).patch
    assert (await do("apply_task", task_id=started.task_id)).paths == ["new.txt"]
    assert (house.root / "new.txt").read_text().strip() == "hello"
    assert (await do("get_task", task_id=started.task_id)).landings[0].paths == ["new.txt"]
    assert (await do("close_task", task_id=started.task_id)).next_step.startswith("Closed")
    assert (await do("list_tasks")).tasks == []
    assert [task.task_id for task in (await do("show_tasks", closed=True)).tasks] == [started.task_id]


async def test_changes_are_told_of_the_files_that_were_asked_for(do):
    started = await do("start_task", brief="::write a.txt one\n::write b.txt two", wait_s=45)
    files = (await do("get_changes", task_id=started.task_id)).changes.files
    assert [file.path for file in files] == ["a.txt", "b.txt"]
    for wanted in ({"paths": ["b.txt"]}, {"hunks": [files[1].file_id]}):
        given = await do("get_changes", task_id=started.task_id, **wanted)
        assert given.changes.files == [files[1]]
        assert ("one" in given.patch, "two" in given.patch) == (False, True)


async def test_a_start_can_wait_for_the_end(do):
    assert (await do("start_task", brief="::text hi", wait_s=45)).state == "completed"


async def test_a_follow_up_is_a_new_turn(do):
    first = await do("start_task", brief="::text one", wait_s=45)
    second = await do("continue_task", task_id=first.task_id, brief="::text two", wait_s=45)
    assert second.turn_id != first.turn_id
    assert (await do("get_task_result", task_id=first.task_id, turn_id=first.turn_id)).text == "one"
    assert (await do("get_task_result", task_id=first.task_id)).text == "two"


async def test_an_ask_is_answered(house, do):
    task_id = (await do("start_task", brief="::question Which?")).task_id
    await house.until(task_id, lambda task: task.asks)
    await do("answer_task", task_id=task_id, choice="Blue")
    await house.rested(task_id)
    assert (await do("get_task_result", task_id=task_id)).text == "Blue"


async def test_a_task_is_cancelled(house, do):
    task_id = (await do("start_task", brief="::gate hold")).task_id
    async with asyncio.timeout(20):
        await house.worker.gate("hold").reached.wait()
    assert (await do("list_tasks", live=True)).tasks[0].task_id == task_id
    await do("cancel_task", task_id=task_id)
    assert (await house.rested(task_id)).phase == "cancelled"


async def test_more_tasks_than_the_limit_are_counted(do):
    for _ in range(3):
        await do("start_task", brief="::text hi", wait_s=45)
    listed = await do("list_tasks", limit=2)
    assert (len(listed.tasks), listed.left_out) == (2, 1)


async def test_agents_are_listed(do):
    assert (await do("list_agents")).default_worker == "fake"


@pytest.mark.parametrize(("lines", "first", "last"), [("2", 2, 2), ("5-7", 5, 7), ("5-", 5, 5)])
async def test_lines_are_1_based_with_both_ends(do, lines, first, last):
    task_id = (await do("start_task", brief="::text hi", file="shop.py", lines=lines)).task_id
    anchor = (await do("get_task", task_id=task_id)).anchor
    assert (anchor.first_line, anchor.last_line) == (first, last)


@pytest.mark.parametrize("lines", ["ten", "-5", "1-2-3"])
async def test_lines_that_are_none_are_refused(do, lines):
    with pytest.raises(InvalidRequest, match='lines must look like "10-42"'):
        await do("start_task", brief="x", file="shop.py", lines=lines)


async def test_an_unknown_task_is_told(do):
    with pytest.raises(UnknownTask):
        await do("get_task", task_id="nothere")


async def test_a_cleaning_lists_what_goes_and_what_stays(house, do):
    words = (await do("start_task", brief="::text words", wait_s=45)).task_id
    kept = (await do("start_task", brief="::write a x\n::text done", wait_s=45)).task_id
    dry = await do("clean_tasks", older_than_days=0, dry_run=True)
    assert (dry.dry_run, [task.task_id for task in dry.removed], len((await do("list_tasks")).tasks)) == (
        True,
        [words],
        2,
    )
    cleaned = await do("clean_tasks", older_than_days=0)
    assert [task.task_id for task in cleaned.removed] == [words]
    assert [(task.task_id, task.note) for task in cleaned.kept] == [(kept, "1 changed file was never applied")]
    assert [task.task_id for task in (await do("list_tasks", closed=True)).tasks] == [kept]


@pytest.mark.parametrize("field", ["max_cost", "max_minutes"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_limit_that_json_cannot_say_is_refused(field, value):
    with pytest.raises(ValidationError, match=field):
        BY_NAME["start_task"].params(**{field: value})


@pytest.mark.parametrize("field", ["brief", "file", "key", "workspace"])
def test_bytes_that_are_no_text_are_refused_by_the_name_of_their_field(field):
    """An argument of a command line may hold any bytes; Python gives them as lone surrogates."""
    with pytest.raises(ValidationError, match=f"{field}\n.*text in UTF-8"):
        BY_NAME["start_task"].params(**{field: "bad \udcff"})
