"""The same request twice does its work once: by its key, or because the answer to the first never reached its caller.

A key is kept in the task's own events, so that it holds after a restart of the hub. It belongs to what it was used for: to a
workspace for a start, to a task for the rest.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable, Iterable
from contextlib import asynccontextmanager

from offload.core.caller import Caller, Delivery
from offload.domain.ask import Answer, AskId, AskOutcome, Closing
from offload.domain.budget import Budget
from offload.domain.errors import KeyReused
from offload.domain.review import Selection
from offload.domain.task import Landing, Phase, Task, TaskId

AGAIN_S = 60.0


class Turnstile:
    """Lets one at a time pass for each name."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, asyncio.Lock] = {}
        self._users: Counter[Hashable] = Counter()

    @asynccontextmanager
    async def alone(self, *name: Hashable) -> AsyncIterator[None]:
        self._users[name] += 1
        try:
            async with self._locks.setdefault(name, asyncio.Lock()):
                yield
        finally:
            self._users[name] -= 1
            if not self._users[name]:
                del self._users[name], self._locks[name]


class Starts:
    """What is known of the delivery of the answers to starts, for as long as it matters."""

    def __init__(self) -> None:
        self._answers: dict[TaskId, tuple[float, Delivery]] = {}

    def answer(self, task: Task, caller: Caller, now: float) -> None:
        """`caller` is given the task as the answer to its start."""
        self._answers = {key: kept for key, kept in self._answers.items() if now - kept[0] <= AGAIN_S}
        self._answers[task.id] = (now, caller.delivery)

    def undelivered(self, tasks: Iterable[Task], caller: Caller, now: float) -> list[Task]:
        """Those that the same caller started within `AGAIN_S` and was not told of. After a restart of the hub nobody knows
        what was delivered, so nothing of before counts as delivered."""
        return [
            task
            for task in tasks
            if (task.spec.front, task.spec.caller, task.spec.key) == (caller.front, caller.name, "")
            and 0 <= now - task.created_at <= AGAIN_S
            and (task.live or task.phase is Phase.READY)
            and (task.id not in self._answers or self._answers[task.id][1].lost)
        ]


def continued(task: Task, key: str, brief: str, budget: Budget, onto: str) -> bool:
    """Whether this follow-up was sent before. Raises `KeyReused` when the key came with another."""
    for before, turn in zip(task.turns, task.turns[1:], strict=False):
        if key and turn.key == key:
            if (turn.brief, turn.budget, turn.onto) == (brief, budget.over(before.budget), onto):
                return True
            raise _reused(key)
    return False


def answered(task: Task, key: str, ask: AskId, answer: Answer) -> bool:
    """Whether this answer was given before. Raises `KeyReused` when the key came with another."""
    for closing in task.closings:
        if key and closing.key == key:
            if (closing.choice, closing.message) == (answer.choice, answer.message) and ask in ("", closing.ask.id):
                return True
            raise _reused(key)
    return False


def landed(task: Task, key: str, selection: Selection) -> Landing | None:
    """The landing that this call made before. Raises `KeyReused` when the key came with another selection."""
    for landing in task.landings:
        if key and landing.key == key:
            if Selection(landing.wanted, landing.wanted_hunks, landing.wanted_outside) == selection:
                return landing
            raise _reused(key)
    return None


def closing_of(task: Task, ask: AskId) -> Closing | None:
    """How the ask was closed, if it was."""
    return next((closing for closing in reversed(task.closings) if closing.ask.id == ask), None)


def told(closing: Closing) -> str:
    """How an ask was closed, for those who come later."""
    if closing.outcome is AskOutcome.ANSWERED:
        return f"{closing.by or 'somebody'} answered {closing.choice!r}"
    if closing.outcome is AskOutcome.TIMED_OUT:
        return "nobody answered in time, so it was denied"
    if closing.ask.wanted is not None:
        return "the result has moved on since"
    return "the worker does not wait for it any more"


def _reused(key: str) -> KeyReused:
    return KeyReused(f"the key {key!r} was used for another request to this task; use a new key")
