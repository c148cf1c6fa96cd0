"""The numbers that core works by, and what they mean for a task. They come from the settings.

Work is counted in ticks of the hub's clock: a tick in which an ask is open counts for nothing, and neither does the machine's
sleep, in which no tick ends. A price that is unknown counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import ge, gt

from offload.domain.budget import Budget
from offload.domain.task import Task
from offload.domain.usage import Usage

TICK_S = 5.0
DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Limits:
    """`tasks_per_workspace` work at a time, the others wait; an ask that nobody answers is denied after `ask_timeout_s`;
    `live_text` characters of a running turn's text are kept for showing.

    `budget` is that of a task that names none, `daily_cost` in US dollars is for each workspace, all its tasks of a day (UTC)
    together; a turn without a sign of life for `stall_after_s` is stopped; a cleaning leaves tasks alone that have changed in the
    last `keep_days`. None is no limit.
    """

    tasks_per_workspace: int = 5
    ask_timeout_s: float = 300.0
    live_text: int = 4000
    budget: Budget = Budget()
    daily_cost: float | None = None
    stall_after_s: float | None = None
    keep_days: float | None = None


def overrun(task: Task, worked_s: float) -> str:
    """What a task whose turn has worked for `worked_s` has used too much of, in words; "" for nothing."""
    return _reached(task, worked_s, task.turn.budget, gt)


def spent(task: Task, budget: Budget) -> str:
    """What a task that rests would have nothing left of for another turn, in words; "" for nothing."""
    if budget.turns is not None and len(task.turns) >= budget.turns:
        return f"it has had {len(task.turns)} turns, and max_turns is {budget.turns}"
    return _reached(task, task.turn.worked_s, budget, ge)


def minutes_left(task: Task, worked_s: float) -> float | None:
    """How long the task may still work; None without a limit."""
    minutes = task.turn.budget.minutes
    return None if minutes is None else minutes - _worked_s(task, worked_s) / 60


def overdrawn(tasks: Iterable[Task], workspace: str, daily_cost: float | None, now: float) -> str:
    """That a workspace has used more of its day than it may, in words; "" when it has not. A turn counts on the day of its end."""
    if daily_cost is None:
        return ""
    today = now // DAY_S
    turns = (turn for task in tasks if task.spec.workspace == workspace for turn in task.turns)
    cost = sum(turn.usage.cost or 0.0 for turn in turns if (turn.ended_at or now) // DAY_S == today)
    if cost < daily_cost or not cost:
        return ""
    return f"the tasks of {workspace} have cost ${cost:.2f} today (UTC), and the setting max_daily_cost is ${daily_cost:.2f}"


def _reached(task: Task, worked_s: float, budget: Budget, beyond: Callable[[float, float], bool]) -> str:
    used = sum((turn.usage for turn in task.turns), Usage())
    cost, minutes = used.cost or 0.0, _worked_s(task, worked_s) / 60
    if budget.minutes is not None and beyond(minutes, budget.minutes):
        return f"it has worked for {minutes:.1f} minutes, and max_minutes is {budget.minutes:g}"
    if budget.tokens is not None and beyond(used.total_tokens, budget.tokens):
        return f"it has used {used.total_tokens} tokens, and max_tokens is {budget.tokens}"
    if budget.cost is not None and beyond(cost, budget.cost):
        return f"it has cost ${cost:.4g}, and max_cost is ${budget.cost:.4g}"
    return ""


def _worked_s(task: Task, worked_s: float) -> float:
    return worked_s + sum(turn.worked_s for turn in task.turns[:-1])
