"""The asks of one turn that runs: each is answered once, by whoever is first, or denied when nobody comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from offload.core.idempotency import closing_of, told
from offload.core.ledger import Ledger
from offload.core.worker import AskOver, WorkerTurn
from offload.domain.ask import ALLOW, ALWAYS, DENY, Answer, Ask, AskId, AskKind, AskOutcome
from offload.domain.errors import OffloadError, UnknownAsk
from offload.domain.events import AskClosed
from offload.domain.task import Task, TaskId
from offload.domain.turn import TurnId

EARLIER_ANSWER = "an earlier answer for the whole task"
NOBODY_ANSWERED = "Nobody was there to allow this. Go on without it, or say what you would need it for."


@dataclass(eq=False)
class Asks:
    """`spawn` starts what ends with the turn; `worker_turn` is there while answers can reach the worker; `reply` is the answer
    that is on its way to it."""

    task: TaskId
    turn: TurnId
    ledger: Ledger
    timeout_s: float
    spawn: Callable[[str, Callable[[], Coroutine[Any, Any, None]]], None]
    defect: Callable[[str, BaseException], None]
    worker_turn: WorkerTurn | None = None
    _replying: asyncio.Lock = field(default_factory=asyncio.Lock)
    _reply: AskClosed | None = None

    def opened(self, ask: AskId) -> None:
        """An ask is recorded; to be called once."""
        self._grant()
        self.spawn(f"ask {ask} of task {self.task}", partial(self._expire, ask))

    def over(self, event: AskOver) -> AskClosed:
        """What is to be recorded when the worker says that it does not wait any more."""
        if self._reply is not None and self._reply.ask == event.ask and event.outcome is AskOutcome.ANSWERED:
            return self._reply  # The worker says that our answer has come before it has taken it from us.
        return self._closed(event.ask, event.outcome)

    async def close(self, closed: AskClosed) -> Task:
        return await self.ledger.decide(self.task, lambda task: [closed] if closed.ask in task.asks else [])

    async def answer(self, ask: AskId, answer: Answer, by: str, key: str) -> Task:
        """Give an answer to the worker and record it. Raises `UnknownAsk` when it is closed, saying how."""
        choice, message = answer.choice, answer.message
        return await self._give(self._closed(ask, AskOutcome.ANSWERED, choice=choice, message=message, by=by, key=key))

    def _closed(self, ask: AskId, outcome: AskOutcome, **says: Any) -> AskClosed:
        return AskClosed(at=self.ledger.clock.now(), turn=self.turn, ask=ask, outcome=outcome, **says)

    async def _give(self, given: AskClosed) -> Task:
        """Tell the worker the answer, and close the ask with it. Of "always" no worker knows."""
        answer = Answer(ALLOW if given.choice == ALWAYS else given.choice, given.message)
        async with self._replying:
            task = self.ledger.get(self.task)
            if self.worker_turn is None or given.ask not in task.asks:
                raise not_open(given.ask, task)
            self._reply = given
            try:
                await self.worker_turn.answer(given.ask, answer)
                task = await self.close(given)
            except UnknownAsk:
                await self.close(self._closed(given.ask, AskOutcome.WITHDRAWN))
                raise
            finally:
                self._reply = None
        self._grant()
        return task

    def _grant(self) -> None:
        """Allow what was allowed before for the whole task."""
        task = self.ledger.get(self.task)
        for ask in task.asks.values():
            if task.granted(ask):
                self.spawn(f"ask {ask.id} of task {self.task}", partial(self._allow, ask.id))

    async def _allow(self, ask: AskId) -> None:
        with suppress(UnknownAsk):  # Somebody was quicker.
            await self._give(self._closed(ask, AskOutcome.ANSWERED, choice=ALLOW, by=EARLIER_ANSWER))

    async def _expire(self, ask: AskId) -> None:
        """Deny what nobody answers in time, in words, so that the turn goes on."""
        while ask in self.ledger.get(self.task).asks:
            await self.ledger.clock.sleep(self.timeout_s)
            try:
                await self._give(self._closed(ask, AskOutcome.TIMED_OUT, choice=DENY, message=NOBODY_ANSWERED))
            except UnknownAsk:
                continue  # It was answered or withdrawn in the meantime.
            except OffloadError as error:
                self.defect(f"ask {ask} of task {self.task} could not be denied", error)


def with_always(ask: Ask) -> Ask:
    """A permission as people are asked for it: they may say it for the whole task."""
    return replace(ask, choices=(ALLOW, ALWAYS, DENY)) if ask.kind is AskKind.PERMISSION else ask


def not_open(ask: AskId, task: Task) -> UnknownAsk:
    closing = closing_of(task, ask)
    return UnknownAsk(f"{ask} is closed: {told(closing)}" if closing else f"{ask} is not open any more")
