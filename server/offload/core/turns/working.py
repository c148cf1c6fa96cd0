"""The worker's part of a turn: it is given its order and followed to its end, and what it does is written down."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from offload.core.ledger import Ledger
from offload.core.limits import Limits
from offload.core.turns.asks import with_always
from offload.core.turns.preparing import prompt_of
from offload.core.turns.record import Record
from offload.core.turns.run import Run, stop_when_due
from offload.core.worker import (
    AskOpened,
    AskOver,
    Doing,
    End,
    Failed,
    Finished,
    Halted,
    Happening,
    Lost,
    Opened,
    Said,
    Seen,
    TurnOrder,
    Used,
    Worker,
)
from offload.domain.errors import Defect, OffloadError, TurnLost
from offload.domain.events import ActivityChanged, Asked, SessionOpened, TurnSeen, UsageSeen, WorkLost
from offload.domain.task import Phase, TaskId
from offload.domain.turn import Failure

LOOKS = 3  # how often a worker that goes away is tried in one turn

Beside = Callable[[Run, str, Callable[[], Coroutine[Any, Any, None]]], None]


class Working:
    """`beside` starts what runs along with a worker and ends with it; `worker` gives the worker of a name."""

    def __init__(
        self,
        ledger: Ledger,
        record: Record,
        worker: Callable[[str], Worker],
        limits: Limits,
        beside: Beside,
        defect: Callable[[str, BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._clock = ledger.clock
        self._record = record
        self._worker = worker
        self._limits = limits
        self._beside = beside
        self._defect = defect
        self.letting_go = False
        """The house is being left: workers are let go of as they stand."""

    async def end(self, task_id: TaskId, run: Run, folder: Path) -> End:
        """How the worker ended. One that went away is looked for: it may have finished before, or not have begun."""
        lost: Lost | None = None
        for _ in range(LOOKS):
            task = self._ledger.get(task_id)
            order = TurnOrder(
                task=task_id,
                turn=run.turn,
                title=task.spec.title,
                folder=folder,
                prompt=prompt_of(task.turn),
                route=task.turn.asked,
                commands=task.spec.commands,
                session=task.turn.session,
                environment=run.environment,
                resume=run.resumed or task.phase is Phase.RECOVERING,
                profile=task.spec.profile,
            )
            end = await self._work(task_id, run, order)
            if not isinstance(end, Lost):
                return end if not isinstance(end, Finished) else replace(end, claims=_inside(folder, end.claims))
            lost = lost or end
            phase = self._ledger.get(task_id).phase
            if phase is Phase.CANCELLING:
                return lost
            if phase is not Phase.RECOVERING:
                await self._record.event(task_id, WorkLost(at=self._clock.now(), turn=run.turn, reason=end.reason))
            if end.sure:
                return lost
        assert lost is not None
        return lost

    async def _work(self, task_id: TaskId, run: Run, order: TurnOrder) -> End:
        """Follow the worker to the end of the turn; what goes wrong on the way is an end as well."""
        end: End | None = None
        may_be_out = order.resume and bool(order.session)
        try:
            if self._stopping(task_id) and not may_be_out:
                return Halted()
            async with self._worker(order.route.worker).turn(order) as worker_turn:
                if self._stopping(task_id) and not may_be_out:  # There is nothing to wait for.
                    return Halted()
                run.worker_turn = run.asks.worker_turn = worker_turn
                self._beside(run, f"the watch of task {task_id}", run.watch.run)
                self._beside(run, f"the limits of task {task_id}", partial(stop_when_due, run.watch, worker_turn))
                try:
                    if self._stopping(task_id):
                        await worker_turn.stop()
                    async for event in worker_turn.events():
                        if isinstance(event, End):
                            end = event
                        else:
                            await self._note(task_id, run, event)
                except Exception:
                    # Nobody follows the worker from here on, so it must not go on.
                    with suppress(OffloadError):
                        await worker_turn.stop()
                    raise
                finally:
                    await _end_beside(run)
        except Exception as error:  # The edge of the turn: whatever goes wrong with a worker is an end of its turn.
            if self.letting_go:  # The worker was told to let go and fell over it; the next hub finds the turn.
                raise asyncio.CancelledError from error
            if end is None:
                return self._broken(task_id, run, error)
            self._defect(f"the worker of task {task_id} after its end", error)
        return end or Failed(Failure(TurnLost.code, "the worker went away without saying how the turn ended"), run.text)

    def _broken(self, task_id: TaskId, run: Run, error: Exception) -> End:
        """What an error of the worker means. One that cannot be met again is lost, for whatever reason."""
        expected = isinstance(error, OffloadError) and not isinstance(error, Defect)
        recovering = self._ledger.get(task_id).phase is Phase.RECOVERING
        if isinstance(error, TurnLost) or (expected and recovering):
            return Lost(str(error), run.text, sure=not isinstance(error, TurnLost))
        return Failed(self._record.failure(task_id, error), run.text)

    def _stopping(self, task_id: TaskId) -> bool:
        return self._ledger.get(task_id).stop_requested

    async def _note(self, task_id: TaskId, run: Run, event: Happening) -> None:
        """Record one thing that the worker did."""
        at, turn = self._clock.now(), run.turn
        match event:
            case Opened():
                await self._record.event(task_id, SessionOpened(at=at, turn=turn, session=event.session))
            case Seen():
                await self._record.event(task_id, TurnSeen(at=at, turn=turn))
            case Doing():
                await self._record.event(task_id, ActivityChanged(at=at, turn=turn, activity=event.activity))
            case Said():
                run.text = (run.text + event.text)[-self._limits.live_text :]
            case Used():
                worked_s = run.watch.worked_s
                seen = UsageSeen(at=at, turn=turn, usage=event.usage, ran=event.ran, worked_s=worked_s)
                await self._record.event(task_id, seen)
            case AskOpened():
                await self._record.event(task_id, Asked(at=at, turn=turn, ask=with_always(event.ask)))
                run.asks.opened(event.ask.id)
            case AskOver():
                closed = run.asks.over(event)
                await self._record.stored(task_id, "AskClosed", lambda: run.asks.close(closed))
            case _:
                pass  # `Alive` is for the watch alone.
        run.watch.noted(event)


async def _end_beside(run: Run) -> None:
    """A stop or a denial that comes late would meet the next turn of the session."""
    run.worker_turn = run.asks.worker_turn = None
    for beside in run.beside:
        beside.cancel()
    await asyncio.gather(*run.beside, return_exceptions=True)


def _inside(folder: Path, claims: tuple[str, ...]) -> tuple[str, ...]:
    """The claimed files that are in the folder, relative to it, each once."""
    paths = (Path(os.path.normpath(folder / claim)) for claim in claims)
    return tuple(dict.fromkeys(path.relative_to(folder).as_posix() for path in paths if path.is_relative_to(folder)))
