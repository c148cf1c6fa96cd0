"""What a front can do with tasks: the public API of core. Edges convert in, call once, convert out."""

from __future__ import annotations

import asyncio
import posixpath
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from offload.core.briefing import Briefing, StartRequest, asks_for_the_same
from offload.core.caller import Caller
from offload.core.continuing import RESUMED, Continuing, must_have_money
from offload.core.defaults import Defaults
from offload.core.documents import Documents
from offload.core.feed import Watcher
from offload.core.housekeeping import Cleaned, CleanRequest, Housekeeping
from offload.core.idempotency import Starts, Turnstile, answered
from offload.core.ids import new_task_id, new_turn_id
from offload.core.integration.origins import must_be_begun_from, whole_ids
from offload.core.integration.overlaps import warnings
from offload.core.integration.starting import integrated_before, integration_of, must_have_worker, to_integrate
from offload.core.landing.landings import Landings
from offload.core.landing.live import LiveFiles
from offload.core.ledger import Ledger
from offload.core.limits import Limits
from offload.core.ports import Projects, Recipes, Source, Workspace
from offload.core.refusals import must_rest, narrowed, newest_changes, open_ask, selected
from offload.core.turns.supervisor import Supervisor
from offload.core.waiting import Waited, WaitFor, wait_for
from offload.core.worker import Worker, WorkerInfo
from offload.domain.anchor import Block
from offload.domain.ask import Answer, AskId, AskKind, ModelApply
from offload.domain.budget import Budget
from offload.domain.change import ChangeSet
from offload.domain.errors import (
    InvalidRequest,
    KeyReused,
    UnknownTask,
    WrongPhase,
)
from offload.domain.events import Closed, Continued, Created
from offload.domain.profile import Profile
from offload.domain.project import ProjectSettings
from offload.domain.recipe import Recipe
from offload.domain.review import Selection
from offload.domain.route import Route
from offload.domain.task import Landing, Task, TaskId, TaskSpec
from offload.domain.turn import Turn, TurnId

__all__ = ["RESUMED", "Delegation", "Live", "StartRequest", "WaitFor", "Waited"]


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
        projects: Projects,
        documents: Documents,
        workers: Mapping[str, Worker],
        default_route: Route,
        default_profile: Profile,
        limits: Limits,
        mcp_apply: ModelApply,
    ) -> None:
        self.recipes = recipes
        self.source = source
        self.documents = documents
        self.clock = ledger.clock
        self.default_worker = default_route.worker
        self._ledger = ledger
        self._supervisor = supervisor
        self._workspace = workspace
        self._projects = projects
        self._workers = workers
        self._defaults = Defaults(workers, default_route, default_profile, limits.budget)
        self._limits = limits
        self._starts = Starts()
        self._briefing = Briefing(workspace, source, documents)
        self._housekeeping = Housekeeping(ledger, supervisor, workspace, workers)
        self._turnstile = Turnstile()
        self._applying: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        live_files = LiveFiles(workspace, documents)
        self._continuing = Continuing(ledger, supervisor, self._briefing, recipes, projects, limits, self._applying)
        self._landings = Landings(ledger, workspace, live_files, self._applying, mcp_apply)

    async def list_agents(self, caller: Caller, worker: str = "") -> Sequence[WorkerInfo]:
        """What every worker, or the named one, offers to this caller."""
        chosen = [self._defaults.worker(worker)] if worker else list(self._workers.values())
        return await asyncio.gather(*(each.describe(caller.environment) for each in chosen))

    async def start(self, caller: Caller, request: StartRequest) -> Task:
        """A new task, durable when this returns; it runs by itself from here on. The same key gives the same task, and so
        does the same request of a caller who was not told of the first within a minute. Raises `UnsupportedProfile`,
        `BudgetSpent`."""
        recipe = self.recipes.get(request.recipe)
        route = self._defaults.route(request.route)
        request = self._defaults.completed(request, route)
        root = Path(posixpath.normpath((caller.workspace / request.workspace).as_posix()))
        located = await self._workspace.locate(root)  # refuses a folder that is not there
        if not request.workspace:
            root = located
        request = replace(request, after=whole_ids(self._ledger, request.after))
        return await self._ledger.to_the_end(self._start(caller, request, root, recipe, route))

    async def _start(self, caller: Caller, request: StartRequest, root: Path, recipe: Recipe, route: Route) -> Task:
        async with self._turnstile.alone(root, request.key or (caller.front, caller.name, request)):
            task = self._started_before(caller, request, root, route)
            if task is None:
                must_be_begun_from(self._ledger, root, request.after)
                must_have_money(self._ledger.all(), str(root), self._limits, self.clock.now())
                project = await self._projects.settings(root)
                spec = await self._briefing.spec(caller, request, root, recipe, route, project)
                near = warnings(spec, self._ledger.all())
                task = await self._create(caller, replace(spec, warnings=(*spec.warnings, *near)))
            self._starts.answer(task, caller, self.clock.now())
            return task

    async def _create(self, caller: Caller, spec: TaskSpec) -> Task:
        now = self.clock.now()
        return await self._ledger.create(
            new_task_id(), Created(at=now, turn=new_turn_id(now), spec=spec), self._launch(caller)
        )

    async def continue_(
        self,
        caller: Caller,
        task_id: TaskId,
        brief: str,
        budget: Budget = Budget(),
        key: str = "",
        onto: str = "",
    ) -> Task:
        """A follow-up in the worker's session; `budget` holds the task's limits that are new, the same key gives the same
        turn. `onto` ("files", or the id of a task) brings the folder up to date first, with conflicts marked in it; the brief
        may be empty then. Raises `WrongPhase` while a turn runs, `BudgetSpent`."""
        return await self._continuing.continue_(caller, task_id, brief, budget, key, onto)

    async def resume(self, caller: Caller, task_id: TaskId) -> Task:
        """A new turn, in the same session and folder, for one that did not end well. Raises `WrongPhase` for any other."""
        return await self._continuing.resume(caller, task_id)

    async def cancel(self, caller: Caller, task_id: TaskId) -> Task:
        """Ask for a stop; asking again, or for a task that is over, changes nothing."""
        return await self._supervisor.stop(self.get(task_id).id)

    async def answer(self, caller: Caller, task_id: TaskId, ask: AskId, answer: Answer, key: str = "") -> Task:
        """Answer an open ask; an empty `ask` means the only open one. The first answer counts, and with the same key it counts
        once. "allow" to a model that wants to apply does that. Raises `UnknownAsk`, which says who was first, `InvalidRequest`,
        `ApplyForbidden`, `ApplyRefused`."""
        task = self.get(task_id)
        async with self._turnstile.alone(task.id, key or object()):
            task = self.get(task.id)
            if answered(task, key, ask, answer):
                return task
            wanted = open_ask(task, ask)
            if wanted.kind is AskKind.PERMISSION and answer.choice not in wanted.choices:
                raise InvalidRequest(f"choice must be one of {', '.join(wanted.choices)}, not {answer.choice!r}")
            if wanted.wanted is not None:
                return await self._ledger.to_the_end(self._landings.answer(caller, task.id, wanted.id, answer, key))
            return await self._supervisor.answer(task, wanted.id, answer, by=caller.who, key=key)

    async def wait(self, wanted: WaitFor) -> Waited:
        """Until the tasks rest, one has news or asks, or the time is over; the tasks go on whatever becomes of the wait."""
        return await wait_for(self._ledger, wanted)

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
            must_rest(task, "closed")
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

    async def diff(
        self, task_id: TaskId, selection: Selection = Selection(), turn_id: TurnId = TurnId("")
    ) -> tuple[Task, Turn, ChangeSet, str]:
        """All that the task changed since its base, which is what `apply` takes; with `turn_id` what that turn changed since
        it began; and the turn. The patch is narrowed to what is selected."""
        task = self.get(task_id)
        turn = self.turn(task, turn_id or newest_changes(task)[0])
        changes = turn.own_changes if turn_id else newest_changes(task)[1]
        if changes is None:
            raise WrongPhase(f"turn {turn_id} of task {task.id} has no changes yet")
        root = Path(task.spec.workspace)
        if selection.hunks:
            part = await self._workspace.select(root, changes, selected(root, changes, selection))
            return task, turn, changes, await self._workspace.diff(root, part)
        return task, turn, changes, await self._workspace.diff(root, changes, narrowed(root, changes, selection.paths))

    async def apply(
        self, caller: Caller, task_id: TaskId, selection: Selection = Selection(), key: str = ""
    ) -> tuple[Task, Landing]:
        """Merge what is selected of the change set into the user's files; nothing is written when one file is refused. The
        same key gives the same answer, and nothing is written again. Raises `ApplyRefused`, `ApplyForbidden`."""
        return await self._ledger.to_the_end(self._landings.apply(caller, task_id, selection, key))

    async def undo(self, caller: Caller, task_id: TaskId, apply_id: str = "") -> tuple[Task, Landing]:
        """Take back what one apply changed, the last that stands for "": three-way, however the files have moved on since.
        Gives the landing with what went where on the way back. Raises `NothingToUndo`, `ApplyRefused`,
        `ApplyForbidden`."""
        return await self._ledger.to_the_end(self._landings.undo(caller, task_id, apply_id))

    async def reject(
        self, caller: Caller, task_id: TaskId, selection: Selection, reason: str, *, send_back: bool
    ) -> Task:
        """Note that what is selected is not wanted; with `send_back` it goes to the worker as a follow-up, with the reason.
        Raises `WrongPhase`, `InvalidRequest` for what is applied, `BudgetSpent`."""

        def follow_up(task: Task, brief: str) -> list[Continued]:
            must_have_worker(task)
            must_rest(task, "continued")
            return [self._continuing.follow_up(task, brief)]

        back = follow_up if send_back else None
        return await self._ledger.to_the_end(
            self._landings.reject(task_id, selection, reason, back, self._launch(caller))
        )

    async def integrate(self, caller: Caller, task_ids: Sequence[TaskId], key: str = "") -> Task:
        """A new task, without a worker, that makes one result of several tasks', in which they come in the order that suits
        them best. The same key gives the same task. Raises `WrongPhase` for one that is not over or has no result,
        `InvalidRequest`, `KeyReused`."""
        tasks = to_integrate(self._ledger, task_ids)
        return await self._ledger.to_the_end(self._integrate(caller, tasks, key))

    async def _integrate(self, caller: Caller, tasks: Sequence[Task], key: str) -> Task:
        root, wanted = Path(tasks[0].spec.workspace), [task.id for task in tasks]
        async with self._turnstile.alone(root, key or (caller.front, caller.name, *wanted)):
            here = [task for task in self._ledger.all() if task.spec.workspace == str(root)]
            untold = self._starts.undelivered(here, caller, self.clock.now())
            task = integrated_before(here, key, wanted, untold)
            if task is None:
                project, buffers = await self._projects.settings(root), await self._briefing.unsaved(root, caller.id)
                plan = self._briefing.plan_together(self.recipes, tasks, project)
                task = await self._create(caller, integration_of(tasks, caller, key, project, plan, buffers))
            self._starts.answer(task, caller, self.clock.now())
            return task

    async def run_checks(self, caller: Caller, task_id: TaskId) -> Task:
        """Check the result of a ready task by what the project asks for now. Raises `WrongPhase`, `InvalidRequest`."""
        return await self._continuing.run_checks(caller, task_id)

    async def trust(self, caller: Caller, workspace: str, *, trusted: bool) -> tuple[Path, ProjectSettings]:
        """Trust the workspace's own settings file as it is now, or take that back."""
        root = await self._workspace.locate(Path(posixpath.normpath((caller.workspace / workspace).as_posix())))
        return root, await self._projects.trust(root, trusted=trusted)

    def watching(self) -> AbstractContextManager[Watcher]:
        """Changes of every task from the moment of entering."""
        return self._ledger.feed.watching()

    def watch(self) -> AsyncIterator[Task]:
        """Every task that changes, from the first step of the iteration on, latest state only."""
        return self._ledger.feed.watch()

    async def block_at(self, path: str, text: str, line: int, column: int) -> Block | None:
        """The innermost named block of `text` at a position (0-based; `column` counts code points)."""
        return await self.source.block_at(path, text, line, column)

    def _launch(self, caller: Caller) -> Callable[[Task], None]:
        return lambda task: self._supervisor.launch(task, caller.environment)

    def _started_before(self, caller: Caller, request: StartRequest, root: Path, route: Route) -> Task | None:
        """The task that this very request was for. Raises `KeyReused` when its key came with another."""
        here = [task for task in self._ledger.all() if task.spec.workspace == str(root)]
        if request.key:
            for task in here:
                if task.spec.key == request.key:
                    if asks_for_the_same(task.spec, request, route):
                        return task
                    raise KeyReused(
                        f"the key {request.key!r} was used for another request (task {task.id}); use a new key"
                    )
            return None
        untold = self._starts.undelivered(here, caller, self.clock.now())
        return next((task for task in untold if asks_for_the_same(task.spec, request, route)), None)
