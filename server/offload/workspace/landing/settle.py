"""Works out what is to be done for one file of a result; touches nothing."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from offload.core.ports import BufferChange
from offload.workspace.landing.asked import MADE_TWICE, Asked, Refused, clashed, refused
from offload.workspace.landing.disk import Edit, Live, look
from offload.workspace.landing.guard import EXECUTABLE, LINK, REGULAR, WRITABLE, forbidden, leaves
from offload.workspace.landing.merge import NotText, merge, merge_bytes
from offload.workspace.landing.outcome import Settled, edits_of, file_of, mode_of, on_disk, outcome_of
from offload.workspace.landing.text import EMPTY, Text, read
from offload.workspace.results.changes import Entry
from offload.workspace.snapshot import same_text

BYTE_ORDER_MARK = "\ufeff"
LATIN = "latin-1"


@dataclass(frozen=True, slots=True)
class Texts:
    """Those of an open document: what the task was given, what is on the screen, what the task made. `form` is how the editor
    would save it."""

    base: Text
    mine: Text
    result: Text
    form: Text


async def settle(asked: Asked, entry: Entry) -> Settled:
    """Raises `Refused`."""
    live, texts = await asyncio.to_thread(_begun, asked, entry)
    if entry.old_path:
        return on_disk(await _renamed(asked, entry, live))
    if texts is not None:
        return await _in_buffer(asked, entry, live, texts)
    # What is no change of text is done on disk, where nothing that is only in the editor can be lost by it.
    _refuse_unsaved(asked, entry, entry.path, live)
    content = await _content(asked, entry, live, asked.sides.base(entry), asked.sides.result(entry))
    return on_disk(edits_of(asked, entry, live, content))


def _begun(asked: Asked, entry: Entry) -> tuple[Live, Texts | None]:
    """What is at the path, and the texts for the editor that has it open, if that is to change it."""
    live = _checked(asked, entry)
    return live, None if entry.old_path or entry.path not in asked.buffers else _open_texts(asked, entry, live)


def _checked(asked: Asked, entry: Entry) -> Live:
    """What is at the path now, if it may be written at all."""
    root = asked.repository.root
    for path in filter(None, (entry.path, entry.old_path)):
        if problem := forbidden(path, asked.own) or asked.tangled.get(path, ""):
            raise Refused(problem)
    if any(mode and mode not in WRITABLE for mode in (entry.old_mode, entry.new_mode)):
        raise Refused("is a submodule, which is not applied")
    target = asked.sides.result(entry) or b""
    if entry.new_mode == LINK and leaves(root, entry.path, target, asked.links, asked.own):
        raise Refused("is a link that leads out of the workspace or into .git")
    return _looked_at(asked, entry.path)


def _looked_at(asked: Asked, path: str) -> Live:
    live = look(asked.repository.root, path)
    if live.problem:
        # A folder in the place of a file, or the other way round: what goes and what comes cannot be written at once.
        goes = [each.old_path or each.path for each in asked.sides.entries if each.old_path or not each.new_mode]
        there = [each for each in goes if path.startswith(f"{each}/") or each.startswith(f"{path}/")]
        way_out = f": apply what becomes of {', '.join(there)} by itself first" if there else ""
        raise Refused(f"{live.problem}{way_out}")
    return live


def _refuse_unsaved(asked: Asked, entry: Entry, path: str, live: Live) -> None:
    if path in asked.buffers and not same_text(live.content or b"", asked.buffers[path]):
        what = "deleted" if not entry.new_mode else "renamed" if entry.old_path else "made a link or a binary file"
        raise Refused(f"has unsaved text in an editor and is to be {what}; save it or load it again, and try once more")


async def _content(asked: Asked, entry: Entry, live: Live, base: bytes | None, result: bytes | None) -> bytes | None:
    """What the file shall hold; None when it shall not be there."""
    as_base = live.content == base and (base is None or live.link == (entry.old_mode == LINK))
    if result is None:
        if live.content is None or as_base or _same_but_for_ends(live, base):
            return None
        raise refused(asked, entry, "was changed by you and deleted by the task", live.content)
    if as_base:
        return result
    if live.content is None:
        raise refused(asked, entry, "was deleted by you and changed by the task")
    if live.content == result and live.link == (entry.new_mode == LINK):
        return result
    if live.link or LINK in (entry.old_mode, entry.new_mode):
        raise refused(asked, entry, "was changed by you as well, and is a link on one side", live.content)
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
        raise refused(
            asked, entry, MADE_TWICE if base is None else "is no text and was changed by you as well"
        ) from None
    except UnicodeEncodeError as problem:
        raise refused(asked, entry, f"would get characters that its encoding lacks ({problem.encoding})") from None
    if not isinstance(merged, bytes):
        raise clashed(asked, entry, merged, base is None)
    return merged


async def _renamed(asked: Asked, entry: Entry, live: Live) -> tuple[Edit, ...]:
    """Your edits of the file under its old name go along to the new one."""
    old = await asyncio.to_thread(_looked_at, asked, entry.old_path)
    if old.content is None and live.content is None:
        raise refused(asked, entry, f"was {entry.old_path}, which you have deleted or renamed")
    _refuse_unsaved(asked, entry, entry.old_path, old)
    base, result = asked.sides.base(entry), asked.sides.result(entry)
    if old.content is None:  # it has its new name already
        _refuse_unsaved(asked, entry, entry.path, live)
        return edits_of(asked, entry, live, await _content(asked, entry, live, base, result))
    content = await _content(asked, entry, old, base, result)
    if not same_text(content or b"", asked.buffers.get(entry.path, "")):  # else it is on the screen already
        _refuse_unsaved(asked, entry, entry.path, live)
    gone = Edit(entry.old_path, old, None)
    if live.content is None or _one_file(entry, old, live):
        link = entry.new_mode == LINK
        mode = None if link else mode_of(asked, entry, old) or old.mode
        return (gone, Edit(entry.path, Live(), content, link, mode))
    if live.content != content:
        raise refused(asked, entry, f"is the new name of {entry.old_path}, and you have made a file of this name")
    return (gone,)


def _one_file(entry: Entry, old: Live, live: Live) -> bool:
    """Whether both names lead to the same file, on a disk that is blind to case."""
    return entry.path.lower() == entry.old_path.lower() and live.stamp == old.stamp


def _open_texts(asked: Asked, entry: Entry, live: Live) -> Texts | None:
    """None for a result that is no text for an editor to change."""
    mine = asked.buffers[entry.path]
    mark = BYTE_ORDER_MARK.encode() if mine.startswith(BYTE_ORDER_MARK) else b""
    base, result = read(asked.sides.base(entry) or b""), read(asked.sides.result(entry) or b"")
    files = not live.link and entry.new_mode and {entry.old_mode, entry.new_mode} <= {"", REGULAR, EXECUTABLE}
    if base is None or result is None or not files:
        return None
    held = read(live.content or b"") or EMPTY
    if not asked.exact and result.encoding == LATIN and LATIN not in (base.encoding, held.encoding):
        raise refused(asked, entry, "is open in an editor, and what the task made of it is not valid UTF-8")
    text = Text(mine.removeprefix(BYTE_ORDER_MARK), mark=mark)
    if entry.path in asked.keep_last_end:
        base, result = base.ending_as(text), result.ending_as(text)
    return Texts(base, text, result, result if live.content is None else held)


async def _in_buffer(asked: Asked, entry: Entry, live: Live, texts: Texts) -> Settled:
    git, private, mine = asked.git, asked.repository.private, texts.mine
    merged = await merge(git, private, texts.base, mine, texts.result, exact=asked.exact, keep_ends=True)
    if not isinstance(merged, str):
        raise clashed(asked, entry, merged, not entry.old_mode)
    return await asyncio.to_thread(_put, asked, entry, live, texts, mine.mark.decode() + merged)


def _put(asked: Asked, entry: Entry, live: Live, texts: Texts, after: str) -> Settled:
    before, content = asked.buffers[entry.path], live.content
    if content is None and after == before and not entry.old_mode:
        content = asked.sides.result(entry)  # the new file is on the screen already, and nowhere else
    edits = () if content is None else edits_of(asked, entry, live, content)
    if after == before:
        return on_disk(edits)
    was = file_of(live)
    shall = outcome_of(edits[0], b"") if edits else was
    return Settled(
        edits,
        BufferChange(entry.path, before, after),
        {entry.path: replace(was, content=_as_saved(texts.form, before))},
        {entry.path: replace(shall, content=_as_saved(texts.form, after))},
    )


def _as_saved(form: Text, text: str) -> bytes:
    """The bytes that an editor would write for a text that it read from a file of this form."""
    try:
        return form.holding(text.removeprefix(BYTE_ORDER_MARK) if form.mark else text).encoded()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
