"""Serve one pygls server on one asyncio stream pair, in a process that lives on. Knows nothing of tasks."""

from __future__ import annotations

import asyncio
import contextlib
import enum
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from lsprotocol import types

from offload.lsp.outbox import MAX_QUEUED_BYTES, Outbox
from offload.lsp.protocol import HostedProtocol

logger = logging.getLogger(__name__)

# pygls logs payloads and clients' capabilities at INFO, and again when something fails; what matters is logged here. The hub's log
# says the same of it (`offload.log`): this line is for those who serve an editor without it.
logging.getLogger("pygls").setLevel(logging.CRITICAL)

# Not on every system.
_PIDFD_OPEN: Callable[[int], int] | None = getattr(os, "pidfd_open", None)

_HANDLERS_END_S = 1.0


class Ended(enum.Enum):
    """Why a connection ended."""

    EXIT = "exit after shutdown"
    EXIT_WITHOUT_SHUTDOWN = "exit without shutdown"
    DISCONNECTED = "stream closed"
    EDITOR_DIED = "the editor's process is gone"
    BAD_FRAME = "bad frame"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one connection may ask for; after `turn_s` seconds of one editor's messages the others get their turn."""

    max_body_bytes: int = 64 * 1024 * 1024
    max_queued_bytes: int = MAX_QUEUED_BYTES
    turn_s: float = 0.005


async def serve_connection(
    protocol: HostedProtocol,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    farewell: Callable[[], Awaitable[None]],
    limits: Limits | None = None,
) -> Ended:
    """Serve until the connection ends; `farewell` runs while last words can still be sent."""
    limits = limits or Limits()
    ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()

    def finish(reason: Ended) -> None:
        with contextlib.suppress(asyncio.InvalidStateError):  # the first reason counts
            ended.set_result(reason)

    outbox = Outbox(writer, lambda: finish(Ended.DISCONNECTED), limits.max_queued_bytes)
    watch = ProcessWatch(lambda: finish(Ended.EDITOR_DIED))
    protocol.on_exit = lambda clean: finish(Ended.EXIT if clean else Ended.EXIT_WITHOUT_SHUTDOWN)
    protocol.on_editor_pid = watch.start
    protocol.outbox = outbox
    async with asyncio.TaskGroup() as group:
        flushing = group.create_task(outbox.run())
        reading = group.create_task(_read(protocol, reader, limits, finish))
        try:
            return await ended
        finally:
            watch.stop()
            reading.cancel()
            await farewell()
            running = protocol.abandon()
            if running:  # let cancelled handlers run their clean-up, but not for ever
                await asyncio.wait(running, timeout=_HANDLERS_END_S)
            await outbox.close()
            flushing.cancel()


async def _read(
    protocol: HostedProtocol, reader: asyncio.StreamReader, limits: Limits, finish: Callable[[Ended], None]
) -> None:
    turn_started = time.monotonic()
    while True:
        try:
            header = await reader.readuntil(b"\r\n\r\n")
            length = content_length(header)
            if length is None or length > limits.max_body_bytes:
                break
            body = await reader.readexactly(length)
        except asyncio.LimitOverrunError:
            break
        except (asyncio.IncompleteReadError, OSError):
            finish(Ended.DISCONNECTED)
            return
        protocol.dispatch(body)
        if time.monotonic() - turn_started > limits.turn_s:
            await asyncio.sleep(0)  # buffered input is read without a pause
            turn_started = time.monotonic()
    protocol.refuse(
        None, types.ErrorCodes.ParseError, "the header is too long, or its Content-Length missing or too large"
    )
    finish(Ended.BAD_FRAME)


def content_length(header: bytes) -> int | None:
    """The Content-Length of a header block (any letter case), or None."""
    for line in header.split(b"\r\n"):
        name, _, value = line.partition(b":")
        value = value.strip()
        if name.strip().lower() == b"content-length" and value.isdigit() and len(value) < 16:
            return int(value)
    return None


class ProcessWatch:
    """Calls back when the editor's process ends, even if its end of the stream stays open.

    An editor that is killed while another process holds its pipe leaves the stream open for ever.
    """

    def __init__(
        self,
        on_end: Callable[[], None],
        open_pidfd: Callable[[int], int] | None = _PIDFD_OPEN,
        poll_s: float = 1.0,
    ) -> None:
        self._on_end = on_end
        self._open_pidfd = open_pidfd
        self._poll_s = poll_s
        self._loop = asyncio.get_running_loop()
        self._pidfd: int | None = None
        self._poll: asyncio.TimerHandle | None = None

    def start(self, pid: int) -> None:
        """Watch `pid`; a number that names no process here (a remote editor's) is ignored."""
        if not _is_alive(pid):
            return
        self._pidfd = self._opened(pid)
        if self._pidfd is None:
            self._poll = self._loop.call_later(self._poll_s, self._check, pid)
        else:
            self._loop.add_reader(self._pidfd, self._on_end)

    def stop(self) -> None:
        """Stop watching."""
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        if self._poll is not None:
            self._poll.cancel()
            self._poll = None

    def _opened(self, pid: int) -> int | None:
        if self._open_pidfd is None:
            return None
        try:
            return self._open_pidfd(pid)
        except OSError:  # a sandbox without it, or the process has just ended
            return None

    def _check(self, pid: int) -> None:
        if _is_alive(pid):
            self._poll = self._loop.call_later(self._poll_s, self._check, pid)
        else:
            self._on_end()


def _is_alive(pid: int) -> bool:
    try:
        with contextlib.suppress(PermissionError):  # another user's process lives too
            os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    return pid > 0  # 0 and below name groups of processes
