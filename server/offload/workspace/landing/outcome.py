"""What one file's landing comes to: edits for the disk, a change for an editor, and the file before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from offload.core.ports import BufferChange
from offload.workspace.kept import File
from offload.workspace.landing.asked import Asked
from offload.workspace.landing.disk import Edit, Live, runnable
from offload.workspace.landing.guard import EXECUTABLE, LINK, REGULAR
from offload.workspace.results.changes import Entry


@dataclass(frozen=True, slots=True)
class Settled:
    """What is to be done for one file, nothing when it holds the result already. `before` and `after` are the files that are
    touched, by path, as they are and as they shall be."""

    edits: tuple[Edit, ...] = ()
    buffer: BufferChange | None = None
    before: Mapping[str, File] = field(default_factory=dict)
    after: Mapping[str, File] = field(default_factory=dict)

    @property
    def changes_anything(self) -> bool:
        return bool(self.edits or self.buffer)


def edits_of(asked: Asked, entry: Entry, live: Live, content: bytes | None) -> tuple[Edit, ...]:
    link = entry.new_mode == LINK
    mode = None if content is None or link else mode_of(asked, entry, live)
    same = content == live.content and (content is None or (link == live.link and mode in (None, live.mode)))
    return () if same else (Edit(entry.path, live, content, link, mode, entry.new_mode == EXECUTABLE),)


def mode_of(asked: Asked, entry: Entry, live: Live) -> int | None:
    """The permissions that the file gets, None when they stay as they are."""
    executable = entry.new_mode == EXECUTABLE
    kept = asked.sides.permissions.get(entry.path, 0)
    if not live.mode:
        return kept or None
    if entry.old_mode == entry.new_mode or bool(live.mode & 0o100) == executable:
        return None
    return kept or runnable(live.mode, executable)


def on_disk(edits: tuple[Edit, ...]) -> Settled:
    before = {edit.path: file_of(edit.before) for edit in edits if edit.before.content is not None}
    after = {edit.path: outcome_of(edit, edit.content) for edit in edits if edit.content is not None}
    return Settled(edits, None, before, after)


def file_of(live: Live) -> File:
    mode = LINK if live.link else EXECUTABLE if live.mode & 0o100 else REGULAR
    return File(mode, live.content or b"", live.mode)


def outcome_of(edit: Edit, content: bytes) -> File:
    if edit.link:
        return File(LINK, content)
    permissions = edit.before.mode if edit.mode is None else edit.mode
    executable = bool(permissions & 0o100) if permissions else edit.executable
    return File(EXECUTABLE if executable else REGULAR, content, permissions)
