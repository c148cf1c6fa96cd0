"""Time limits by the hub's own clock, so that tests decide what time it is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from offload.core.ports import Clock

T = TypeVar("T")


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T | None:
    """What `work` gives, or None when `seconds` have passed before it; `work` is cancelled then."""
    working = asyncio.ensure_future(work)
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({working, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        working.cancel()
        sleeping.cancel()
        await asyncio.wait({working, sleeping})
