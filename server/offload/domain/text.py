"""Positions in text as the protocols count them, and lines as git and editors split them."""

from __future__ import annotations

import enum
import re

_LINE_END = re.compile(r"\r\n|\r|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Encoding(enum.StrEnum):
    """How a column is counted; the names are those of the Language Server Protocol."""

    UTF_8 = "utf-8"
    UTF_16 = "utf-16"
    UTF_32 = "utf-32"


def split_lines(text: str) -> list[str]:
    """Lines with their ends kept, split at CR, LF and CRLF only (`str.splitlines` also splits at form feed and others)."""
    lines: list[str] = []
    begin = 0
    for match in _LINE_END.finditer(text):
        lines.append(text[begin : match.end()])
        begin = match.end()
    if begin < len(text):
        lines.append(text[begin:])
    return lines


def well_formed(text: str) -> str:
    """`text` with a replacement character for each lone surrogate: those are no characters, and UTF-8 cannot say them.

    They come from JSON that a program cut inside an escape, and from file names that are not UTF-8.
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def cut(text: str, limit: int) -> str:
    """The first `limit` characters, and how many were left out."""
    return text if len(text) <= limit else f"{text[:limit]}\n[{len(text) - limit} more characters were left out]"


def units(text: str, encoding: Encoding) -> int:
    """The length of `text` in the encoding's units."""
    if encoding is Encoding.UTF_8:
        return len(text.encode("utf-8", "surrogatepass"))
    if encoding is Encoding.UTF_16:
        return len(text) + sum(1 for character in text if ord(character) > 0xFFFF)
    return len(text)


def index_at(line: str, column: int, encoding: Encoding) -> int:
    """The index into `line` of the character that holds `column`; a column past the end gives the line's length."""
    if line.isascii() or encoding is Encoding.UTF_32:
        return min(column, len(line))
    passed = 0
    for index, character in enumerate(line):
        passed += units(character, encoding)
        if passed > column:
            return index
    return len(line)
