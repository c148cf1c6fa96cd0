"""Reads what `git diff-tree -z --raw --numstat -p` prints."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from offload.domain.change import FileChange, FileStatus, Hunk

RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames")
NOTHING_FOREIGN = ("--no-ext-diff", "--no-textconv", "--no-color")
ALL = (*RAW, "--numstat", "--patch", *NOTHING_FOREIGN)

NO_MODE = "000000"
STATUS = {
    "A": FileStatus.ADDED,
    "D": FileStatus.DELETED,
    "M": FileStatus.MODIFIED,
    "T": FileStatus.TYPE_CHANGED,
}
# A line of content begins with a space, "+", "-" or "\", so these can only be headers.
HEADER = re.compile(rb"^(?:diff --git |@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of `--raw`: modes ("" where there is none) and object ids on both sides."""

    path: str
    status: FileStatus
    old_mode: str
    new_mode: str
    old: str
    new: str


def entries(output: bytes) -> list[Entry]:
    """The entries at the beginning of an output that begins with `--raw`."""
    return [entry for entry, _ in _raw(output)]


def _raw(output: bytes) -> Iterator[tuple[Entry, int]]:
    """Each entry with the position after it."""
    at = 0
    while output[at : at + 1] == b":":
        middle = output.index(b"\0", at)
        end = output.index(b"\0", middle + 1)
        old_mode, new_mode, old, new, status = output[at + 1 : middle].decode().split(" ")
        path = os.fsdecode(output[middle + 1 : end])
        old_mode, new_mode = (mode.replace(NO_MODE, "") for mode in (old_mode, new_mode))
        at = end + 1
        yield Entry(path, STATUS[status], old_mode, new_mode, old, new), at


def file_changes(output: bytes) -> tuple[FileChange, ...]:
    """The changed files of an output of `ALL`, in git's order."""
    found = list(_raw(output))
    at = found[-1][1] if found else 0
    counts = []
    for _ in found:
        end = output.index(b"\0", at)
        added, removed, _ = output[at:end].split(b"\t", 2)
        counts.append((added, removed))
        at = end + 1
    sections = _sections(output[at + 1 :])
    changes = []
    for (entry, _), (added, removed) in zip(found, counts, strict=True):
        # A file that became a link is printed as one that went and one that came.
        hunks = [hunk for _ in range(1 + (entry.status is FileStatus.TYPE_CHANGED)) for hunk in next(sections)]
        binary = added == b"-"
        lines = (0, 0) if binary else (int(added), int(removed))
        changes.append(
            FileChange(entry.path, entry.status, entry.old_mode, entry.new_mode, *lines, binary, tuple(hunks))
        )
    return tuple(changes)


def _sections(patch: bytes) -> Iterator[list[Hunk]]:
    """The hunks of each file of the patch."""
    sections: list[list[Hunk]] = []
    for match in HEADER.finditer(patch):
        if match[1] is None:
            sections.append([])
        else:
            old_start, old_lines, new_start, new_lines = (int(part or 1) for part in match.groups())
            sections[-1].append(Hunk(old_start, old_lines, new_start, new_lines))
    return iter(sections)
