"""Which of several results break the checks that pass without them: found by halving, with as few runs as that takes. Knows
nothing of git or commands: whether some of the results fail together is asked of `fails`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from offload.domain.task import TaskId


class Untried(Exception):
    """Some of the results cannot be merged without the others."""


@dataclass(frozen=True, slots=True)
class Found:
    """`culprits` are one that fails alone, or two that pass alone and fail together, in the order of their merging; `before`
    says that the checks fail without any of the results. `doubt` says why neither is known; `probes` counts the runs."""

    culprits: tuple[TaskId, ...] = ()
    before: bool = False
    doubt: str = ""
    probes: int = 0


Fails = Callable[[Collection[TaskId]], Awaitable[bool]]


async def find_culprits(order: Sequence[TaskId], fails: Fails) -> Found:
    """`order` are all the results, as they were merged, and their checks were seen to fail together. `fails` says whether they
    fail with some of them alone, and raises `Untried`."""
    search = _Search(tuple(order), fails)
    try:
        return await search.run()
    except Untried:
        doubt = (
            "some of the results cannot be merged without others, so it is not known which of them the checks fail with"
        )
        return Found(doubt=doubt, probes=search.probes)


class _Search:
    """No set of results is tried twice."""

    def __init__(self, order: tuple[TaskId, ...], fails: Fails) -> None:
        self._order = order
        self._ask = fails
        self._known = {frozenset(order): True}

    @property
    def probes(self) -> int:
        return len(self._known) - 1

    async def run(self) -> Found:
        if await self._fails():
            return Found(before=True, probes=self.probes)
        order = self._order
        last = await self._first(len(order), lambda count: order[:count])
        one = order[last - 1]
        if await self._fails(one):
            return Found((one,), probes=self.probes)
        # It passes alone, so there is one before it.
        partner = order[await self._first(last - 1, lambda count: (*order[:count], one)) - 1]
        if await self._fails(partner, one) and not await self._fails(partner):
            return Found((partner, one), probes=self.probes)
        doubt = (
            f"the checks fail since {one} was merged, but not with it and one other alone: more of the results are needed for "
            "it, or a check does not always give the same"
        )
        return Found(doubt=doubt, probes=self.probes)

    async def _first(self, most: int, some: Callable[[int], tuple[TaskId, ...]]) -> int:
        """The smallest count up to `most`, with which it is known to fail, whose results fail together."""
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            if await self._fails(*some(middle)):
                high = middle
            else:
                low = middle + 1
        return high

    async def _fails(self, *some: TaskId) -> bool:
        key = frozenset(some)
        if key not in self._known:
            self._known[key] = await self._ask(some)
        return self._known[key]
