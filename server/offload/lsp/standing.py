"""What is left of a task's newest result to be accepted or not, and which of its hunks are near a place in a file. Knows nothing
of how that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from offload.domain.change import ChangeSet, FileChange, Hunk
from offload.domain.review import ReviewState, outside, review
from offload.domain.task import Landing, Task

# A hunk is found by its lines at the start of the task, and the user has typed since.
NEAR = 3


@dataclass(frozen=True, slots=True)
class Standing:
    """The files of `left` and of `outside`, which the task was not allowed to change, hold something that is neither applied
    nor rejected; `landings` can be undone."""

    changes: ChangeSet
    states: Mapping[str, ReviewState]
    left: tuple[FileChange, ...]
    outside: tuple[FileChange, ...]
    landings: tuple[Landing, ...]

    @property
    def word(self) -> str:
        """What has become of the result as a whole."""
        became = {self.states.get(unit) for unit in self.changes.units}
        if ReviewState.APPLIED in became:
            return "partly applied" if None in became else "applied"
        return "ready" if None in became else "rejected"


def standing(task: Task) -> Standing | None:
    """That of a task that rests; None for one without a change."""
    changes = newest_changes(task)
    if changes is None or task.live:
        return None
    states = review(task)
    waiting = [file for file in changes.files if not states.keys() >= set(file.units)]
    out = tuple(file for file in outside(task, changes) if file in waiting)
    return Standing(
        changes,
        states,
        tuple(file for file in waiting if file not in out),
        out,
        tuple(landing for landing in task.landings if landing.id and landing.undone_at is None),
    )


def newest_changes(task: Task) -> ChangeSet | None:
    """The newest change set with files in it: each turn's holds everything since the task's base."""
    found = next((turn.changes for turn in task.turns[::-1] if turn.changes is not None), None)
    return found if found is not None and found.files else None


def near(file: FileChange, first: int, last: int) -> tuple[Hunk, ...]:
    """The hunks of the file at these lines (0-based) or next to them."""
    return tuple(hunk for hunk in file.hunks if _distance(hunk, first, last) <= NEAR)


def _distance(hunk: Hunk, first: int, last: int) -> int:
    """How many lines there are from a hunk to the lines `first` to `last`: from where it was at the start of the task, or from
    where it is in the result, whichever is nearer."""
    sides = ((hunk.old_start, hunk.old_lines), (hunk.new_start, hunk.new_lines))
    spans = [(start - 1, start - 1 + max(count - 1, 0)) for start, count in sides]
    return min(max(begin - last, first - end, 0) for begin, end in spans)
