"""Positions as protocols count them, held against Python's own codecs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from offload.domain.text import Encoding, cut, index_at, split_lines, units, well_formed

CODECS = {Encoding.UTF_8: ("utf-8", 1), Encoding.UTF_16: ("utf-16-le", 2), Encoding.UTF_32: ("utf-32-le", 4)}
TEXT = st.text(st.one_of(st.characters(), st.sampled_from("aé漢🙂\ud800\r\n\t\x0c\u2028")), max_size=30)


@given(TEXT, st.sampled_from(Encoding))
def test_a_length_is_the_number_of_code_units(text, encoding):
    codec, size = CODECS[encoding]
    assert units(text, encoding) == len(text.encode(codec, "surrogatepass")) // size


@given(TEXT, st.sampled_from(Encoding), st.data())
def test_the_column_of_a_character_leads_back_to_it(line, encoding, data):
    index = data.draw(st.integers(0, len(line)))
    assert index_at(line, units(line[:index], encoding), encoding) == index


@given(TEXT, st.sampled_from(Encoding), st.integers(0, 200))
def test_a_column_inside_of_a_character_is_that_character_and_one_past_the_end_is_the_end(line, encoding, column):
    index = index_at(line, column, encoding)
    assert units(line[:index], encoding) <= column
    if index < len(line):
        assert column < units(line[: index + 1], encoding)
    else:
        assert index == len(line)
        assert column >= units(line, encoding)


@pytest.mark.parametrize(("encoding", "index"), [("utf-8", 2), ("utf-16", 3), ("utf-32", 4)])
def test_the_same_column_is_another_character_in_another_encoding(encoding, index):
    assert index_at("🙂🙂🙂é🙂🙂🙂", {"utf-8": 8, "utf-16": 6, "utf-32": 4}[encoding], Encoding(encoding)) == index


@given(TEXT)
def test_lines_put_together_are_the_text(text):
    lines = split_lines(text)
    assert "".join(lines) == text
    assert all(line.endswith(("\r", "\n")) for line in lines[:-1])
    assert all(line for line in lines)
    assert all("\r" not in body and "\n" not in body for body in (line.rstrip("\r\n") for line in lines))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a\n"]),
        ("\n\n", ["\n", "\n"]),
        ("a\r\nb\rc\nd", ["a\r\n", "b\r", "c\n", "d"]),
        ("a\n\rb", ["a\n", "\r", "b"]),
        ("form\x0cfeed\u2028and\x85others\n", ["form\x0cfeed\u2028and\x85others\n"]),
    ],
)
def test_lines_end_at_the_three_ends_that_editors_know(text, lines):
    assert split_lines(text) == lines


@given(TEXT)
def test_a_well_formed_text_can_be_said_in_utf_8_and_is_as_long_as_before(text):
    mended = well_formed(text)
    mended.encode()
    assert len(mended) == len(text)
    assert all(
        new == old or (new == "\ufffd" and "\ud800" <= old <= "\udfff") for new, old in zip(mended, text, strict=True)
    )


def test_a_text_without_lone_surrogates_is_left_as_it_is():
    assert well_formed("é 🙂") == "é 🙂"
    assert well_formed("plain") == "plain"


def test_a_text_that_is_too_long_says_how_much_is_missing():
    assert cut("12345", 5) == "12345"
    assert cut("1234567", 5) == "12345\n[2 more characters were left out]"
