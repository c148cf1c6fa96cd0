"""Journals that a test can hold, so that something else can happen in the middle of an append."""

import asyncio

from tests.fakes.journal import MemoryJournal


class HeldJournal(MemoryJournal):
    """`hold()` keeps every append waiting, `reached` says that one does, `release()` lets them go on."""

    def __init__(self):
        super().__init__()
        self.reached = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()

    def hold(self):
        self.reached.clear()
        self._open.clear()

    def release(self):
        self._open.set()

    async def append(self, task, events, *, expect):
        self.reached.set()
        await self._open.wait()
        await asyncio.sleep(0)  # as a real one, it gives others the time to come in between
        return await super().append(task, events, expect=expect)
