"""How a block moves with the text, held against real edits of a real text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload.domain.anchor import Block, shift

BLOCK = Block("Cart.total", "method", 3, 8)


@pytest.mark.parametrize(
    ("edit", "lines"),
    [
        ((9, 0, 4), (3, 8)),  # below
        ((0, 0, 2), (5, 10)),  # lines put in above
        ((0, 2, 0), (1, 6)),  # lines taken away above
        ((1, 2, 0), (1, 6)),  # the block's first line was joined to one above
        ((5, 0, 3), (3, 11)),  # lines put in inside
        ((5, 2, 0), (3, 6)),  # lines taken away inside
        ((8, 0, 1), (3, 9)),  # a line put in after the block's last one began
        ((2, 3, 3), (3, 8)),  # as many lines as before
        ((0, 5, 0), (0, 3)),  # across the start
        ((7, 3, 0), (3, 7)),  # across the end: what is left of the block stays
        ((7, 3, 5), (3, 8)),  # across the end, with more lines than before
        ((0, 12, 0), (0, 0)),  # all of it
        ((0, 12, 20), (0, 8)),
    ],
)
def test_an_edit_moves_the_lines_of_a_block(edit, lines):
    moved = shift(BLOCK, *edit)
    assert (moved.start_line, moved.end_line) == lines
    assert (moved.symbol, moved.kind) == (BLOCK.symbol, BLOCK.kind)


LINES = 10


@settings(max_examples=1000)
@given(st.data())
def test_lines_that_an_edit_does_not_touch_stay_inside_or_outside_of_the_block(data):
    """Every line of the text is named, so that it can be found again after the edit, whatever was done around it."""
    line = st.integers(0, LINES - 1)
    first, last = sorted(data.draw(st.tuples(line, line), "first and last line of the block"))
    start, end = sorted(data.draw(st.tuples(line, line), "edit from and to line"))
    added = data.draw(st.integers(0, 4), "line breaks put in")
    lines = [f"line {number}." for number in range(LINES)]
    text = "\n".join(lines)
    begin = text.index(lines[start]) + data.draw(st.integers(0, len(lines[start])), "from column")
    stop = text.index(lines[end]) + data.draw(st.integers(0, len(lines[end])), "to column")
    begin, stop = min(begin, stop), max(begin, stop)
    edited = (text[:begin] + "new\n" * added + text[stop:]).split("\n")

    moved = shift(Block("f", "function", first, last), start, end - start, added)

    assert 0 <= moved.start_line <= moved.end_line < len(edited)
    for number, line in enumerate(lines):
        if start <= number <= end:
            continue  # touched by the edit
        assert (moved.start_line <= edited.index(line) <= moved.end_line) is (first <= number <= last), line
