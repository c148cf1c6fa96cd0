"""Text edits, applied as the protocol says, give the text that they were made for."""

import random
from types import SimpleNamespace

import pytest

from offload.domain.text import Encoding
from offload.lsp.text_buffer import TextBuffer, lines_of
from offload.lsp.text_edits import same_text, tells_lines_apart, text_edits, with_last_end_of

LINES = ["", "one", "two", "    three", "#😋😋x", "é", "\u2028\x0c", "four", "same", "same"]


def applied(text, edits, encoding):
    """What an editor makes of it: all ranges are of the text before, so the last edit goes first."""
    buffer = TextBuffer(text, 1, encoding)
    for edit in reversed(edits):
        buffer.apply(SimpleNamespace(start=edit.range.start, end=edit.range.end), edit.new_text)
    return buffer.text


def some_text(rng, end):
    count = rng.randrange(12)
    lines = [rng.choice(LINES) for _ in range(count)]
    return end.join(lines) + (end if lines and rng.random() < 0.6 else "")


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_any_text_becomes_any_other_in_every_encoding_and_with_every_line_end(encoding, end):
    """H16: columns counted in other units land wrong without a word."""
    rng = random.Random(4)
    for _ in range(400):
        before, after = some_text(rng, end), some_text(rng, end)
        assert applied(before, text_edits(before, after, encoding), encoding) == after


def test_edits_are_in_order_apart_and_few():
    before = "".join(f"line {number}\n" for number in range(100))
    after = before.replace("line 3\n", "three\n").replace("line 50\n", "").replace("line 98\n", "line 98\nmore\n")
    edits = text_edits(before, after, Encoding.UTF_16)
    spans = [(edit.range.start.line, edit.range.end.line, edit.new_text) for edit in edits]
    assert spans == [(3, 4, "three\n"), (50, 51, ""), (99, 99, "more\n")]


@pytest.mark.parametrize(
    ("before", "after", "first", "last", "text"),
    [
        ("a\nb\n", "a\nB\n", (1, 0), (1, 1), "B"),
        ("a\nb\n", "a\nb\nc\n", (1, 0), (1, 1), "b\nc"),
        ("a\nb\n", "a\n", (0, 0), (1, 1), "a"),
        ("a\nb\n", "", (0, 0), (2, 0), ""),
        ("a\nb\n", "a\nb", (1, 0), (2, 0), "b"),
        ("a\r\nb\r\n", "a\r\nb\n", (1, 0), (2, 0), "b\n"),
    ],
)
def test_the_line_end_at_the_end_is_kept_out_of_an_edit_that_leaves_it(before, after, first, last, text):
    (edit,) = text_edits(before, after, Encoding.UTF_16)
    start, end = edit.range.start, edit.range.end
    assert ((start.line, start.character), (end.line, end.character), edit.new_text) == (first, last, text)


@pytest.mark.parametrize(
    ("text", "like", "given"),
    [("a", "x\n", "a\n"), ("a\n", "x", "a"), ("a\n\n", "x", "a\n"), ("a\n", "x\r\n", "a\r\n"), ("", "\n", "\n")],
)
def test_a_text_takes_the_last_line_end_of_another(text, like, given):
    assert with_last_end_of(text, like=like) == given


def test_equal_texts_need_no_edit():
    assert text_edits("a\n", "a\n", Encoding.UTF_8) == []


@pytest.mark.parametrize(("encoding", "column"), [(Encoding.UTF_8, 10), (Encoding.UTF_16, 6), (Encoding.UTF_32, 4)])
def test_a_file_without_a_last_line_end_ends_at_its_last_line(encoding, column):
    (edit,) = text_edits("a\n#😋😋x", "a\n", encoding)
    assert (edit.range.start.line, edit.range.end.line, edit.range.end.character) == (1, 1, column)


def test_a_line_that_moved_is_found_where_the_others_are():
    """Lines that are there once on both sides hold the rest together, but not where their order differs."""
    before = "a\nb\nc\nd\ne\n"
    after = "a\nd\nb\nc\ne\n"
    edits = text_edits(before, after, Encoding.UTF_8)
    assert applied(before, edits, Encoding.UTF_8) == after
    assert sum(len(edit.new_text) for edit in edits) == 2


def test_many_lines_that_are_all_alike_become_one_edit():
    """Looking for the best match among them would take seconds."""
    before = "same\nlike\n" * 3000
    after = "first\n" + "like\nsame\n" * 3000 + "last\n"
    edits = text_edits(before, after, Encoding.UTF_8)
    assert len(edits) == 1
    assert applied(before, edits, Encoding.UTF_8) == after


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a\nb", True), ("a\r\nb\r\n", True), ("a\rb\r", True), ("", True), ("a\rb\nc", False), ("a\r\nb\rc", False)],
)
def test_editors_number_lines_apart_where_some_end_with_cr_alone(text, plain):
    assert tells_lines_apart(text) is plain


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\nb", True),
        ("a\nb", "a\nb\r\n", True),
        ("", "\n", True),
        ("a\n", "a\n\n", False),
        ("a\n", "b\n", False),
        ("a\r\nb\n", "a\nb\n", False),
    ],
)
def test_only_the_very_last_line_end_makes_no_difference(one, other, same):
    assert same_text(lines_of(one), lines_of(other)) is same
    assert same_text(lines_of(other), lines_of(one)) is same
