"""One task's life: snapshot, place, folder, worker, result. Every turn runs in the supervisor's task group, owned by nobody
who asked for it: a request, an editor or a front may go away and the turn goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from offload.core.admission import Admission
from offload.core.asks import Asks, not_open, with_always
from offload.core.ledger import Ledger
from offload.core.limits import Limits, overdrawn
from offload.core.ports import (
    AskOpened,
    AskOver,
    Doing,
    End,
    Failed,
    Halted,
    Happening,
    Lost,
    Opened,
    Said,
    Seen,
    TurnOrder,
    Used,
    Worker,
    Workspace,
)
from offload.core.record import Record
from offload.core.run import Run, stop_when_due
from offload.core.verdict import bounded, verdict, verdict_unread
from offload.core.watch import BUDGET, Watch
from offload.domain.ask import Answer, AskId
from offload.domain.change import ChangeSet
from offload.domain.errors import Defect, OffloadError, TurnLost
from offload.domain.events import (
    ActivityChanged,
    Admitted,
    Asked,
    SessionOpened,
    Snapshotted,
    StopRequested,
    TurnEvent,
    TurnFailed,
    TurnSeen,
    UsageSeen,
    WorkLost,
)
from offload.domain.task import Phase, Task, TaskId
from offload.domain.turn import Failure, TurnId

LOOKS = 3  # how often a worker that goes away is tried in one turn


# Starting git holds the loop for a few milliseconds; whoever started the task has his answer first, which takes an edge a few
# steps of the loop.
STEPS_FOR_THE_ANSWER = 100


class Supervisor:
    """Runs turns; `worker` gives the worker of a name. To be used as an async context manager: on leaving, turns that run
    are let go of as they stand."""

    def __init__(
        self,
        ledger: Ledger,
        workspace: Workspace,
        worker: Callable[[str], Worker],
        limits: Limits,
        defect: Callable[[str, BaseException], None],
    ) -> None:
        self._ledger = ledger
        self._clock = ledger.clock
        self._workspace = workspace
        self._worker = worker
        self._limits = limits
        self._defect = defect
        self._record = Record(ledger, defect)
        self._runs: dict[TurnId, Run] = {}
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._letting_go = False
        self.admission = Admission(limits.tasks_per_workspace, self._moved)

    async def __aenter__(self) -> Supervisor:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._letting_go = True
        for running in self._tasks:
            running.cancel()
        # No task raises, so whatever the house is left for is raised as it is, not as the group's.
        await self._group.__aexit__(None, None, None)

    def launch(self, task: Task, environment: Mapping[str, str]) -> None:
        """Run the task's last turn; returns at once. A hub that ends launches nothing: the next one finds the task."""
        if not self._letting_go:
            look = partial(self._ledger.get, task.id)
            watch = Watch(look, self._ledger.all, self._workspace, self._clock, self._limits)
            run = Run(task.turn.id, environment, watch, resumed=task.phase is Phase.RECOVERING)
            beside = partial(self._beside, run)
            run.asks = Asks(task.id, run.turn, self._ledger, self._limits.ask_timeout_s, beside, self._defect)
            self._runs[run.turn] = run
            run.running = self._spawn(f"task {task.id}", partial(self._run, task.id, run))

    def text(self, task: Task) -> str:
        """The end of what the worker has said in the turn that runs; "" once its end, with the whole text, is recorded."""
        run = self._runs.get(task.turn.id)
        return run.text if run is not None and task.live else ""

    async def stop(self, task_id: TaskId) -> Task:
        """Ask for a stop. The answer says what has happened by then: a queued task is cancelled, a working one cancelling.

        Asking again says it to the worker again, which may not have heard it.
        """

        def request(task: Task) -> list[StopRequested]:
            return [StopRequested(at=self._clock.now())] if task.live and not task.stop_requested else []

        def follow(task: Task) -> None:
            run = self._runs.get(task.turn.id)
            if run is not None and task.phase is Phase.CANCELLED:
                del self._runs[run.turn]
                run.running.cancel()
            elif run is not None and run.worker_turn is not None and task.stop_requested:
                self._beside(run, f"the stop of task {task.id}", run.worker_turn.stop)

        return await self._ledger.decide(task_id, request, follow)

    async def answer(self, task: Task, ask_id: AskId, answer: Answer, by: str, key: str) -> Task:
        """Give an answer to the worker and record it; the first answer wins. Raises `UnknownAsk` for the others."""
        run = self._runs.get(task.turn.id)
        if run is None:
            raise not_open(ask_id, task)
        return await self._ledger.to_the_end(run.asks.answer(ask_id, answer, by, key))

    async def release(self, task: Task, environment: Mapping[str, str]) -> None:
        """Give back what a closed task held. It is closed whatever comes of this, so trouble is told to the log alone."""
        if task.turn.session:
            try:
                await self._worker(task.turn.asked.worker).release(task.turn.session, environment)
            except OffloadError as error:
                self._defect(f"the session of task {task.id} could not be released", error)
        try:
            await self._workspace.release(task.id, Path(task.spec.workspace))
        except OffloadError as error:
            self._defect(f"the folder of task {task.id} could not be removed", error)

    def _spawn(self, what: str, work: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - the edge of a task: what goes wrong in one does not end the hub.
                self._defect(what, error)

        spawned = self._group.create_task(guarded(), name=what)
        self._tasks.add(spawned)
        spawned.add_done_callback(self._tasks.discard)
        return spawned

    def _beside(self, run: Run, what: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        run.beside.append(self._spawn(what, work))

    async def _run(self, task_id: TaskId, run: Run) -> None:
        for _ in range(STEPS_FOR_THE_ANSWER):
            await asyncio.sleep(0)
        try:
            # The end is recorded when the place is free again, so that whoever sees it can go on at once.
            ended = await self._turn(task_id, run)
            await self._record.event(task_id, replace(ended, worked_s=run.watch.worked_s))
        except Exception as error:  # noqa: BLE001 - the edge of the turn: what goes wrong ends this turn, not the hub.
            failure = self._record.failure(task_id, error)
            await self._record.event(task_id, TurnFailed(at=self._clock.now(), turn=run.turn, failure=failure))
        finally:
            self._runs.pop(run.turn, None)

    async def _turn(self, task_id: TaskId, run: Run) -> TurnEvent:
        """Do the turn, and say how it ended."""
        task = self._ledger.get(task_id)
        root = Path(task.spec.workspace)
        if not task.base:
            taken = await self._workspace.snapshot(root, task.spec.buffers)
            snapshotted = Snapshotted(at=self._clock.now(), turn=run.turn, base=taken.base, notes=taken.notes)
            task = await self._record.event(task_id, snapshotted)
        if task.phase is Phase.QUEUED and self.admission.full(task.spec.workspace):
            self._spawn(f"the check of task {task_id}", partial(self._check, task, run))
        async with self.admission.place(task.spec.workspace, task_id, at_once=run.resumed):
            if task.phase is Phase.QUEUED:
                await self._record.event(task_id, Admitted(at=self._clock.now(), turn=run.turn))
                tasks, daily_cost, now = self._ledger.all(), self._limits.daily_cost, self._clock.now()
                if reached := overdrawn(tasks, task.spec.workspace, daily_cost, now):
                    return TurnFailed(at=now, turn=run.turn, failure=Failure(BUDGET, f"it was not begun: {reached}"))
            return await self._verdict(task_id, run, await self._end(task_id, run, root))

    async def _check(self, task: Task, run: Run) -> None:
        """A turn that must wait is told at once when it waits in vain."""
        try:
            await self._worker(task.turn.asked.worker).check(task.turn.asked, run.environment, task.turn.session)
        except OffloadError as error:
            failed = TurnFailed(at=self._clock.now(), turn=run.turn, failure=self._record.failure(task.id, error))

            def fail(now: Task) -> list[TurnFailed]:
                return [failed] if now.phase is Phase.QUEUED and now.turn.id == run.turn else []

            def follow(now: Task) -> None:
                if now.turn.failure is failed.failure:
                    self._runs.pop(run.turn, None)
                    run.running.cancel()

            await self._ledger.decide(task.id, fail, follow)

    async def _end(self, task_id: TaskId, run: Run, root: Path) -> End:
        """How the worker ended. One that went away is looked for: it may have finished before, or not have begun."""
        lost: Lost | None = None
        for _ in range(LOOKS):
            task = self._ledger.get(task_id)
            order = TurnOrder(
                task=task_id,
                turn=run.turn,
                title=task.spec.title,
                folder=await self._workspace.open_folder(task_id, root, task.base),
                prompt=task.turn.prompt,
                route=task.turn.asked,
                commands=task.spec.commands,
                session=task.turn.session,
                environment=run.environment,
                resume=run.resumed or task.phase is Phase.RECOVERING,
                profile=task.spec.profile,
            )
            end = await self._work(task_id, run, order)
            if not isinstance(end, Lost):
                return end
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
                    await self._end_beside(run)
        except Exception as error:
            if self._letting_go:  # The worker was told to let go and fell over it; the next hub finds the turn.
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

    async def _end_beside(self, run: Run) -> None:
        """A stop or a denial that comes late would meet the next turn of the session."""
        run.worker_turn = run.asks.worker_turn = None
        for beside in run.beside:
            beside.cancel()
        await asyncio.gather(*run.beside, return_exceptions=True)

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

    async def _verdict(self, task_id: TaskId, run: Run, end: End) -> TurnEvent:
        """How the turn ended, with what the worker changed read from git first, so that no status is early."""
        task = self._ledger.get(task_id)
        at, end = self._clock.now(), bounded(end)
        try:
            changes, own = await self._record.stored(task_id, "the result", lambda: self._collect(task))
        except OffloadError as error:
            return verdict_unread(task, at, end, error)
        return verdict(task, at, end, changes, own, run.watch.why)

    async def _collect(self, task: Task) -> tuple[ChangeSet, ChangeSet | None]:
        """All since the task's base; and what the turn did, where an earlier one left something."""
        root = Path(task.spec.workspace)
        changes = await self._workspace.collect(task.id, root, task.base)
        earlier = next((turn.changes.result for turn in reversed(task.turns[:-1]) if turn.changes), task.base)
        if earlier == task.base:
            return changes, None
        return changes, await self._workspace.between(root, earlier, changes.result)

    def _moved(self, task_id: TaskId) -> None:
        self._ledger.feed.publish(self._ledger.get(task_id))
