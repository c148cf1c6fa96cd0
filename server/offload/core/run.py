"""A turn that runs in this hub, as the supervisor holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from offload.core.asks import Asks
from offload.core.ports import WorkerTurn
from offload.core.watch import Watch
from offload.domain.turn import TurnId


@dataclass(eq=False)
class Run:
    """A turn that runs here: what it takes to stop it and to answer it.

    `beside` holds what runs along with the worker and ends with it; `watch` says why the turn must end. `resumed` says that an
    earlier hub began the turn, so that its prompt may be out whatever phase the task comes to.
    """

    turn: TurnId
    environment: Mapping[str, str]
    watch: Watch
    resumed: bool = False
    asks: Asks = field(init=False)
    running: asyncio.Task[None] = field(init=False)
    worker_turn: WorkerTurn | None = None
    text: str = ""
    beside: list[asyncio.Task[None]] = field(default_factory=list)


async def stop_when_due(watch: Watch, worker_turn: WorkerTurn) -> None:
    """Stop the worker when the watch says that the turn must end."""
    await watch.ended.wait()
    await worker_turn.stop()
