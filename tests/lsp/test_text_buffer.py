"""The text buffer against a plain string."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Position, Range

from offload.domain.text import Encoding, split_lines, units
from offload.lsp.text_buffer import Edit, TextBuffer

PIECES = ["a", "é", "😀", "\x0c", "\u2028", "\x85", "\n", "\r\n", "\r", "bc"]


def lines_of(text):
    lines = split_lines(text)
    return lines if lines and not lines[-1].endswith(("\r", "\n")) else [*lines, ""]


def position_near(text, offset, encoding):
    """A position at `offset`, or before the line end that it would fall into, and its offset."""
    start = 0
    lines = lines_of(text)
    for number, line in enumerate(lines):
        if offset < start + len(line) or number == len(lines) - 1:
            column = min(offset - start, len(line.rstrip("\r\n")))
            return Position(number, units(line[:column], encoding)), start + column
        start += len(line)
    raise AssertionError


@pytest.mark.parametrize("encoding", list(Encoding))
@given(seed=st.integers(0, 2**32))
def test_edits_give_the_same_text_as_on_a_plain_string_in_every_encoding(encoding, seed):
    """Columns counted in another unit put edits after an emoji in the wrong place."""
    chooser = random.Random(seed)
    text = "".join(chooser.choices(PIECES, k=chooser.randint(0, 20)))
    buffer = TextBuffer(text, 1, encoding)
    for _ in range(5):
        offsets = sorted(chooser.randint(0, len(text)) for _ in range(2))
        start, start_offset = position_near(text, offsets[0], encoding)
        end, end_offset = position_near(text, offsets[1], encoding)
        inserted = "".join(chooser.choices(PIECES, k=chooser.randint(0, 4)))
        before = list(buffer.lines)
        edit = buffer.apply(Range(start, end), inserted)
        text = text[:start_offset] + inserted + text[end_offset:]
        assert buffer.text == text
        assert buffer.lines == lines_of(text)
        assert before[: edit.start_line] == buffer.lines[: edit.start_line]
        assert before[edit.start_line + edit.removed :] == buffer.lines[edit.start_line + edit.added :]


def test_positions_outside_of_the_text_are_clamped():
    buffer = TextBuffer("ab\ncd", 1, Encoding.UTF_16)
    buffer.apply(Range(Position(0, 99), Position(0, 99)), "!")
    buffer.apply(Range(Position(9, 0), Position(9, 9)), "?")
    assert buffer.text == "ab!\ncd?"


def test_a_whole_new_text_counts_only_where_it_differs():
    """Formatters, and some editors, send whole files."""
    buffer = TextBuffer("a\nb\nc\n", 1, Encoding.UTF_16)
    assert buffer.apply(None, "a\nx\ny\nc\n") == Edit(1, 1, 2)
    assert buffer.apply(None, "a\nx\ny\nc\n").removed == 0


def test_an_edit_does_not_copy_the_file():
    buffer = TextBuffer("".join(f"line {number}\n" for number in range(20_000)), 1, Encoding.UTF_16)
    untouched = buffer.lines[15_000]
    buffer.apply(Range(Position(10_000, 3), Position(10_000, 3)), "x")
    assert buffer.lines[15_000] is untouched
