"""Text of an open document, edited in place with LSP positions. Knows nothing of files or of the protocol's messages.

pygls' own buffer splits lines at form feeds and U+2028 too, which silently gives the wrong text after one edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from offload.domain.text import Encoding, index_at, split_lines


class Position(Protocol):
    """A 0-based line, and a character counted in the connection's encoding."""

    line: int
    character: int


class Range(Protocol):
    """`end` is just past the last character."""

    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Edit:
    """Whole lines: `removed` lines from `start_line` on were replaced by `added` ones; equal lines around are left out."""

    start_line: int
    removed: int
    added: int


class TextBuffer:
    """An edit costs what it changes, not what the file holds."""

    def __init__(self, text: str, version: int | None, encoding: Encoding) -> None:
        self.lines = lines_of(text)
        self.version = version
        self._encoding = encoding

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.lines)

    def apply(self, changed: Range | None, new_text: str) -> Edit:
        """Apply one content change; without a range it replaces everything. Positions outside the text are clamped."""
        if changed is None:
            return self._replace(0, len(self.lines) - 1, lines_of(new_text))
        first, first_column = self.locate(changed.start)
        last, last_column = self.locate(changed.end)
        text = self.lines[first][:first_column] + new_text + self.lines[last][last_column:]
        if first > 0 and text.startswith("\n") and self.lines[first - 1].endswith("\r"):
            first -= 1  # the edit made a CRLF out of two line ends
            text = self.lines[first] + text
        replacement = lines_of(text)
        if last + 1 < len(self.lines):
            replacement.pop()  # the text ends with a line end: no empty line of its own
        return self._replace(first, last, replacement)

    def locate(self, position: Position) -> tuple[int, int]:
        """Line and column in code points, clamped to the text."""
        if position.line >= len(self.lines):
            return len(self.lines) - 1, len(self.lines[-1])
        line = self.lines[position.line].rstrip("\r\n")
        return position.line, index_at(line, position.character, self._encoding)

    def _replace(self, first: int, last: int, replacement: list[str]) -> Edit:
        # Formatters, and some editors, send whole files: only the lines that differ count.
        old = self.lines[first : last + 1]
        self.lines[first : last + 1] = replacement
        shorter = min(len(old), len(replacement))
        head = 0
        while head < shorter and old[head] == replacement[head]:
            head += 1
        tail = 0
        while tail < shorter - head and old[-1 - tail] == replacement[-1 - tail]:
            tail += 1
        return Edit(first + head, len(old) - head - tail, len(replacement) - head - tail)


def lines_of(text: str) -> list[str]:
    """Lines with their ends; always a last, possibly empty, line without one."""
    lines = split_lines(text)
    if not lines or lines[-1].endswith(("\r", "\n")):
        lines.append("")
    return lines
