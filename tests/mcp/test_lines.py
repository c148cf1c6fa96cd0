"""JSON-RPC hygiene: whatever comes in is answered, and the connection lives."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.mcp.lines import MAX_LINE, Line, Malformed, parse, split
from tests.mcp.wires import Bare, bare, call, served

PAD = "x" * (MAX_LINE + 1)


async def lines(*chunks, limit=100_000):
    reader = asyncio.StreamReader()
    for chunk in chunks:
        reader.feed_data(chunk)
    reader.feed_eof()
    return [line async for line in split(reader, limit)]


async def test_lines_are_split_at_their_ends_and_empty_ones_are_passed_over():
    assert await lines(b"one\ntw", b"o\r\n\n  \nthree\n") == [Line(b"one"), Line(b"two\r"), Line(b"three")]


async def test_what_the_end_of_the_connection_cut_off_is_no_line():
    assert await lines(b'one\n{"jsonrpc"') == [Line(b"one")]


@pytest.mark.parametrize("size", [99_999, 100_000])
async def test_a_line_up_to_the_limit_is_whole(size):
    assert await lines(b"x" * size + b"\nnext\n") == [Line(b"x" * size), Line(b"next")]


@pytest.mark.parametrize("size", [100_001, 131_072, 1_000_000])
async def test_of_a_longer_line_only_both_ends_are_held(size):
    first, second = await lines(b"begin" + b"x" * size + b"end\nnext\n")
    assert first.too_long
    assert first.data.startswith(b"beginx")
    assert first.data.endswith(b"xend")
    assert len(first.data) <= 100_001 + len(b"beginend")
    assert second == Line(b"next")


async def test_a_connection_that_is_reset_has_ended():
    reader = asyncio.StreamReader()
    reader.feed_data(b"one\n")
    reader.set_exception(ConnectionResetError())
    assert [line async for line in split(reader)] == []


@given(st.binary(max_size=200))
def test_any_line_is_a_message_or_malformed(data):
    try:
        message = parse(Line(data))
    except Malformed as problem:
        message = problem.answer
    assert message.jsonrpc == "2.0"
    message.model_dump_json()


@pytest.mark.parametrize(
    ("line", "code", "request_id"),
    [
        (b"not json", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,', -32700, None),
        (b"[" * 200_000, -32700, None),
        (b"[]", -32600, None),
        (b"5", -32600, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 7),
        (b'{"jsonrpc":"2.0","id":"seven","method":5}', -32600, "seven"),
        (b'{"jsonrpc":"2.0","id":true,"method":5}', -32600, None),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_the_connection_lives(house, line, code, request_id):
    async with bare(house) as wire:
        wire.write(line)
        answer = await wire.read()
        assert (answer["id"], answer["error"]["code"]) == (request_id, code)
        assert answer["error"]["message"].startswith("the line is not ")
        wire.write(call(9, "list_tasks"))
        assert (await wire.until(9))["result"]["isError"] is False


@pytest.mark.parametrize(
    ("message", "request_id"),
    [
        (f'{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"{PAD}"}}}}', 5),
        (f'{{"method":"tools/call","params":{{"name":"{PAD}"}},"jsonrpc":"2.0","id":"five"}}', "five"),
        (f'{{"method":"tools/call","params":{{"name":"{PAD}"}},"id": 5, "jsonrpc": "2.0"}}', 5),
        (f'{{"method":"tools/call","params":{{"name":"{PAD}","id":5}}}}', None),
        (PAD, None),
    ],
    ids=["id first", "id last", "version last", "id of something else", "no JSON"],
)
async def test_a_message_that_is_too_long_is_refused_by_its_id_and_the_connection_lives(house, message, request_id):
    """Without the id the host would wait for an answer for ever; clients write it first or last."""
    async with bare(house) as wire:
        wire.write(message.encode())
        answer = await wire.read()
        assert answer["id"] == request_id
        assert answer["error"] == {"code": -32600, "message": "the message is longer than 8 MiB: send less at once"}
        wire.write(call(9, "list_tasks"))
        assert (await wire.until(9))["result"]["isError"] is False


async def test_a_brief_of_several_megabytes_is_taken(house):
    async with bare(house) as wire:
        wire.write(call(1, "start_task", brief="::text hi\n" + "x" * 6_000_000))
        answer = await wire.until(1)
    assert answer["result"]["isError"] is False
    assert len(house.delegation.get(answer["result"]["structuredContent"]["task_id"]).spec.brief) > 6_000_000


async def test_lone_surrogates_come_back_as_valid_utf_8(house):
    r"""A host that cuts text inside a pair sends "\ud83d"; UTF-8 has no such character."""
    async with bare(house) as wire:
        line = json.dumps({"jsonrpc": "2.0", **call(1, "start_task", brief="::text ok \ud83d!", wait_s=45)})
        assert r"\ud83d!" in line
        wire.write(line.encode())
        task_id = (await wire.until(1))["result"]["structuredContent"]["task_id"]
        wire.write(call(2, "get_task_result", task_id=task_id))
        assert (await wire.until(2))["result"]["structuredContent"]["text"] == "ok \ufffd!"


async def test_a_whole_pair_and_other_escapes_come_back_as_they_were(house):
    async with bare(house) as wire:
        wire.write(call(1, "start_task", brief="::text 🙂 \\ud83d \0", wait_s=45))
        task_id = (await wire.until(1))["result"]["structuredContent"]["task_id"]
        wire.write(call(2, "get_task_result", task_id=task_id))
        assert (await wire.until(2))["result"]["structuredContent"]["text"] == "🙂 \\ud83d \0"


async def test_bytes_that_are_not_utf_8_are_replaced(house):
    async with bare(house) as wire:
        wire.write(b'{"jsonrpc":"2.0","id":1,"method":"no\xff/such"}')
        assert (await wire.until(1))["error"]["code"] == -32601


async def test_a_host_that_reads_no_more_does_not_hold_the_connection_for_ever(house):
    """It shut its sending side but keeps the socket open with full buffers."""
    async with served(house, last_words_s=0.05) as (reader, writer):
        wire = await Bare(reader, writer).open()
        reader._transport.pause_reading()
        for request_id in range(300):
            wire.write({"id": request_id, "method": "tools/list"})
        writer.write_eof()


async def test_an_answer_to_nobody_ends_the_connection_quietly(house):
    async with served(house) as (reader, writer):
        wire = await Bare(reader, writer).open()
        for request_id in range(300):
            wire.write({"id": request_id, "method": "tools/list"})
        await writer.drain()
        writer.transport.abort()
