"""An editor without an editor: texts and versions in memory, told to core's documents as a real one tells them.

    editor = FakeEditor(house.delegation.documents, "lsp-1", "Neovim")
    editor.open(house.root / "shop.py", SHOP)

By default it does what it is asked. `before` and `after` hold functions; each is called once, before or after the text of an edit
changes, so that somebody types in between. `refuses` says no, `lies` says yes and does nothing, `gate` makes it wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from offload.core.documents import Document, Documents
from offload.core.ports import DocumentEdit, EditOutcome


class FakeEditor:
    """Fits the `Editor` port. `labels` are those of the edits that it was asked for."""

    def __init__(
        self, documents: Documents, id_: str = "lsp-1", name: str = "Neovim", *, can_edit: bool = True
    ) -> None:
        self.id = id_
        self.name = name
        self.can_edit = can_edit
        self.keeps_last_end = False
        self.labels: list[str] = []
        self.before: list[Callable[[], object]] = []
        self.after: list[Callable[[], object]] = []
        self.refuses = False
        self.lies = False
        self.gate: asyncio.Event | None = None
        self.asked = asyncio.Event()
        self._documents = documents
        self._texts: dict[Path, tuple[str, int]] = {}
        documents.attach(id_, self)

    def open(self, path: Path, text: str) -> None:
        self._tell(path, text, 1)

    def type(self, path: Path, text: str) -> None:
        """The whole text, as it is after some typing."""
        self._tell(path, text, self._texts[path][1] + 1)

    def text(self, path: Path) -> str:
        return self._texts[path][0]

    def close(self, path: Path) -> None:
        del self._texts[path]
        self._documents.drop(self.id, path)

    def leave(self) -> None:
        self._texts.clear()
        self._documents.drop_editor(self.id)

    async def edit(self, label: str, edits: Sequence[DocumentEdit]) -> EditOutcome:
        self.labels.append(label)
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.before:
            self.before.pop(0)()
        if self.refuses:
            return EditOutcome.REFUSED
        if any(self._texts.get(edit.path) != (edit.before, edit.version) for edit in edits):
            return EditOutcome.MOVED
        if not self.lies:
            for edit in edits:
                self.type(edit.path, edit.after)
        if self.after:
            self.after.pop(0)()
        return EditOutcome.DONE

    def _tell(self, path: Path, text: str, version: int) -> None:
        self._texts[path] = (text, version)
        self._documents.put(Document(self.id, path, text, version))
