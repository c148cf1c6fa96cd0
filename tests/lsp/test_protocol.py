"""Every request is answered whatever is wrong with it, and nothing is kept of what was handled."""

import asyncio
import gc
import json
import weakref

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from offload.domain.errors import Defect, UnknownTask
from offload.lsp.conversion import shared_converter
from offload.lsp.protocol import HostedProtocol
from offload.lsp.server import HostedServer
from offload.lsp.serving import Limits
from tests.lsp.client import NO_ANSWER, Refused

PING = "demo/ping"


def register(server):
    @server.feature(PING)
    def ping(params):
        return None

    @server.feature("demo/echo")
    def echo(params):
        return params

    @server.feature("demo/sleep")
    async def sleep(params):
        await asyncio.Event().wait()

    @server.feature("demo/unserialisable")
    def unserialisable(params):
        return {"x": object.__new__(type("Slotted", (), {"__slots__": ()}))}

    @server.feature("demo/fail")
    def fail(params):
        raise RuntimeError("secret words of a person's code")

    @server.feature("demo/refuse")
    def refuse(params):
        raise UnknownTask("no task has this id")

    @server.feature("demo/raise")
    def raise_(params):
        raise JsonRpcException("as it is", 7)

    @server.feature("demo/failNotification")
    async def fail_notification(params):
        raise RuntimeError("secret words of a person's code")

    @server.feature("demo/ask")
    async def ask(params):
        future = server.workspace_code_lens_refresh_async(None)
        try:
            async with asyncio.timeout(params and params.get("seconds")):
                await future
        except (JsonRpcException, TimeoutError, OSError) as error:
            return type(error).__name__
        return "answered"

    @server.feature("demo/edit")
    async def edit(params):
        try:
            await server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(types.WorkspaceEdit()))
        except JsonRpcException as error:
            return type(error).__name__
        return "answered"


@pytest.fixture
async def client(host):
    client = await host(register)
    await client.initialize()
    return client


@pytest.mark.parametrize(
    "payload",
    [
        None,
        7,
        [1, {"a": None}],
        {"type_name": "t", "def": 1, "a-b": [True], "": "empty"},
        {"deep": {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}}},
    ],
)
async def test_params_of_our_own_messages_arrive_as_they_were_sent(client, payload):
    """A transcript can hold a key "jsonrpc"; pygls takes it for a message."""
    assert await client.result("demo/echo", payload) == payload


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("textDocument/codeLens", {"x": 1}, -32602),
        ("demo/unknown", None, -32601),
        ("demo/unserialisable", None, -32603),
        ("demo/fail", None, -32603),
        ("demo/refuse", None, -32803),
        ("demo/raise", None, 7),
        ("workspace/executeCommand", {"command": "unknown"}, -32602),
    ],
)
async def test_a_request_that_cannot_be_served_gets_an_error(client, method, params, code):
    assert (await client.error(method, params))["code"] == code


async def test_an_error_answer_holds_no_text_of_ours_and_shows_nothing(client, caplog):
    error = await client.error("demo/fail")
    assert "secret" not in json.dumps(error)
    client.notify("demo/failNotification")
    client.notify("demo/unknownNotification")
    assert await client.result(PING) is None
    assert client.log == []
    assert [record.message for record in caplog.records] == ["a handler failed", "a notification's handler failed"]


async def test_a_request_without_params_is_answered(client):
    client.expect(700)
    client.send({"jsonrpc": "2.0", "id": 700, "method": PING})
    assert (await client.answer(700))["result"] is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc": "2.0", "id": 99, "meth', -32700),
        (b"", -32700),
        (b"[" * 100_000, -32700),
        (b'[{"jsonrpc":"2.0","id":1,"method":"demo/ping"}]', -32600),
        (b'{"id":901,"method":"demo/ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":902,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":{},"method":"demo/ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"demo/ping"}', -32600),
    ],
)
async def test_a_broken_message_is_answered_and_survived(client, body, code):
    client.send_body(body)
    await client.until(lambda: client.strays)
    assert client.strays[0]["error"]["code"] == code
    assert await client.result(PING) is None


async def test_a_malformed_notification_is_dropped(client, caplog):
    client.notify("textDocument/didOpen", {"textDocument": 7})
    client.send({"jsonrpc": "2.0", "id": None, "method": "$/cancelRequest", "params": {}})
    assert await client.result(PING) is None
    assert [record.message for record in caplog.records] == [
        "dropped a malformed textDocument/didOpen",
        "dropped a malformed $/cancelRequest",
    ]


async def test_a_header_name_may_have_any_case(client):
    body = b'{"jsonrpc":"2.0","id":800,"method":"demo/ping","params":{}}'
    client.expect(800)
    client.send_bytes(b"Content-Type: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    assert (await client.answer(800))["result"] is None


async def test_a_request_can_be_cancelled(client):
    pending = client.start("demo/sleep")
    assert await client.result(PING) is None  # not blocked by the running one
    client.notify("$/cancelRequest", {"id": pending})
    assert (await client.answer(pending))["error"]["code"] == -32800
    client.notify("$/cancelRequest", {"id": pending})
    assert await client.result(PING) is None


async def test_a_late_answer_of_the_editor_is_ignored(client):
    """pygls raises InvalidStateError and shows it to the person."""
    client.handlers["workspace/codeLens/refresh"] = lambda message: NO_ANSWER
    assert await client.result("demo/ask", {"seconds": 0.01}) == "TimeoutError"
    client.send({"jsonrpc": "2.0", "id": client.log[0]["id"], "result": None})
    client.send({"jsonrpc": "2.0", "id": "never asked", "result": None})
    client.send({"jsonrpc": "2.0", "id": 5, "result": {"success": 1}})
    assert await client.result(PING) is None
    assert len(client.log) == 1


async def test_a_malformed_answer_of_the_editor_wakes_the_waiter(client):
    client.handlers["workspace/applyEdit"] = lambda message: 5
    assert await client.result("demo/edit") == "JsonRpcInvalidParams"


async def test_a_malformed_answer_to_nothing_is_dropped(client):
    client.send({"jsonrpc": "2.0", "id": "never asked", "error": 5})
    assert await client.result(PING) is None


async def test_handled_messages_leave_nothing_behind(client):
    """pygls keeps a future per notification and the result type of every refused request."""

    def refuse(message):
        raise Refused(-32601, "no")

    client.handlers["workspace/codeLens/refresh"] = refuse
    for _ in range(20):
        client.notify("demo/failNotification")
        assert await client.result("demo/ask") == "JsonRpcMethodNotFound"
    assert await client.result(PING) is None
    assert client.protocol._request_futures == {}
    assert client.protocol._result_types == {}


@pytest.mark.parametrize(
    "capabilities",
    [
        {"workspace": {"symbol": {"symbolKind": {"valueSet": [1, 99]}}}},
        {"workspace": {"workspaceEdit": {"resourceOperations": ["create", "x"]}}},
        {"textDocument": {"publishDiagnostics": {"tagSupport": {"valueSet": [1, 7]}}}},
        {"unknown": {"a": 1}, "workspace": {"unknown": 1}},
    ],
)
async def test_an_editor_that_is_newer_than_we_are_is_welcome(host, capabilities):
    """An unknown member of an enum leaves pygls' initialize without an answer."""
    client = await host(register)
    assert await client.initialize(capabilities)


async def test_requests_before_initialize_and_after_shutdown_are_refused(host):
    client = await host(register)
    assert (await client.error(PING))["code"] == -32002
    await client.initialize()
    assert (await client.error("initialize", {"capabilities": {}}))["code"] == -32600
    assert await client.result("shutdown") is None
    assert (await client.error(PING))["code"] == -32600


async def test_shutdown_cancels_what_runs_and_wakes_what_waits(host):
    client = await host(register)
    await client.initialize()
    client.handlers["workspace/codeLens/refresh"] = lambda message: NO_ANSWER
    waiting, sleeping = client.start("demo/ask"), client.start("demo/sleep")
    await client.next("workspace/codeLens/refresh")
    assert await client.result("shutdown") is None
    for pending in (waiting, sleeping):
        assert (await client.answer(pending))["error"]["code"] == -32800


async def test_an_editor_that_does_not_read_gets_the_last_state_and_stops_nobody(host):
    """20,000 updates to an editor that does not read."""
    stalled, other = await host(register), await host(register)
    await stalled.initialize()
    await other.initialize()
    stalled._reading.cancel()
    await asyncio.wait({stalled._reading})
    for number in range(20_000):
        params = {"task_id": "t1", "number": number, "filler": "." * 100}
        stalled.protocol.notify("offload/taskChanged", params)
    outbox = stalled.protocol.outbox
    assert outbox.waiting == 1
    assert await other.result(PING) is None
    stalled._reading = asyncio.create_task(stalled._read())
    await stalled.until(lambda: stalled.log and stalled.log[-1]["params"]["number"] == 19_999)
    assert len(stalled.log) < 20_000


async def test_diagnostics_and_reports_of_progress_are_merged_and_ends_are_not(client):
    protocol = client.protocol
    diagnostics = types.PublishDiagnosticsParams("file:///a", [])
    report = types.ProgressParams("t", types.WorkDoneProgressReport())
    end = types.ProgressParams("t", types.WorkDoneProgressEnd())
    assert protocol.coalescing_key("textDocument/publishDiagnostics", diagnostics) is not None
    assert protocol.coalescing_key("$/progress", report) is not None
    assert protocol.coalescing_key("$/progress", end) is None


async def test_a_notification_that_cannot_be_said_is_our_own_fault(client):
    with pytest.raises(AttributeError):
        client.protocol.notify("demo/x", {"x": object.__new__(type("Slotted", (), {"__slots__": ()}))})


async def test_a_busy_editor_gives_the_others_their_turn(host):
    client = await host(register, Limits(turn_s=-1))
    await client.initialize()
    pending = [client.start(PING) for _ in range(50)]
    for message_id in pending:
        assert (await client.answer(message_id))["result"] is None


async def test_an_ended_connection_frees_its_server(host, clients):
    client = await host(register)
    await client.initialize()
    protocol = weakref.ref(client.protocol)
    await client.disconnect()
    await client.served
    client.protocol = client.served = None
    clients.clear()
    gc.collect()
    assert protocol() is None


async def test_a_server_that_has_lost_its_connection_says_nothing():
    server = HostedServer("demo", "1", protocol_cls=HostedProtocol, converter_factory=shared_converter)
    server.protocol.notify("demo/x", {})
    server.report_server_error(Defect("x"), JsonRpcException)
    assert server.protocol.outbox is None
