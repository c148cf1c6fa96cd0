"""The results of the operations that give more than one view."""

from __future__ import annotations

from pydantic import Field

from offload.domain.check import Checked
from offload.domain.task import Phase
from offload.wire.views import (
    AppliedFileView,
    ChangesView,
    CheckView,
    FailureView,
    IntegrationView,
    RecipeView,
    RouteView,
    TaskState,
    TaskStatus,
    TaskView,
    UsageView,
    View,
    WorkerView,
)


class ListAgentsResult(View):
    workers: list[WorkerView]
    recipes: list[RecipeView]
    default_worker: str


class TaskResult(View):
    """How a turn ended. `next_text_offset` is null when the text is complete."""

    task_id: str
    turn_id: str
    state: TaskState
    phase: Phase
    text: str
    text_offset: int
    next_text_offset: int | None
    changes: ChangesView | None
    ran: RouteView | None
    usage: UsageView
    checked: Checked = Checked.NOT_CHECKED
    checks: list[CheckView] = Field(default_factory=list)
    integration: IntegrationView | None = None
    needs_review: str
    failure: FailureView | None
    next_step: str


class WaitForTasksResult(View):
    """`done` says whether what was waited for has come; when it is false call again with `after_revision`. A task that is
    `input_required` ends the wait: answer it first.

    `left_out` counts tasks that did not fit into a short result; their revisions are there.
    """

    done: bool
    tasks: list[TaskStatus]
    after_revision: dict[str, int]
    left_out: int = 0


class ListTasksResult(View):
    tasks: list[TaskStatus]
    left_out: int


class TaskListView(View):
    """Whole tasks, newest first."""

    tasks: list[TaskView]


class GetChangesResult(View):
    """`changes` has the files that were asked for, with all their hunks. `next_patch_offset` is null when the patch is complete;
    only a model gets it in pieces."""

    task_id: str
    changes: ChangesView
    patch: str
    patch_offset: int = 0
    next_patch_offset: int | None = None


class ApplyTaskResult(View):
    """`paths` hold the result now; `unchanged` are those of them that held it before, so that nothing was written. `files`
    says of each whether it went to an editor's buffer or to disk; `apply_id` is what undo_apply takes.
    `needs_review` says why one should look at the result all the same, such as checks that fail."""

    task_id: str
    apply_id: str = ""
    paths: list[str]
    unchanged: list[str] = Field(default_factory=list)
    files: list[AppliedFileView] = Field(default_factory=list)
    hunks: list[str] = Field(default_factory=list)
    hunks_pending: int = 0
    needs_review: str = ""


class UndoApplyResult(View):
    """`files` are as they would be without that apply."""

    task_id: str
    apply_id: str
    files: list[AppliedFileView]


class TrustWorkspaceResult(View):
    """What the project's offload.toml asks for, and whether it may: commands that run after each task, files that are carried
    into its folder."""

    workspace: str
    trusted: bool
    setup: str
    format: str
    checks: list[str]
    carry: list[str]
    never_send: list[str]
    note: str


class CleanedTask(View):
    """`size_bytes` is that of the task's folder. `note` says why a task is kept, or which work goes with it."""

    task_id: str
    title: str
    workspace: str
    phase: Phase
    changed_at: float
    size_bytes: int
    note: str


class CleanTasksResult(View):
    """With `dry_run` nothing was removed yet. `younger` counts tasks that were not looked at, `left_over_bytes` is what
    workers had left behind."""

    dry_run: bool
    removed: list[CleanedTask]
    kept: list[CleanedTask]
    younger: int
    left_over_bytes: int
