"""Which editor has which file open, and its text: what is on the screen, saved or not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from offload.core.ports import Editor


@dataclass(frozen=True, slots=True)
class Document:
    """An open file as one editor has it. `path` is absolute; `version` is the editor's own."""

    editor: str
    path: Path
    text: str
    version: int | None


class Documents:
    """Kept by the editor edge: every open, change and close of an attached editor is told here at once. `real_path` follows
    links: an editor may know a file by another name than a task does."""

    def __init__(self, real_path: Callable[[Path], Path] = lambda path: path) -> None:
        self._real_path = real_path
        self._open: dict[tuple[str, Path], Document] = {}
        self._real: dict[tuple[str, Path], Path] = {}
        self._editors: dict[str, Editor] = {}

    def attach(self, editor_id: str, editor: Editor) -> None:
        """An editor is there; `drop_editor` lets it go."""
        self._editors[editor_id] = editor

    def editor(self, editor_id: str) -> Editor | None:
        return self._editors.get(editor_id)

    def put(self, document: Document) -> None:
        """A document was opened or its text changed."""
        key = document.editor, document.path
        self._open.pop(key, None)  # so that the one that was told last stands last
        self._open[key] = document
        if key not in self._real:
            self._real[key] = self._real_path(document.path)

    def drop(self, editor: str, path: Path) -> None:
        """A document was closed."""
        self._open.pop((editor, path), None)
        self._real.pop((editor, path), None)

    def drop_editor(self, editor: str) -> None:
        """An editor went away: its unsaved texts went with it."""
        self._editors.pop(editor, None)
        for key in [key for key in self._open if key[0] == editor]:
            del self._open[key], self._real[key]

    def of(self, editor: str, path: Path) -> Document | None:
        """An open file as this editor has it."""
        return self._open.get((editor, path))

    def text(self, path: Path, editor: str = "") -> str | None:
        """The text of an open file: as `editor` has it, else as the editor that told last has it."""
        own = self._open.get((editor, path))
        if own is not None:
            return own.text
        others = [document for document in self._open.values() if document.path == path]
        return others[-1].text if others else None

    def below(self, root: Path) -> dict[str, tuple[Document, ...]]:
        """Open documents under `root`, by path relative to it with "/", as the editor names it and as it is with links
        followed; of each path the one that was told last stands last."""
        found: dict[str, list[Document]] = {}
        real_root = self._real_path(root)
        for key, document in self._open.items():
            places = ((document.path, root), (self._real[key], real_root))
            names = {path.relative_to(above).as_posix() for path, above in places if path.is_relative_to(above)}
            for name in names:
                found.setdefault(name, []).append(document)
        return {path: tuple(documents) for path, documents in found.items()}
