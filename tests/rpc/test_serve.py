"""The edge for the command line, over a real socket and the real core, on fakes."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import pytest

from offload.domain.task import Front
from offload.rpc.serve import CALLS_LIMIT, METHODS, serve
from offload.wire.operations import OPERATIONS
from offload.wire.views import TaskView
from tests.fakes.house import open_house

LINE_LIMIT = 5000


class Wire:
    """The client's end. `ask` sends one request and gives the next answer."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer
        self.served = None
        self._ids = iter(range(1, 10_000))

    def send(self, method, **params):
        request_id = next(self._ids)
        self.raw({"id": request_id, "method": method, "params": params})
        return request_id

    def raw(self, message):
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.writer.write(data + b"\n")

    async def read(self):
        return json.loads(await self.reader.readline())

    async def ask(self, method, **params):
        request_id = self.send(method, **params)
        answer = await self.read()
        assert answer.pop("id") == request_id
        return answer

    async def result(self, method, **params):
        return (await self.ask(method, **params))["result"]


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


@asynccontextmanager
async def connected(house, delegation=None):
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_unix_connection(sock=theirs)

    async def serve_and_close():
        await serve(reader, writer, house.caller, delegation or house.delegation, line_limit=LINE_LIMIT)
        writer.close()  # as the hub does

    wire = Wire(*await asyncio.open_unix_connection(sock=ours, limit=2**24))
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        wire.served = group.create_task(serve_and_close())
        yield wire
        wire.writer.close()


@pytest.fixture
async def wire(house):
    async with connected(house) as wire:
        yield wire


async def test_every_operation_of_the_terminal_is_a_method_under_its_own_name():
    assert set(METHODS) == {operation.name for operation in OPERATIONS if Front.TERMINAL in operation.fronts}


async def test_a_task_is_started_waited_for_and_read(wire):
    started = await wire.result("start_task", brief="::text done")
    waited = await wire.result("wait_for_tasks", task_ids=[started["task_id"]], timeout_s=45)
    assert waited["done"] is True
    read = await wire.result("get_task_result", task_id=started["task_id"])
    assert (read["state"], read["text"]) == ("completed", "done")


async def test_params_may_be_left_out(wire):
    wire.raw({"id": "a", "method": "list_tasks"})
    assert (await wire.read())["result"]["tasks"] == []


async def test_calls_run_side_by_side(wire, house):
    started = await wire.result("start_task", brief="::gate held")
    waiting = wire.send("wait_for_tasks", task_ids=[started["task_id"]], timeout_s=45)
    assert (await wire.result("get_task_status", task_id=started["task_id"]))["task_id"] == started["task_id"]
    house.worker.gate("held").open()
    answer = await wire.read()
    assert answer["id"] == waiting
    assert answer["result"]["done"] is True


async def test_a_task_goes_on_when_the_connection_of_its_start_is_gone(house):
    """A request is not a task."""
    async with connected(house) as wire:
        started = await wire.result("start_task", brief="::gate held\n::text done")
    house.worker.gate("held").open()
    task = await house.rested(started["task_id"])
    assert task.turn.text == "done"


async def test_what_was_asked_is_answered_after_the_end_of_the_input(wire):
    """`echo '{…}' | nc -N -U hub.sock` gets its answer."""
    wire.send("start_task", brief="::text done")
    wire.writer.write_eof()
    assert (await wire.read())["result"]["task_id"]
    assert await wire.reader.read() == b""


async def test_a_client_that_is_gone_before_its_answer_is_no_defect(house, caplog):
    async with connected(house) as wire:
        for _ in range(50):
            wire.send("list_agents")
        await wire.writer.drain()
        wire.writer.transport.abort()
        await wire.served
    assert caplog.messages == []


async def test_an_error_says_its_code_and_what_to_do(wire):
    answer = await wire.ask("get_task", task_id="none")
    assert answer["error"]["code"] == "unknown_task"
    assert "none" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("sent", "request_id", "told"),
    [
        (b"", None, "a line must be one JSON object"),
        (b"{", None, "a line must be one JSON object"),
        (b"\xff", None, "a line must be one JSON object"),
        (b"[" * 4000, None, "a line must be one JSON object"),
        (b"[]", None, 'a line must be one JSON object: {"id", "method", "params"}'),
        (b'{"method": "list_tasks"}', None, "a request needs an id, a number or a string"),
        (b'{"id": true, "method": "list_tasks"}', None, "a request needs an id, a number or a string"),
        (b'{"id": 1.5, "method": "list_tasks"}', None, "a request needs an id, a number or a string"),
        (b'{"id": 1}', 1, "there is no method None; there are list_agents, start_task,"),
        (b'{"id": 1, "method": ["x"]}', 1, "there is no method ['x']; there are"),
        (b'{"id": 1, "method": "startTask"}', 1, "there is no method 'startTask'; there are"),
        (
            b'{"id": 1, "method": "list_tasks", "params": 3}',
            1,
            "list_tasks: params: Input should be a valid dictionary",
        ),
        (b'{"id": 1, "method": "list_tasks", "params": {"alive": 1}}', 1, "list_tasks: alive: Extra inputs"),
        (b'{"id": 1, "method": "get_task", "params": {}}', 1, "get_task: task_id: Field required"),
        (b"x" * (LINE_LIMIT + 1), None, "a line is longer than 5000 bytes"),
    ],
)
async def test_what_makes_no_sense_is_told_and_the_connection_lives(wire, sent, request_id, told):
    """Issue 2, bad input."""
    wire.raw(sent)
    answer = await wire.read()
    assert answer["id"] == request_id
    assert answer["error"]["code"] == "invalid_request"
    assert answer["error"]["message"].startswith(told)
    assert await wire.result("list_tasks") == {"tasks": [], "left_out": 0}


async def test_calls_without_end_have_a_limit(wire, house):
    started = await wire.result("start_task", brief="::gate held")
    for _ in range(CALLS_LIMIT):
        wire.send("wait_for_tasks", task_ids=[started["task_id"]], timeout_s=45)
    answer = await wire.ask("list_tasks")
    assert answer["error"]["message"] == f"{CALLS_LIMIT} calls are running on this connection; wait for some to end"
    house.worker.gate("held").open()
    for _ in range(CALLS_LIMIT):
        assert (await wire.read())["result"]["done"] is True
    assert (await wire.result("list_tasks"))["left_out"] == 0


async def test_what_cannot_happen_is_answered_with_a_key_of_the_log_and_survived(house, caplog):
    class Broken:
        """In place of core: everything that it is asked for fails."""

        def __getattr__(self, name):
            raise ZeroDivisionError

    async with connected(house, Broken()) as wire:
        for _ in range(2):
            answer = await wire.ask("list_tasks")
            assert answer["error"]["code"] == "defect"
            assert answer["error"]["message"].startswith("offload made a mistake; the hub's log has it under ")
    keys = [record.key for record in caplog.records if record.message == "defect"]
    assert len(keys) == 2
    assert answer["error"]["message"].endswith(keys[1])


async def test_text_that_no_utf8_can_hold_passes(wire):
    """A model can say half of a character."""
    wire.raw(b'{"id": 1, "method": "get_task", "params": {"task_id": "\\ud83d"}}')
    assert (await wire.read())["error"]["code"] in {"unknown_task", "invalid_request"}


async def test_a_watch_shows_every_change_from_its_answer_on(wire, house):
    assert await wire.result("watch_tasks") == {}
    task = await house.start("::text done")
    revisions = []
    while True:
        message = await wire.read()
        assert message["method"] == "task_changed"
        view = TaskView.model_validate(message["params"])
        assert view.task_id == task.id
        revisions.append(view.revision)
        if view.phase == "ready":
            break
    assert revisions == sorted(set(revisions))


async def test_a_second_watch_on_a_connection_says_nothing_twice(wire, house):
    assert await wire.result("watch_tasks") == {}
    assert await wire.result("watch_tasks") == {}
    task = await house.start("::gate held")
    first = (await wire.read())["params"]
    second = (await wire.read())["params"]
    assert first["task_id"] == second["task_id"] == task.id
    assert first["revision"] < second["revision"]
    house.worker.gate("held").open()


async def test_a_reader_that_is_slow_gets_the_latest_state_and_no_backlog(wire, house):
    """While nobody reads, changes of one task replace each other."""
    assert await wire.result("watch_tasks") == {}
    task = await house.start("\n".join(f"::text {'x' * 20_000} {number}" for number in range(60)))
    rested = await house.rested(task.id)
    seen = []
    while not seen or seen[-1]["revision"] < rested.revision:
        seen.append((await wire.read())["params"])
    assert seen[-1]["phase"] == "ready"
    assert len(seen) < 60


async def test_a_watch_ends_with_its_connection(house):
    async with connected(house) as wire:
        await wire.result("watch_tasks")
        wire.writer.write_eof()
        await wire.served
    await house.start("::text nobody watches")
