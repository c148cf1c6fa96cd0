"""What the editor has open: synchronised at once, told to core at once. URIs are turned into paths here and nowhere else."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lsprotocol import types

from offload.core.documents import Document, Documents
from offload.domain.text import Encoding
from offload.lsp.text_buffer import Edit, TextBuffer

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """`uri` is as the editor wrote it, `path` absolute."""

    uri: str
    path: Path
    buffer: TextBuffer


class EditorDocuments:
    """The open files of one editor; what has no path (unsaved new documents, notebook cells) is left alone. `noticed` is called
    after each single change, `told` after all of a notification, and after a close."""

    def __init__(self, editor: str, shared: Documents) -> None:
        self._editor = editor
        self._shared = shared
        self._open: dict[Path, OpenDocument] = {}
        self.noticed: Callable[[OpenDocument], object] = id
        self.told: Callable[[OpenDocument], object] = id

    def open(self, item: types.TextDocumentItem, encoding: Encoding) -> OpenDocument | None:
        path = path_of(item.uri)
        if path is None:
            return None
        document = OpenDocument(item.uri, path, TextBuffer(item.text, item.version, encoding))
        self._open[path] = document
        self._tell(document)
        return document

    def change(
        self, uri: str, version: int | None, changes: Iterable[types.TextDocumentContentChangeEvent]
    ) -> tuple[OpenDocument, Sequence[Edit]] | None:
        """The document and what was changed in it; None for one that is not open."""
        document = self.find(uri)
        if document is None:
            return None
        edits: list[Edit] = []
        for change in changes:
            edits.append(document.buffer.apply(getattr(change, "range", None), change.text))
            self.noticed(document)
        document.buffer.version = version
        self._tell(document)
        self.told(document)
        return document, edits

    def close(self, uri: str) -> OpenDocument | None:
        document = self.find(uri)
        if document is not None:
            del self._open[document.path]
            self._shared.drop(self._editor, document.path)
            self.told(document)
        return document

    def find(self, uri: str) -> OpenDocument | None:
        path = path_of(uri)
        return None if path is None else self._open.get(path)

    def at(self, path: Path) -> OpenDocument | None:
        return self._open.get(path)

    def all(self) -> Sequence[OpenDocument]:
        return list(self._open.values())

    def _tell(self, document: OpenDocument) -> None:
        buffer = document.buffer
        self._shared.put(Document(self._editor, document.path, buffer.text, buffer.version))


def path_of(uri: str) -> Path | None:
    """The absolute path of a `file:` URI, None for any other."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path)
    if parts.scheme != "file" or not path.startswith("/") or "\0" in path:
        return None
    return Path(os.path.normpath(path))
