"""Outgoing side of one connection: never blocks the loop, and the latest state wins. Knows nothing of what it sends."""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import Callable, Hashable

HIGH_WATER_BYTES = 256 * 1024
MAX_QUEUED_BYTES = 64 * 1024 * 1024


class Outbox:
    """Queue in front of an asyncio stream writer; to be used on the loop only.

    While the editor reads, frames go straight to the transport. While it does not, frames wait here; a frame with a `key`
    replaces the waiting frame with the same key, so an editor that resumes gets the latest state of each task instead of a
    backlog. An editor for which more than `max_queued_bytes` wait is given up: `on_failure` is called.
    """

    def __init__(
        self, writer: asyncio.StreamWriter, on_failure: Callable[[], None], max_queued_bytes: int = MAX_QUEUED_BYTES
    ) -> None:
        self._writer = writer
        self._on_failure = on_failure
        self._max_queued_bytes = max_queued_bytes
        self._waiting: OrderedDict[Hashable, bytes] = OrderedDict()
        self._waiting_bytes = 0
        self._sequence = itertools.count()
        self._filled = asyncio.Event()
        self._emptied = asyncio.Event()
        self._emptied.set()
        self._dead = False
        writer.transport.set_write_buffer_limits(high=HIGH_WATER_BYTES)

    def write(self, frame: bytes, key: Hashable | None = None) -> None:
        """Queue one frame."""
        if self._dead:
            return
        if not self._waiting and not self._is_full():
            self._writer.write(frame)
            return
        slot = ("key", key) if key is not None else ("seq", next(self._sequence))
        self._waiting_bytes += len(frame) - len(self._waiting.pop(slot, b""))
        self._waiting[slot] = frame
        self._emptied.clear()
        self._filled.set()
        if self._waiting_bytes > self._max_queued_bytes:
            self._give_up()

    @property
    def waiting(self) -> int:
        """Number of frames not yet handed to the transport."""
        return len(self._waiting)

    async def run(self) -> None:
        """Hand over what waits whenever the editor reads again; belongs into the connection's task group."""
        try:
            while True:
                await self._filled.wait()
                await self._writer.drain()
                while self._waiting and not self._is_full():
                    _, frame = self._waiting.popitem(last=False)
                    self._waiting_bytes -= len(frame)
                    self._writer.write(frame)
                if not self._waiting:
                    self._filled.clear()
                    self._emptied.set()
        except OSError:
            self._give_up()

    async def close(self, timeout_s: float = 2.0) -> None:
        """Hand over what waits, for `timeout_s` seconds at most, then close the stream. `run` must still be running."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._emptied.wait()
                self._dead = True
                self._writer.close()
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._dead = True
            self._writer.transport.abort()

    def _is_full(self) -> bool:
        return self._writer.transport.get_write_buffer_size() >= HIGH_WATER_BYTES

    def _give_up(self) -> None:
        self._dead = True
        self._waiting.clear()
        self._waiting_bytes = 0
        self._emptied.set()
        self._writer.transport.abort()
        self._on_failure()
