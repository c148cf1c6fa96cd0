import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload.rpc.lines import lines


async def read(*pieces, limit=10):
    reader = asyncio.StreamReader()

    async def feed():
        for piece in pieces:
            reader.feed_data(piece)
            await asyncio.sleep(0)
        reader.feed_eof()

    async with asyncio.TaskGroup() as group:
        group.create_task(feed())
        return [line async for line in lines(reader, limit)]


async def test_lines_come_as_they_end_however_they_are_cut():
    assert await read(b"a\nb", b"c\n", b"\nd") == [b"a", b"bc", b"", b"d"]


async def test_nothing_is_no_line():
    assert await read() == []


@pytest.mark.parametrize(
    "pieces",
    [
        [b"x" * 11 + b"\nnext\n"],
        [b"x" * 11, b"\nnext\n"],
        [b"x" * 6, b"x" * 6, b"x" * 6 + b"\nnext\n"],
        [b"x" * 100_000, b"y\nnext\n"],
    ],
)
async def test_a_line_that_is_too_long_is_dropped_as_it_comes_and_the_next_is_read(pieces):
    assert await read(*pieces) == [None, b"next"]


async def test_a_line_that_is_too_long_may_be_the_last_one():
    assert await read(b"x" * 11) == [None]
    assert await read(b"x" * 11, b"x") == [None]


async def test_a_line_of_exactly_the_limit_is_read():
    assert await read(b"x" * 10 + b"\n", b"y" * 10) == [b"x" * 10, b"y" * 10]


@settings(deadline=None)  # how busy the machine is says nothing about this
@given(st.lists(st.binary(max_size=30)))
def test_what_is_read_does_not_depend_on_how_it_was_cut(pieces):
    cut = asyncio.run(read(*pieces))
    assert cut == asyncio.run(read(b"".join(pieces)))
    assert all(line is None or len(line) <= 10 for line in cut)
