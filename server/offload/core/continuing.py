"""What can be asked of a task that rests: a follow-up, another try, its checks once more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from offload.core.briefing import Briefing
from offload.core.caller import Caller
from offload.core.idempotency import continued
from offload.core.ids import new_turn_id
from offload.core.integration.origins import brought_onto
from offload.core.integration.starting import must_have_worker
from offload.core.ledger import Ledger
from offload.core.limits import Limits, overdrawn, spent
from offload.core.ports import Projects, Recipes
from offload.core.refusals import must_rest
from offload.core.turns.preparing import prompt_of
from offload.core.turns.supervisor import Supervisor
from offload.domain.budget import Budget
from offload.domain.check import CheckPlan
from offload.domain.errors import BudgetSpent, InvalidRequest, WrongPhase
from offload.domain.events import CheckRequested, Continued, Event
from offload.domain.project import ProjectSettings
from offload.domain.task import Phase, Task, TaskId

RESUMED = (
    "You were interrupted in the middle of your work. Look first at what you have done already in this folder, then go on "
    "until the task is done. This is the task:\n\n"
)
BROUGHT_ONTO = (
    "The files that your work began from have changed. Your folder now holds your changes on top of the new ones: look whether "
    "they still fit, and mend what does not."
)


class Continuing:
    """`applying` holds a lock per workspace: what is being applied is the result of a task that rests."""

    def __init__(
        self,
        ledger: Ledger,
        supervisor: Supervisor,
        briefing: Briefing,
        recipes: Recipes,
        projects: Projects,
        limits: Limits,
        applying: Mapping[str, asyncio.Lock],
    ) -> None:
        self._ledger = ledger
        self._clock = ledger.clock
        self._supervisor = supervisor
        self._briefing = briefing
        self._recipes = recipes
        self._projects = projects
        self._limits = limits
        self._applying = applying

    async def continue_(self, caller: Caller, task_id: TaskId, brief: str, budget: Budget, key: str, onto: str) -> Task:
        """With `onto` the brief may be empty. Raises `InvalidRequest`, `UnknownTask`, `WrongPhase`, `BudgetSpent`,
        `KeyReused`."""
        if not brief.strip() and not onto:
            raise InvalidRequest("brief is empty: say what is to be done next")
        words = brief if brief.strip() else BROUGHT_ONTO
        target = brought_onto(self._ledger, self._ledger.get(task_id), onto)

        def follow_up(task: Task) -> list[Continued]:
            must_rest(task, "continued")
            return [self.follow_up(task, words, budget, key, target)]

        def before(task: Task) -> bool:
            return continued(task, key, words, budget, target)

        return await self._begin(caller, task_id, follow_up, before)

    async def resume(self, caller: Caller, task_id: TaskId) -> Task:
        """Raises `WrongPhase` for a task that ended well."""

        def again(task: Task) -> list[Continued]:
            must_rest(task, "resumed")
            if task.phase is Phase.READY:
                raise WrongPhase(f"task {task.id} is ready; send a follow-up with continue_task")
            self._look_for_room(task, Budget())
            now, last = self._clock.now(), task.turn
            # The task is told again, because the worker may never have been told, or may have forgotten.
            told = prompt_of(last)
            prompt = told if not last.session else f"{RESUMED}{told.removeprefix(RESUMED)}"
            onto = "" if last.start else last.onto
            turn = new_turn_id(now)
            return [Continued(at=now, turn=turn, brief=last.brief, prompt=prompt, route=last.asked, onto=onto)]

        return await self._begin(caller, task_id, again)

    async def run_checks(self, caller: Caller, task_id: TaskId) -> Task:
        """Raises `InvalidRequest` when there is nothing to check, or nothing to check it by; `WrongPhase`."""

        async def go_on() -> Task:
            task = self._ledger.get(task_id)
            project = await self._projects.settings(Path(task.spec.workspace))
            plan = self._plan(task, project)

            def check(now: Task) -> list[Event]:
                _must_be_checkable(now, plan, project)
                return [CheckRequested(at=self._clock.now(), plan=plan)]

            async with self._applying[task.spec.workspace]:
                return await self._ledger.decide(task.id, check, self._launch(caller))

        return await self._ledger.to_the_end(go_on())

    def follow_up(self, task: Task, brief: str, budget: Budget = Budget(), key: str = "", onto: str = "") -> Continued:
        """A new turn of a task that rests. Raises `BudgetSpent`."""
        self._look_for_room(task, budget)
        now, last = self._clock.now(), task.turn
        # A worker that was never reached knows nothing of the task yet.
        prompt = brief if last.session else f"{last.prompt}\n{brief}"
        return Continued(
            at=now,
            turn=new_turn_id(now),
            brief=brief,
            prompt=prompt,
            route=last.asked,
            budget=budget,
            key=key,
            onto=onto,
        )

    async def _begin(
        self,
        caller: Caller,
        task_id: TaskId,
        decide: Callable[[Task], list[Continued]],
        before: Callable[[Task], bool] = lambda _: False,
    ) -> Task:
        """The task with the turn that `decide` makes, or as it is if that was made `before`."""

        async def go_on() -> Task:
            task = self._ledger.get(task_id)
            must_have_worker(task)
            async with self._applying[task.spec.workspace]:
                if before(self._ledger.get(task.id)):
                    return self._ledger.get(task.id)
                return await self._ledger.decide(task.id, decide, self._launch(caller))

        return await self._ledger.to_the_end(go_on())

    def _launch(self, caller: Caller) -> Callable[[Task], None]:
        return lambda task: self._supervisor.launch(task, caller.environment)

    def _plan(self, task: Task, project: ProjectSettings) -> CheckPlan:
        if task.spec.integrates:
            sources = [each for each in self._ledger.all() if each.id in task.spec.integrates]
            return self._briefing.plan_together(self._recipes, sources, project)
        return self._briefing.plan(self._recipes.get(task.spec.recipe), task.spec.anchor, project)

    def _look_for_room(self, task: Task, budget: Budget) -> None:
        """Raises `BudgetSpent` when there is nothing left for another turn."""
        reached = spent(task, budget.over(task.turn.budget))
        if reached:
            raise BudgetSpent(
                f"task {task.id} has nothing left for another turn: {reached}; continue_task can raise it"
            )
        must_have_money(self._ledger.all(), task.spec.workspace, self._limits, self._clock.now())


def must_have_money(tasks: Sequence[Task], workspace: str, limits: Limits, now: float) -> None:
    """Raises `BudgetSpent` when the workspace has used up its day."""
    reached = overdrawn(tasks, workspace, limits.daily_cost, now)
    if reached:
        raise BudgetSpent(f"nothing is started here any more today: {reached}")


def _must_be_checkable(task: Task, plan: CheckPlan, project: ProjectSettings) -> None:
    must_rest(task, "checked")
    if task.phase is not Phase.READY:
        raise WrongPhase(f"task {task.id} is {task.phase}; only a result that is ready can be checked")
    if task.turn.changes is None or not task.turn.changes.files:
        raise InvalidRequest(f"task {task.id} changed no file, so there is nothing to check")
    if not plan:
        why = project.note or "offload.toml of the project names no checks, and neither does the task's recipe"
        raise InvalidRequest(f"there is nothing to check task {task.id} by: {why}")
