"""What the composition root gives the hub: how each kind of connection is served. The hub knows no protocol but its own."""

from __future__ import annotations

from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from offload.hub.hello import Hello

Serve = Callable[[StreamReader, StreamWriter, Hello], Awaitable[None]]


def nothing() -> None:
    """Nothing needs to be warmed."""


@dataclass(frozen=True, slots=True)
class Services:
    """`serve` has one function per kind of hello; it returns when its connection is over, and is cancelled when the hub ends.

    `busy` is true while there is work that must not be left alone; `status` is what people are told of it; `warm` is run in
    a thread once the hub listens, for imports that are slow and that the first connection will want; `leave` says before the
    end that workers are to be left at work, because another hub takes them up.
    """

    serve: Mapping[str, Serve]
    busy: Callable[[], bool]
    status: Callable[[], Mapping[str, Any]]
    warm: Callable[[], None] = nothing
    leave: Callable[[], None] = nothing


Build = Callable[[], AbstractAsyncContextManager[Services]]
