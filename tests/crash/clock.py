"""A clock on which time goes faster than the system's, so that what is only believed after a while is believed soon.

A moment in which this process could not run counts as one short step: a busy machine makes nothing late that way.
"""

import asyncio
import time

STEP_S = 0.02


class FastClock:
    def __init__(self, speed):
        self._speed = speed
        self._now = time.time()
        self._looked = time.monotonic()

    def now(self):
        looked = time.monotonic()
        self._now += min(looked - self._looked, 2 * STEP_S) * self._speed
        self._looked = looked
        return self._now

    async def sleep(self, seconds):
        end = self.now() + seconds
        while (left := end - self.now()) > 0:  # noqa: ASYNC110 - it is the steps that make a busy machine harmless
            await asyncio.sleep(min(left / self._speed, STEP_S))
