"""The parts of a change set that somebody wants, as a commit of their own.

Texts are put together from the lines of both sides by the numbers that the hunks have, as bytes: nothing is decoded, and
a line ends where git says that it does.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from offload.domain.change import ChangeSet, FileChange, Hunk
from offload.domain.errors import InvalidRequest
from offload.workspace.git import Git, together
from offload.workspace.index import put, record
from offload.workspace.objects import read_blobs, write_blobs
from offload.workspace.repository import Repository
from offload.workspace.results.changes import RAW, Entry, compare_index, entries


@dataclass(frozen=True, slots=True)
class _Part:
    """What is wanted of a file; without `hunks` all of it."""

    file: FileChange
    hunks: tuple[Hunk, ...] = ()


async def select(git: Git, repository: Repository, changes: ChangeSet, units: Collection[str]) -> tuple[ChangeSet, str]:
    """The change set of `units` alone, and the tree of its result; no tree when nothing new was made. Raises
    `InvalidRequest` for a unit that is not in `changes`, and for one that leaves no room for another."""
    parts = _parts(changes, units)
    if not parts:
        return ChangeSet(changes.base, changes.base), ""
    if len(parts) == len(changes.files) and not any(part.hunks for part in parts):
        return changes, ""
    _refuse_what_is_in_the_way(changes, parts)
    with tempfile.TemporaryDirectory(dir=repository.private / "tasks") as scratch:
        index = Path(scratch, "index")
        printed, _ = await together(
            git.ours(repository.private, *RAW, *repository.only_below, changes.base, changes.result),
            git.ours(repository.private, "read-tree", changes.base, index=index),
        )
        found = {entry.path: entry for entry in entries(printed.stdout)}
        await put(git, repository, index, await _entries(git, repository, parts, found))
        files, (tree, result) = await together(
            compare_index(git, repository, changes.base, index),
            record(git, repository, index, changes.base, "A part of a task's result"),
        )
    ids = {(file.path, *_place(hunk)): hunk.id for file in changes.files for hunk in file.hunks}
    return ChangeSet(changes.base, result, tuple(_named_as_before(file, ids) for file in files)), tree


def _parts(changes: ChangeSet, units: Collection[str]) -> list[_Part]:
    wanted = frozenset(units)
    if unknown := wanted.difference(changes.units, (file.id for file in changes.files)):
        raise InvalidRequest(f"{', '.join(sorted(unknown))}: not in this result; leave it out.")
    parts = []
    for file in changes.files:
        if file.id in wanted or wanted.issuperset(file.units):
            parts.append(_Part(file))
        elif hunks := tuple(hunk for hunk in file.hunks if hunk.id in wanted):
            parts.append(_Part(file, hunks))
    return parts


def _refuse_what_is_in_the_way(changes: ChangeSet, parts: Sequence[_Part]) -> None:
    """A file and a folder of one name exclude each other: what comes needs what goes."""
    taken = {part.file.path for part in parts}
    come = {part.file.path for part in parts if part.file.new_mode}
    for file in changes.files:
        gone = file.old_path or ("" if file.new_mode else file.path)
        if not gone or file.path in taken:
            continue
        for path in come:
            if path.startswith(f"{gone}/") or gone.startswith(f"{path}/"):
                raise InvalidRequest(f"{path} takes the place of {gone}; choose the change of {file.path} as well.")


async def _entries(
    git: Git, repository: Repository, parts: Sequence[_Part], found: Mapping[str, Entry]
) -> list[tuple[str, str, str]]:
    """Mode, object and path of all that changes in the index; what goes comes first."""
    partly = [part for part in parts if part.hunks]
    sides = [(found[part.file.old_path or part.file.path].old, found[part.file.path].new) for part in partly]
    contents = await read_blobs(git, repository, {blob for pair in sides for blob in pair}) if partly else {}
    texts = [_text(contents[old], contents[new], part.hunks) for part, (old, new) in zip(partly, sides, strict=True)]
    written = dict(zip((part.file.path for part in partly), await write_blobs(git, repository, texts), strict=True))
    gone, come = [], []
    for part in parts:
        entry = found[part.file.path]
        path = repository.prefix + entry.path
        if part.file.old_path:
            gone.append(("", "", repository.prefix + part.file.old_path))
        if entry.new_mode:
            come.append((entry.new_mode, written.get(entry.path, entry.new), path))
        else:
            gone.append(("", "", path))
    return [*gone, *come]


def _text(old: bytes, new: bytes, hunks: Sequence[Hunk]) -> bytes:
    """The old text with these hunks."""
    before, after = (io.BytesIO(side).readlines() for side in (old, new))
    return b"".join(_lines(before, after, hunks))


def _lines(before: Sequence[bytes], after: Sequence[bytes], hunks: Sequence[Hunk]) -> Iterator[bytes]:
    at = 0
    for hunk in hunks:
        old_start = hunk.old_start - (hunk.old_lines > 0)  # git numbers an empty side by the line before it
        new_start = hunk.new_start - (hunk.new_lines > 0)
        yield from before[at:old_start]
        yield from after[new_start : new_start + hunk.new_lines]
        at = old_start + hunk.old_lines
    yield from before[at:]


def _place(hunk: Hunk) -> tuple[int, int]:
    return hunk.old_start, hunk.old_lines


def _named_as_before(file: FileChange, ids: Mapping[tuple[str, int, int], str]) -> FileChange:
    """With the ids that its hunks have in the whole change set: there may have been equal ones before them."""
    hunks = (replace(hunk, id=ids.get((file.path, *_place(hunk)), hunk.id)) for hunk in file.hunks)
    return replace(file, hunks=tuple(hunks))
