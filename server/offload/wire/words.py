"""A task in a few plain words, for the terminal's tables and lines. What a worker has said is made harmless first."""

from __future__ import annotations

import re

from offload.domain.task import Phase
from offload.domain.turn import ActivityKind
from offload.wire.views import TaskStatus

# A worker's text must not move the cursor, set the window's title or write to the clipboard.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

# What is said while the worker itself has nothing to tell.
UNDER_WAY = {
    Phase.STARTING: "the worker is being started",
    Phase.WORKING: "waits for the model",
    Phase.CHECKING: "the result is being checked",
    Phase.CANCELLING: "the worker is being stopped",
    Phase.RECOVERING: "the work is being looked for",
}
TALK = 60  # characters of a worker's last words


def harmless(text: str) -> str:
    """The text with a visible sign in place of each control character; line ends and tabs stay."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    return harmless(" ".join(text.split()))


def doing(task: TaskStatus, *, talk: bool = True) -> str:
    """What happens to the task now, or how it ended: "running the test suite", "asks: bash: make", "3 files changed".

    While the worker writes, these are its last words, or with `talk` off that it writes.
    """
    if task.asks:
        ask = task.asks[0]
        words = f"asks: {ask.subject}: {ask.detail}"
    elif task.place is not None:
        words = f"waits for a free place, number {task.place}"
    elif task.failure is not None:
        words = task.failure.message
    elif task.needs_review:
        words = f"needs a look: {task.needs_review}"
    elif task.activity is not None:
        words = task.activity.label or task.activity.kind
        if talk and task.activity.kind is ActivityKind.WRITING and task.partial_text:
            words = _end(one_line(_whole(task.partial_text)))
    elif task.files_changed is not None:
        words = f"{task.files_changed} {'file' if task.files_changed == 1 else 'files'} changed"
    else:
        words = UNDER_WAY.get(task.phase, "")
    return one_line(words)


def _whole(text: str) -> str:
    """Without the last word, which may be half of one; a single word is shown as far as it goes."""
    return re.sub(r"(?<=\s)\S*\w$", "", text)


def _end(text: str) -> str:
    """The last words that fit, from the beginning of one on."""
    if len(text) <= TALK:
        return text
    end = text[1 - TALK :]
    return "…" + (end.partition(" ")[2] or end)


def state(task: TaskStatus) -> str:
    """The phase, or that it waits for an answer."""
    return "waits for you" if task.asks and task.phase is Phase.WORKING else task.phase.value


def seconds(elapsed: float) -> str:
    """As in "7 s", "3:05", "1:02:03"."""
    whole = int(elapsed)
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}:{minutes:02d}:{rest:02d}"
    return f"{minutes}:{rest:02d}" if minutes else f"{rest} s"


def count(number: int) -> str:
    """A count in short: "812", "8.2k", "1.3M"."""
    if number < 1000:
        return str(number)
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:.1f}M"


def size(number: int) -> str:
    """Bytes in short: "812 B", "8.2 kB", "1.3 MB", "2.0 GB"."""
    if number < 1000:
        return f"{number} B"
    if number < 1_000_000:
        return f"{number / 1000:.1f} kB"
    return f"{number / 1_000_000:.1f} MB" if number < 1_000_000_000 else f"{number / 1_000_000_000:.1f} GB"
