"""Domain values turned into views. Lines become 1-based here; nothing is decided, and no protocol is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offload.core.delegation import Live, Waited
from offload.core.housekeeping import Cleaned, Looked
from offload.domain.anchor import Anchor
from offload.domain.ask import Ask, Closing
from offload.domain.budget import Budget
from offload.domain.check import told
from offload.domain.errors import ApplyRefused, OffloadError
from offload.domain.route import Route
from offload.domain.task import Task, TaskId
from offload.domain.turn import Activity, Failure, Turn
from offload.domain.usage import Usage
from offload.wire import outcomes
from offload.wire.results import CleanedTask, CleanTasksResult, TaskResult, WaitForTasksResult
from offload.wire.standing import STATES, ended_phase, next_step, state
from offload.wire.views import (
    ActivityView,
    AnchorView,
    AskView,
    BudgetView,
    ClosedAskView,
    ErrorView,
    FailureView,
    RejectionView,
    RouteView,
    TaskStatus,
    TaskView,
    TurnView,
    UsageView,
)

PARTIAL_TEXT_LIMIT = 400
CLOSED_ASKS_LIMIT = 20
RESULT_TEXT_LIMIT = 3000


def status(task: Task, live: Live, now: float, *, progress: bool = True) -> TaskStatus:
    """A task in short; without `progress` it leaves out what the worker is doing and saying."""
    turn = task.turn
    used = sum((each.usage for each in task.turns), Usage())
    return TaskStatus(
        task_id=task.id,
        title=task.spec.title,
        state=state(task),
        phase=task.phase,
        revision=task.revision,
        place=live.place,
        activity=_activity(task.activity) if progress else None,
        asks=[_ask(ask) for ask in task.asks.values()],
        partial_text=live.text[-PARTIAL_TEXT_LIMIT:] if progress else "",
        turn_id=turn.id,
        elapsed_s=round(sum(_elapsed(each, now) for each in task.turns), 1),
        total_tokens=used.total_tokens,
        cost=used.cost,
        cost_note=_cost_note(task.turns),
        ran=_optional_route(turn.ran),
        files_changed=None if turn.changes is None else len(turn.changes.files),
        hunks_pending=outcomes.pending_hunks(task, turn.changes),
        checked=turn.checked,
        checks=[told(each) for each in turn.checks],
        needs_review=turn.doubts,
        warnings=list(task.spec.warnings),
        failure=_failure(turn.failure),
        next_step=next_step(task, live.place),
        workspace=task.spec.workspace,
        path=task.spec.anchor.path if task.spec.anchor else "",
    )


def turn_status(task: Task, turn: Turn, live: Live, now: float) -> TaskStatus:
    """One turn in short: where it stands or how it ended, with its own usage and changes."""
    whole = status(task, live, now)
    own = turn.own_changes
    last = turn.id == task.turn.id
    phase = task.phase if last else ended_phase(turn)
    return whole.model_copy(
        update={
            "state": whole.state if last else STATES[phase],
            "phase": phase,
            "activity": whole.activity if last else None,
            "asks": whole.asks if last else [],
            "partial_text": whole.partial_text if last else "",
            "turn_id": turn.id,
            "elapsed_s": _elapsed(turn, now),
            "total_tokens": turn.usage.total_tokens,
            "cost": turn.usage.cost,
            "cost_note": _cost_note([turn]),
            "ran": _optional_route(turn.ran),
            "files_changed": None if own is None else len(own.files),
            "hunks_pending": outcomes.pending_hunks(task, turn.changes),
            "checked": turn.checked,
            "checks": [told(each) for each in turn.checks],
            "needs_review": turn.doubts,
            "failure": _failure(turn.failure),
        }
    )


def task(task: Task, live: Live) -> TaskView:
    """A whole task with all its turns."""
    return TaskView(
        task_id=task.id,
        title=task.spec.title,
        workspace=task.spec.workspace,
        recipe=task.spec.recipe,
        phase=task.phase,
        revision=task.revision,
        place=live.place,
        front=task.spec.front,
        created_at=task.created_at,
        changed_at=task.changed_at,
        anchor=_anchor(task.spec.anchor),
        activity=_activity(task.activity),
        asks=[_ask(ask) for ask in task.asks.values()],
        closed_asks=[_closed_ask(closing) for closing in task.closings[-CLOSED_ASKS_LIMIT:]],
        profile=task.spec.profile,
        budget=_budget(task.turn.budget),
        live_text=live.text,
        turns=[_turn(task, turn) for turn in task.turns],
        notes=list(task.notes),
        warnings=list(task.spec.warnings),
        allowed_paths=list(task.spec.allowed_paths),
        after=list(task.spec.after),
        landings=[outcomes.landing(landing) for landing in task.landings],
        rejections=[
            RejectionView(turn_id=each.turn, hunks=list(each.units), reason=each.reason, at=each.at)
            for each in task.rejections
        ],
        integration=outcomes.integration(task),
        closed=task.closed,
    )


def result(task: Task, turn: Turn, text_offset: int = 0, *, own: bool = False) -> TaskResult:
    """How `turn`, the last one or an earlier one, ended; its text comes in pieces of at most `RESULT_TEXT_LIMIT`. The changes
    are all since the task's base, or with `own` what the turn changed."""
    made = turn.own_changes if own else turn.changes
    end = text_offset + RESULT_TEXT_LIMIT
    last = turn.id == task.turn.id
    phase = task.phase if last else ended_phase(turn)
    return TaskResult(
        task_id=task.id,
        turn_id=turn.id,
        state=state(task) if last else STATES[phase],
        phase=phase,
        text=turn.text[text_offset:end],
        text_offset=text_offset,
        next_text_offset=end if end < len(turn.text) else None,
        changes=None if made is None else outcomes.changes(made, task, turn),
        ran=_optional_route(turn.ran),
        usage=_usage(turn.usage),
        checked=turn.checked,
        checks=[outcomes.check(each) for each in turn.checks],
        integration=outcomes.integration(task) if last else None,
        needs_review=turn.doubts,
        failure=_failure(turn.failure),
        next_step=next_step(task),
    )


def waited(waited: Waited, live: Mapping[TaskId, Live], now: float, *, progress: bool = True) -> WaitForTasksResult:
    """Where the tasks stand after a wait, and what to pass as `after_revision` to wait for what comes next."""
    return WaitForTasksResult(
        done=waited.done,
        tasks=[status(each, live[each.id], now, progress=progress) for each in waited.tasks],
        after_revision={each.id: each.revision for each in waited.tasks},
    )


def cleaned(cleaned: Cleaned, *, dry_run: bool) -> CleanTasksResult:
    """What a cleaning removed or would remove, and what it keeps."""
    return CleanTasksResult(
        dry_run=dry_run,
        removed=[_looked(each) for each in cleaned.removed],
        kept=[_looked(each) for each in cleaned.kept],
        younger=cleaned.younger,
        left_over_bytes=cleaned.left_over,
    )


def error(error: OffloadError) -> ErrorView:
    """What every edge sends about an error, beside the code of its own protocol."""
    reasons, conflicts = (error.reasons, error.conflicts) if isinstance(error, ApplyRefused) else ((), ())
    return ErrorView(
        code=error.code,
        message=str(error),
        reasons=[f"{path}: {reason}" for path, reason in reasons],
        conflicts=[outcomes.conflict(each) for each in conflicts],
    )


def _looked(looked: Looked) -> CleanedTask:
    task = looked.task
    return CleanedTask(
        task_id=task.id,
        title=task.spec.title,
        workspace=task.spec.workspace,
        phase=task.phase,
        changed_at=task.changed_at,
        size_bytes=looked.size,
        note=looked.note,
    )


def _elapsed(turn: Turn, now: float) -> float:
    """Seconds of work: the time in the queue does not count, and a clock that was set back gives no negative time."""
    if turn.started_at is None:
        return 0.0
    end = now if turn.ended_at is None else turn.ended_at
    return round(max(0.0, end - turn.started_at), 1)


def _turn(task: Task, turn: Turn) -> TurnView:
    return TurnView(
        turn_id=turn.id,
        brief=turn.brief,
        asked=_route(turn.asked),
        ran=_optional_route(turn.ran),
        queued_at=turn.queued_at,
        started_at=turn.started_at,
        ended_at=turn.ended_at,
        usage=_usage(turn.usage),
        text=turn.text,
        changes=None if turn.changes is None else outcomes.changes(turn.changes, task, turn),
        own_changes=None if turn.own is None else outcomes.changes(turn.own, task, turn),
        checks=[outcomes.check(each) for each in turn.checks],
        checked=turn.checked,
        fix_round=turn.fix_round,
        failure=_failure(turn.failure),
        needs_review=turn.doubts,
    )


def _route(route: Route) -> RouteView:
    return RouteView(worker=route.worker, agent=route.agent, model=route.model, variant=route.variant)


def _optional_route(route: Route | None) -> RouteView | None:
    return None if route is None else _route(route)


def _usage(usage: Usage) -> UsageView:
    return UsageView(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        total_tokens=usage.total_tokens,
        cost=usage.cost,
    )


def _activity(activity: Activity | None) -> ActivityView | None:
    if activity is None:
        return None
    return ActivityView(
        kind=activity.kind, label=activity.label, tool=activity.tool, until=activity.until, since=activity.since
    )


def _ask(ask: Ask) -> AskView:
    return AskView(ask_id=ask.id, kind=ask.kind, subject=ask.subject, detail=ask.detail, choices=list(ask.choices))


def _closed_ask(closing: Closing) -> ClosedAskView:
    ask = closing.ask
    return ClosedAskView(
        ask_id=ask.id,
        kind=ask.kind,
        subject=ask.subject,
        detail=ask.detail,
        outcome=closing.outcome,
        choice=closing.choice,
        by=closing.by,
        at=closing.at,
    )


def _budget(budget: Budget) -> BudgetView:
    return BudgetView(minutes=budget.minutes, turns=budget.turns, tokens=budget.tokens, cost=budget.cost)


def _cost_note(turns: Sequence[Turn]) -> str:
    """Which models' prices are not known, though they were used."""
    unpriced = {(turn.ran or turn.asked).model for turn in turns if turn.usage.total_tokens and turn.usage.cost is None}
    if not unpriced:
        return ""
    names = ", ".join(sorted(name or "the worker's default model" for name in unpriced))
    return f"The price of {names} is not known and counts as 0."


def _anchor(anchor: Anchor | None) -> AnchorView | None:
    if anchor is None:
        return None
    block = anchor.block
    return AnchorView(
        path=anchor.path,
        symbol=block.symbol,
        kind=block.kind,
        first_line=block.start_line + 1,
        last_line=block.end_line + 1,
    )


def _failure(failure: Failure | None) -> FailureView | None:
    return None if failure is None else FailureView(code=failure.code, message=failure.message)
