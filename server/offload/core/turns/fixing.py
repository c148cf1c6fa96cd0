"""Failing checks go back to the worker by themselves: when they do, and in which words."""

from __future__ import annotations

from collections.abc import Sequence

from offload.core.ids import new_turn_id
from offload.core.limits import spent
from offload.domain.check import CheckResult, told
from offload.domain.events import ChecksEnded, Continued
from offload.domain.profile import Profile
from offload.domain.task import Task

TAIL = 4000  # characters of what a failing check printed that its worker is told, the last ones
TOLD = 3  # failing checks of which that is told
WORDS = 500  # characters of what a check says of itself


def fix_round(task: Task, ended: ChecksEnded, overdrawn: str) -> list[Continued]:
    """The turn that mends what the checks of `task`, which is being checked, have found; nothing when a person should look.
    `overdrawn` says that the workspace has nothing left for it, "" when it has.

    A check that a person asked for goes back to nobody. A turn that changed nothing is not checked, so it is the last one.
    """
    failing = [result for result in ended.results if not result.passed]
    asked_for_by_a_person = task.turn.ended_at is not None
    done = (
        not failing
        or task.stop_requested
        or asked_for_by_a_person
        or task.turn.fix_round >= task.plan.rounds
        or task.spec.profile is Profile.READ_ONLY
        or bool(task.spec.integrates)
        or bool(spent(task, task.turn.budget) or overdrawn)
    )
    if done:
        return []
    return [
        Continued(
            at=ended.at,
            turn=new_turn_id(ended.at),
            brief=f"The checks failed: {'; '.join(_told(result) for result in failing)}",
            prompt=_prompt(failing),
            route=task.turn.asked,
            fix_round=task.turn.fix_round + 1,
        )
    ]


def _prompt(failing: Sequence[CheckResult]) -> str:
    parts = ["Checks were run over your work, and they failed. Mend what they found, and leave the checks as they are."]
    for result in failing[:TOLD]:
        parts.append(f"{_told(result)}\nThe command is: {result.command}")
        if tail := result.tail.strip():
            parts.append(f"The end of what it printed:\n\n{tail[-TAIL:]}")
    if rest := failing[TOLD:]:
        parts.append(f"These failed as well: {'; '.join(_told(result) for result in rest)}")
    return "\n\n".join(parts)


def _told(result: CheckResult) -> str:
    words = told(result)
    return words if len(words) <= WORDS else f"{words[:WORDS]}…"
