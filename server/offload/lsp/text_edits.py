"""From a text to another in few changed lines, as the protocol wants to be told. Knows nothing of documents.

Edits replace whole lines, so that no character, and no CRLF, is ever cut in two.
"""

from __future__ import annotations

import bisect
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from lsprotocol import types

from offload.domain.text import Encoding, units
from offload.lsp.text_buffer import lines_of

# What difflib is given at most, as lines of one side times lines of the other: its time grows with that.
_LARGEST_DIFF = 1_000_000

_LAST_END = re.compile(r"(\r\n|\r|\n)\Z")
_LONE_CR = re.compile(r"\r(?!\n)")


def text_edits(before: str, after: str, encoding: Encoding) -> list[types.TextEdit]:
    """The edits, in order and apart from each other."""
    old, new = lines_of(before), lines_of(after)
    return [_edit(old, first, last, lines, encoding) for first, last, lines in _hunks(old, new)]


def with_last_end_of(text: str, like: str) -> str:
    """The text, with a line end at its very end if, and only if, `like` has one there."""
    end = _LAST_END.search(like)
    return _LAST_END.sub("", text) + (end.group() if end else "")


def tells_lines_apart(text: str) -> bool:
    """Whether every editor numbers its lines alike. The protocol says that a CR alone ends a line; Neovim, for one, takes it
    for a character of a line unless all lines end so."""
    return not (_LONE_CR.search(text) and "\n" in text)


def same_text(lines: Sequence[str], others: Sequence[str]) -> bool:
    """Whether two texts, as lines of a `TextBuffer`, are the same. The line end at the very end makes no difference: for some
    editors it is a property of the file, which no edit can change."""
    return lines == others or _without_end(lines) == _without_end(others)


def _without_end(lines: Sequence[str]) -> list[str]:
    kept = list(lines if lines[-1] or len(lines) == 1 else lines[:-1])
    kept[-1] = kept[-1].rstrip("\r\n")
    return kept


def _hunks(old: list[str], new: list[str]) -> Iterator[tuple[int, int, list[str]]]:
    """Lines from the first up to, without it, the last are to be replaced by these."""
    shorter = min(len(old), len(new))
    head = next((number for number in range(shorter) if old[number] != new[number]), shorter)
    rest = range(shorter - head)
    tail = next((number for number in rest if old[-1 - number] != new[-1 - number]), shorter - head)
    middle, other = old[head : len(old) - tail], new[head : len(new) - tail]
    anchors = [(-1, -1), *_anchors(middle, other), (len(middle), len(other))]
    for (first, new_first), (last, new_last) in pairwise(anchors):
        lines = other[new_first + 1 : new_last]
        start = head + first + 1
        for kind, begin, end, new_begin, new_end in _differences(middle[first + 1 : last], lines):
            if kind != "equal":
                yield start + begin, start + end, lines[new_begin:new_end]


def _anchors(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Lines that are there once on either side, in an order that both sides have: they surely belong together. What stands
    between two of them is short, where difflib would take seconds for the whole."""
    once = {line for line, count in Counter(old).items() if count == 1}
    once &= {line for line, count in Counter(new).items() if count == 1}
    placed = {line: number for number, line in enumerate(new) if line in once}
    pairs = [(number, placed[line]) for number, line in enumerate(old) if line in once]
    # The longest run of pairs that rises on the side of `new` too: of each length the one that ends lowest.
    ends: list[int] = []
    runs: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect.bisect(ends, place)
        before.append(runs[length - 1] if length else -1)
        ends[length : length + 1] = [place]
        runs[length : length + 1] = [index]
    found: list[tuple[int, int]] = []
    index = runs[-1] if runs else -1
    while index >= 0:
        found.append(pairs[index])
        index = before[index]
    return found[::-1]


def _differences(one: list[str], other: list[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if one == other:
        return []
    if len(one) * len(other) > _LARGEST_DIFF:
        return [("replace", 0, len(one), 0, len(other))]
    return difflib.SequenceMatcher(None, one, other, autojunk=False).get_opcodes()


def _edit(old: list[str], first: int, last: int, lines: list[str], encoding: Encoding) -> types.TextEdit:
    """Lines from `first` up to, without it, `last` give way to `lines`.

    The line end at the end of a text is kept out of the range: Neovim has none there to be changed, adds an empty line, and
    then tells of another text than it has.
    """
    if 0 < last == len(old) - 1 and not old[-1]:
        if first > 0 and (first == last or not lines):
            first -= 1
            lines = [old[first], *lines]
        text = "".join(lines)
        kept, end = (_LAST_END.findall(each)[-1:] for each in (old[last - 1], text))
        if kept == end:
            column = units(old[last - 1].removesuffix(kept[0]), encoding)
            span = types.Range(types.Position(first, 0), types.Position(last - 1, column))
            return types.TextEdit(span, text.removesuffix(kept[0]))
    return types.TextEdit(types.Range(_position(old, first, encoding), _position(old, last, encoding)), "".join(lines))


def _position(lines: list[str], number: int, encoding: Encoding) -> types.Position:
    if number < len(lines):
        return types.Position(number, 0)
    return types.Position(len(lines) - 1, units(lines[-1], encoding))  # the last line has no end of its own
