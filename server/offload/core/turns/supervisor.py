"""One task's life: snapshot, place, folder, worker, result, checks. Every turn runs in the supervisor's task group, owned by nobody
who asked for it: a request, an editor or a front may go away and the turn goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from offload.core.integration.integrating import Integrating
from offload.core.ledger import Ledger
from offload.core.limits import Limits, overdrawn
from offload.core.ports import Checks, Workspace
from offload.core.turns.admission import Admission
from offload.core.turns.asks import Asks, not_open
from offload.core.turns.checking import Checking
from offload.core.turns.collecting import collected
from offload.core.turns.fixing import fix_round
from offload.core.turns.preparing import Preparing, Unprepared, Unsaved
from offload.core.turns.record import Record
from offload.core.turns.run import Interrupted, Run
from offload.core.turns.verdict import bounded, broken_off, halted, verdict, verdict_unread
from offload.core.turns.watch import BUDGET, Watch
from offload.core.turns.working import Working
from offload.core.worker import End, Worker
from offload.domain.ask import Answer, AskId
from offload.domain.errors import OffloadError
from offload.domain.events import (
    Admitted,
    ChecksEnded,
    Event,
    Snapshotted,
    StopRequested,
    TurnEnded,
    TurnEvent,
    TurnFailed,
)
from offload.domain.task import Phase, Task, TaskId
from offload.domain.turn import Failure, TurnId

# Starting git holds the loop for a few milliseconds; whoever started the task has his answer first, which takes an edge a few
# steps of the loop.
STEPS_FOR_THE_ANSWER = 100


class Supervisor:
    """Runs turns; `worker` gives the worker of a name, `unsaved` what editors have not saved in a workspace. To be used as an
    async context manager: on leaving, turns that run are let go of as they stand."""

    def __init__(
        self,
        ledger: Ledger,
        workspace: Workspace,
        worker: Callable[[str], Worker],
        checks: Checks,
        unsaved: Unsaved,
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
        self._preparing = Preparing(ledger, workspace, checks, self._record, unsaved)
        self._working = Working(ledger, self._record, worker, limits, self._beside, defect)
        self._checking = Checking(workspace, checks, self._record, ledger.clock)
        self._integrating = Integrating(ledger, self._record, workspace, self._checking)
        self._runs: dict[TurnId, Run] = {}
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self.admission = Admission(limits.tasks_per_workspace, self._moved)

    async def __aenter__(self) -> Supervisor:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._working.letting_go = True
        for running in self._tasks:
            running.cancel()
        # No task raises, so whatever the house is left for is raised as it is, not as the group's.
        await self._group.__aexit__(None, None, None)

    def launch(self, task: Task, environment: Mapping[str, str]) -> None:
        """Run the task's last turn; returns at once. A hub that ends launches nothing: the next one finds the task."""
        if not self._working.letting_go:
            look = partial(self._ledger.get, task.id)
            watch = Watch(look, self._ledger.all, self._workspace, self._clock, self._limits)
            resumed = task.phase is Phase.RECOVERING
            run = Run(task.turn.id, environment, watch, resumed, interrupted=task.stop_requested)
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
            elif run is not None and task.stop_requested:
                run.interrupt()
                if run.worker_turn is not None:
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
            await self._record_end(task_id, run, replace(ended, worked_s=run.watch.worked_s))
        except Exception as error:  # noqa: BLE001 - the edge of the turn: what goes wrong ends this turn, not the hub.
            failed = broken_off(self._ledger.get(task_id), self._clock.now(), self._record.failure(task_id, error))
            await self._record.event(task_id, failed)
        finally:
            self._runs.pop(run.turn, None)

    async def _record_end(self, task_id: TaskId, run: Run, ended: TurnEvent) -> None:
        """Write down the end of a turn, and the turn that failing checks make of it in the same step: nobody sees the task as
        ready in between."""

        def end(task: Task) -> list[Event]:
            if not isinstance(ended, ChecksEnded):
                return [ended]
            return [ended, *fix_round(task, ended, self._overdrawn(task))]

        def go_on(task: Task) -> None:
            if task.turn.id != run.turn:
                self.launch(task, run.environment)

        decide = partial(self._ledger.decide, task_id, end, go_on)
        await self._record.stored(task_id, type(ended).__name__, decide)

    async def _turn(self, task_id: TaskId, run: Run) -> TurnEvent:
        """Do the turn, or what is left of it, and say how it ended."""
        task = self._ledger.get(task_id)
        # The worker has ended then: an earlier hub recorded it, or somebody asked for the checks alone.
        done = task.turn.changes is not None
        try:
            if not task.base:
                task = await self._snapshot(task, run)
            if task.phase is Phase.QUEUED:
                await self._wait(task, run)
            async with self.admission.place(task.spec.workspace, task_id, at_once=run.resumed or done):
                return await (self._checked(task, run, found=True) if done else self._begun(task, run))
        except Unprepared as error:
            return broken_off(self._ledger.get(task_id), self._clock.now(), error.failure)
        except Interrupted:
            return halted(self._ledger.get(task_id), self._clock.now())

    async def _snapshot(self, task: Task, run: Run) -> Task:
        spec = task.spec
        taken = await self._workspace.snapshot(Path(spec.workspace), spec.buffers, spec.never_send)
        snapshotted = Snapshotted(at=self._clock.now(), turn=run.turn, base=taken.base, notes=taken.notes)
        return await self._record.event(task.id, snapshotted)

    async def _wait(self, task: Task, run: Run) -> None:
        """For the tasks that it comes after; who waits, for them or for a place, is told at once when it is in vain."""
        waits = self._preparing.waits(task)
        if (waits or self.admission.full(task.spec.workspace)) and not task.spec.integrates:
            self._spawn(f"the check of task {task.id}", partial(self._check, task, run))
        if waits:
            await self._preparing.others(task)

    async def _begun(self, task: Task, run: Run) -> TurnEvent:
        """A turn that has its place, to its end."""
        if task.phase is Phase.QUEUED:
            task = await self._record.event(task.id, Admitted(at=self._clock.now(), turn=run.turn))
            if reached := self._overdrawn(task):
                failure = Failure(BUDGET, f"it was not begun: {reached}")
                return TurnFailed(at=self._clock.now(), turn=run.turn, failure=failure)
        ended = await self._made(task, run)
        if not isinstance(ended, TurnEnded) or not ended.to_check:
            return ended

        def go_on_to_checks(now: Task) -> list[Event]:
            return [] if now.stop_requested else [replace(ended, worked_s=run.watch.worked_s)]

        record = partial(self._ledger.decide, task.id, go_on_to_checks)
        task = await self._record.stored(task.id, type(ended).__name__, record)
        return await self._checked(task, run, found=False) if task.phase is Phase.CHECKING else ended

    async def _made(self, task: Task, run: Run) -> TurnEvent:
        """What was made of the turn, and how that ended; its checks come later."""
        folder = await self._preparing.folder(task, run)
        if task.spec.integrates:
            return await self._integrating.unite(self._ledger.get(task.id), run)
        return await self._verdict(task.id, run, await self._working.end(task.id, run, folder))

    async def _checked(self, task: Task, run: Run, *, found: bool) -> ChecksEnded:
        """What came of the checks; over several results, with which of them they fail."""
        ended = await self._checking.result(task, run, found=found)
        return await self._integrating.blame(task, run, ended) if task.spec.integrates else ended

    def _overdrawn(self, task: Task) -> str:
        if task.spec.integrates:
            return ""  # It costs nothing.
        return overdrawn(self._ledger.all(), task.spec.workspace, self._limits.daily_cost, self._clock.now())

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

    async def _verdict(self, task_id: TaskId, run: Run, end: End) -> TurnEvent:
        """How the turn ended, with what the worker changed read from git first, so that no status is early."""
        task = self._ledger.get(task_id)
        at, end = self._clock.now(), bounded(end)
        try:
            found = await self._record.stored(task_id, "the result", lambda: collected(self._workspace, task))
        except OffloadError as error:
            return verdict_unread(task, at, end, error)
        return verdict(task, at, end, found, run.watch.why)

    def _moved(self, task_id: TaskId) -> None:
        self._ledger.feed.publish(self._ledger.get(task_id))
