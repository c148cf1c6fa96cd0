"""What a turn changed, measured by git against the task's base, never by what the worker says."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class FileStatus(enum.StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    TYPE_CHANGED = "type_changed"  # for example a file that became a symbolic link


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk of a unified diff: first line and number of lines on both sides, 1-based as git prints them."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed file. `path` is relative to the workspace, with "/"; modes are git's ("100644"), "" where there is none.

    A binary file has no hunks and no line counts.
    """

    path: str
    status: FileStatus
    old_mode: str
    new_mode: str
    added_lines: int
    removed_lines: int
    binary: bool = False
    hunks: tuple[Hunk, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """All that differs between two commits of the private repository: `base` (the snapshot) and `result`."""

    base: str
    result: str
    files: tuple[FileChange, ...] = ()

    @property
    def added_lines(self) -> int:
        return sum(file.added_lines for file in self.files)

    @property
    def removed_lines(self) -> int:
        return sum(file.removed_lines for file in self.files)
