"""What came of tasks, as views: change sets with the state of each hunk, applies and undos, checks, integrations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from offload.domain.change import ChangeSet, Conflict, FileChange, files_of
from offload.domain.check import CheckResult, told
from offload.domain.project import ProjectSettings
from offload.domain.review import ReviewState, claimed_only, outside, pending, review
from offload.domain.task import Landing, Task
from offload.domain.turn import Turn
from offload.wire.results import ApplyTaskResult, TrustWorkspaceResult, UndoApplyResult
from offload.wire.views import (
    AppliedFileView,
    ChangesView,
    CheckView,
    ConflictView,
    FileChangeView,
    HunkView,
    IntegrationView,
    LandingView,
    LeftOutView,
    OverlapView,
    TestCountsView,
)


def changes(changes: ChangeSet, task: Task, turn: Turn, units: Collection[str] | None = None) -> ChangesView:
    """A change set of a task with its files and hunks, and what has become of each; `turn` is the one that made it. `units`
    names the files that are wanted, all of them without it: a result can have more than a model gets in one answer."""
    states = review(task)
    out = {file.path for file in outside(task, changes)}
    return ChangesView(
        base=changes.base,
        result=changes.result,
        files=[
            _file(file, states, outside=file.path in out)
            for file in (changes.files if units is None else files_of(changes, units))
        ],
        added_lines=changes.added_lines,
        removed_lines=changes.removed_lines,
        claimed_only=list(claimed_only(turn, changes)),
    )


def _file(file: FileChange, states: Mapping[str, ReviewState], *, outside: bool) -> FileChangeView:
    each = [states.get(unit, ReviewState.PENDING) for unit in file.units]
    state = each[0] if len(set(each)) == 1 else ReviewState.PENDING
    return FileChangeView(
        path=file.path,
        file_id=file.id,
        status=file.status,
        state=state,
        outside=outside,
        old_path=file.old_path,
        old_mode=file.old_mode,
        new_mode=file.new_mode,
        size=file.size,
        added_lines=file.added_lines,
        removed_lines=file.removed_lines,
        binary=file.binary,
        hunks=[
            HunkView(
                hunk_id=hunk.id,
                state=states.get(hunk.id, state),
                old_start=hunk.old_start,
                old_lines=hunk.old_lines,
                new_start=hunk.new_start,
                new_lines=hunk.new_lines,
            )
            for hunk in file.hunks
        ],
    )


def applied(task: Task, landing: Landing) -> ApplyTaskResult:
    """What one apply brought, and how much is left."""
    return ApplyTaskResult(
        task_id=task.id,
        apply_id=landing.id,
        paths=list(landing.paths),
        unchanged=list(landing.unchanged),
        files=applied_files(landing),
        hunks=list(landing.units),
        hunks_pending=pending_hunks(task, task.turn.changes) or 0,
        needs_review=next(turn.doubts for turn in task.turns if turn.id == landing.turn),
    )


def undone(task: Task, undone: Landing) -> UndoApplyResult:
    """`undone` is the way back: what went where."""
    return UndoApplyResult(task_id=task.id, apply_id=undone.id, files=applied_files(undone))


def trust(root: Path, settings: ProjectSettings) -> TrustWorkspaceResult:
    """What a project's file asks for, and whether it counts."""
    plan = settings.plan
    return TrustWorkspaceResult(
        workspace=str(root),
        trusted=settings.trusted,
        setup=settings.setup,
        format=plan.format.command if plan.format else "",
        checks=[check.command for check in plan.checks],
        carry=list(settings.carry),
        never_send=list(settings.never_send),
        note=settings.note,
    )


def landing(landing: Landing) -> LandingView:
    return LandingView(
        apply_id=landing.id,
        turn_id=landing.turn,
        paths=list(landing.paths),
        files=applied_files(landing),
        hunks=list(landing.units),
        at=landing.at,
        by=landing.by,
        undone_at=landing.undone_at,
    )


def applied_files(landing: Landing) -> list[AppliedFileView]:
    return [
        AppliedFileView(
            path=path, place=landing.place(path), unchanged=path in landing.unchanged, removed=path in landing.removed
        )
        for path in landing.paths
    ]


def pending_hunks(task: Task, changes: ChangeSet | None) -> int | None:
    return None if changes is None else len(pending(changes, review(task)))


def check(result: CheckResult) -> CheckView:
    tests = result.tests
    return CheckView(
        name=result.name,
        passed=result.passed,
        seconds=result.seconds,
        tail=result.tail,
        command=result.command,
        exit_code=result.exit_code,
        problem=result.problem,
        tests=None
        if tests is None
        else TestCountsView(
            passed=tests.passed, failed=tests.failed, skipped=tests.skipped, failing=list(tests.failing)
        ),
        told=told(result),
    )


def integration(task: Task) -> IntegrationView | None:
    made = task.integration
    if made is None:
        return None
    return IntegrationView(
        task_ids=list(task.spec.integrates),
        order=list(made.order),
        overlaps=[
            OverlapView(task_ids=[each.one, each.other], paths=list(each.paths), hunks=each.hunks)
            for each in made.overlaps
        ],
        left_out=[
            LeftOutView(
                task_id=each.task,
                with_tasks=list(each.with_tasks),
                conflicts=[conflict(one) for one in each.conflicts],
            )
            for each in made.left_out
        ],
        culprits=list(made.culprits),
        before=made.before,
        probes=made.probes,
    )


def conflict(conflict: Conflict) -> ConflictView:
    return ConflictView(
        path=conflict.path,
        reason=conflict.reason,
        hunk_id=conflict.unit,
        first_line=conflict.first_line,
        yours=conflict.yours,
        base=conflict.base,
        theirs=conflict.theirs,
    )
