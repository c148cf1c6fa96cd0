"""What the files of one landing have in common, and how one of them is refused."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from offload.domain.change import Conflict, FileChange
from offload.workspace.git import Git
from offload.workspace.landing.merge import Clash
from offload.workspace.landing.sides import Sides
from offload.workspace.landing.text import read
from offload.workspace.repository import Repository
from offload.workspace.results.changes import Entry
from offload.workspace.results.conflicts import LONGEST

SAME_PLACE = "was changed by you in the same place"
MADE_TWICE = "was made by you as well, with other contents"


class Refused(Exception):
    """One file cannot be landed, for this reason."""

    def __init__(self, reason: str, conflicts: tuple[Conflict, ...] = ()) -> None:
        super().__init__(reason)
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class Asked:
    """What all files of one landing have in common. `keep_last_end` are those of `buffers` whose last line end
    is for their editors alone to change, `changed` is the change set's files by path, `links` are all that the
    result makes (path to target), `tangled` has a reason for each path that another one is in the way of, and `own` are the
    folders that are git's own."""

    git: Git
    repository: Repository
    sides: Sides
    buffers: Mapping[str, str]
    keep_last_end: Collection[str]
    exact: bool
    changed: Mapping[str, FileChange]
    links: Mapping[str, str]
    tangled: Mapping[str, str]
    own: Sequence[str]


def clashed(asked: Asked, entry: Entry, clashes: tuple[Clash, ...], both_made: bool) -> Refused:
    reason = MADE_TWICE if both_made else SAME_PLACE
    conflicts = tuple(
        Conflict(entry.path, reason, _unit(asked, entry, at.base_lines), at.first_line, *_shown(at)) for at in clashes
    )
    return Refused(reason, conflicts)


def _shown(clash: Clash) -> tuple[str, str, str]:
    return clash.yours[:LONGEST], clash.base[:LONGEST], clash.theirs[:LONGEST]


def refused(asked: Asked, entry: Entry, reason: str, live: bytes | None = None) -> Refused:
    """A conflict of whole files."""
    sides = (_excerpt(side) for side in (live, asked.sides.base(entry), asked.sides.result(entry)))
    return Refused(
        reason, (Conflict(entry.path, reason, _unit(asked, entry, range(0)), int(live is not None), *sides),)
    )


def _excerpt(content: bytes | None) -> str:
    """What can be shown of it: nothing of a binary file."""
    text = read(content or b"")
    return "" if text is None else text.text[:LONGEST]


def _unit(asked: Asked, entry: Entry, lines: range) -> str:
    """The id of the hunk that has most of these lines of the base, or of the file where it has none."""
    file = asked.changed.get(entry.path)
    if file is None:
        return ""
    if not file.hunks:
        return file.id
    return max(
        file.hunks, key=lambda hunk: _common(range(hunk.old_start - 1, hunk.old_start + hunk.old_lines), lines)
    ).id


def _common(hunk: range, lines: range) -> int:
    """How many lines two places share; the place after each of them counts, for one may be between lines."""
    return min(hunk.stop, lines.stop + 1) - max(hunk.start, lines.start)
