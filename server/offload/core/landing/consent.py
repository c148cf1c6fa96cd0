"""Whether a model may apply a result, and how a person is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from offload.core.caller import Caller
from offload.core.ids import new_id
from offload.domain.ask import ALLOW, DENY, Ask, AskId, AskKind, ModelApply, WantedApply
from offload.domain.change import ChangeSet
from offload.domain.errors import ApplyForbidden
from offload.domain.review import ReviewState, review, standing
from offload.domain.task import Front, Landing, Task, TaskId

APPLY = "apply"


def must_be_allowed(caller: Caller, task: Task, setting: ModelApply, tasks: Iterable[Task]) -> None:
    """Raises `ApplyForbidden` for a model that may not apply this task's result, whoever agrees. Results of others do not become
    a model's own by being integrated; `tasks` are all that there are."""
    if not _is_own(caller, task, {each.id: each for each in tasks}):
        began = "holds results of tasks that were not" if _started(caller, task) else "was not"
        raise ApplyForbidden(
            f"task {task.id} {began} started by {caller.who}: only the user can apply it, in the editor or with "
            f"`offload apply {task.id}`"
        )
    if setting is ModelApply.NEVER:
        raise ApplyForbidden(
            f"models may not apply results here (mcp_apply is never): the user can, in the editor or with "
            f"`offload apply {task.id}`"
        )


def _is_own(caller: Caller, task: Task, known: Mapping[TaskId, Task]) -> bool:
    """Whether the caller started the task and, as far as anybody can tell, all that it is made of."""
    made_of = task.spec.integrates
    return _started(caller, task) and all(other in known and _is_own(caller, known[other], known) for other in made_of)


def _started(caller: Caller, task: Task) -> bool:
    return task.spec.front is Front.MODEL and task.spec.caller == caller.name


def applied_before(task: Task, units: Sequence[str]) -> Landing | None:
    """The last landing, when all of `units` are applied: nobody need be asked again."""
    states = review(task)
    if units and all(states.get(unit) is ReviewState.APPLIED for unit in units):
        return standing(task)[-1]
    return None


def consent_of(task: Task, wanted: WantedApply, part: ChangeSet) -> Ask | None:
    """What a person is to be asked, None when that is open already. Raises `ApplyForbidden` when it was denied."""
    if any(ask.wanted is not None and ask.wanted.units == wanted.units for ask in task.asks.values()):
        return None
    for closing in task.closings:
        if closing.choice == DENY and closing.ask.wanted is not None and closing.ask.wanted.units == wanted.units:
            words = f": {closing.message}" if closing.message else ""
            raise ApplyForbidden(
                f"{closing.by} does not want this part of task {task.id} to be applied{words}; only the user can apply it now"
            )
    count = len(part.files)
    detail = f"{count} {'file' if count == 1 else 'files'}, +{part.added_lines} -{part.removed_lines}"
    return Ask(AskId(new_id("consent")), AskKind.PERMISSION, APPLY, detail, (ALLOW, DENY), wanted)


def user_is_asked(task: Task) -> ApplyForbidden:
    return ApplyForbidden(
        f"nothing is applied yet: the user is asked whether {task.id} may be; wait_for_tasks tells what comes of it"
    )


def only_for_people(caller: Caller) -> None:
    """Raises `ApplyForbidden` for a model that answers in a person's place."""
    if caller.front is Front.MODEL:
        raise ApplyForbidden("whether this may be applied is asked of the user; wait_for_tasks tells what comes of it")
