"""A task in the few words that fit beside a block: the same in lenses, diagnostics, progress and menus."""

from __future__ import annotations

from offload.core.delegation import Live
from offload.domain.change import ChangeSet
from offload.domain.check import Checked
from offload.domain.task import Phase, Task
from offload.domain.turn import Turn
from offload.lsp.standing import standing
from offload.wire import words

UP_TO_DATE = "Bring up to date with your files and send back"
_LONGEST = 60

CHECKED: dict[Checked, str] = {
    Checked.NOT_CHECKED: "not checked",
    Checked.PASSED: "checked",
    Checked.FAILED: "checks fail",
}

_PLAIN: dict[Phase, str] = {
    Phase.QUEUED: "queued",
    Phase.STARTING: "starting",
    Phase.WORKING: "working",
    Phase.CHECKING: "checking the result",
    Phase.CANCELLING: "stopping",
    Phase.RECOVERING: "recovering",
    Phase.READY: "ready",
    Phase.FAILED: "failed",
    Phase.CANCELLED: "cancelled",
    Phase.INTERRUPTED: "interrupted",
}


def mark(task: Task, live: Live, now: float) -> str:
    """What stands beside the block: "offload: tests — working: running the test suite (12 s)"."""
    named_by_recipe = task.spec.title.startswith(f"{task.spec.recipe} for ")
    name = task.spec.recipe if named_by_recipe else task.spec.title
    return f"offload: {short(name)} — {state(task, live, now)}"


def state(task: Task, live: Live, now: float) -> str:
    """Where the task stands."""
    text = _PLAIN[task.phase]
    turn = task.turn
    if live.place is not None:
        text += f", place {live.place}"
    if task.asks:
        ask = next(iter(task.asks.values()))
        text = f"waits for you: {short(f'{ask.subject}: {ask.detail}')}"
        if not task.live:  # It has ended: what is asked is whether a model may apply the result.
            return text
    elif task.activity is not None and task.phase in (Phase.STARTING, Phase.WORKING, Phase.CHECKING):
        text += f": {short(task.activity.label or task.activity.kind)}"
    if task.live and turn.started_at is not None:
        text += f" ({words.seconds(max(0.0, now - turn.started_at))})"
    if task.phase is Phase.READY:
        text = f"{_became(task)}: {summary(turn.changes)}{_checked(turn)}"
        if turn.doubts:
            text += f", needs a look: {short(turn.doubts)}"
    elif turn.failure is not None:
        text += f": {short(turn.failure.message)}"
    return text


def summary(changes: ChangeSet | None) -> str:
    """As in "1 file +40 -0"."""
    if changes is None or not changes.files:
        return "no change"
    files = "1 file" if len(changes.files) == 1 else f"{len(changes.files)} files"
    return f"{files} +{changes.added_lines} -{changes.removed_lines}"


def short(text: str) -> str:
    """One harmless line of at most 60 characters."""
    line = words.one_line(text)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _became(task: Task) -> str:
    stands = standing(task)
    return "ready" if stands is None else stands.word


def _checked(turn: Turn) -> str:
    """A result without a change has nothing to be checked."""
    return f", {CHECKED[turn.checked]}" if turn.changes is not None and turn.changes.files else ""
