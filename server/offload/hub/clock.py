"""The real time, as core's `Clock` wants it."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """The machine's time."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""
        await asyncio.sleep(seconds)
