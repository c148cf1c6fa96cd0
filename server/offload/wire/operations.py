"""The operations table: everything that a front can ask for, once.

From it come the LSP requests (`offload/startTask`), the MCP tools (`start_task`), the command line (`offload start-task`),
docs/PROTOCOL.md, the JSON schema, the TypeScript types and the Lua annotations. An edge looks an operation up, validates its
params, calls it and renders the result; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.core.caller import Caller
from offload.core.delegation import Delegation, StartRequest, WaitFor
from offload.core.refusals import selected
from offload.domain.anchor import LineRange
from offload.domain.ask import Answer, AskId
from offload.domain.budget import Budget
from offload.domain.errors import InvalidRequest
from offload.domain.review import Selection
from offload.domain.route import Route
from offload.domain.task import Front, TaskId
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
    Params,
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
from offload.wire.views import TaskStatus, TaskView, View

EVERYWHERE = frozenset(Front)
NOT_MODELS = frozenset({Front.EDITOR, Front.TERMINAL})


@dataclass(frozen=True, slots=True)
class Operation:
    """One row. `name` is the MCP tool and the rpc method; `lsp` the method after "offload/"; `command` the command's name.

    `reads_only` is true when it changes nothing, `writes_files` when it changes the user's own; `fronts` are those that offer it.
    """

    name: str
    lsp: str
    command: str
    params: type[Params]
    result: type[View]
    doc: str
    call: Callable[[Delegation, Caller, Any], Awaitable[View]]
    reads_only: bool = False
    writes_files: bool = False
    fronts: frozenset[Front] = EVERYWHERE


async def _list_agents(delegation: Delegation, caller: Caller, params: ListAgentsParams) -> ListAgentsResult:
    workers = await delegation.list_agents(caller, params.worker)
    return offers.agents(workers, delegation.recipes.all(), delegation.default_worker, params.search)


async def _start_task(delegation: Delegation, caller: Caller, params: StartTaskParams) -> TaskStatus:
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


async def _continue_task(delegation: Delegation, caller: Caller, params: ContinueTaskParams) -> TaskStatus:
    budget = Budget(params.max_minutes, params.max_turns, params.max_tokens, params.max_cost)
    task = await delegation.continue_(caller, TaskId(params.task_id), params.brief, budget, params.key, params.onto)
    return await _status_after(delegation, task.id, params.wait_s)


async def _resume_task(delegation: Delegation, caller: Caller, params: ResumeTaskParams) -> TaskStatus:
    task = await delegation.resume(caller, TaskId(params.task_id))
    return await _status_after(delegation, task.id, params.wait_s)


async def _cancel_task(delegation: Delegation, caller: Caller, params: TaskParams) -> TaskStatus:
    task = await delegation.cancel(caller, TaskId(params.task_id))
    return convert.status(task, delegation.live(task.id), delegation.clock.now())


async def _answer_task(delegation: Delegation, caller: Caller, params: AnswerTaskParams) -> TaskStatus:
    answer = Answer(params.choice, params.message)
    task = await delegation.answer(caller, TaskId(params.task_id), AskId(params.ask_id), answer, params.key)
    return convert.status(task, delegation.live(task.id), delegation.clock.now())


async def _get_task(delegation: Delegation, _: Caller, params: TaskParams) -> TaskView:
    task = delegation.get(TaskId(params.task_id))
    return convert.task(task, delegation.live(task.id))


async def _get_task_status(delegation: Delegation, _: Caller, params: GetTaskStatusParams) -> TaskStatus:
    task = delegation.get(TaskId(params.task_id))
    if not params.turn_id:
        return convert.status(task, delegation.live(task.id), delegation.clock.now())
    turn = delegation.turn(task, TurnId(params.turn_id))
    return convert.turn_status(task, turn, delegation.live(task.id), delegation.clock.now())


async def _get_task_result(delegation: Delegation, _: Caller, params: GetTaskResultParams) -> TaskResult:
    task = delegation.get(TaskId(params.task_id))
    turn = delegation.turn(task, TurnId(params.turn_id))
    return convert.result(task, turn, params.text_offset, own=bool(params.turn_id))


async def _wait_for_tasks(delegation: Delegation, _: Caller, params: WaitForTasksParams) -> WaitForTasksResult:
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


async def _list_tasks(delegation: Delegation, _: Caller, params: ListTasksParams) -> ListTasksResult:
    tasks = delegation.tasks(params.workspace, live=params.live, closed=params.closed)
    shown = tasks[: params.limit]
    now = delegation.clock.now()
    statuses = [convert.status(task, delegation.live(task.id), now) for task in shown]
    return ListTasksResult(tasks=statuses, left_out=len(tasks) - len(shown))


async def _show_tasks(delegation: Delegation, _: Caller, params: ListTasksParams) -> TaskListView:
    tasks = delegation.tasks(params.workspace, live=params.live, closed=params.closed)[: params.limit]
    return TaskListView(tasks=[convert.task(task, delegation.live(task.id)) for task in tasks])


async def _close_task(delegation: Delegation, caller: Caller, params: TaskParams) -> TaskStatus:
    task = await delegation.close(caller, TaskId(params.task_id))
    return convert.status(task, delegation.live(task.id), delegation.clock.now())


async def _get_changes(delegation: Delegation, _: Caller, params: GetChangesParams) -> GetChangesResult:
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


async def _apply_task(delegation: Delegation, caller: Caller, params: ApplyTaskParams) -> ApplyTaskResult:
    selection = Selection(tuple(params.paths), tuple(params.hunks), params.include_outside)
    task, landing = await delegation.apply(caller, TaskId(params.task_id), selection, params.key)
    return outcomes.applied(task, landing)


async def _reject_task(delegation: Delegation, caller: Caller, params: RejectTaskParams) -> TaskStatus:
    selection = Selection(tuple(params.paths), tuple(params.hunks))
    task_id, send_back = TaskId(params.task_id), params.send_back
    task = await delegation.reject(caller, task_id, selection, params.reason, send_back=send_back)
    return convert.status(task, delegation.live(task.id), delegation.clock.now())


async def _undo_apply(delegation: Delegation, caller: Caller, params: UndoApplyParams) -> UndoApplyResult:
    task, undone = await delegation.undo(caller, TaskId(params.task_id), params.apply_id)
    return outcomes.undone(task, undone)


async def _integrate_tasks(delegation: Delegation, caller: Caller, params: IntegrateTasksParams) -> TaskStatus:
    task = await delegation.integrate(caller, [TaskId(task_id) for task_id in params.task_ids], params.key)
    return await _status_after(delegation, task.id, params.wait_s)


async def _run_checks(delegation: Delegation, caller: Caller, params: RunChecksParams) -> TaskStatus:
    task = await delegation.run_checks(caller, TaskId(params.task_id))
    return await _status_after(delegation, task.id, params.wait_s)


async def _trust_workspace(
    delegation: Delegation, caller: Caller, params: TrustWorkspaceParams
) -> TrustWorkspaceResult:
    root, settings = await delegation.trust(caller, params.workspace, trusted=params.trusted)
    return outcomes.trust(root, settings)


async def _clean_tasks(delegation: Delegation, caller: Caller, params: CleanTasksParams) -> CleanTasksResult:
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


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "list_agents",
        "listAgents",
        "agents",
        ListAgentsParams,
        ListAgentsResult,
        "List the AI agents that jobs can be given to (workers), with their models and prices, and the recipes.",
        _list_agents,
        reads_only=True,
    ),
    Operation(
        "start_task",
        "startTask",
        "start-task",
        StartTaskParams,
        TaskStatus,
        "Give a small coding job to a cheaper AI agent. Returns an id at once; then call wait_for_tasks. brief is needed unless "
        "recipe is tests or docs, which need file with symbol or lines. The user's files stay as they are until the user applies "
        "the result.",
        _start_task,
    ),
    Operation(
        "continue_task",
        "continueTask",
        "continue-task",
        ContinueTaskParams,
        TaskStatus,
        "Send a follow-up to a task that is over; the agent remembers what it did.",
        _continue_task,
    ),
    Operation(
        "resume_task",
        "resumeTask",
        "resume-task",
        ResumeTaskParams,
        TaskStatus,
        "Let the worker of an interrupted, failed or cancelled task go on where it stood, in the same session and folder.",
        _resume_task,
    ),
    Operation(
        "cancel_task",
        "cancelTask",
        "cancel-task",
        TaskParams,
        TaskStatus,
        "Stop a task; it is cancelled once its worker is confirmed gone.",
        _cancel_task,
    ),
    Operation(
        "answer_task",
        "answerTask",
        "answer-task",
        AnswerTaskParams,
        TaskStatus,
        "Answer what a task's agent asked: a permission (allow, always for this task, deny) or a question.",
        _answer_task,
    ),
    Operation(
        "get_task",
        "getTask",
        "show-task",
        TaskParams,
        TaskView,
        "Get a whole task with all its turns.",
        _get_task,
        reads_only=True,
        fronts=NOT_MODELS,
    ),
    Operation(
        "get_task_status",
        "getTaskStatus",
        "task-status",
        GetTaskStatusParams,
        TaskStatus,
        "Say in short where a task stands and what its worker is doing.",
        _get_task_status,
        reads_only=True,
    ),
    Operation(
        "get_task_result",
        "getTaskResult",
        "task-result",
        GetTaskResultParams,
        TaskResult,
        "Get the agent's final words and the names of the files that it changed; get_changes gives the patch.",
        _get_task_result,
        reads_only=True,
    ),
    Operation(
        "wait_for_tasks",
        "waitForTasks",
        "wait",
        WaitForTasksParams,
        WaitForTasksResult,
        "Wait for all or any of some tasks, for a question of one, or for the next progress, and say where each stands.",
        _wait_for_tasks,
        reads_only=True,
    ),
    Operation(
        "list_tasks",
        "listTasks",
        "list-tasks",
        ListTasksParams,
        ListTasksResult,
        "List tasks in short, newest first.",
        _list_tasks,
        reads_only=True,
    ),
    Operation(
        "show_tasks",
        "showTasks",
        "show-tasks",
        ListTasksParams,
        TaskListView,
        "List whole tasks, newest first.",
        _show_tasks,
        reads_only=True,
        fronts=NOT_MODELS,
    ),
    Operation(
        "close_task",
        "closeTask",
        "close-task",
        TaskParams,
        TaskStatus,
        "Release a finished task's session and folder; it stays readable.",
        _close_task,
        fronts=NOT_MODELS,
    ),
    Operation(
        "clean_tasks",
        "cleanTasks",
        "clean",
        CleanTasksParams,
        CleanTasksResult,
        "Remove old tasks for good, and list what is kept and why; unapplied work only of named tasks, when asked.",
        _clean_tasks,
        fronts=NOT_MODELS,
    ),
    Operation(
        "get_changes",
        "getChanges",
        "diff",
        GetChangesParams,
        GetChangesResult,
        "Get what a task changed, file by file and hunk by hunk, as one patch: all that can be applied, or what one turn did.",
        _get_changes,
        reads_only=True,
    ),
    Operation(
        "apply_task",
        "applyTask",
        "apply",
        ApplyTaskParams,
        ApplyTaskResult,
        "Merge a task's changes, or some files or hunks of them, into the user's files, all or nothing: in the editor that has a "
        "file open, else on disk. The user may be asked first.",
        _apply_task,
        writes_files=True,
    ),
    Operation(
        "reject_task",
        "rejectTask",
        "reject",
        RejectTaskParams,
        TaskStatus,
        "Say that a task's changes, or some of its files or hunks, are not wanted, and send them back to its agent if asked to.",
        _reject_task,
    ),
    Operation(
        "undo_apply",
        "undoApply",
        "undo",
        UndoApplyParams,
        UndoApplyResult,
        "Take back exactly what one apply changed, however the files have moved on since.",
        _undo_apply,
        writes_files=True,
    ),
    Operation(
        "integrate_tasks",
        "integrateTasks",
        "integrate",
        IntegrateTasksParams,
        TaskStatus,
        "Make one result of several tasks': merge them, run the checks on the union, name what conflicts or breaks. Gives the id "
        "of a task of its own, to be waited for, reviewed and applied like any other.",
        _integrate_tasks,
    ),
    Operation(
        "run_checks",
        "runChecks",
        "check",
        RunChecksParams,
        TaskStatus,
        "Run the project's checks over a task's result once more; then call wait_for_tasks.",
        _run_checks,
    ),
    Operation(
        "trust_workspace",
        "trustWorkspace",
        "trust",
        TrustWorkspaceParams,
        TrustWorkspaceResult,
        "Allow the commands in the project's offload.toml as it is now; a changed file must be trusted again.",
        _trust_workspace,
        fronts=NOT_MODELS,
    ),
)

BY_NAME = {operation.name: operation for operation in OPERATIONS}
