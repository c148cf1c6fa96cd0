"""A model's host on the real `offload mcp`: the MCP SDK's own stdio client, or bare lines of a process that the test can watch."""

import json
import subprocess
from contextlib import asynccontextmanager

from mcp_types import Implementation, jsonrpc_message_adapter

from mcp import Client, StdioServerParameters
from tests.e2e.stage import BOUND_S, OFFLOAD

MODES = ("auto", "legacy", "2026-07-28")
LARGEST = 8_000  # bytes of a result


@asynccontextmanager
async def hosting(stage, project, mode="auto"):
    """The SDK's client, connected. What the front writes goes through a file, and is looked at when the host has gone."""
    written = stage.folder / f"{project.name}-{mode}.jsonl"
    server = StdioServerParameters(
        command="/bin/sh",
        args=["-c", '"$0" mcp | tee -a "$1"', str(OFFLOAD), str(written)],
        env=stage.environ,
        cwd=project,
    )
    async with Client(
        server, mode=mode, client_info=Implementation(name="claude-code", version="1"), read_timeout_seconds=BOUND_S
    ) as client:
        yield client
    lines = written.read_bytes().splitlines()
    assert lines
    for line in lines:
        jsonrpc_message_adapter.validate_json(line, by_name=False)


async def facts(client, tool, /, progress=None, **arguments):
    """The structured content of a good call, which is small, and repeated as text."""
    result = await client.call_tool(tool, arguments, progress_callback=progress)
    assert not result.is_error, result.content[0].text
    assert len(result.content[0].text.encode()) < LARGEST
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refusal(client, tool, /, **arguments):
    """The text of a call that is refused."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return result.content[0].text


async def until(client, task_id, wanted):
    """Follow a task by its revisions until `wanted` says yes of its status, as the protocol's page tells models to."""
    after = {task_id: 0}
    while True:
        waited = await facts(client, "wait_for_tasks", task_ids=[task_id], after_revision=after, timeout_s=30)
        (task,) = waited["tasks"]
        if wanted(task):
            return task
        assert not waited["done"], task
        after = waited["after_revision"]


async def rested(client, task_id):
    """The task once it rests. A busy machine can take longer to start a worker than one call may wait."""
    while True:
        waited = await facts(client, "wait_for_tasks", task_ids=[task_id], timeout_s=45)
        if waited["done"]:
            return waited["tasks"][0]


class BareHost:
    """A host that writes and reads its lines itself; `process` is the front."""

    def __init__(self, stage, project, command=("mcp",), env=(), program=(OFFLOAD,)):
        self.process = subprocess.Popen(
            [*program, *command],
            cwd=project,
            env={**stage.environ, **dict(env)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._last_id = 0

    def open(self):
        info = {"name": "bare", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def send(self, message):
        self.write((message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n")

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def start(self, method, params):
        self._last_id += 1
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        return self._last_id

    def read(self):
        """The next message; nothing at the end of the output."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def answer(self, request_id):
        while (message := self.read()) is not None:
            if message.get("id") == request_id:
                return message
        raise EOFError(self.process.stderr.read())

    def ask(self, method, params):
        return self.answer(self.start(method, params))

    def call(self, tool, **arguments):
        """The result of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})["result"]

    def close(self):
        """End the input and give the exit status and what was left in both streams."""
        out, err = self.process.communicate(timeout=BOUND_S)
        return self.process.returncode, out, err
