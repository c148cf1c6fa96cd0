"""What core needs from the outside, named by role; adapters fit themselves to these.

Every method may raise an `OffloadError` of the kind that its port names; anything else that an adapter raises is a defect.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from offload.domain.anchor import Block
from offload.domain.change import ChangeSet, Conflict
from offload.domain.check import Check, CheckResult
from offload.domain.events import Event
from offload.domain.project import ProjectSettings
from offload.domain.recipe import Recipe
from offload.domain.task import TaskId


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Journal(Protocol):
    """Where events last. Raises `StorageFailed`."""

    async def append(self, task: TaskId, events: Sequence[Event], *, expect: int) -> int:
        """Add `events` to a task that has exactly `expect` of them (0 creates it); all or nothing, and synced to disk
        before it returns the new count. Another count than expected is a `Defect`: the hub is the only writer."""
        ...

    async def forget(self, task: TaskId) -> None:
        """Remove all events of a task for good; one that has none is no error."""
        ...

    async def read(self) -> Mapping[TaskId, Sequence[Event]]:
        """Every task's events in order, tasks in the order of their creation."""
        ...


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The user's files at one moment. `notes` says in plain sentences what was left out."""

    base: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BufferChange:
    """What an open document shall hold: `before` is the text that was merged with, `after` the merged one. `path` is relative
    to the workspace."""

    path: str
    before: str
    after: str


class LandingPlan(Protocol):
    """A result merged with what the user has now, every path looked at, nothing written yet."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that hold the result afterwards, relative to the workspace."""
        ...

    @property
    def unchanged(self) -> tuple[str, ...]:
        """Those of `paths` that hold it now, so that nothing is written."""
        ...

    @property
    def buffers(self) -> tuple[BufferChange, ...]:
        """What the editors have to do; the rest goes to disk."""
        ...

    @property
    def before(self) -> str:
        """The commit of the touched files as they were, and `after` as they became: for the time after `write`, and "" for both
        when nothing was to be done."""
        ...

    @property
    def after(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Merged:
    """`commit` holds the merged files; in those of `conflicts` the places are marked as git marks them. It has the commit that
    was merged onto as its parent."""

    commit: str
    conflicts: tuple[Conflict, ...] = ()


class Workspace(Protocol):
    """Private copies of the user's files, kept by git. Raises `NotAWorkspace`, `GitFailed`, `ApplyRefused`, and
    `StorageFailed` for what is worth another try when the disk has room again.

    `root` is always the workspace's absolute folder, which may be a sub-folder of a repository or have no repository.
    """

    async def locate(self, folder: Path) -> Path:
        """The workspace that a folder belongs to: the top of its repository, or itself where there is none."""
        ...

    async def snapshot(self, root: Path, buffers: Mapping[str, str], never_send: Sequence[str] = ()) -> Snapshot:
        """Record HEAD + uncommitted + untracked files, with `buffers` (path relative to root → text) in place of theirs;
        files that are `never_send` (patterns, see `domain.scope`) stay out unless git tracks them."""
        ...

    async def open_folder(
        self, task: TaskId, root: Path, base: str, carry: Sequence[str] = (), never_send: Sequence[str] = ()
    ) -> Path:
        """The folder that the worker works in, corresponding to `root`: a clone checked out at `base`; made once, later
        calls return it as the worker left it. The user's ignored files that `carry` names are copied into it, but those that
        are `never_send`."""
        ...

    async def reset_folder(self, task: TaskId, root: Path, base: str, commit: str) -> None:
        """Make the task folder hold what `commit` holds, ignored files aside, and let its own git take `base` for the commit
        that it stands on."""
        ...

    async def collect(self, task: TaskId, root: Path, base: str) -> ChangeSet:
        """All that differs from `base` in the task folder, whether committed, staged or only written."""
        ...

    async def select(self, root: Path, changes: ChangeSet, units: Collection[str]) -> ChangeSet:
        """The part of a change set that `units` name (ids of hunks, and of files): its result is a commit of its own.
        Raises `InvalidRequest` for an id that it does not have."""
        ...

    async def merge(self, root: Path, onto: str, changes: ChangeSet) -> Merged:
        """Bring what a change set changed onto another commit, three-way."""
        ...

    async def between(self, root: Path, older: str, newer: str) -> ChangeSet:
        """What differs from one snapshot or result to another."""
        ...

    async def last_change(self, task: TaskId, root: Path) -> float:
        """When something in the task folder was last written, by the file system's clock; it is the same as long as nothing
        is. 0.0 when there is no folder."""
        ...

    async def diff(self, root: Path, changes: ChangeSet, paths: Sequence[str] = ()) -> str:
        """The change set as one patch in git's format; `paths` narrows it."""
        ...

    async def plan(
        self,
        root: Path,
        changes: ChangeSet,
        buffers: Mapping[str, str],
        *,
        exact: bool = False,
        keep_last_end: Collection[str] = (),
    ) -> LandingPlan:
        """Merge the change set three-way with the user's files as they are now, all or nothing, and write nothing.

        `buffers` holds the texts of files that editors have open (path relative to root → text): they are merged with those
        texts and are for the editors to change; those of `keep_last_end` go on ending with a line end or without one, as they
        do. With `exact` the two commits hold bytes as they were on disk, as those of a
        `LandingPlan` do. Raises `ApplyRefused` naming every path and its reason, and both sides of each conflict.
        """
        ...

    async def write(self, root: Path, plan: LandingPlan) -> None:
        """Do what a plan has for the disk, all or nothing, and keep its `before` and `after`: to be called for a plan that is
        for editors alone, too. Raises `ApplyRefused` when a file has changed since."""
        ...

    async def read(self, root: Path, commit: str, path: str) -> bytes | None:
        """A file's bytes in the snapshot or result `commit`, None where there is none."""
        ...

    async def read_live(self, root: Path, path: str) -> str:
        """The text of the user's own file, as it is on disk now. Raises `InvalidRequest` for a path that is missing, not
        text, or outside of `root`."""
        ...

    async def release(self, task: TaskId, root: Path) -> None:
        """End what a worker left running in the task folder, and remove it; snapshot and result stay readable."""
        ...

    async def size(self, task: TaskId, root: Path) -> int | None:
        """How many bytes the task folder holds; None when there is none."""
        ...

    async def forget(self, root: Path, commits: Collection[str], keep: Collection[str]) -> None:
        """Remove snapshots and results for good. `keep` are those that other tasks of this workspace name; without any,
        everything that is kept of the workspace goes. No snapshot of it may be on its way when this is called."""
        ...


class Source(Protocol):
    """Blocks of source code, found by parsing. `path` tells the language by its ending."""

    def language(self, path: str) -> str:
        """The language's name ("python"), "" for an unknown one."""
        ...

    async def block_at(self, path: str, text: str, line: int, column: int) -> Block | None:
        """The innermost named block that holds the position (0-based; `column` counts code points)."""
        ...

    async def blocks(self, path: str, text: str) -> Sequence[Block]:
        """All named blocks, outer before inner."""
        ...


@dataclass(frozen=True, slots=True)
class DocumentEdit:
    """An open document's text, and what it shall be. `path` is absolute; `version` is the editor's own of `before`."""

    path: Path
    version: int | None
    before: str
    after: str


class EditOutcome(enum.StrEnum):
    DONE = "done"  # seen in the documents' next change notification
    MOVED = "moved"  # somebody typed meanwhile: merge again
    REFUSED = "refused"  # the editor said no, or nothing in time


class Editor(Protocol):
    """An attached editor, as far as results go through it; registered with `core.documents` under its connection's id."""

    @property
    def name(self) -> str:
        """As people know it ("Neovim")."""
        ...

    @property
    def can_edit(self) -> bool:
        """Whether it takes edits from a server at all."""
        ...

    @property
    def keeps_last_end(self) -> bool:
        """Whether the line end at the very end of a text is for it alone to change: an option of the buffer, as in Neovim."""
        ...

    async def edit(self, label: str, edits: Sequence[DocumentEdit]) -> EditOutcome:
        """Change open documents, all of them or none. `label` is what its undo list shows."""
        ...


class Checks(Protocol):
    async def run(self, folder: Path, check: Check, environment: Mapping[str, str]) -> CheckResult:
        """Run one check to its end or its time limit, and end all that it started; raises nothing that the command is to
        blame for. Cancelling ends the command."""
        ...


class Projects(Protocol):
    """What workspaces say of themselves, and whether a person trusts it. Raises `InvalidRequest` naming the file and what is
    wrong with it."""

    async def settings(self, root: Path) -> ProjectSettings:
        """Those of the workspace's `offload.toml` that count; all defaults without one."""
        ...

    async def trust(self, root: Path, *, trusted: bool) -> ProjectSettings:
        """Trust the file as it is now, by its path and content, or take that back; gives the settings after that."""
        ...


class Recipes(Protocol):
    def all(self) -> Sequence[Recipe]: ...

    def get(self, name: str) -> Recipe:
        """Raises `UnknownRecipe`, naming those that exist."""
        ...
