"""What a turn changed, measured by git against the task's base, never by what the worker says."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass


class FileStatus(enum.StrEnum):
    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"  # perhaps changed as well
    TYPE_CHANGED = "type_changed"  # for example a file that became a symbolic link


@dataclass(frozen=True, slots=True)
class Hunk:
    """One hunk of a unified diff: first line and number of lines on both sides, 1-based as git prints them.

    `id` is made of the file's path, of the lines that go and come and of those around them, so that it stays the same while
    other parts of the file change; "" in records of a version that had none.
    """

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    id: str = ""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One changed file. `path` is relative to the workspace, with "/"; `old_path` is where a renamed one was, "" for others;
    modes are git's ("100644"), "" where there is none; `size` is that of the new contents in bytes, None when nobody looked.

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
    old_path: str = ""
    size: int | None = None

    @property
    def id(self) -> str:
        """Names the file where its path cannot be said: not every path is text."""
        return "f" + digest(self.path)

    @property
    def units(self) -> tuple[str, ...]:
        """What can be accepted by itself: the ids of its hunks, or of the file where it has none."""
        ids = tuple(hunk.id for hunk in self.hunks if hunk.id)
        return ids or (self.id,)


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

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(unit for file in self.files for unit in file.units)


@dataclass(frozen=True, slots=True)
class Conflict:
    """A place where two sides changed the same. `yours` is what the user's file holds, `theirs` what the task made of `base`;
    `first_line` is 1-based in the user's text, 0 where there are no lines to show (a binary file, one that was deleted).
    `unit` is the id of the hunk or file of the change set, "" when it is not known."""

    path: str
    reason: str
    unit: str = ""
    first_line: int = 0
    yours: str = ""
    base: str = ""
    theirs: str = ""


def digest(*parts: str) -> str:
    """Twelve hex digits that stand for these texts; surrogates in a path are its bytes."""
    joined = "\0".join(parts).encode("utf-8", "surrogateescape")
    return hashlib.sha256(joined).hexdigest()[:12]


def files_of(changes: ChangeSet, units: Iterable[str]) -> tuple[FileChange, ...]:
    """The files that hold at least one of `units`."""
    wanted = frozenset(units)
    return tuple(file for file in changes.files if wanted.intersection(file.units))
