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
from asyncio import StreamReader
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from offload import __version__
from offload.core.ports import Clock
from offload.hub import control, peer
from offload.hub.greeting import CONTROL, LIMIT, PROTOCOL, Refusal
from offload.hub.hello import Hello, accepted, parse, refused
from offload.hub.services import Serve, Services, nothing

logger = logging.getLogger(__name__)

# A reader pauses its sender at twice this; a line of a protocol may be this long (an MCP host sends whole files in one).
STREAM_LIMIT = 64 * 1024 * 1024
BACKLOG = 128
ACCEPT_AGAIN_S = 1.0
CHECK_S = 2.0  # how often the hub looks whether it is still needed, and can still be found


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds: for a front to say hello, with no front and no work before the hub ends, for connections to end at a stop."""

    hello_s: float = 5.0
    idle_exit_s: float = 600.0
    stop_s: float = 5.0


class Server:
    """Serves one socket until `stop` is called, or nobody has needed it for long enough."""

    def __init__(self, path: str, services: Services, clock: Clock, limits: Limits, owns: Callable[[], bool]) -> None:
        """`owns` says whether the place is still this hub's, and mends the socket's folder; it may read and write files."""
        self._path = path
        self._owns = owns
        self.left = False  # for another hub, see `drain`
        self._temporary = f"{path}.{os.getpid()}"
        self._services = services
        self._clock = clock
        self._limits = limits
        self._serve: dict[str, Serve] = {
            **services.serve,
            CONTROL: partial(control.serve, status=self.status, stop=self.stop, drain=self.drain),
        }
        self._stop = asyncio.Event()
        self._fronts: dict[asyncio.Task[None], Hello | None] = {}
        self._began = time.monotonic()
        self._last_used = clock.now()

    def stop(self, reason: str) -> None:
        """End the hub; returns at once."""
        logger.info("stopping", extra={"reason": reason})
        self._stop.set()

    def drain(self, reason: str) -> None:
        """End the hub for another one, which takes up its tasks where they are; returns at once."""
        self.left = True
        self._services.leave()
        self.stop(reason)

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
            self._listen(group)
            watching = group.create_task(self._watch(group))
            group.create_task(self._warm())
            await self._stop.wait()
            ending()
            # A front is counted from here on, or it waits in the queue of a listener that goes away. Then it learns of the
            # end before it has sent more than its hello, and connects again.
            watching.cancel()
            await asyncio.wait([watching])
            await self._listen_no_more()
            self._remove_socket()
            await self._end_connections()
        logger.info("stopped")

    def _listen(self, group: asyncio.TaskGroup) -> None:
        self._listening = self._bind()
        self._accepting = group.create_task(self._accept(self._listening, group))
        os.rename(self._temporary, self._path)
        logger.info("listening", extra={"socket": self._path, "version": __version__})

    async def _listen_again(self, group: asyncio.TaskGroup) -> bool:
        """Whether it could: a cleaner of /tmp, or a hand, has removed the socket alone."""
        if not self._owns():
            return False
        await self._listen_no_more()
        try:
            self._listen(group)
        except OSError:
            return False
        return True

    async def _listen_no_more(self) -> None:
        self._accepting.cancel()
        await asyncio.wait([self._accepting])  # and with it for the first step of every task that it has begun
        self._listening.close()

    async def _accept(self, listening: socket.socket, group: asyncio.TaskGroup) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except BlockingIOError:
                await _readable(listening)
            except OSError as error:
                # No file descriptor is left: who waits stays in the queue until some are free again.
                logger.warning("cannot accept", extra={"reason": str(error)})
                await self._clock.sleep(ACCEPT_AGAIN_S)
            else:
                task = group.create_task(self._connection(connection))
                self._fronts[task] = None
                task.add_done_callback(self._gone)

    def _bind(self) -> socket.socket:
        """The listening socket, still at a name that no front looks for."""
        for left_over in glob.glob(glob.escape(self._path) + ".*"):
            os.unlink(left_over)  # of a hub that was killed between its bind and its rename
        listening = socket.socket(socket.AF_UNIX)
        listening.setblocking(False)  # noqa: FBT003 - takes no name
        listening.bind(self._temporary)
        os.chmod(self._temporary, 0o600)  # nobody can connect before it listens
        listening.listen(BACKLOG)
        self._inode = os.stat(self._temporary).st_ino
        return listening

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
        except (
            Exception
        ):  # The edge of a task: what is not warm is imported by the front that needs it, which is told then.
            logger.exception("warming failed")

    async def _watch(self, group: asyncio.TaskGroup) -> None:
        while not self._stop.is_set():
            await self._clock.sleep(min(CHECK_S, self._limits.idle_exit_s))
            now = self._clock.now()
            if not self._is_found():
                if not await self._listen_again(group):
                    # The state folder was removed: nobody will come any more, and another hub may own the new one.
                    self.stop("its place is gone")
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

    async def _connection(self, connection: socket.socket) -> None:
        """One front. Nothing that goes wrong here may reach the others."""
        task = cast("asyncio.Task[None]", asyncio.current_task())
        try:
            reader, writer = await asyncio.open_unix_connection(sock=connection, limit=STREAM_LIMIT)
            try:
                self._fronts[task] = hello = await self._hello(reader)
                await asyncio.to_thread(peer.refuse_worker, connection)
                writer.write(accepted())
                await self._serve[hello.kind](reader, writer, hello)
            except Refusal as refusal:
                logger.info("refused", extra={"code": refusal.code, "reason": str(refusal)})
                writer.write(refused(refusal))
            finally:
                writer.close()
        except (Exception, SystemExit) as error:  # an editor's `exit` must not end the hub
            front = repr(self._fronts[task])
            if _is_lost(error):
                logger.info("connection lost", extra={"front": front, "reason": str(error)})
            else:
                logger.exception("connection failed", extra={"front": front, "key": secrets.token_hex(4)})

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


def _is_lost(error: BaseException) -> bool:
    """Whether the other side went away, and nothing else happened; a front may say so from within its task group."""
    if isinstance(error, BaseExceptionGroup):
        return error.split(ConnectionError)[1] is None
    return isinstance(error, ConnectionError)


async def _readable(listening: socket.socket) -> None:
    ready = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(listening, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(listening)
