"""Defects of unmodified pygls 2.1.1 that our protocol mends.

Each test passes while the defect is there: one that fails after an upgrade says which override may go.
"""

import asyncio
import gc
import io
import json
import weakref

import pytest
from lsprotocol import types
from pygls.io_ import run
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument

from offload.lsp.protocol import HostedProtocol


class Sent(list):
    """A writer that keeps what it is given."""

    def write(self, data):
        self.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self):
        pass


@pytest.fixture
def stock():
    """An initialized stock server, with what it sends in `sent`."""
    server = LanguageServer("stock", "1")

    @server.feature("demo/ping")
    def ping(params):
        return None

    @server.feature("demo/unserialisable")
    def unserialisable(params):
        return {"x": object.__new__(type("Slotted", (), {"__slots__": ()}))}

    @server.feature("demo/fail")
    def fail(params):
        raise RuntimeError("secret")

    @server.feature("demo/note")
    async def note(params):
        pass

    server.sent = Sent()
    server.protocol.set_writer(server.sent)
    say(server, "initialize", {"processId": None, "rootUri": None, "capabilities": {}}, message_id=1)
    server.sent.clear()
    return server


def say(server, method, params=None, message_id=None):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    feed(server, json.dumps(message | ({} if message_id is None else {"id": message_id})))


def feed(server, *bodies, header="Content-Length: %d\r\n\r\n"):
    """As stock pygls reads a stream."""
    data = b"".join((header % len(body)).encode() + body.encode() for body in bodies)
    run(asyncio.Event(), io.BytesIO(data), server.protocol, error_handler=server.report_server_error)


def answers(server):
    return [message for message in server.sent if "id" in message]


def test_exit_of_one_editor_ends_the_process(stock):
    with pytest.raises(SystemExit):
        say(stock, "exit")


def test_params_that_do_not_fit_get_no_answer(stock):
    say(stock, "textDocument/codeLens", {"x": 1}, message_id=2)
    assert answers(stock) == []


def test_a_nested_key_jsonrpc_gets_no_answer(stock):
    say(stock, "demo/ping", {"deep": {"jsonrpc": "2.0", "id": 1, "method": "x", "params": {}}}, message_id=2)
    assert [answer["id"] for answer in answers(stock)] != [2]


def test_a_request_without_params_gets_no_answer(stock):
    feed(stock, '{"jsonrpc": "2.0", "id": 2, "method": "demo/ping"}')
    assert answers(stock) == []


def test_a_broken_message_gets_no_answer(stock):
    feed(stock, '{"jsonrpc": "2.0", "id": 2, "meth')
    assert answers(stock) == []


def test_a_header_in_lower_case_is_not_understood(stock):
    feed(stock, '{"jsonrpc":"2.0","id":2,"method":"demo/ping","params":{}}', header="content-length: %d\r\n\r\n")
    assert answers(stock) == []


def test_a_result_that_does_not_serialise_gets_no_answer(stock):
    say(stock, "demo/unserialisable", {}, message_id=2)
    assert answers(stock) == []


def test_an_unknown_member_of_an_enum_leaves_initialize_without_an_answer():
    server = LanguageServer("stock", "1")
    server.sent = Sent()
    server.protocol.set_writer(server.sent)
    capabilities = {"workspace": {"symbol": {"symbolKind": {"valueSet": [1, 99]}}}}
    say(server, "initialize", {"processId": None, "rootUri": None, "capabilities": capabilities}, message_id=1)
    assert answers(server) == []


def test_an_error_answer_holds_a_traceback(stock):
    say(stock, "demo/fail", {}, message_id=2)
    assert "traceback" in answers(stock)[0]["error"]["data"]


def test_a_request_before_initialize_is_answered_and_one_after_shutdown_is_not(stock):
    say(stock, "shutdown", None, message_id=2)
    say(stock, "demo/ping", {}, message_id=3)
    assert [answer["id"] for answer in answers(stock)] == [2]


async def test_a_future_is_kept_for_every_notification(stock):
    for _ in range(10):
        stock.protocol._handle_notification("demo/note", {})
    await asyncio.gather(*stock.protocol._request_futures.values())
    assert len(stock.protocol._request_futures) >= 10


def test_a_form_feed_corrupts_the_text():
    document = TextDocument("file:///f.py", "a\x0cb\nSECOND\n", 1)
    span = types.Range(types.Position(1, 0), types.Position(1, 6))
    document.apply_change(types.TextDocumentContentChangePartial(text="second", range=span))
    assert document.source != "a\x0cb\nsecond\n"


def test_a_cache_of_types_keeps_the_protocol_alive():
    assert not hasattr(HostedProtocol.get_message_type, "cache_info")
    server = LanguageServer("stock", "1")
    protocol = weakref.ref(server.protocol)
    server.protocol.get_message_type("initialize")
    del server
    gc.collect()
    assert protocol() is not None
    LanguageServerProtocol.get_message_type.cache_clear()
    gc.collect()
    assert protocol() is None
