"""What a front can do with tasks: the public API of core. Edges convert in, call once, convert out."""

from __future__ import annotations

import asyncio
import posixpath
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from offload.core.briefing import Briefing, StartRequest, asks_for_the_same, relative_path
from offload.core.caller import Caller
from offload.core.documents import Documents
from offload.core.feed import Watcher
from offload.core.housekeeping import Cleaned, CleanRequest, Housekeeping
from offload.core.ids import new_task_id, new_turn_id
from offload.core.ledger import Ledger
from offload.core.limits import Limits
from offload.core.ports import Recipes, Source, Worker, WorkerInfo, Workspace
from offload.core.supervisor import Supervisor
from offload.core.timing import within
from offload.domain.anchor import Block
from offload.domain.ask import Answer, Ask, AskId, AskKind
from offload.domain.change import ChangeSet
from offload.domain.errors import (
    ApplyRefused,
    InvalidRequest,
    KeyReused,
    UnknownAsk,
    UnknownTask,
    UnknownWorker,
    WrongPhase,
)
from offload.domain.lifecycle import Closed, Continued, Created, Landed
from offload.domain.recipe import Recipe
from offload.domain.route import Route
from offload.domain.task import Landing, Task, TaskId
from offload.domain.turn import Turn, TurnId

__all__ = ["Delegation", "Live", "StartRequest", "WaitFor", "Waited"]


@dataclass(frozen=True, slots=True)
class WaitFor:
    """`every` waits for all tasks to rest, else for one; `after_revision` ends the wait at any later revision. An open ask ends it
    too, unless `after_revision` says that it is known."""

    tasks: tuple[TaskId, ...]
    every: bool
    timeout_s: float
    after_revision: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """`done` says whether what was waited for has come; `tasks` stand as they do now, in the order that was asked."""

    done: bool
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Live:
    """What is known of a task beyond its events: `place` in the queue (1 is next, None when not queued), and the end of
    what the worker has said in the turn that runs."""

    place: int | None = None
    text: str = ""


class Delegation:
    """Every method that takes a task id accepts a unique beginning of it and raises `UnknownTask` otherwise."""

    def __init__(
        self,
        ledger: Ledger,
        supervisor: Supervisor,
        workspace: Workspace,
        source: Source,
        recipes: Recipes,
        documents: Documents,
        workers: Mapping[str, Worker],
        default_route: Route,
        limits: Limits,
    ) -> None:
        self.recipes = recipes
        self.source = source
        self.documents = documents
        self.clock = ledger.clock
        self.default_worker = default_route.worker
        self._ledger = ledger
        self._supervisor = supervisor
        self._workspace = workspace
        self._workers = workers
        self._default_route = default_route
        self._limits = limits
        self._briefing = Briefing(workspace, source, documents)
        self._housekeeping = Housekeeping(ledger, supervisor, workspace, workers)
        self._starting: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._applying: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def list_agents(self, caller: Caller, worker: str = "") -> Sequence[WorkerInfo]:
        """What every worker, or the named one, offers to this caller."""
        chosen = [self._worker(worker)] if worker else list(self._workers.values())
        return await asyncio.gather(*(each.describe(caller.environment) for each in chosen))

    async def start(self, caller: Caller, request: StartRequest) -> Task:
        """A new task, durable when this returns; it runs by itself from here on. The same key gives the same task."""
        recipe = self.recipes.get(request.recipe)
        route = self._route(request.route)
        root = Path(posixpath.normpath((caller.workspace / request.workspace).as_posix()))
        if not request.workspace:
            root = await self._workspace.locate(root)
        return await self._ledger.to_the_end(self._start(caller, request, root, recipe, route))

    async def _start(self, caller: Caller, request: StartRequest, root: Path, recipe: Recipe, route: Route) -> Task:
        async with self._starting[request.key] if request.key else asyncio.Lock():
            known = self._with_key(request, root, route)
            if known is not None:
                return known
            spec = await self._briefing.spec(caller, request, root, recipe, route)
            now = self.clock.now()
            created = Created(at=now, turn=new_turn_id(now), spec=spec)
            return await self._ledger.create(new_task_id(), created, self._launch(caller))

    async def continue_(self, caller: Caller, task_id: TaskId, brief: str) -> Task:
        """A follow-up in the worker's session. Raises `WrongPhase` while a turn runs."""
        if not brief.strip():
            raise InvalidRequest("brief is empty: say what is to be done next")

        def follow_up(task: Task) -> list[Continued]:
            _must_rest(task, "continued")
            now, last = self.clock.now(), task.turn
            # A worker that was never reached knows nothing of the task yet.
            prompt = brief if last.session else f"{last.prompt}\n{brief}"
            return [Continued(at=now, turn=new_turn_id(now), brief=brief, prompt=prompt, route=last.asked)]

        async def go_on() -> Task:
            task = self.get(task_id)
            async with self._applying[task.spec.workspace]:  # What is being applied is the result of a task that rests.
                return await self._ledger.decide(task.id, follow_up, self._launch(caller))

        return await self._ledger.to_the_end(go_on())

    async def cancel(self, caller: Caller, task_id: TaskId) -> Task:
        """Ask for a stop; asking again, or for a task that is over, changes nothing."""
        return await self._supervisor.stop(self.get(task_id).id)

    async def answer(self, caller: Caller, task_id: TaskId, ask: AskId, answer: Answer) -> Task:
        """Answer an open ask; an empty `ask` means the only open one. Raises `UnknownAsk`, `InvalidRequest`."""
        task = self.get(task_id)
        wanted = _open_ask(task, ask)
        if wanted.kind is AskKind.PERMISSION and answer.choice not in wanted.choices:
            raise InvalidRequest(f"choice must be one of {', '.join(wanted.choices)}, not {answer.choice!r}")
        return await self._supervisor.answer(task, wanted.id, answer)

    async def wait(self, wanted: WaitFor) -> Waited:
        """Until the tasks rest, one has news or asks, or the time is over; the tasks go on whatever becomes of the wait."""
        ids = tuple(self.get(task_id).id for task_id in wanted.tasks)
        with self._ledger.feed.watching() as watcher:
            done = await within(self.clock, wanted.timeout_s, self._come(watcher, ids, wanted))
            return Waited(bool(done), tuple(self.get(task_id) for task_id in ids))

    async def _come(self, watcher: Watcher, ids: Sequence[TaskId], wanted: WaitFor) -> bool:
        seen = {self.get(TaskId(key)).id: revision for key, revision in (wanted.after_revision or {}).items()}
        while True:
            tasks = [self.get(task_id) for task_id in ids]
            resting = [not task.live for task in tasks]
            if all(resting) if wanted.every else any(resting):
                return True
            if any(task.revision > seen[task.id] if task.id in seen else task.asking for task in tasks):
                return False
            await watcher.changes()

    def get(self, task_id: TaskId) -> Task:
        return self._ledger.get(task_id)

    def turn(self, task: Task, turn_id: TurnId) -> Turn:
        """A turn of the task by its id; the last one for ""."""
        for turn in task.turns:
            if turn.id == turn_id:
                return turn
        if turn_id:
            known = ", ".join(turn.id for turn in task.turns)
            raise InvalidRequest(f"task {task.id} has no turn {turn_id!r}; it has {known}")
        return task.turn

    def live(self, task_id: TaskId) -> Live:
        try:
            task = self.get(task_id)
        except UnknownTask:
            return Live()  # it was cleaned away; somebody slow still tells of its end
        place = self._supervisor.admission.position(task.spec.workspace, task.id)
        return Live(place, self._supervisor.text(task))

    def tasks(self, workspace: str = "", *, live: bool = False, closed: bool = False) -> Sequence[Task]:
        """Newest first; `live` only those that are not over, `closed` also those that were closed."""
        return [
            task
            for task in reversed(self._ledger.all())
            if (not workspace or task.spec.workspace == workspace)
            and (task.live or not live)
            and (closed or not task.closed)
        ]

    async def close(self, caller: Caller, task_id: TaskId) -> Task:
        """Release the worker's session and the task folder; what the task changed stays readable."""

        def closed(task: Task) -> list[Closed]:
            _must_rest(task, "closed")
            return [Closed(at=self.clock.now())]

        async def close() -> Task:
            task = await self._ledger.decide(self.get(task_id).id, closed)
            await self._supervisor.release(task, caller.environment)
            return task

        return await self._ledger.to_the_end(close())

    async def clean(
        self,
        caller: Caller,
        older_than_days: float | None = None,
        tasks: Sequence[TaskId] = (),
        *,
        include_unaccepted: bool = False,
        dry_run: bool = False,
    ) -> Cleaned:
        """Remove what is older, or the named tasks, for good; without a number the setting counts. Work that was never applied
        goes only with `include_unaccepted`, and only of named tasks. Raises `InvalidRequest`, `UnknownTask`."""
        days = self._limits.keep_days if older_than_days is None else older_than_days
        if days is None and not tasks:
            raise InvalidRequest("tasks are kept for ever here (keep_days is 0): say older_than_days, or name tasks")
        request = CleanRequest(days or 0.0, tuple(tasks), include_unaccepted, dry_run)
        return await self._ledger.to_the_end(self._housekeeping.clean(request, caller.environment))

    async def diff(self, task_id: TaskId, paths: Sequence[str] = ()) -> tuple[Task, ChangeSet, str]:
        """The last change set of the task, and its patch narrowed to `paths`."""
        task = self.get(task_id)
        _, changes = _changes(task)
        root = Path(task.spec.workspace)
        return task, changes, await self._workspace.diff(root, changes, _narrowed(root, changes, paths))

    async def apply(self, caller: Caller, task_id: TaskId, paths: Sequence[str] = ()) -> tuple[Task, Sequence[str]]:
        """Merge the change set, or those of its files, onto the disk; nothing is written when one file is refused."""
        return await self._ledger.to_the_end(self._apply(task_id, paths))

    async def _apply(self, task_id: TaskId, paths: Sequence[str]) -> tuple[Task, Sequence[str]]:
        async with self._applying[self.get(task_id).spec.workspace]:
            task = self.get(task_id)
            _must_rest(task, "applied", closed_too=True)
            turn_id, changes = _changes(task)
            if not changes.files:
                raise ApplyRefused(f"task {task.id} changed no file")
            root = Path(task.spec.workspace)
            unsaved = await self._briefing.unsaved(root)
            applied = await self._workspace.apply(root, changes, unsaved, _narrowed(root, changes, paths))
            now = self.clock.now()
            landing = Landing(turn_id, changes.result, applied.paths, now)
            return await self._ledger.record(task.id, Landed(at=now, landing=landing)), applied.paths

    def watching(self) -> AbstractContextManager[Watcher]:
        """Changes of every task from the moment of entering."""
        return self._ledger.feed.watching()

    def watch(self) -> AsyncIterator[Task]:
        """Every task that changes, from the first step of the iteration on, latest state only."""
        return self._ledger.feed.watch()

    async def block_at(self, path: str, text: str, line: int, column: int) -> Block | None:
        """The innermost named block of `text` at a position (0-based; `column` counts code points)."""
        return await self.source.block_at(path, text, line, column)

    def _worker(self, name: str) -> Worker:
        worker = self._workers.get(name)
        if worker is None:
            raise UnknownWorker(f"there is no worker {name!r}; there are {', '.join(self._workers)}")
        return worker

    def _route(self, asked: Route) -> Route:
        """The defaults filled in: agent and model of the settings belong to the default worker only."""
        default = self._default_route
        worker = asked.worker or default.worker
        self._worker(worker)
        if worker != default.worker:
            return asked
        if asked.model:
            return Route(worker, asked.agent or default.agent, asked.model, asked.variant)
        return Route(worker, asked.agent or default.agent, default.model, asked.variant or default.variant)

    def _launch(self, caller: Caller) -> Callable[[Task], None]:
        return lambda task: self._supervisor.launch(task, caller.environment)

    def _with_key(self, request: StartRequest, root: Path, route: Route) -> Task | None:
        """The task that was started with the same key. Raises `KeyReused` when it was another request."""
        for task in self._ledger.all() if request.key else ():
            if task.spec.key == request.key and task.spec.workspace == str(root):
                if asks_for_the_same(task.spec, request, route):
                    return task
                raise KeyReused(f"the key {request.key!r} was used for another request (task {task.id}); use a new key")
        return None


def _must_rest(task: Task, what: str, *, closed_too: bool = False) -> None:
    if task.live:
        raise WrongPhase(f"task {task.id} is {task.phase}; it can be {what} when it is over: wait for it, or cancel it")
    if task.closed and not closed_too:
        raise WrongPhase(f"task {task.id} is closed and cannot be {what}; start a new one")


def _open_ask(task: Task, ask_id: AskId) -> Ask:
    if ask_id in task.asks:
        return task.asks[ask_id]
    if not ask_id and len(task.asks) == 1:
        return next(iter(task.asks.values()))
    known = f"open are {', '.join(task.asks)}" if task.asks else "nothing is open"
    raise UnknownAsk(f"task {task.id} has no open ask {ask_id!r}; {known}")


def _changes(task: Task) -> tuple[TurnId, ChangeSet]:
    """The newest change set and its turn: each turn's holds everything since the task's base."""
    for turn in reversed(task.turns):
        if turn.changes is not None:
            return turn.id, turn.changes
    raise WrongPhase(f"task {task.id} has no changes yet; it is {task.phase}")


def _narrowed(root: Path, changes: ChangeSet, paths: Sequence[str]) -> Sequence[str]:
    wanted = [relative_path(root, path) for path in paths]
    missing = sorted(set(wanted) - {file.path for file in changes.files})
    if missing:
        raise InvalidRequest(f"not changed by this task: {', '.join(missing)}")
    return wanted
