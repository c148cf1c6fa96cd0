"""Domain values turned into views. Lines become 1-based here; nothing is decided, and no protocol is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from offload.core.delegation import Live, Waited
from offload.core.housekeeping import Cleaned, Looked
from offload.core.ports import ModelInfo, WorkerInfo
from offload.domain.anchor import Anchor
from offload.domain.ask import Ask, AskKind, Closing
from offload.domain.budget import Budget
from offload.domain.change import ChangeSet
from offload.domain.errors import ApplyRefused, OffloadError
from offload.domain.recipe import Recipe
from offload.domain.route import Route
from offload.domain.task import Phase, Task, TaskId
from offload.domain.turn import INTERRUPTED, Activity, Failure, Turn
from offload.domain.usage import Usage
from offload.wire.results import CleanedTask, CleanTasksResult, ListAgentsResult, TaskResult, WaitForTasksResult
from offload.wire.views import (
    ActivityView,
    AgentView,
    AnchorView,
    AskView,
    BudgetView,
    ChangesView,
    CheckView,
    ClosedAskView,
    ErrorView,
    FailureView,
    FileChangeView,
    HunkView,
    LandingView,
    ModelView,
    RecipeView,
    RouteView,
    TaskState,
    TaskStatus,
    TaskView,
    TurnView,
    UsageView,
    WorkerView,
)

PARTIAL_TEXT_LIMIT = 400
CLOSED_ASKS_LIMIT = 20
RESULT_TEXT_LIMIT = 3000

_STATES: Mapping[Phase, TaskState] = {
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
    Phase.READY: "Review it with get_task_result and get_changes; then the user takes it with `offload apply ID`, or "
    "continue_task sends it back.",
    Phase.FAILED: "Read the failure; resume_task tries on, continue_task says what to do differently, get_task_result shows "
    "what was changed so far.",
    Phase.CANCELLED: "resume_task takes it up again; get_task_result shows what was changed so far.",
    Phase.INTERRUPTED: "resume_task lets the worker go on; get_task_result shows what was changed so far.",
}


def agents(
    workers: Sequence[WorkerInfo], recipes: Sequence[Recipe], default_worker: str, search: str = ""
) -> ListAgentsResult:
    """What a task can be given to; `search` keeps the models whose id contains all of its words, in any case."""
    words = search.lower().split()
    return ListAgentsResult(
        workers=[_worker(worker, words) for worker in workers],
        recipes=[RecipeView(name=recipe.name, title=recipe.title) for recipe in recipes],
        default_worker=default_worker,
    )


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
        needs_review=turn.needs_review,
        failure=_failure(turn.failure),
        next_step=_next_step(task, live.place),
        workspace=task.spec.workspace,
        path=task.spec.anchor.path if task.spec.anchor else "",
    )


def turn_status(task: Task, turn: Turn, live: Live, now: float) -> TaskStatus:
    """One turn in short: where it stands or how it ended, with its own usage and changes."""
    whole = status(task, live, now)
    own = turn.own_changes
    last = turn.id == task.turn.id
    phase = task.phase if last else _ended_phase(turn)
    return whole.model_copy(
        update={
            "state": whole.state if last else _STATES[phase],
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
            "needs_review": turn.needs_review,
            "failure": _failure(turn.failure),
        }
    )


def state(task: Task) -> TaskState:
    """Where a task stands in the five words that MCP clients know."""
    if task.asking:
        return TaskState.INPUT_REQUIRED
    return _STATES[task.phase]


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
        turns=[_turn(turn) for turn in task.turns],
        notes=list(task.notes),
        landings=[
            LandingView(turn_id=landing.turn, paths=list(landing.paths), at=landing.at) for landing in task.landings
        ],
        closed=task.closed,
    )


def result(task: Task, turn: Turn, text_offset: int = 0, *, own: bool = False) -> TaskResult:
    """How `turn`, the last one or an earlier one, ended; its text comes in pieces of at most `RESULT_TEXT_LIMIT`. The changes
    are all since the task's base, or with `own` what the turn changed."""
    made = turn.own_changes if own else turn.changes
    end = text_offset + RESULT_TEXT_LIMIT
    last = turn.id == task.turn.id
    phase = task.phase if last else _ended_phase(turn)
    return TaskResult(
        task_id=task.id,
        turn_id=turn.id,
        state=state(task) if last else _STATES[phase],
        phase=phase,
        text=turn.text[text_offset:end],
        text_offset=text_offset,
        next_text_offset=end if end < len(turn.text) else None,
        changes=None if made is None else changes(made),
        ran=_optional_route(turn.ran),
        usage=_usage(turn.usage),
        needs_review=turn.needs_review,
        failure=_failure(turn.failure),
        next_step=_next_step(task),
    )


def waited(waited: Waited, live: Mapping[TaskId, Live], now: float, *, progress: bool = True) -> WaitForTasksResult:
    """Where the tasks stand after a wait, and what to pass as `after_revision` to wait for what comes next."""
    return WaitForTasksResult(
        done=waited.done,
        tasks=[status(each, live[each.id], now, progress=progress) for each in waited.tasks],
        after_revision={each.id: each.revision for each in waited.tasks},
    )


def changes(changes: ChangeSet) -> ChangesView:
    """A change set with all its files and hunks."""
    return ChangesView(
        base=changes.base,
        result=changes.result,
        files=[
            FileChangeView(
                path=file.path,
                status=file.status,
                added_lines=file.added_lines,
                removed_lines=file.removed_lines,
                binary=file.binary,
                hunks=[
                    HunkView(
                        old_start=hunk.old_start,
                        old_lines=hunk.old_lines,
                        new_start=hunk.new_start,
                        new_lines=hunk.new_lines,
                    )
                    for hunk in file.hunks
                ],
            )
            for file in changes.files
        ],
        added_lines=changes.added_lines,
        removed_lines=changes.removed_lines,
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
    reasons = error.reasons if isinstance(error, ApplyRefused) else ()
    return ErrorView(code=error.code, message=str(error), reasons=[f"{path}: {reason}" for path, reason in reasons])


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


def _next_step(task: Task, place: int | None = None) -> str:
    if place is not None:
        return f"Waits for a free place, number {place}: call wait_for_tasks."
    if task.closed:
        return "Closed: its result can still be read with get_task_result, and applied."
    if state(task) is TaskState.INPUT_REQUIRED:
        permission = any(ask.kind is AskKind.PERMISSION for ask in task.asks.values())
        return f"Call answer_task with {'allow, always (for this task) or deny' if permission else 'one of the choices'}, then wait_for_tasks."
    if task.phase is Phase.READY and any(landing.turn == task.turn.id for landing in task.landings):
        return "Applied to the user's files; continue_task sends a follow-up."
    return _NEXT_STEPS[task.phase].replace("ID", task.id)


def _ended_phase(turn: Turn) -> Phase:
    """The phase in which an earlier turn left the task."""
    if turn.stopped:
        return Phase.CANCELLED
    if turn.failure is None:
        return Phase.READY
    return Phase.INTERRUPTED if turn.failure.code == INTERRUPTED else Phase.FAILED


def _elapsed(turn: Turn, now: float) -> float:
    """Seconds of work: the time in the queue does not count, and a clock that was set back gives no negative time."""
    if turn.started_at is None:
        return 0.0
    end = now if turn.ended_at is None else turn.ended_at
    return round(max(0.0, end - turn.started_at), 1)


def _turn(turn: Turn) -> TurnView:
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
        changes=None if turn.changes is None else changes(turn.changes),
        own_changes=None if turn.own is None else changes(turn.own),
        checks=[
            CheckView(name=check.name, passed=check.passed, seconds=check.seconds, tail=check.tail)
            for check in turn.checks
        ],
        failure=_failure(turn.failure),
        needs_review=turn.needs_review,
    )


def _worker(worker: WorkerInfo, words: Sequence[str]) -> WorkerView:
    return WorkerView(
        name=worker.name,
        version=worker.version,
        agents=[AgentView(name=agent.name, description=agent.description) for agent in worker.agents],
        models=[_model(model) for model in worker.models if all(word in model.id.lower() for word in words)],
        default_model=worker.default_model,
        profiles=list(worker.profiles),
        problem=worker.problem,
        note=worker.note,
    )


def _model(model: ModelInfo) -> ModelView:
    return ModelView(
        id=model.id,
        name=model.name,
        variants=list(model.variants),
        input_price=model.input_price,
        output_price=model.output_price,
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
