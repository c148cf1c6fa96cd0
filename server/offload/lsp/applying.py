"""Core's port `Editor`, fitted to one connection: open documents are changed by `workspace/applyEdit`.

An editor's answer proves little: some say that an edit was applied and have skipped it, some apply one and say nothing. What
counts is that a document was seen to hold the new text after the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from lsprotocol import types

from offload.core.ports import DocumentEdit, EditOutcome
from offload.domain.text import Encoding
from offload.lsp.client import Client
from offload.lsp.documents import EditorDocuments, OpenDocument
from offload.lsp.text_buffer import lines_of
from offload.lsp.text_edits import same_text, tells_lines_apart, text_edits, with_last_end_of


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: until the editor answers, because it may ask its user first; from then until it tells of the new text, which it
    may gather with other changes; and from its last word on when that was of another text."""

    answer_s: float = 30.0
    seen_s: float = 5.0
    moved_s: float = 1.0


PATIENCE = Patience()


@dataclass(slots=True)
class _Wanted:
    """A document that shall hold `lines`, whether it was seen to, and whether something was told of it since the answer: an
    editor that has applied an edit tells of it then at the latest, with what was typed before and after."""

    edit: DocumentEdit
    lines: list[str]
    changes: list[types.TextEdit]
    seen: bool = False
    told: bool = False


@dataclass(slots=True)
class _Asked:
    """One request, while it is waited for; `over` when nothing will be heard of it any more."""

    wanted: list[_Wanted]
    over: bool = False
    answered: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def done(self) -> bool:
        return all(each.seen for each in self.wanted)

    @property
    def settled(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.over or all(each.seen or each.told for each in self.wanted)

    def look(self, document: OpenDocument) -> None:
        for each in self.wanted:
            if each.edit.path == document.path:
                each.seen = each.seen or same_text(document.buffer.lines, each.lines)

    def hear(self, document: OpenDocument) -> None:
        for each in self.wanted:
            if each.edit.path == document.path:
                each.told = each.told or self.answered
        self.news.set()

    def answer(self, _: object) -> None:
        self.answered = True


class BufferEdits:
    """Must be told of every change of a document at once (`noticed`), of the end of each notification (`told`), and of the
    connection's end (`leave`)."""

    def __init__(self, client: Client, documents: EditorDocuments, patience: Patience) -> None:
        self._client = client
        self._documents = documents
        self._patience = patience
        self._waiting: list[_Asked] = []
        self._gone = False

    @property
    def name(self) -> str:
        return self._client.name

    @property
    def can_edit(self) -> bool:
        return self._client.takes_edits

    @property
    def keeps_last_end(self) -> bool:
        return self._client.is_neovim

    async def edit(self, label: str, edits: Sequence[DocumentEdit]) -> EditOutcome:
        if not self.can_edit or not all(map(_is_plain, edits)):
            return EditOutcome.REFUSED
        done: list[DocumentEdit] = []
        for some in self._together(edits):
            outcome, seen = await self._tried(label, some)
            done += seen
            if outcome is not EditOutcome.DONE:
                for back in self._together([*self._back(done)]):  # All documents or none.
                    await self._tried(f"{label}, taken back", back)
                return outcome
        return EditOutcome.DONE

    def noticed(self, document: OpenDocument) -> None:
        """The document has changed. One notification may hold changes of the user beside ours, so this is called after each
        of its changes: what was seen once counts, whatever is typed then."""
        for asked in self._waiting:
            asked.look(document)

    def told(self, document: OpenDocument) -> None:
        """All of a notification was taken in, or the document was closed."""
        for asked in self._waiting:
            asked.hear(document)

    def leave(self) -> None:
        """The connection ends: nobody waits for it any longer."""
        self._gone = True
        for asked in self._waiting:
            asked.over = True
            asked.news.set()

    def _together(self, edits: Sequence[DocumentEdit]) -> list[Sequence[DocumentEdit]]:
        """What goes into one request: all of them, where the editor looks at all their versions before it begins."""
        return [[edit] for edit in edits] if self._client.is_neovim else [edits] if edits else []

    async def _tried(self, label: str, edits: Sequence[DocumentEdit]) -> tuple[EditOutcome, list[DocumentEdit]]:
        """What came of it, and the edits that were seen to be done."""
        asked = _Asked(
            await asyncio.to_thread(_prepared, edits, self._client.encoding, self._client.is_neovim), over=self._gone
        )
        if any(map(self._has_moved, edits)):
            return EditOutcome.MOVED, []
        self._waiting.append(asked)
        try:
            await self._ask(label, asked)
        finally:
            self._waiting.remove(asked)
        seen = [each.edit for each in asked.wanted if each.seen]
        if asked.done:
            return EditOutcome.DONE, seen
        moved = not asked.over and any(self._has_moved(each) for each in edits if each not in seen)
        return EditOutcome.MOVED if moved else EditOutcome.REFUSED, seen

    def _has_moved(self, edit: DocumentEdit) -> bool:
        document = self._documents.at(edit.path)
        return document is None or document.buffer.version != edit.version or document.buffer.text != edit.before

    async def _ask(self, label: str, asked: _Asked) -> None:
        """Send one request for all documents, and wait until they were seen to be changed or there is nothing to wait for."""
        changes = [
            types.TextDocumentEdit(
                types.OptionalVersionedTextDocumentIdentifier(document.uri, self._version(document)), [*each.changes]
            )
            for each in asked.wanted
            if (document := self._documents.at(each.edit.path)) is not None
        ]
        async with asyncio.TaskGroup() as group:
            answer = group.create_task(self._client.apply_edit(label, changes, self._patience.answer_s, asked.answer))
            answer.add_done_callback(lambda _: asked.news.set())
            while not (asked.done or asked.over or answer.done()):
                asked.news.clear()
                await asked.news.wait()
            if answer.done() and answer.result():
                await self._wait_for_texts(asked)
            answer.cancel()

    def _version(self, document: OpenDocument) -> int | None:
        version = document.buffer.version
        # Neovim opens documents with version 0. None that was typed in has 1, so that this tells it from those.
        return 1 if version == 0 and self._client.is_neovim else version

    async def _wait_for_texts(self, asked: _Asked) -> None:
        """The editor says that it has applied the edit; it may tell of the new texts later."""
        for each in asked.wanted:
            document = self._documents.at(each.edit.path)
            if document is not None:  # Where nothing but the last line end differs there may be nothing to tell.
                asked.look(document)
        loop = asyncio.get_running_loop()
        end = loop.time() + self._patience.seen_s
        while not asked.settled:
            asked.news.clear()
            moved = any(not each.seen and self._has_moved(each.edit) for each in asked.wanted)
            until = min(end, loop.time() + self._patience.moved_s) if moved else end
            try:
                async with asyncio.timeout_at(until):
                    await asked.news.wait()
            except TimeoutError:
                return

    def _back(self, edits: Sequence[DocumentEdit]) -> Iterator[DocumentEdit]:
        """The way back for documents that still hold what they were given."""
        for edit in edits:
            document = self._documents.at(edit.path)
            if document is not None and same_text(document.buffer.lines, lines_of(edit.after)):
                buffer = document.buffer
                yield replace(edit, version=buffer.version, before=buffer.text, after=edit.before)


def _is_plain(edit: DocumentEdit) -> bool:
    return tells_lines_apart(edit.before) and tells_lines_apart(edit.after)


def _prepared(edits: Sequence[DocumentEdit], encoding: Encoding, keeps_last_end: bool) -> list[_Wanted]:
    prepared = []
    for edit in edits:
        after = with_last_end_of(edit.after, like=edit.before) if keeps_last_end else edit.after
        prepared.append(_Wanted(edit, lines_of(after), text_edits(edit.before, after, encoding)))
    return prepared
