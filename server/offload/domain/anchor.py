"""The block of code that a task is about, and how it moves while the text around it is edited."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Block:
    """A named definition, or the lines that were selected.

    `symbol` is the dotted name from the outermost block inwards ("Cart.total"), "" for a bare range of lines; `kind` is
    "function", "class", "method" … or "lines"; `start_line` and `end_line` are 0-based and both inside the block.
    """

    symbol: str
    kind: str
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class LineRange:
    """Lines as people count them: 1-based, both included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Anchor:
    """A block in a file; `path` is relative to the workspace, with "/"; `text` is the block as it was at the start."""

    path: str
    block: Block
    text: str


def shift(block: Block, start_line: int, removed_lines: int, added_lines: int) -> Block:
    """The block after an edit that replaced the line breaks between `start_line` and `start_line + removed_lines`.

    `removed_lines` and `added_lines` count line breaks. An edit below changes nothing, one above moves the block, one
    inside stretches it; an edit across its start takes the block's start to where the edit began, one across its end
    leaves it at most the lines that it had.
    """
    moved = added_lines - removed_lines
    edit_end = start_line + removed_lines
    if start_line > block.end_line or moved == 0:
        return block
    if edit_end < block.start_line or (edit_end == block.start_line and start_line < block.start_line):
        return replace(block, start_line=block.start_line + moved, end_line=block.end_line + moved)
    start = min(block.start_line, start_line)
    if edit_end <= block.end_line:
        return replace(block, start_line=start, end_line=block.end_line + moved)
    return replace(block, start_line=start, end_line=start_line + min(added_lines, block.end_line - start_line))
