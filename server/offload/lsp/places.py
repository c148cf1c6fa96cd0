"""Where each task's block is in the editor's text now. Lines only; knows nothing of marks or messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from offload.core.delegation import Delegation
from offload.domain.anchor import Anchor, Block, shift
from offload.domain.task import Task, TaskId
from offload.lsp.documents import OpenDocument
from offload.lsp.text_buffer import Edit


class Places:
    """Shifted with every edit, and looked up again by parsing when the typing pauses (`find_again`)."""

    def __init__(self, delegation: Delegation) -> None:
        self._delegation = delegation
        self._blocks: dict[TaskId, Block] = {}

    def tasks(self, path: Path) -> list[tuple[Task, Anchor]]:
        """The tasks about a block of this file that are not closed, newest first."""
        wanted = str(path)
        return [
            (task, task.spec.anchor)
            for task in self._delegation.tasks()
            if task.spec.anchor is not None and f"{task.spec.workspace}/{task.spec.anchor.path}" == wanted
        ]

    def of(self, task: Task, anchor: Anchor, document: OpenDocument) -> Block:
        """The block's lines now, within the text."""
        block = self._blocks.get(task.id, anchor.block)
        last = len(document.buffer.lines) - 1
        return replace(block, start_line=min(block.start_line, last), end_line=min(block.end_line, last))

    def edited(self, path: Path, edits: Iterable[Edit]) -> None:
        """Move the blocks of this file along with an edit."""
        for task, anchor in self.tasks(path):
            block = self._blocks.get(task.id, anchor.block)
            for edit in edits:
                block = _shifted(block, edit)
            self._blocks[task.id] = block

    async def find_again(self, document: OpenDocument) -> bool:
        """Look the blocks of a file up by name; whether one was elsewhere than thought. A name that is gone keeps its place."""
        tasks = self.tasks(document.path)
        if not any(anchor.block.symbol for _, anchor in tasks):
            return False
        found = await self._delegation.source.blocks(str(document.path), document.buffer.text)
        moved = False
        for task, anchor in tasks:
            thought = self._blocks.get(task.id, anchor.block)
            block = _nearest(found, thought)
            if block is not None and block != thought:
                self._blocks[task.id] = block
                moved = True
        return moved

    def forget(self, path: Path) -> None:
        """The file was closed: whatever happens to it now is not seen."""
        for task, _ in self.tasks(path):
            self._blocks.pop(task.id, None)


def _shifted(block: Block, edit: Edit) -> Block:
    if edit.removed == 0 and edit.start_line == block.start_line:
        # Whole lines were put before the first one: `shift` counts line breaks and cannot tell this from a split line.
        return replace(block, start_line=block.start_line + edit.added, end_line=block.end_line + edit.added)
    return shift(block, edit.start_line, edit.removed, edit.added)


def _nearest(found: Sequence[Block], thought: Block) -> Block | None:
    """The block of the same name and kind that is nearest, None for lines that were selected."""
    same = [block for block in found if (block.symbol, block.kind) == (thought.symbol, thought.kind)]
    return min(same, key=lambda block: abs(block.start_line - thought.start_line), default=None)
