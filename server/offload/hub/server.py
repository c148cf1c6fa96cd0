"""The hub's own work: listen, read hellos, hand connections over, notice that nobody needs it, end in order.

Whoever runs a `Server` holds the hub's lock: the socket is bound at a temporary name and renamed into place, so that a stale
one is replaced and there is no moment in which a front finds half a socket.
"""

from __future__ import annotations

import asyncio
import glob
import logging
import os
import secrets
import socket
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from offload import __version__
from offload.core.ports import Clock
from offload.hub import control
from offload.hub.greeting import CONTROL, LIMIT, PROTOCOL, Refusal
from offload.hub.hello import Hello, accepted, parse, refused
from offload.hub.services import Serve, Services, nothing

logger = logging.getLogger(__name__)

# A reader pauses its sender at twice this; a line of a protocol may be this long (an MCP host sends whole files in one).
STREAM_LIMIT = 64 * 1024 * 1024
CHECK_S = 15.0  # how often the hub looks whether it is still needed


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: for a front to say hello, with no front and no work before the hub ends, for connections to end at a stop."""

    hello_s: float = 5.0
    idle_exit_s: float = 600.0
    stop_s: float = 5.0


class Server:
    """Serves one socket until `stop` is called, or nobody has needed it for long enough."""

    def __init__(self, path: str, services: Services, clock: Clock, limits: Limits) -> None:
        self._path = path
        self._services = services
        self._clock = clock
        self._limits = limits
        self._serve: dict[str, Serve] = {
            **services.serve,
            CONTROL: partial(control.serve, status=self.status, stop=self.stop),
        }
        self._stop = asyncio.Event()
        self._closing = False
        self._fronts: dict[asyncio.Task[None], Hello | None] = {}
        self._began = time.monotonic()
        self._last_used = clock.now()

    def stop(self, reason: str) -> None:
        """End the hub; returns at once."""
        logger.info("stopping", extra={"reason": reason})
        self._stop.set()

    def status(self) -> dict[str, Any]:
        """What people are told of the hub."""
        fronts = [hello for hello in self._fronts.values() if hello is not None and hello.kind != CONTROL]
        return {
            "pid": os.getpid(),
            "version": __version__,
            "protocol": PROTOCOL,
            "uptime_s": round(time.monotonic() - self._began, 1),
            "fronts": [{"kind": one.kind, "client": one.client, "pid": one.pid, "cwd": one.cwd} for one in fronts],
            **self._services.status(),
        }

    async def run(self, ending: Callable[[], None] = nothing) -> None:
        """Listen, and return when the hub has ended: no socket, no connection. `ending` is called when the end begins."""
        async with asyncio.TaskGroup() as group:
            listener = await self._listen(group)
            logger.info("listening", extra={"socket": self._path, "version": __version__})
            group.create_task(self._warm())
            watching = group.create_task(self._watch())
            await self._stop.wait()
            ending()
            watching.cancel()
            # Nothing else runs between these three: a front is counted already, or waits in the queue of a listener that
            # goes away. Either way it learns of the end before it has sent more than its hello, and connects again.
            self._closing = True
            self._remove_socket()
            listener.close()
            await self._end_connections()
        logger.info("stopped")

    async def _listen(self, group: asyncio.TaskGroup) -> asyncio.Server:
        def connected(reader: StreamReader, writer: StreamWriter) -> None:
            if self._closing:
                writer.write(refused(Refusal(Refusal.CLOSING, "this hub is ending; connect again")))
                writer.close()
                return
            task = group.create_task(self._connection(reader, writer))
            self._fronts[task] = None
            task.add_done_callback(self._gone)

        for left_over in glob.glob(glob.escape(self._path) + ".*"):
            os.unlink(left_over)  # of a hub that was killed between its bind and its rename
        temporary = f"{self._path}.{os.getpid()}"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(temporary)
        os.chmod(temporary, 0o600)  # nobody can connect before it listens
        listener = await asyncio.start_unix_server(connected, sock=listening, limit=STREAM_LIMIT, backlog=128)
        self._inode = os.stat(temporary).st_ino
        os.rename(temporary, self._path)
        return listener

    def _is_found(self) -> bool:
        """Whether the socket that fronts find is ours."""
        try:
            return os.stat(self._path).st_ino == self._inode
        except OSError:
            return False

    def _remove_socket(self) -> None:
        if self._is_found():
            os.unlink(self._path)

    async def _warm(self) -> None:
        try:
            await asyncio.to_thread(self._services.warm)
        except Exception:
            logger.exception("warming failed")

    async def _watch(self) -> None:
        while not self._stop.is_set():
            await self._clock.sleep(min(CHECK_S, self._limits.idle_exit_s))
            now = self._clock.now()
            if not self._is_found():
                # The state folder was removed by hand: nobody will come any more, and another hub may own the new one.
                self.stop("its socket is gone")
            elif self._fronts or self._services.busy():
                self._last_used = now
            elif now - self._last_used >= self._limits.idle_exit_s:
                self.stop("nobody needs it")

    def _gone(self, task: asyncio.Task[None]) -> None:
        del self._fronts[task]
        self._last_used = self._clock.now()

    async def _end_connections(self) -> None:
        connections = set(self._fronts)
        for task in connections:
            task.cancel()
        if connections:
            _, left = await asyncio.wait(connections, timeout=self._limits.stop_s)
            if left:
                logger.error("connections do not end", extra={"count": len(left)})

    async def _connection(self, reader: StreamReader, writer: StreamWriter) -> None:
        """One front, from its hello to its end. Nothing that goes wrong here may reach the others."""
        hello = None
        try:
            hello = await self._hello(reader)
            self._fronts[cast("asyncio.Task[None]", asyncio.current_task())] = hello
            writer.write(accepted())
            await self._serve[hello.kind](reader, writer, hello)
        except Refusal as refusal:
            logger.info("refused", extra={"code": refusal.code, "reason": str(refusal)})
            writer.write(refused(refusal))
        except ConnectionError as error:
            logger.info("connection lost", extra={"front": repr(hello), "reason": str(error)})
        except (Exception, SystemExit):
            logger.exception("connection failed", extra={"front": repr(hello), "key": secrets.token_hex(4)})
        finally:
            writer.close()

    async def _hello(self, reader: StreamReader) -> Hello:
        line = b""
        try:
            async with asyncio.timeout(self._limits.hello_s):
                while b"\n" not in line:
                    received = await reader.read(65536)
                    if not received:
                        raise Refusal("invalid_request", "the connection ended before its hello was complete")
                    line += received
                    if len(line) > LIMIT:
                        raise Refusal("invalid_request", f"the hello is longer than {LIMIT // 1024} KiB")
        except TimeoutError:
            raise Refusal("invalid_request", f"no hello came within {self._limits.hello_s:g} s") from None
        line, _, more = line.partition(b"\n")
        if more:
            raise Refusal("invalid_request", "nothing may be sent after the hello before it is answered")
        hello = parse(line)
        if hello.kind not in self._serve:
            kinds = ", ".join(sorted(self._serve))
            raise Refusal("invalid_request", f"no connection is of kind {hello.kind!r}; there are {kinds}")
        return hello
