"""Tells what git could not merge: where it is in the user's text, what both sides hold, and which hunk it is of."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from offload.domain.change import ChangeSet, Conflict, FileChange, Hunk
from offload.workspace.git import Git, literal, together
from offload.workspace.objects import read_blobs
from offload.workspace.repository import Repository
from offload.workspace.results.changes import RAW, RENAMES, SHOWN, SUBMODULE, Entry, entries, file_changes

Stages = Mapping[int, tuple[str, str]]
"""Mode and object of what both began from (1), of the user's side (2) and of the task's (3)."""
BASE, YOURS, THEIRS = 1, 2, 3
LONGEST = 4000
"""So many characters of each side are shown."""
LONGEST_CHARACTER = 4
LOOKED_AT = 8000
"""How far git looks for a zero byte before it takes a file for binary."""
REGULAR = "100"
KIND = re.compile(r"^CONFLICT \([^)]*\): ")


@dataclass(frozen=True, slots=True)
class Complaint:
    """What git says of one conflict, and the paths that it is about."""

    paths: tuple[str, ...]
    kind: str
    message: str


@dataclass(slots=True)
class _Place:
    """A marked place: its first line and the one before the task's lines, counted from 0, and the lines of each side."""

    start: int
    turn: int = 0
    sides: dict[int, list[bytes]] = field(default_factory=lambda: {YOURS: [], BASE: [], THEIRS: []})


@dataclass(frozen=True, slots=True)
class _Trouble:
    """One file that did not merge. `file` is the change that the task made to it, None when that cannot be told; `merged` is
    what is in its place now, "" where that is not a text with marks."""

    path: str
    complaint: Complaint
    stages: Stages
    file: FileChange | None
    merged: str

    @property
    def unit(self) -> str:
        if self.file is None:
            return ""
        return self.file.units[0] if len(self.file.units) == 1 else self.file.id


async def conflicts_of(
    git: Git,
    repository: Repository,
    tree: str,
    stages: Mapping[str, Stages],
    complaints: Sequence[Complaint],
    changes: ChangeSet,
) -> tuple[Conflict, ...]:
    """The conflicts of a merge that gave `tree`, in git's order; each file is told of in one way only."""
    first: dict[str, Complaint] = {}
    for complaint in complaints:
        first.setdefault(complaint.paths[0], complaint)
    printed, merged = await together(
        git.ours(repository.private, *RAW, *RENAMES, *repository.only_below, changes.base, changes.result),
        _blobs_at(git, repository, tree, list(first)),
    )
    changed = entries(printed.stdout)
    files = {file.path: file for file in changes.files}
    troubles = []
    for path, complaint in first.items():
        sides = {stage: side for each in complaint.paths for stage, side in stages.get(each, {}).items()}
        names = [each.removeprefix(repository.prefix) for each in complaint.paths]
        text = all(sides.get(side, ("", ""))[0].startswith(REGULAR) for side in (YOURS, THEIRS))
        file = files.get(_changed_path(names, sides, changed))
        troubles.append(_Trouble(names[0], complaint, sides, file, merged.get(path, "") if text else ""))
    shown = {blob for one in troubles for mode, blob in one.stages.values() if mode != SUBMODULE}
    contents = await read_blobs(git, repository, shown.union(one.merged for one in troubles if one.merged))
    places = [_places(contents.get(one.merged, b"")) for one in troubles]
    marked = [one for one, found in zip(troubles, places, strict=True) if found]
    pairs = iter(await _correspondence(git, repository, marked))
    told: list[Conflict] = []
    for one, found in zip(troubles, places, strict=True):
        if found:
            yours, theirs = next(pairs)
            told.extend(_marked(one, place, yours, theirs) for place in found)
        else:
            told.append(_unmarked(one, contents))
    return tuple(told)


async def _blobs_at(git: Git, repository: Repository, tree: str, paths: Sequence[str]) -> dict[str, str]:
    command = ("ls-tree", "-z", "--full-tree", tree, *map(literal, paths))
    listed = await git.ours(repository.private, *command)
    lines = (line.split("\t", 1) for line in os.fsdecode(listed.stdout).split("\0")[:-1])
    return {path: about.split(" ")[2] for about, path in lines}


def _changed_path(names: Sequence[str], stages: Stages, changed: Sequence[Entry]) -> str:
    """The path of the task's change that is in trouble. The user may have renamed the file, so that it is known by what it
    holds; "" when it is not known."""
    for entry in changed:
        if entry.path in names or entry.old_path in names:
            return entry.path
    for entry in changed:
        if (entry.new_mode, entry.new) == stages.get(THEIRS) or (
            THEIRS not in stages and (entry.old_mode, entry.old) == stages.get(BASE)
        ):
            return entry.path
    return ""


def _places(content: bytes) -> list[_Place]:
    """The marked places of a text, by the names that the marks have."""
    found: list[_Place] = []
    place, side = _Place(0), 0
    for number, line in enumerate(io.BytesIO(content)):
        if not side and line.startswith(b"<<<<<<< "):
            place, side = _Place(number), YOURS
        elif side == YOURS and line.startswith(b"||||||| "):
            side = BASE
        elif side == BASE and line.rstrip() == b"=======":
            place.turn, side = number, THEIRS
        elif side == THEIRS and line.startswith(b">>>>>>> "):
            found.append(place)
            side = 0
        elif side:
            place.sides[side].append(line)
    return found


async def _correspondence(
    git: Git, repository: Repository, marked: Sequence[_Trouble]
) -> list[tuple[Sequence[Hunk], Sequence[Hunk]]]:
    """How the marked texts differ from the user's and from the task's, one pair for each."""
    if not marked:
        return []
    trees = (
        [one.merged for one in marked],
        [one.stages[YOURS][1] for one in marked],
        [one.stages[THEIRS][1] for one in marked],
    )
    named = "\n".join("".join(f"100644 blob {blob}\t{number}\n" for number, blob in enumerate(tree)) for tree in trees)
    made = await git.ours(repository.private, "mktree", "--batch", stdin=named.encode())
    merged, *others = made.stdout.decode().split()
    printed = await together(
        *(git.ours(repository.private, "diff-tree", *SHOWN, "--unified=0", merged, other) for other in others)
    )
    yours, theirs = ({file.path: file.hunks for file in file_changes(each.stdout, {})} for each in printed)
    return [(yours[str(number)], theirs[str(number)]) for number in range(len(marked))]


def _line_there(line: int, hunks: Sequence[Hunk]) -> int:
    """Where a line of the marked text is in the other one, counted from 0; the next one for a line that is not there."""
    moved = 0
    for hunk in hunks:
        old_start, new_start = _start(hunk.old_start, hunk.old_lines), _start(hunk.new_start, hunk.new_lines)
        if old_start <= line < old_start + hunk.old_lines:
            return new_start + min(line - old_start, hunk.new_lines)
        if old_start < line:
            moved = new_start + hunk.new_lines - old_start - hunk.old_lines
    return line + moved


def _start(number: int, lines: int) -> int:
    """Counted from 0: git numbers an empty side by the line before it."""
    return number - (lines > 0)


def _marked(one: _Trouble, place: _Place, yours: Sequence[Hunk], theirs: Sequence[Hunk]) -> Conflict:
    reason = "both sides changed the same lines" if BASE in one.stages else "both sides made it, with other contents"
    unit = one.unit
    if one.file is not None and len(one.file.hunks) > 1:
        start = _line_there(place.turn, theirs)
        unit = _hunk_at(one.file.hunks, start, start + max(1, len(place.sides[THEIRS]))).id
    texts = (_excerpt(b"".join(place.sides[side])) for side in (YOURS, BASE, THEIRS))
    return Conflict(one.path, reason, unit, _line_there(place.start, yours) + 1, *texts)


def _hunk_at(hunks: Sequence[Hunk], start: int, end: int) -> Hunk:
    """The hunk that holds these lines; the last one when they are behind the last line of the text."""
    for hunk in hunks:
        first = _start(hunk.new_start, hunk.new_lines)
        if start < first + hunk.new_lines and first < end:
            return hunk
    return hunks[-1]


def _unmarked(one: _Trouble, contents: Mapping[str, bytes]) -> Conflict:
    yours, base, theirs = (
        _excerpt(contents.get(one.stages.get(side, ("", ""))[1], b"")) for side in (YOURS, BASE, THEIRS)
    )
    return Conflict(one.path, _reason(one), one.unit, 1 if yours else 0, yours, base, theirs)


def _reason(one: _Trouble) -> str:
    if one.complaint.kind == "CONFLICT (binary)":
        return "both sides changed it, and it is not text"
    if one.complaint.kind == "CONFLICT (modify/delete)":
        return (
            "was changed by you and deleted by the task"
            if YOURS in one.stages
            else ("was deleted by you and changed by the task")
        )
    if one.complaint.kind == "CONFLICT (contents)":
        modes = {one.stages[side][0] for side in (YOURS, THEIRS)}
        return (
            "both sides made it, with other modes" if len(modes) > 1 else "both sides changed it, and it has no lines"
        )
    return KIND.sub("", one.complaint.message).strip()


def _excerpt(content: bytes) -> str:
    """What can be shown of it: nothing of a binary file."""
    if b"\0" in content[:LOOKED_AT]:
        return ""
    return content[: LONGEST * LONGEST_CHARACTER].decode(errors="replace")[:LONGEST]
