"""Works out what is to be done for one file of a result; touches nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from offload.core.ports import BufferChange
from offload.domain.change import Conflict, FileChange
from offload.workspace.changes import Entry
from offload.workspace.disk import Edit, Live, look, runnable
from offload.workspace.git import Git
from offload.workspace.guard import EXECUTABLE, LINK, REGULAR, WRITABLE, forbidden, leaves
from offload.workspace.kept import File
from offload.workspace.merge import Clash, NotText, merge, merge_bytes
from offload.workspace.repository import Repository
from offload.workspace.sides import Sides
from offload.workspace.snapshot import same_text
from offload.workspace.text import EMPTY, Text, read

BYTE_ORDER_MARK = "\ufeff"
SAME_PLACE = "was changed by you in the same place"
MADE_TWICE = "was made by you as well, with other contents"


class Refused(Exception):
    """One file cannot be landed, for this reason."""

    def __init__(self, reason: str, conflicts: tuple[Conflict, ...] = ()) -> None:
        super().__init__(reason)
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class Asked:
    """What all files of one landing have in common. `changed` is the change set's files by path, `links` are all that the
    result makes (path to target), `tangled` has a reason for each path that another one is in the way of, and `own` are the
    folders that are git's own."""

    git: Git
    repository: Repository
    sides: Sides
    buffers: Mapping[str, str]
    exact: bool
    changed: Mapping[str, FileChange]
    links: Mapping[str, str]
    tangled: Mapping[str, str]
    own: Sequence[str]


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


async def settle(asked: Asked, entry: Entry) -> Settled:
    """Raises `Refused`."""
    live = await asyncio.to_thread(_checked, asked, entry)
    if entry.old_path:
        return _on_disk(await _renamed(asked, entry, live))
    if entry.path in asked.buffers:
        mine, base, result = await asyncio.to_thread(_open_texts, asked, entry, live)
        if result is not None:
            return await _in_buffer(asked, entry, live, mine, base, result)
        # What is no change of text is done on disk, where nothing that is only in the editor can be lost by it.
        _refuse_unsaved(asked, entry, entry.path, live)
    content = await _content(asked, entry, live, asked.sides.base(entry), asked.sides.result(entry))
    return _on_disk(_edits(asked, entry, live, content))


def _checked(asked: Asked, entry: Entry) -> Live:
    """What is at the path now, if it may be written at all."""
    root = asked.repository.root
    for path in filter(None, (entry.path, entry.old_path)):
        if problem := forbidden(path, asked.own) or asked.tangled.get(path, ""):
            raise Refused(problem)
    if any(mode and mode not in WRITABLE for mode in (entry.old_mode, entry.new_mode)):
        raise Refused("is a submodule, which is not applied")
    target = asked.sides.result(entry)
    if entry.new_mode == LINK and target is not None and leaves(root, entry.path, target, asked.links, asked.own):
        raise Refused("is a link that leads out of the workspace or into .git")
    return _looked_at(asked, entry.path)


def _looked_at(asked: Asked, path: str) -> Live:
    live = look(asked.repository.root, path)
    if live.problem:
        raise Refused(live.problem)
    return live


def _refuse_unsaved(asked: Asked, entry: Entry, path: str, live: Live) -> None:
    if path in asked.buffers and not same_text(live.content or b"", asked.buffers[path]):
        what = "deleted" if not entry.new_mode else "renamed" if entry.old_path else "made a link or a binary file"
        raise Refused(f"has unsaved text in an editor and is {what} by the task; save it, then apply again")


# --- on disk ---


async def _content(asked: Asked, entry: Entry, live: Live, base: bytes | None, result: bytes | None) -> bytes | None:
    """What the file shall hold; None when it shall not be there."""
    as_base = live.content == base and (base is None or live.link == (entry.old_mode == LINK))
    if result is None:
        if live.content is None or as_base or _same_but_for_ends(live, base):
            return None
        raise _refused(asked, entry, "was changed by you and deleted by the task")
    if as_base:
        return result
    if live.content is None:
        raise _refused(asked, entry, "was deleted by you and changed by the task")
    if live.content == result and live.link == (entry.new_mode == LINK):
        return result
    if live.link or LINK in (entry.old_mode, entry.new_mode):
        raise _refused(asked, entry, "was changed by you as well, and is a link on one side")
    return await _merged(asked, entry, live.content, base, result)


def _same_but_for_ends(live: Live, base: bytes | None) -> bool:
    """Whether a file that shall go holds nothing but what the task saw."""
    mine, before = read(live.content or b""), read(base or b"")
    return not live.link and mine is not None and before is not None and mine.plain == before.plain


async def _merged(asked: Asked, entry: Entry, live: bytes, base: bytes | None, result: bytes) -> bytes:
    private = asked.repository.private
    try:
        merged = await merge_bytes(asked.git, private, base or b"", live, result, exact=asked.exact)
    except NotText:
        raise _refused(
            asked, entry, MADE_TWICE if base is None else "is no text and was changed by you as well"
        ) from None
    except UnicodeEncodeError as problem:
        raise _refused(asked, entry, f"would get characters that its encoding lacks ({problem.encoding})") from None
    if not isinstance(merged, bytes):
        raise _clashed(asked, entry, merged, base is None)
    return merged


def _edits(asked: Asked, entry: Entry, live: Live, content: bytes | None) -> tuple[Edit, ...]:
    link = entry.new_mode == LINK
    mode = None if content is None or link else _mode(asked, entry, live)
    same = content == live.content and (content is None or (link == live.link and mode in (None, live.mode)))
    return () if same else (Edit(entry.path, live, content, link, mode, entry.new_mode == EXECUTABLE),)


def _mode(asked: Asked, entry: Entry, live: Live) -> int | None:
    """The permissions that the file gets, None when they stay as they are."""
    executable = entry.new_mode == EXECUTABLE
    kept = asked.sides.permissions.get(entry.path, 0)
    if not live.mode:
        return kept or None
    if entry.old_mode == entry.new_mode or bool(live.mode & 0o100) == executable:
        return None
    return kept or runnable(live.mode, executable)


def _on_disk(edits: tuple[Edit, ...]) -> Settled:
    before = {edit.path: _file(edit.before) for edit in edits if edit.before.content is not None}
    after = {edit.path: _outcome(edit, edit.content) for edit in edits if edit.content is not None}
    return Settled(edits, None, before, after)


def _file(live: Live) -> File:
    mode = LINK if live.link else EXECUTABLE if live.mode & 0o100 else REGULAR
    return File(mode, live.content or b"", live.mode)


def _outcome(edit: Edit, content: bytes) -> File:
    if edit.link:
        return File(LINK, content)
    permissions = edit.before.mode if edit.mode is None else edit.mode
    executable = bool(permissions & 0o100) if permissions else edit.executable
    return File(EXECUTABLE if executable else REGULAR, content, permissions)


# --- renamed ---


async def _renamed(asked: Asked, entry: Entry, live: Live) -> tuple[Edit, ...]:
    """Your edits of the file under its old name go along to the new one."""
    old = await asyncio.to_thread(_looked_at, asked, entry.old_path)
    base, result = asked.sides.base(entry), asked.sides.result(entry)
    if old.content is None:
        if live.content == result and live.link == (entry.new_mode == LINK):
            return ()
        raise _refused(asked, entry, f"was {entry.old_path}, which you have deleted or renamed")
    for path, found in ((entry.old_path, old), (entry.path, live)):
        _refuse_unsaved(asked, entry, path, found)
    content = await _content(asked, entry, old, base, result)
    one_file = (
        live.stamp[:2] == old.stamp[:2] and live.content is not None and entry.path.lower() == entry.old_path.lower()
    )
    there = Live() if one_file else live
    if there.content is not None and there.content != content:
        raise _refused(asked, entry, f"is the new name of {entry.old_path}, and you have made a file of this name")
    mode = old.mode if entry.old_mode == entry.new_mode else runnable(old.mode, entry.new_mode == EXECUTABLE)
    link = entry.new_mode == LINK
    gone = Edit(entry.old_path, old, None)
    came = Edit(entry.path, there, content, link, None if link else mode)
    return (gone,) if there.content is not None else (gone, came)


# --- in an editor ---


def _open_texts(asked: Asked, entry: Entry, live: Live) -> tuple[Text, Text, Text | None]:
    """An open document's text, the base's and the result's; None for a result that is no text for an editor to change."""
    mine = asked.buffers[entry.path]
    mark = mine.startswith(BYTE_ORDER_MARK)
    text = Text(mine.removeprefix(BYTE_ORDER_MARK), mark=BYTE_ORDER_MARK.encode() if mark else b"")
    base, result = asked.sides.base(entry), asked.sides.result(entry)
    before = read(base or b"")
    plain_files = live.link is False and {entry.old_mode, entry.new_mode} <= {"", REGULAR, EXECUTABLE}
    if result is None or before is None or not plain_files or (made := read(result)) is None:
        return text, EMPTY, None
    held = read(live.content or b"")
    if made.encoding == "latin-1" and before.encoding != "latin-1" and (held is None or held.encoding != "latin-1"):
        raise _refused(asked, entry, "is open in an editor, and what the task made of it is not valid UTF-8")
    return text, before, made


async def _in_buffer(asked: Asked, entry: Entry, live: Live, mine: Text, base: Text, result: Text) -> Settled:
    git, private = asked.git, asked.repository.private
    merged = await merge(git, private, base, mine, result, exact=asked.exact, keep_ends=True)
    if not isinstance(merged, str):
        raise _clashed(asked, entry, merged, not entry.old_mode)
    before, after = asked.buffers[entry.path], mine.mark.decode() + merged
    content = live.content
    if content is None and after == before and not entry.old_mode:
        content = asked.sides.result(entry)  # the new file is on the screen already, and nowhere else
    edits = () if content is None else _edits(asked, entry, live, content)
    if after == before:
        return _on_disk(edits)
    form = result if content is None else await asyncio.to_thread(read, content) or EMPTY
    was = _file(live)
    shall = _outcome(edits[0], b"") if edits else was
    return Settled(
        edits,
        BufferChange(entry.path, before, after),
        {entry.path: replace(was, content=_as_saved(form, before))},
        {entry.path: replace(shall, content=_as_saved(form, after))},
    )


def _as_saved(form: Text, text: str) -> bytes:
    """The bytes that an editor would write for a text that it read from a file of this form."""
    try:
        return form.holding(text.removeprefix(BYTE_ORDER_MARK) if form.mark else text).encoded()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


# --- what is told ---


def _clashed(asked: Asked, entry: Entry, clashes: tuple[Clash, ...], both_made: bool) -> Refused:
    reason = MADE_TWICE if both_made else SAME_PLACE
    conflicts = tuple(
        Conflict(entry.path, reason, _unit(asked, entry, at.base_lines), at.first_line, at.yours, at.base, at.theirs)
        for at in clashes
    )
    return Refused(reason, conflicts)


def _refused(asked: Asked, entry: Entry, reason: str) -> Refused:
    return Refused(reason, (Conflict(entry.path, reason, _unit(asked, entry, range(0))),))


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
