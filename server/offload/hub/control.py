"""Status, stop and drain of the hub, in one line each way: `{"method": "status"}` → `{"result": {…}}`.

Apart from the other protocols, because it must not change: any version of the command line can stop any version of the hub, and a
front of a newer protocol can make it drain: end, and leave its workers at work for the next hub to take up.
"""

from __future__ import annotations

import json
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from typing import Any

from offload.hub.hello import Hello


async def serve(
    reader: StreamReader,
    writer: StreamWriter,
    hello: Hello,
    *,
    status: Callable[[], dict[str, Any]],
    stop: Callable[[str], None],
    drain: Callable[[str], None],
) -> None:
    """Answer until the connection ends."""
    while line := await reader.readline():
        try:
            method = json.loads(line)["method"]
        except (ValueError, TypeError, KeyError, RecursionError):
            method = None
        if method == "status":
            answer = {"result": status()}
        elif method == "stop":
            answer = {"result": {}}
            stop(f"asked by process {hello.pid}")
        elif method == "drain":
            answer = {"result": {}}
            drain(f"process {hello.pid} wants a hub of version {hello.version}")
        else:
            answer = {"error": {"code": "invalid_request", "message": 'the methods are "status", "stop" and "drain"'}}
        writer.write(json.dumps(answer).encode() + b"\n")
        await writer.drain()
