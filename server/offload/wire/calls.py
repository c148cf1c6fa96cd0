"""The call of core behind each operation: params in, a view out. Nothing is decided here, and no protocol is known."""

from __future__ import annotations

from pathlib import Path

from offload.core.caller import Caller
from offload.core.delegation import Delegation, StartRequest, WaitFor
from offload.core.refusals import selected
from offload.domain.anchor import LineRange
from offload.domain.ask import Answer, AskId
from offload.domain.budget import Budget
from offload.domain.errors import InvalidRequest
from offload.domain.review import Selection
from offload.domain.route import Route
from offload.domain.task import TaskId
from offload.domain.turn import TurnId
from offload.wire import convert, offers, outcomes
from offload.wire.params import (
    AnswerTaskParams,
    ApplyTaskParams,
    CleanTasksParams,
    ContinueTaskParams,
    GetChangesParams,
    GetTaskResultParams,
    GetTaskStatusParams,
    IntegrateTasksParams,
    ListAgentsParams,
    ListTasksParams,
    RejectTaskParams,
    ResumeTaskParams,
    RunChecksParams,
    StartTaskParams,
    TaskParams,
    TrustWorkspaceParams,
    UndoApplyParams,
    WaitForTasksParams,
    WaitMode,
)
from offload.wire.results import (
    ApplyTaskResult,
    CleanTasksResult,
    GetChangesResult,
    ListAgentsResult,
    ListTasksResult,
    TaskListView,
    TaskResult,
    TrustWorkspaceResult,
    UndoApplyResult,
    WaitForTasksResult,
)
from offload.wire.views import TaskStatus, TaskView


async def list_agents(delegation: Delegation, caller: Caller, params: ListAgentsParams) -> ListAgentsResult:
    workers = await delegation.list_agents(caller, params.worker)
    return offers.agents(workers, delegation.recipes.all(), delegation.default_worker, params.search)


async def start_task(delegation: Delegation, caller: Caller, params: StartTaskParams) -> TaskStatus:
    request = StartRequest(
        brief=params.brief,
        file=params.file,
        symbol=params.symbol,
        lines=_line_range(params.lines),
        workspace=params.workspace,
        recipe=params.recipe,
        route=Route(params.worker, params.agent, params.model, params.variant),
        key=params.key,
        profile=params.profile,
        budget=Budget(params.max_minutes, params.max_turns, params.max_tokens, params.max_cost),
        allowed_paths=tuple(params.allowed_paths),
        after=tuple(TaskId(task_id) for task_id in params.after),
    )
    task = await delegation.start(caller, request)
    return await _status_after(delegation, task.id, params.wait_s)


async def continue_task(delegation: Delegation, caller: Caller, params: ContinueTaskParams) -> TaskStatus:
    budget = Budget(params.max_minutes, params.max_turns, params.max_tokens, params.max_cost)
    task = await delegation.continue_(caller, TaskId(params.task_id), params.brief, budget, params.key, params.onto)
    return await _status_after(delegation, task.id, params.wait_s)


async def resume_task(delegation: Delegation, caller: Caller, params: ResumeTaskParams) -> TaskStatus:
    task = await delegation.resume(caller, TaskId(params.task_id))
    return await _status_after(delegation, task.id, params.wait_s)


async def cancel_task(delegation: Delegation, caller: Caller, params: TaskParams) -> TaskStatus:
    task = await delegation.cancel(caller, TaskId(params.task_id))
    return convert.status(task, delegation.live(task.id), delegation.clock.now())


async def answer_task(delegation: Delegation, caller: Caller, params: AnswerTaskParams) -> TaskStatus:
    answer = Answer(params.choice, params.message)
    task = await delegation.answer(caller, TaskId(params.task_id), AskId(params.ask_id), answer, params.key)
    return convert.status(task, delegation.live(task.id), delegation.clock.now())


async def get_task(delegation: Delegation, _: Caller, params: TaskParams) -> TaskView:
    task = delegation.get(TaskId(params.task_id))
    return convert.task(task, delegation.live(task.id))


async def get_task_status(delegation: Delegation, _: Caller, params: GetTaskStatusParams) -> TaskStatus:
    task = delegation.get(TaskId(params.task_id))
    if not params.turn_id:
        return convert.status(task, delegation.live(task.id), delegation.clock.now())
    turn = delegation.turn(task, TurnId(params.turn_id))
    return convert.turn_status(task, turn, delegation.live(task.id), delegation.clock.now())


async def get_task_result(delegation: Delegation, _: Caller, params: GetTaskResultParams) -> TaskResult:
    task = delegation.get(TaskId(params.task_id))
    turn = delegation.turn(task, TurnId(params.turn_id))
    return convert.result(task, turn, params.text_offset, own=bool(params.turn_id))


async def wait_for_tasks(delegation: Delegation, _: Caller, params: WaitForTasksParams) -> WaitForTasksResult:
    waited = await delegation.wait(
        WaitFor(
            tasks=tuple(TaskId(task_id) for task_id in params.task_ids),
            every=params.mode is WaitMode.ALL,
            timeout_s=params.timeout_s,
            after_revision=params.after_revision,
        )
    )
    live = {task.id: delegation.live(task.id) for task in waited.tasks}
    return convert.waited(waited, live, delegation.clock.now(), progress=params.include_progress)


async def list_tasks(delegation: Delegation, _: Caller, params: ListTasksParams) -> ListTasksResult:
    tasks = delegation.tasks(params.workspace, live=params.live, closed=params.closed)
    shown = tasks[: params.limit]
    now = delegation.clock.now()
    statuses = [convert.status(task, delegation.live(task.id), now) for task in shown]
    return ListTasksResult(tasks=statuses, left_out=len(tasks) - len(shown))


async def show_tasks(delegation: Delegation, _: Caller, params: ListTasksParams) -> TaskListView:
    tasks = delegation.tasks(params.workspace, live=params.live, closed=params.closed)[: params.limit]
    return TaskListView(tasks=[convert.task(task, delegation.live(task.id)) for task in tasks])


async def close_task(delegation: Delegation, caller: Caller, params: TaskParams) -> TaskStatus:
    task = await delegation.close(caller, TaskId(params.task_id))
    return convert.status(task, delegation.live(task.id), delegation.clock.now())


async def get_changes(delegation: Delegation, _: Caller, params: GetChangesParams) -> GetChangesResult:
    selection = Selection(tuple(params.paths), tuple(params.hunks))
    task, turn, changes, patch = await delegation.diff(TaskId(params.task_id), selection, TurnId(params.turn_id))
    offset = params.patch_offset
    units = None if selection.everything else selected(Path(task.spec.workspace), changes, selection)
    return GetChangesResult(
        task_id=task.id,
        changes=outcomes.changes(changes, task, turn, units),
        patch=patch[offset:],
        patch_offset=offset,
    )


async def apply_task(delegation: Delegation, caller: Caller, params: ApplyTaskParams) -> ApplyTaskResult:
    selection = Selection(tuple(params.paths), tuple(params.hunks), params.include_outside)
    task, landing = await delegation.apply(caller, TaskId(params.task_id), selection, params.key)
    return outcomes.applied(task, landing)


async def reject_task(delegation: Delegation, caller: Caller, params: RejectTaskParams) -> TaskStatus:
    selection = Selection(tuple(params.paths), tuple(params.hunks))
    task_id, send_back = TaskId(params.task_id), params.send_back
    task = await delegation.reject(caller, task_id, selection, params.reason, send_back=send_back)
    return convert.status(task, delegation.live(task.id), delegation.clock.now())


async def undo_apply(delegation: Delegation, caller: Caller, params: UndoApplyParams) -> UndoApplyResult:
    task, undone = await delegation.undo(caller, TaskId(params.task_id), params.apply_id)
    return outcomes.undone(task, undone)


async def integrate_tasks(delegation: Delegation, caller: Caller, params: IntegrateTasksParams) -> TaskStatus:
    task = await delegation.integrate(caller, [TaskId(task_id) for task_id in params.task_ids], params.key)
    return await _status_after(delegation, task.id, params.wait_s)


async def run_checks(delegation: Delegation, caller: Caller, params: RunChecksParams) -> TaskStatus:
    task = await delegation.run_checks(caller, TaskId(params.task_id))
    return await _status_after(delegation, task.id, params.wait_s)


async def trust_workspace(delegation: Delegation, caller: Caller, params: TrustWorkspaceParams) -> TrustWorkspaceResult:
    root, settings = await delegation.trust(caller, params.workspace, trusted=params.trusted)
    return outcomes.trust(root, settings)


async def clean_tasks(delegation: Delegation, caller: Caller, params: CleanTasksParams) -> CleanTasksResult:
    cleaned = await delegation.clean(
        caller,
        params.older_than_days,
        [TaskId(task_id) for task_id in params.task_ids],
        include_unaccepted=params.include_unaccepted,
        dry_run=params.dry_run,
    )
    return convert.cleaned(cleaned, dry_run=params.dry_run)


async def _status_after(delegation: Delegation, task_id: TaskId, wait_s: float) -> TaskStatus:
    if wait_s:
        await delegation.wait(WaitFor(tasks=(task_id,), every=True, timeout_s=wait_s))
    return convert.status(delegation.get(task_id), delegation.live(task_id), delegation.clock.now())


def _line_range(text: str) -> LineRange | None:
    """Read "10-42" or "10" as 1-based lines."""
    if not text:
        return None
    first, _, last = text.partition("-")
    try:
        return LineRange(int(first), int(last or first))
    except ValueError:
        raise InvalidRequest(f'lines must look like "10-42", not {text!r}') from None
