"""JSON-RPC messages, one per line, between a connection's bytes and the SDK's streams.

A line that is no message is answered with an error, and the connection lives. Knows nothing of MCP's methods.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)

from offload.domain.text import well_formed

MAX_LINE = 8 * 1024 * 1024
_CHUNK = 64 * 1024
_KEPT = 1024  # of both ends of a line that is too long: that is where clients write the id
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"\s*,")
_ID_LAST = re.compile(rb",\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end; of one that is `too_long` only its first and last bytes."""

    data: bytes
    too_long: bool = False


class Malformed(Exception):
    """A line that is no JSON-RPC message, and the answer to it."""

    def __init__(self, code: int, message: str, request_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.answer = JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


async def receive(
    reader: asyncio.StreamReader,
    to_server: MemoryObjectSendStream[SessionMessage | Exception],
    to_client: MemoryObjectSendStream[SessionMessage],
) -> None:
    """Pass every message on until the connection ends; what is no message is answered here."""
    async with to_server, to_client:
        async for line in split(reader):
            try:
                message = parse(line)
            except Malformed as problem:
                await to_client.send(SessionMessage(problem.answer))
            else:
                await to_server.send(SessionMessage(message))


async def send(from_server: MemoryObjectReceiveStream[SessionMessage], writer: asyncio.StreamWriter) -> None:
    """Write every message until there are no more, or nobody is there to read them."""
    async with from_server:
        async for item in from_server:
            message = item.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
            text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            try:
                writer.write(well_formed(text).encode() + b"\n")
                await writer.drain()
            except ConnectionError:
                return


async def split(reader: asyncio.StreamReader, limit: int = MAX_LINE) -> AsyncIterator[Line]:
    """Lines that are not empty. What follows the last line end was cut off by the end of the connection."""
    held = bytearray()
    too_long = False
    while chunk := await _read(reader):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            held += piece
            if held.strip():
                yield Line(bytes(held), too_long or len(held) > limit)
            held.clear()
            too_long = False
        held += rest
        if len(held) > limit:
            too_long = True
            del held[_KEPT:-_KEPT]


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(_CHUNK)
    except ConnectionError:
        return b""


def parse(line: Line) -> JSONRPCMessage:
    """The message in a line. Raises `Malformed`."""
    if line.too_long:
        problem = f"the message is longer than {MAX_LINE // 1024**2} MiB: send less at once"
        raise Malformed(INVALID_REQUEST, problem, _id_in(line.data))
    text = line.data.decode("utf-8", "replace")
    try:
        content = json.loads(text)
        if r"\ud" in text.lower():
            # A surrogate that stands alone is no character and could not be sent back.
            content = json.loads(well_formed(json.dumps(content, ensure_ascii=False)))
    except (ValueError, RecursionError) as problem:
        raise Malformed(PARSE_ERROR, f"the line is not JSON: {problem}") from None
    try:
        return jsonrpc_message_adapter.validate_python(content, by_name=False)
    except ValueError:
        raise Malformed(INVALID_REQUEST, "the line is not a JSON-RPC 2.0 message", _id_of(content)) from None


def _id_in(data: bytes) -> RequestId | None:
    """The id of a request of which only both ends are left."""
    found = _ID_FIRST.match(data) or _ID_LAST.search(data)
    return _id_of({"id": json.loads(found[1].decode("utf-8", "replace"))}) if found else None


def _id_of(content: object) -> RequestId | None:
    found = content.get("id") if isinstance(content, dict) else None
    return found if isinstance(found, str | int) and not isinstance(found, bool) else None


def streams() -> tuple[
    MemoryObjectSendStream[SessionMessage | Exception],
    MemoryObjectReceiveStream[SessionMessage | Exception],
    MemoryObjectSendStream[SessionMessage],
    MemoryObjectReceiveStream[SessionMessage],
]:
    """To the server and out of it, from the server and out of it; each holds nothing, so that a slow side slows the other."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    return to_server, from_client, to_client, from_server
