"""The live mark beside a block: code lenses where the editor has them, else diagnostics of severity Information."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

from lsprotocol import types

from offload.core.delegation import Delegation
from offload.domain.anchor import Block
from offload.domain.errors import OffloadError
from offload.domain.task import Task
from offload.domain.text import units
from offload.lsp import titles
from offload.lsp.client import Client
from offload.lsp.documents import EditorDocuments, OpenDocument
from offload.lsp.places import Places

logger = logging.getLogger(__name__)

# What comes within this time is shown together; it is also how long typing must pause before the text is parsed.
PAUSE_S = 0.15


class Marks:
    """`run` shows what `soon` announced, one time at once, `PAUSE_S` later."""

    def __init__(self, client: Client, delegation: Delegation, documents: EditorDocuments, places: Places) -> None:
        self._client = client
        self._delegation = delegation
        self._documents = documents
        self._places = places
        self._wake = asyncio.Event()
        self._stale = False
        self._edited: set[Path] = set()
        self._published: dict[Path, list[types.Diagnostic]] = {}

    def soon(self, edited: Path | None = None) -> None:
        """A task has changed, or the text of a file."""
        if edited is None:
            self._stale = True
        else:
            self._edited.add(edited)
        self._wake.set()

    def closed(self, document: OpenDocument) -> None:
        """Take the marks of a file that was closed away."""
        if self._published.pop(document.path, None):
            self._client.publish(document.uri, [])

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await self._delegation.clock.sleep(PAUSE_S)
            self._wake.clear()
            stale, self._stale = self._stale, False
            edited, self._edited = self._edited, set()
            for path in edited:
                stale |= await self._found_again(path)
            if self._client.draws_marks:
                continue
            if not self._client.has_code_lens:
                self._publish()
            elif stale:
                await self._client.refresh_code_lens()

    async def _found_again(self, path: Path) -> bool:
        document = self._documents.at(path)
        if document is None:
            return False
        try:
            return await self._places.find_again(document)
        except OffloadError as error:
            logger.warning("blocks were not looked up again: %s", error)
            return False

    def shown(self, document: OpenDocument) -> Iterator[tuple[Task, Block, str]]:
        """Each task of the file with its block's place and its words."""
        now = self._delegation.clock.now()
        for task, anchor in self._places.tasks(document.path):
            block = self._places.of(task, anchor, document)
            yield task, block, titles.mark(task, self._delegation.live(task.id), now)

    def _publish(self) -> None:
        for document in self._documents.all():
            diagnostics = [self._diagnostic(document, block, words) for _, block, words in self.shown(document)]
            if diagnostics != self._published.get(document.path, []):
                self._published[document.path] = diagnostics
                self._client.publish(document.uri, diagnostics)

    def _diagnostic(self, document: OpenDocument, block: Block, words: str) -> types.Diagnostic:
        line = document.buffer.lines[block.start_line].rstrip("\r\n")
        end = types.Position(block.start_line, units(line, self._client.encoding))
        return types.Diagnostic(
            types.Range(types.Position(block.start_line, 0), end),
            message=words,
            severity=types.DiagnosticSeverity.Information,
            source="offload",
        )
