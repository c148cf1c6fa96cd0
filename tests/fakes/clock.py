"""A clock that stands still until a test moves it; it fits `core.ports.Clock`."""

import asyncio
import heapq
from itertools import count


class ManualClock:
    """`advance` wakes every sleeper whose time has come; `sleepers(n)` waits until n of them are asleep."""

    def __init__(self, now=1_000_000.0):
        self._now = now
        self._asleep = []
        self._order = count()
        self._changed = asyncio.Condition()

    def now(self):
        return self._now

    async def sleep(self, seconds):
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken = asyncio.get_running_loop().create_future()
        entry = (self._now + seconds, next(self._order), woken)
        heapq.heappush(self._asleep, entry)
        try:
            async with self._changed:
                self._changed.notify_all()
            await woken
        finally:
            if entry in self._asleep:  # cancelled: nobody waits for it any more
                self._asleep.remove(entry)
                heapq.heapify(self._asleep)

    def advance(self, seconds):
        """Move the time on. A sleeper runs when the test awaits next; one that sleeps again counts from the new time."""
        self._now += seconds
        while self._asleep and self._asleep[0][0] <= self._now:
            _, _, woken = heapq.heappop(self._asleep)
            if not woken.done():
                woken.set_result(None)

    async def sleepers(self, wanted=1):
        """Wait until at least `wanted` are asleep, so that an advance cannot come before the sleep that it is meant for."""
        async with self._changed, asyncio.timeout(10):
            await self._changed.wait_for(lambda: len(self._asleep) >= wanted)

    async def naps(self, seconds):
        """Wait until somebody is asleep who wakes within `seconds`, however many sleep longer."""
        async with self._changed, asyncio.timeout(10):
            await self._changed.wait_for(lambda: self._asleep and self._asleep[0][0] <= self._now + seconds)
