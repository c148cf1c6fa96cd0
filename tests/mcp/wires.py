"""A host at one end of a real socket pair, `serve_model` at the other: by the SDK's own client, or by bare lines."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import Implementation, jsonrpc_message_adapter

from mcp import Client
from offload.domain.task import Front
from offload.mcp.server import serve_model

MODES = ("auto", "legacy", "2026-07-28")


@asynccontextmanager
async def served(house, delegation=None, **options):
    """The host's reader and writer; `serve_model` has ended by itself when this is left."""
    ours, theirs = socket.socketpair()
    caller = replace(house.caller, front=Front.MODEL, id="mcp-1", name="")
    server_reader, server_writer = await asyncio.open_connection(sock=theirs)
    reader, writer = await asyncio.open_connection(sock=ours, limit=64 * 1024 * 1024)
    serving = asyncio.create_task(
        serve_model(delegation or house.delegation, caller, server_reader, server_writer, **options)
    )
    try:
        yield reader, writer
    finally:
        writer.close()
        async with asyncio.timeout(20):
            await serving
        server_writer.close()


@asynccontextmanager
async def _transport(reader, writer):
    """What the SDK's client takes for a connection."""
    to_client, from_server = anyio.create_memory_object_stream(0)
    to_server, from_client = anyio.create_memory_object_stream(0)

    async def receive():
        async with to_client:
            while line := await reader.readline():
                await to_client.send(SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False)))

    async def send():
        async with from_client:
            async for item in from_client:
                writer.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        group.start_soon(send)
        async with from_server, to_server:
            yield from_server, to_server
        group.cancel_scope.cancel()


@asynccontextmanager
async def host(house, mode="auto", delegation=None, **options):
    """The SDK's client, connected."""
    info = Implementation(name="claude-code", version="1")
    async with (
        served(house, delegation) as (reader, writer),
        Client(_transport(reader, writer), mode=mode, client_info=info, **options) as client,
    ):
        yield client


class Bare:
    """A host that writes and reads its lines itself."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def write(self, *messages):
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
            self.writer.write(line + b"\n")

    async def read(self):
        async with asyncio.timeout(20):
            line = await self.reader.readline()
        return json.loads(line.decode("utf-8", "strict")) if line else None

    async def until(self, request_id):
        """The answer to a request; what else comes is passed over."""
        while True:
            message = await self.read()
            assert message is not None, "the connection ended"
            if message.get("id") == request_id and ("result" in message or "error" in message):
                return message

    async def open(self):
        client = {"name": "bare", "version": "0"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        self.write({"id": "open", "method": "initialize", "params": params})
        await self.until("open")
        self.write({"method": "notifications/initialized"})
        return self


@asynccontextmanager
async def bare(house, delegation=None):
    async with served(house, delegation) as (reader, writer):
        yield await Bare(reader, writer).open()


def call(request_id, tool, meta=None, **arguments):
    params = {"name": tool, "arguments": arguments}
    if meta:
        params["_meta"] = meta
    return {"id": request_id, "method": "tools/call", "params": params}


async def facts(client, tool, /, **arguments):
    """The structured content of a good call, which the text must repeat."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refusal(client, tool, /, **arguments):
    """The text of a call that is refused."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    assert result.structured_content is None
    return result.content[0].text
