"""One task's life: snapshot, place, folder, worker, result. Every turn runs in the supervisor's task group, owned by nobody
who asked for it: a request, an editor or a front may go away and the turn goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from offload.core.admission import Admission
from offload.core.ledger import Ledger
from offload.core.limits import Limits
from offload.core.ports import (
    AskOpened,
    AskOver,
    Doing,
    End,
    Failed,
    Finished,
    Halted,
    Happening,
    Opened,
    Said,
    Seen,
    TurnOrder,
    Used,
    Worker,
    WorkerTurn,
    Workspace,
)
from offload.domain.ask import DENY, Answer, Ask, AskId, AskOutcome
from offload.domain.change import ChangeSet
from offload.domain.errors import Defect, OffloadError, StorageFailed, UnknownAsk
from offload.domain.lifecycle import (
    ActivityChanged,
    Admitted,
    AskClosed,
    Asked,
    SessionOpened,
    Snapshotted,
    Stopped,
    StopRequested,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnSeen,
    UsageSeen,
)
from offload.domain.route import differences
from offload.domain.task import Phase, Task, TaskId
from offload.domain.turn import Failure, TurnId

RETRY_STORAGE_S = 1.0
NOBODY_ANSWERED = "Nobody was there to allow this. Go on without it, or say what you would need it for."


@dataclass
class Run:
    """A turn that runs here: what it takes to stop it and to answer it."""

    turn: TurnId
    environment: Mapping[str, str]
    running: asyncio.Task[None] | None = None
    worker_turn: WorkerTurn | None = None
    text: str = ""
    answering: set[AskId] = field(default_factory=set)
    expiries: dict[AskId, asyncio.Task[None]] = field(default_factory=dict)


class Supervisor:
    """Runs turns. `group` is the hub's task group; `worker` gives the worker of a name."""

    def __init__(
        self,
        group: asyncio.TaskGroup,
        ledger: Ledger,
        workspace: Workspace,
        worker: Callable[[str], Worker],
        limits: Limits,
        defect: Callable[[str, BaseException], None],
    ) -> None:
        self._group = group
        self._ledger = ledger
        self._clock = ledger.clock
        self._workspace = workspace
        self._worker = worker
        self._limits = limits
        self._defect = defect
        self._runs: dict[TaskId, Run] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.admission = Admission(limits.tasks_per_workspace, self._moved)

    def launch(self, task: Task, environment: Mapping[str, str]) -> None:
        """Run the task's last turn; returns at once."""
        run = Run(task.turn.id, environment)
        self._runs[task.id] = run
        run.running = self._spawn(self._run(task.id, run), f"task {task.id}")

    def text(self, task_id: TaskId) -> str:
        """The end of what the worker has said in the turn that runs."""
        run = self._runs.get(task_id)
        return run.text if run else ""

    def let_go(self) -> None:
        """The hub ends: leave every turn as it stands."""
        for running in self._tasks:
            running.cancel()

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        spawned = self._group.create_task(work, name=name)
        self._tasks.add(spawned)
        spawned.add_done_callback(self._tasks.discard)
        return spawned

    async def stop(self, task_id: TaskId) -> Task:
        """Ask for a stop. The answer says what has happened by then: a queued task is cancelled, a working one cancelling."""
        before = self._ledger.get(task_id)

        def request(task: Task) -> list[StopRequested]:
            return [StopRequested(at=self._clock.now())] if task.live and not task.stop_requested else []

        task = await self._ledger.decide(before.id, request)
        run = self._runs.get(before.id)
        if run is not None and run.running is not None:
            if task.phase is Phase.CANCELLED:
                run.running.cancel()
            elif run.worker_turn is not None and task.stop_requested:
                self._halt(before.id, run.worker_turn)
        return task

    async def answer(self, task: Task, ask_id: AskId, answer: Answer) -> Task:
        """Give an answer to the worker and record it; the first answer wins."""
        run = self._runs.get(task.id)
        if run is None or run.worker_turn is None or ask_id in run.answering:
            raise UnknownAsk(f"{ask_id} is not open any more")
        run.answering.add(ask_id)
        try:
            await run.worker_turn.answer(ask_id, answer)
        finally:
            run.answering.discard(ask_id)
        return await self._close_ask(task.id, run, ask_id, AskOutcome.ANSWERED, answer.choice)

    async def _run(self, task_id: TaskId, run: Run) -> None:
        try:
            await self._turn(task_id, run)
        except OffloadError as error:
            await self._fail(task_id, run, Failure(error.code, str(error)))
        except Exception as error:  # noqa: BLE001 - the edge of the turn: a defect ends this turn, not the hub.
            self._defect(f"task {task_id}", error)
            await self._fail(
                task_id, run, Failure(Defect.code, f"offload made a mistake: {error!r}; see the hub's log")
            )
        finally:
            if self._runs.get(task_id) is run:
                del self._runs[task_id]

    async def _turn(self, task_id: TaskId, run: Run) -> None:
        task = self._ledger.get(task_id)
        root = Path(task.spec.workspace)
        if not task.base:
            taken = await self._workspace.snapshot(root, task.spec.buffers)
            await self._ledger.record(
                task_id, Snapshotted(at=self._clock.now(), turn=run.turn, base=taken.base, notes=taken.notes)
            )
        async with self.admission.place(task.spec.workspace, task_id):
            task = await self._ledger.record(task_id, Admitted(at=self._clock.now(), turn=run.turn))
            if task.phase is not Phase.STARTING:  # It was cancelled at the moment when its place came free.
                return
            folder = await self._workspace.open_folder(task_id, root, task.base)
            order = TurnOrder(
                task=task_id,
                turn=run.turn,
                title=task.spec.title,
                folder=folder,
                prompt=task.turn.prompt,
                route=task.turn.asked,
                commands=task.spec.commands,
                session=task.turn.session,
                environment=run.environment,
            )
            if self._ledger.get(task_id).stop_requested:
                end: End | None = Halted()
            else:
                end = await self._work(task_id, run, order)
            await self._end(task_id, run, end)

    async def _work(self, task_id: TaskId, run: Run, order: TurnOrder) -> End | None:
        """Follow the worker to the end of the turn."""
        end: End | None = None
        async with self._worker(order.route.worker).turn(order) as worker_turn:
            run.worker_turn = worker_turn
            if self._ledger.get(task_id).stop_requested:
                self._halt(task_id, worker_turn)
            try:
                async for event in worker_turn.events():
                    if isinstance(event, Finished | Failed | Halted):
                        end = event
                    else:
                        await self._note(task_id, run, event)
            finally:
                run.worker_turn = None
                for expiry in run.expiries.values():
                    expiry.cancel()
        return end

    async def _note(self, task_id: TaskId, run: Run, event: Happening) -> None:
        """Record one thing that the worker did."""
        at, turn = self._clock.now(), run.turn
        match event:
            case Opened():
                await self._ledger.record(task_id, SessionOpened(at=at, turn=turn, session=event.session))
            case Seen():
                await self._ledger.record(task_id, TurnSeen(at=at, turn=turn))
            case Doing():
                await self._ledger.record(task_id, ActivityChanged(at=at, turn=turn, activity=event.activity))
            case Said():
                run.text = (run.text + event.text)[-self._limits.live_text :]
            case Used():
                await self._ledger.record(task_id, UsageSeen(at=at, turn=turn, usage=event.usage, ran=event.ran))
            case AskOpened():
                await self._ledger.record(task_id, Asked(at=at, turn=turn, ask=event.ask))
                expiry = self._spawn(self._expire(task_id, run, event.ask), f"ask {event.ask.id}")
                run.expiries[event.ask.id] = expiry
            case AskOver():
                await self._close_ask(task_id, run, event.ask, event.outcome)

    async def _expire(self, task_id: TaskId, run: Run, ask: Ask) -> None:
        """Deny what nobody answers in time, in words, so that the turn goes on."""
        await self._clock.sleep(self._limits.ask_timeout_s)
        worker_turn = run.worker_turn
        if worker_turn is None or ask.id in run.answering:
            return
        del run.expiries[ask.id]
        try:
            await worker_turn.answer(ask.id, Answer(DENY, NOBODY_ANSWERED))
        except OffloadError as error:
            self._defect(f"ask {ask.id} of task {task_id} could not be denied", error)
        else:
            await self._close_ask(task_id, run, ask.id, AskOutcome.TIMED_OUT)

    async def _close_ask(self, task_id: TaskId, run: Run, ask: AskId, outcome: AskOutcome, choice: str = "") -> Task:
        expiry = run.expiries.pop(ask, None)
        if expiry is not None:
            expiry.cancel()

        def close(task: Task) -> list[AskClosed]:
            if ask not in task.asks:
                return []
            return [AskClosed(at=self._clock.now(), turn=run.turn, ask=ask, outcome=outcome, choice=choice)]

        return await self._ledger.decide(task_id, close)

    def _halt(self, task_id: TaskId, worker_turn: WorkerTurn) -> None:
        """Stop the worker beside reading its events, which say when it is gone."""

        async def halt() -> None:
            try:
                await worker_turn.stop()
            except OffloadError as error:
                self._defect(f"task {task_id} could not be stopped", error)

        self._spawn(halt(), f"stop {task_id}")

    async def _end(self, task_id: TaskId, run: Run, end: End | None) -> None:
        """Read from git what the worker changed, then say how the turn ended: in this order, so that no status is early."""
        task = self._ledger.get(task_id)
        try:
            changes = await self._workspace.collect(task_id, Path(task.spec.workspace), task.base)
        except OffloadError as error:
            message = f"the worker ended, but its changes could not be read: {error}; its folder is kept"
            await self._finish(
                task_id, TurnFailed(at=self._clock.now(), turn=run.turn, failure=Failure("collect", message))
            )
            return
        await self._finish(task_id, self._verdict(task, run, end, changes))

    def _verdict(self, task: Task, run: Run, end: End | None, changes: ChangeSet) -> TurnEvent:
        at, turn = self._clock.now(), run.turn
        match end:
            case Finished() if not end.text.strip() and not changes.files:
                failure = Failure("nothing_produced", "the worker ended without a word and without a change")
                return TurnFailed(at=at, turn=turn, failure=failure, changes=changes)
            case Finished():
                doubts = [doubt for doubt in (end.doubt, *differences(task.turn.asked, end.ran)) if doubt]
                return TurnEnded(
                    at=at,
                    turn=turn,
                    text=end.text,
                    changes=changes,
                    ran=end.ran,
                    usage=end.usage,
                    needs_review="; ".join(doubts),
                )
            case Failed():
                return TurnFailed(at=at, turn=turn, failure=end.failure, text=end.text, changes=changes)
            case Halted():
                return Stopped(at=at, turn=turn, text=end.text, changes=changes)
            case None:
                failure = Failure("turn_lost", "the worker went away without saying how the turn ended")
                return TurnFailed(at=at, turn=turn, failure=failure, changes=changes)

    async def _fail(self, task_id: TaskId, run: Run, failure: Failure) -> None:
        """The turn went wrong on our side of the worker; what it changed so far is kept if it can be read."""
        task = self._ledger.get(task_id)
        changes = None
        if task.base and task.phase is not Phase.QUEUED:
            with suppress(OffloadError):
                changes = await self._workspace.collect(task_id, Path(task.spec.workspace), task.base)
        await self._finish(task_id, TurnFailed(at=self._clock.now(), turn=run.turn, failure=failure, changes=changes))

    async def _finish(self, task_id: TaskId, end: TurnEvent) -> None:
        """Record an end; a journal that cannot be written now is tried again, because nobody else will say it."""
        while True:
            try:
                await self._ledger.record(task_id, end)
            except StorageFailed as error:
                self._defect(f"the end of task {task_id} is not stored yet", error)
                await self._clock.sleep(RETRY_STORAGE_S)
            else:
                return

    def _moved(self, task_id: TaskId) -> None:
        self._ledger.feed.publish(self._ledger.get(task_id))
