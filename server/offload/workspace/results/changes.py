"""What differs between two trees: asks git for it, and reads what `git diff-tree -z --raw --numstat -p` prints.

Names are bytes that git gives as they are, so nothing here looks for names in the patch, where they are quoted.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.domain.change import FileChange, FileStatus, Hunk, digest
from offload.workspace.git import Git
from offload.workspace.objects import sizes_of
from offload.workspace.repository import Repository

RENAMES = ("--find-renames", "--no-rename-empty", "-l400")
"""After `RAW` it makes renames of a file that went and one that came. 400 x 400 is what git compares at most, in a second."""
RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
NOTHING_FOREIGN = ("--no-ext-diff", "--no-textconv", "--no-color")
SHOWN = ("-r", "-z", "--raw", "--no-abbrev", *RENAMES, "--numstat", "--patch", *NOTHING_FOREIGN)

LARGE = {"core.bigFileThreshold": "16m"}
"""A longer file counts as binary: nobody reviews it by hunks, and a patch of it would fill the memory."""

NO_MODE = "000000"
SUBMODULE = "160000"
STATUS = {
    "A": FileStatus.ADDED,
    "D": FileStatus.DELETED,
    "M": FileStatus.MODIFIED,
    "R": FileStatus.RENAMED,
    "T": FileStatus.TYPE_CHANGED,
}
# A line of content begins with a space, "+", "-" or "\", so these can only be headers.
HEADER = re.compile(rb"^(?:diff --git |@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*\n)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of `--raw`: modes ("" where there is none) and object ids on both sides. `old_path` is where a renamed file
    was, "" for others."""

    path: str
    status: FileStatus
    old_mode: str
    new_mode: str
    old: str
    new: str
    old_path: str = ""


async def compare(git: Git, repository: Repository, older: str, newer: str) -> tuple[FileChange, ...]:
    """The workspace's files that differ between two commits or trees, in git's order."""
    command = ("diff-tree", *SHOWN, *repository.only_below, older, newer)
    printed = await git.ours(repository.private, *command, settings=LARGE)
    return await _measured(git, repository, printed.stdout)


async def compare_index(git: Git, repository: Repository, older: str, index: Path) -> tuple[FileChange, ...]:
    """The same for what an index holds."""
    command = ("diff-index", "--cached", *SHOWN, *repository.only_below, older)
    printed = await git.ours(repository.private, *command, index=index, settings=LARGE)
    return await _measured(git, repository, printed.stdout)


async def _measured(git: Git, repository: Repository, output: bytes) -> tuple[FileChange, ...]:
    found = await asyncio.to_thread(entries, output)
    sizes = await sizes_of(git, repository, [one.new for one in found if one.new_mode not in ("", SUBMODULE)])
    return await asyncio.to_thread(file_changes, output, sizes)


def entries(output: bytes) -> list[Entry]:
    """The entries at the beginning of an output that begins with `--raw`."""
    return [entry for entry, _ in _raw(output)]


def _raw(output: bytes) -> Iterator[tuple[Entry, int]]:
    """Each entry with the position after it."""
    at = 0
    while output[at : at + 1] == b":":
        line, at = _until_zero(output, at + 1)
        old_mode, new_mode, old, new, status = line.decode().split(" ")
        path, at = _until_zero(output, at)
        old_path = b""
        if status.startswith("R"):
            old_path = path
            path, at = _until_zero(output, at)
        old_mode, new_mode = (mode.replace(NO_MODE, "") for mode in (old_mode, new_mode))
        names = (os.fsdecode(path), os.fsdecode(old_path))
        yield Entry(names[0], STATUS[status[0]], old_mode, new_mode, old, new, names[1]), at


def _until_zero(output: bytes, at: int) -> tuple[bytes, int]:
    end = output.index(b"\0", at)
    return output[at:end], end + 1


def file_changes(output: bytes, sizes: Mapping[str, int]) -> tuple[FileChange, ...]:
    """The changed files of an output of `SHOWN`, in git's order; `sizes` are those of blobs."""
    found = list(_raw(output))
    at = found[-1][1] if found else 0
    counts = []
    for entry, _ in found:
        line, at = _until_zero(output, at)
        added, removed, _ = line.split(b"\t", 2)
        counts.append((added, removed))
        if entry.old_path:
            # Both names follow on their own.
            at = output.index(b"\0", output.index(b"\0", at) + 1) + 1
    sections = iter(_sections(output[at + 1 :]))
    changes = []
    for (entry, _), (added, removed) in zip(found, counts, strict=True):
        section = next(sections)
        if entry.status is FileStatus.TYPE_CHANGED:
            # It is printed as one that went and one that came, and neither half can be had without the other.
            next(sections)
            section = []
        binary = added == b"-"
        lines = (0, 0) if binary else (int(added), int(removed))
        hunks = tuple(_identified(entry.path, section))
        names = (entry.path, entry.status, entry.old_mode, entry.new_mode)
        changes.append(FileChange(*names, *lines, binary, hunks, entry.old_path, sizes.get(entry.new)))
    return tuple(changes)


def _identified(path: str, section: Sequence[tuple[Hunk, bytes]]) -> Iterator[Hunk]:
    """Where a hunk is does not count for its id, so that it is the same wherever the lines move to. The lines around it do: of
    several that change the same, one may go in a later turn, and the others must not take over what was said of it."""
    seen: Counter[bytes] = Counter()
    for hunk, shown in section:
        name = digest(path, shown.decode("utf-8", "surrogateescape"), str(seen[shown]))
        seen[shown] += 1
        yield Hunk(hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines, f"h{name}")


def _sections(patch: bytes) -> list[list[tuple[Hunk, bytes]]]:
    """The hunks of each file of the patch, with their lines."""
    sections: list[list[tuple[Hunk, bytes]]] = []
    headers = list(HEADER.finditer(patch))
    ends = [*(header.start() for header in headers), len(patch)][1:]
    for header, end in zip(headers, ends, strict=True):
        if header[1] is None:
            sections.append([])
        else:
            old_start, old_lines, new_start, new_lines = (int(part or 1) for part in header.groups())
            shown = patch[header.end() : end]
            sections[-1].append((Hunk(old_start, old_lines, new_start, new_lines), shown))
    return sections
