"""Where a task stands, in the few words that clients know, and what its caller can do next."""

from __future__ import annotations

from collections.abc import Mapping

from offload.domain.ask import AskKind
from offload.domain.change import ChangeSet
from offload.domain.review import outside, pending, review, standing
from offload.domain.task import Phase, Task
from offload.domain.turn import INTERRUPTED, Turn
from offload.wire.views import TaskState

STATES: Mapping[Phase, TaskState] = {
    Phase.QUEUED: TaskState.WORKING,
    Phase.STARTING: TaskState.WORKING,
    Phase.WORKING: TaskState.WORKING,
    Phase.CHECKING: TaskState.WORKING,
    Phase.CANCELLING: TaskState.WORKING,
    Phase.RECOVERING: TaskState.WORKING,
    Phase.READY: TaskState.COMPLETED,
    Phase.FAILED: TaskState.FAILED,
    Phase.CANCELLED: TaskState.CANCELLED,
    Phase.INTERRUPTED: TaskState.FAILED,
}

_NEXT_STEPS: Mapping[Phase, str] = {
    Phase.QUEUED: "It has just begun: call wait_for_tasks.",
    Phase.STARTING: "The worker is being started: call wait_for_tasks.",
    Phase.WORKING: "The worker is at work: call wait_for_tasks.",
    Phase.CHECKING: "Checks run over the result: call wait_for_tasks.",
    Phase.CANCELLING: "The worker is being stopped: call wait_for_tasks.",
    Phase.RECOVERING: "The work was interrupted and is being looked for: call wait_for_tasks.",
    Phase.READY: "Review it with get_task_result and get_changes; then apply_task takes it, whole or in parts, reject_task says "
    "what is not wanted, and continue_task sends it back.",
    Phase.FAILED: "Read the failure; resume_task tries on, continue_task says what to do differently, get_task_result shows "
    "what was changed so far.",
    Phase.CANCELLED: "resume_task takes it up again; get_task_result shows what was changed so far.",
    Phase.INTERRUPTED: "resume_task lets the worker go on; get_task_result shows what was changed so far.",
}
_WORDS_ALONE = "It changed no file: get_task_result has its words, continue_task sends a follow-up."
_ALL_REJECTED = "All of it was rejected: continue_task says what is wanted instead."
_UNION_REJECTED = "All of it was rejected: continue the tasks that it is made of, then call integrate_tasks again."
_NOTHING_MERGED = "There is nothing to apply: get_task_result says why."
_INTEGRATION_STEPS: Mapping[Phase, str] = {
    **_NEXT_STEPS,
    Phase.STARTING: "Its folder is being made: call wait_for_tasks.",
    Phase.WORKING: "The results are being merged: call wait_for_tasks.",
    Phase.CANCELLING: "It is being stopped: call wait_for_tasks.",
    Phase.READY: "Review it with get_task_result and get_changes; then apply_task takes all of it in one step, which undo_apply "
    "takes back. To change it, continue the tasks that it is made of and call integrate_tasks again.",
    Phase.FAILED: "Read the failure; continue the tasks that it is made of, then call integrate_tasks again.",
    Phase.CANCELLED: "integrate_tasks makes it anew.",
    Phase.INTERRUPTED: "integrate_tasks makes it anew.",
}


def state(task: Task) -> TaskState:
    """Where a task stands in the five words that MCP clients know."""
    if task.asking:
        return TaskState.INPUT_REQUIRED
    return STATES[task.phase]


def next_step(task: Task, place: int | None = None) -> str:
    """What to call now; `place` is the task's in the queue, None when it does not wait for one."""
    if place is not None:
        return f"Waits for a free place, number {place}: call wait_for_tasks."
    if task.phase is Phase.QUEUED and task.spec.after and not any(turn.start for turn in task.turns):
        return f"Waits for the result of task {' and task '.join(task.spec.after)}: call wait_for_tasks."
    if task.closed:
        return "Closed: its result can still be read with get_task_result, and applied."
    if task.asking and not task.live:
        return "The user is asked whether this may be applied; wait_for_tasks tells what comes of it."
    if state(task) is TaskState.INPUT_REQUIRED:
        permission = any(ask.kind is AskKind.PERMISSION for ask in task.asks.values())
        return f"Call answer_task with {'allow, always (for this task) or deny' if permission else 'one of the choices'}, then wait_for_tasks."
    if task.phase is Phase.READY and task.turn.changes is not None and (task.turn.changes.files or standing(task)):
        return _review_step(task, task.turn.changes)
    if task.phase is Phase.READY and not standing(task):
        return _NOTHING_MERGED if task.spec.integrates else _WORDS_ALONE
    return _steps(task)[task.phase]


def _steps(task: Task) -> Mapping[Phase, str]:
    """In an integration there is no worker to be told what to do."""
    return _INTEGRATION_STEPS if task.spec.integrates else _NEXT_STEPS


def _review_step(task: Task, changes: ChangeSet) -> str:
    states = review(task)
    left = len(pending(changes, states))
    if not left and standing(task):
        more = "" if task.spec.integrates else ", continue_task sends a follow-up"
        return f"Applied to the user's files; undo_apply takes that back{more}."
    if not left:
        return _UNION_REJECTED if task.spec.integrates else _ALL_REJECTED
    if task.integration is not None and task.integration.left_out and not states:
        named = ", ".join(each.task for each in task.integration.left_out)
        return (
            f"Left out for conflicts: {named}. get_task_result says how that goes back to its worker; apply_task takes what is in "
            "here."
        )
    beyond = {unit for file in outside(task, changes) for unit in file.units}
    if set(pending(changes, states)) <= beyond:
        return (
            "What is left is outside of the paths that the task may change: see get_changes, then apply_task takes it with "
            "include_outside."
        )
    if left < len(changes.units):
        return (
            f"{left} of {len(changes.units)} hunks are neither applied nor rejected: see get_changes, then apply_task."
        )
    return _steps(task)[Phase.READY]


def ended_phase(turn: Turn) -> Phase:
    """The phase in which an earlier turn left the task."""
    if turn.stopped:
        return Phase.CANCELLED
    if turn.failure is None:
        return Phase.READY
    return Phase.INTERRUPTED if turn.failure.code == INTERRUPTED else Phase.FAILED
