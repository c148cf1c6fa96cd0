"""The operations table: everything that a front can ask for, once.

From it come the LSP requests (`offload/startTask`), the MCP tools (`start_task`), the command line (`offload start-task`),
docs/PROTOCOL.md, the JSON schema, the TypeScript types and the Lua annotations. An edge looks an operation up, validates its
params, calls it and renders the result; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from offload.core.caller import Caller
from offload.core.delegation import Delegation
from offload.domain.task import Front
from offload.wire import calls
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


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "list_agents",
        "listAgents",
        "agents",
        ListAgentsParams,
        ListAgentsResult,
        "List the AI agents that jobs can be given to (workers), with their models and prices, and the recipes.",
        calls.list_agents,
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
        calls.start_task,
    ),
    Operation(
        "continue_task",
        "continueTask",
        "continue-task",
        ContinueTaskParams,
        TaskStatus,
        "Send a follow-up to a task that is over; the agent remembers what it did.",
        calls.continue_task,
    ),
    Operation(
        "resume_task",
        "resumeTask",
        "resume-task",
        ResumeTaskParams,
        TaskStatus,
        "Let the worker of an interrupted, failed or cancelled task go on where it stood, in the same session and folder.",
        calls.resume_task,
    ),
    Operation(
        "cancel_task",
        "cancelTask",
        "cancel-task",
        TaskParams,
        TaskStatus,
        "Stop a task; it is cancelled once its worker is confirmed gone.",
        calls.cancel_task,
    ),
    Operation(
        "answer_task",
        "answerTask",
        "answer-task",
        AnswerTaskParams,
        TaskStatus,
        "Answer what a task's agent asked: a permission (allow, always for this task, deny) or a question.",
        calls.answer_task,
    ),
    Operation(
        "get_task",
        "getTask",
        "show-task",
        TaskParams,
        TaskView,
        "Get a whole task with all its turns.",
        calls.get_task,
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
        calls.get_task_status,
        reads_only=True,
    ),
    Operation(
        "get_task_result",
        "getTaskResult",
        "task-result",
        GetTaskResultParams,
        TaskResult,
        "Get the agent's final words and the names of the files that it changed; get_changes gives the patch.",
        calls.get_task_result,
        reads_only=True,
    ),
    Operation(
        "wait_for_tasks",
        "waitForTasks",
        "wait",
        WaitForTasksParams,
        WaitForTasksResult,
        "Wait for all or any of some tasks, for a question of one, or for the next progress, and say where each stands.",
        calls.wait_for_tasks,
        reads_only=True,
    ),
    Operation(
        "list_tasks",
        "listTasks",
        "list-tasks",
        ListTasksParams,
        ListTasksResult,
        "List tasks in short, newest first.",
        calls.list_tasks,
        reads_only=True,
    ),
    Operation(
        "show_tasks",
        "showTasks",
        "show-tasks",
        ListTasksParams,
        TaskListView,
        "List whole tasks, newest first.",
        calls.show_tasks,
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
        calls.close_task,
        fronts=NOT_MODELS,
    ),
    Operation(
        "clean_tasks",
        "cleanTasks",
        "clean",
        CleanTasksParams,
        CleanTasksResult,
        "Remove old tasks for good, and list what is kept and why; unapplied work only of named tasks, when asked.",
        calls.clean_tasks,
        fronts=NOT_MODELS,
    ),
    Operation(
        "get_changes",
        "getChanges",
        "diff",
        GetChangesParams,
        GetChangesResult,
        "Get what a task changed, file by file and hunk by hunk, as one patch: all that can be applied, or what one turn did.",
        calls.get_changes,
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
        calls.apply_task,
        writes_files=True,
    ),
    Operation(
        "reject_task",
        "rejectTask",
        "reject",
        RejectTaskParams,
        TaskStatus,
        "Say that a task's changes, or some of its files or hunks, are not wanted, and send them back to its agent if asked to.",
        calls.reject_task,
    ),
    Operation(
        "undo_apply",
        "undoApply",
        "undo",
        UndoApplyParams,
        UndoApplyResult,
        "Take back exactly what one apply changed, however the files have moved on since.",
        calls.undo_apply,
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
        calls.integrate_tasks,
    ),
    Operation(
        "run_checks",
        "runChecks",
        "check",
        RunChecksParams,
        TaskStatus,
        "Run the project's checks over a task's result once more; then call wait_for_tasks.",
        calls.run_checks,
    ),
    Operation(
        "trust_workspace",
        "trustWorkspace",
        "trust",
        TrustWorkspaceParams,
        TrustWorkspaceResult,
        "Allow the commands in the project's offload.toml as it is now; a changed file must be trusted again.",
        calls.trust_workspace,
        fronts=NOT_MODELS,
    ),
)

BY_NAME = {operation.name: operation for operation in OPERATIONS}
