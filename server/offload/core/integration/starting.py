"""The start of an integration: which tasks may be made one result, what its task is, and what cannot be done with such a task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from offload.core.briefing import shortened
from offload.core.caller import Caller
from offload.core.ledger import Ledger
from offload.core.refusals import must_rest, newest_changes
from offload.domain.check import CheckPlan
from offload.domain.errors import InvalidRequest, KeyReused, OffloadError, WrongPhase
from offload.domain.project import ProjectSettings
from offload.domain.review import outside, pending, review, standing
from offload.domain.route import Route
from offload.domain.task import Task, TaskId, TaskSpec

RECIPE = "integration"
NOBODY = Route("")  # there is no worker


def to_integrate(ledger: Ledger, task_ids: Sequence[TaskId]) -> tuple[Task, ...]:
    """The tasks of these ids, in their order. Raises `WrongPhase` naming each that is not over or has no result, and
    `InvalidRequest` when they are not of one workspace, or one is named twice."""
    tasks = [ledger.get(task_id) for task_id in task_ids]
    ids = [task.id for task in tasks]
    if twice := sorted({task_id for task_id in ids if ids.count(task_id) > 1}):
        raise InvalidRequest(f"named twice: {', '.join(twice)}; name each task once")
    if len({task.spec.workspace for task in tasks}) != 1:
        places = ", ".join(f"{task.id} is of {task.spec.workspace}" for task in tasks)
        raise InvalidRequest(f"name tasks of one workspace: {places or 'none was named'}")
    if problems := [problem for task in tasks if (problem := _not_ready(task))]:
        raise WrongPhase("; ".join(problems))
    return tuple(tasks)


def integrated_before(tasks: Iterable[Task], key: str, wanted: Sequence[TaskId], untold: Iterable[Task]) -> Task | None:
    """The integration that this very request was for, of the `tasks` of a workspace; without a key it is one that its caller
    was not told of. Raises `KeyReused` when the key came with another request."""
    for task in tasks if key else untold:
        same = task.spec.integrates == tuple(wanted)
        if key and task.spec.key == key and not same:
            raise KeyReused(f"the key {key!r} was used for another request (task {task.id}); use a new key")
        if same and task.spec.key == key:
            return task
    return None


def integration_of(
    tasks: Sequence[Task],
    caller: Caller,
    key: str,
    project: ProjectSettings,
    plan: CheckPlan,
    buffers: Mapping[str, str],
) -> TaskSpec:
    """What is to be done, as a task without a worker."""
    named = [f"{task.id} ({task.spec.title})" for task in tasks]
    count = f"{len(tasks)} {'result' if len(tasks) == 1 else 'results'}"
    return TaskSpec(
        workspace=tasks[0].spec.workspace,
        title=shortened(f"Integrate {count}: {', '.join(task.spec.title for task in tasks)}"),
        brief=f"Make one result of {', '.join(named)}.",
        prompt="",
        route=NOBODY,
        recipe=RECIPE,
        buffers=buffers,
        front=caller.front,
        caller=caller.name,
        key=key,
        setup=project.setup,
        plan=plan,
        carry=project.carry,
        never_send=project.never_send,
        integrates=tuple(task.id for task in tasks),
        warnings=(project.note,) if project.note else (),
    )


def taken_with_others(task: Task, tasks: Iterable[Task]) -> frozenset[str]:
    """The units of the newest result of `task` that are applied, or were decided on, in an integration that was begun since."""
    if not any(_took(other, task) for other in tasks):
        return frozenset()
    changes = newest_changes(task)[1]
    beyond = {unit for file in outside(task, changes) for unit in file.units}
    return frozenset(changes.units) - beyond


def _took(other: Task, task: Task) -> bool:
    """Whether `other` is an integration with the newest result of `task` in it, of which nothing is left to be decided."""
    made = other.integration
    if made is None or task.id not in made.order or other.created_at < (task.turn.ended_at or 0.0):
        return False
    return bool(standing(other)) and not pending(newest_changes(other)[1], review(other))


def must_have_worker(task: Task) -> None:
    """Raises `WrongPhase` for an integration, in which there is nobody to be told what to do."""
    if task.spec.integrates:
        raise WrongPhase(
            f"task {task.id} is an integration, which has no worker to go on with it; continue the tasks that it was made of "
            f"({', '.join(task.spec.integrates)}), then call integrate_tasks with them again"
        )


def _not_ready(task: Task) -> str:
    try:
        must_rest(task, "integrated", closed_too=True)
        newest_changes(task)
    except OffloadError as error:
        return str(error)
    return ""
