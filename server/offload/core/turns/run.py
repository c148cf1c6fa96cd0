"""A turn that runs in this hub, as the supervisor holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from offload.core.turns.asks import Asks
from offload.core.turns.watch import Watch
from offload.core.worker import WorkerTurn
from offload.domain.turn import TurnId

T = TypeVar("T")


class Interrupted(Exception):
    """A stop was asked for, and the command of ours that ran is ended."""


@dataclass(eq=False)
class Run:
    """A turn that runs here: what it takes to stop it and to answer it.

    `beside` holds what runs along with the worker and ends with it; `watch` says why the turn must end. `resumed` says that an
    earlier hub began the turn, so that its prompt may be out whatever phase the task comes to. `interrupted` says that a stop
    was asked for.
    """

    turn: TurnId
    environment: Mapping[str, str]
    watch: Watch
    resumed: bool = False
    interrupted: bool = False
    asks: Asks = field(init=False)
    running: asyncio.Task[None] = field(init=False)
    worker_turn: WorkerTurn | None = None
    text: str = ""
    beside: list[asyncio.Task[None]] = field(default_factory=list)
    _command: asyncio.Timeout | None = None

    def interrupt(self) -> None:
        """End the command of ours that runs, and let none begin any more."""
        self.interrupted = True
        if self._command is not None:
            self._command.reschedule(0)
            self._command = None

    async def interruptible(self, command: Callable[[], Awaitable[T]]) -> T:
        """What a command of ours gives. Raises `Interrupted` once it is ended by a stop."""
        if self.interrupted:
            raise Interrupted
        scope = self._command = asyncio.timeout(None)
        try:
            async with scope:
                return await command()
        except TimeoutError as error:
            raise Interrupted if scope.expired() else error from None
        finally:
            self._command = None


async def stop_when_due(watch: Watch, worker_turn: WorkerTurn) -> None:
    """Stop the worker when the watch says that the turn must end."""
    await watch.ended.wait()
    await worker_turn.stop()
