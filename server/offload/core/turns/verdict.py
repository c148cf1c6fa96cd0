"""How a turn ended: from what the worker said last, and what it left in its folder, to the event that is recorded."""

from __future__ import annotations

from dataclasses import replace

from offload.core.turns.collecting import Collected
from offload.core.worker import End, Failed, Halted, Lost, Unstopped
from offload.domain.errors import OffloadError
from offload.domain.events import CannotResume, StopIncomplete, Stopped, TurnEnded, TurnEvent, TurnFailed
from offload.domain.lifecycle import known_checks
from offload.domain.route import differences
from offload.domain.task import Task
from offload.domain.text import cut
from offload.domain.turn import Failure

TRANSCRIPT = 1 << 20  # characters of a turn's final text that are kept
MESSAGE = 1 << 12  # and of the reason of a failure


def verdict(task: Task, at: float, end: End, found: Collected, why: Failure | None) -> TurnEvent:
    """The end of the task's last turn; `why` is what the watch stopped it for, None when it did not."""
    turn, changes, own = task.turn.id, found.changes, found.own
    if isinstance(end, Unstopped):
        survivors = end.survivors
        return StopIncomplete(at=at, turn=turn, survivors=survivors, text=end.text, changes=changes, own=own)
    if isinstance(end, Lost):
        return CannotResume(at=at, turn=turn, reason=end.reason, text=end.text, changes=changes, own=own)
    if isinstance(end, Halted) and why is not None and not task.stop_requested:
        return TurnFailed(at=at, turn=turn, failure=why, text=end.text, changes=changes, own=own)
    if isinstance(end, Halted):
        return Stopped(at=at, turn=turn, text=end.text, changes=changes, own=own)
    if isinstance(end, Failed):
        return TurnFailed(at=at, turn=turn, failure=end.failure, text=end.text, changes=changes, own=own)
    if not end.text.strip() and not (own or changes).files:
        failure = Failure("nothing_produced", "the worker ended without a word and without a change")
        return TurnFailed(at=at, turn=turn, failure=failure, changes=changes, own=own)
    marked = f"conflicts are still marked in {', '.join(found.marked)}" if found.marked else ""
    doubts = [doubt for doubt in (end.doubt, *differences(task.turn.asked, end.ran), marked) if doubt]
    return TurnEnded(
        at=at,
        turn=turn,
        text=end.text,
        changes=changes,
        own=own,
        ran=end.ran,
        usage=end.usage,
        needs_review="; ".join(doubts),
        to_check=bool(task.plan and changes.files and not known_checks(task, own)),
        claims=end.claims,
    )


def verdict_unread(task: Task, at: float, end: End, error: OffloadError) -> TurnEvent:
    """The end of a turn whose changes could not be read, for `error`."""
    turn = task.turn.id
    if isinstance(end, Unstopped):  # That is worse.
        return StopIncomplete(at=at, turn=turn, survivors=end.survivors, text=end.text)
    message = f"the worker ended, but its changes could not be read: {error}; its folder is kept"
    failure = end.failure if isinstance(end, Failed) else Failure("collect", message)
    return TurnFailed(at=at, turn=turn, failure=failure, text=end.text)


def broken_off(task: Task, at: float, failure: Failure) -> TurnFailed:
    """The end of a turn that cannot go on; what was recorded of it is kept."""
    turn = task.turn
    return TurnFailed(at=at, turn=turn.id, failure=failure, text=turn.text, changes=turn.changes, own=turn.own)


def halted(task: Task, at: float) -> Stopped:
    """The end of a turn in which no worker is, after a stop; what was recorded of it is kept."""
    turn = task.turn
    return Stopped(at=at, turn=turn.id, text=turn.text, changes=turn.changes, own=turn.own)


def bounded(end: End) -> End:
    """A worker may say anything, and a provider may answer with a whole page."""
    text = cut(end.text, TRANSCRIPT)
    if isinstance(end, Failed):
        return replace(end, text=text, failure=replace(end.failure, message=cut(end.failure.message, MESSAGE)))
    return replace(end, text=text)
