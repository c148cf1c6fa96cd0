"""Lines of a stream, however long the other side makes them."""

from __future__ import annotations

from asyncio import StreamReader
from collections.abc import AsyncIterator

CHUNK = 65536


async def lines(reader: StreamReader, limit: int) -> AsyncIterator[bytes | None]:
    """Each line without its end; None in place of one that is longer than `limit` bytes, which is dropped as it comes.

    A last line without an end is a line too.
    """
    held = bytearray()
    dropping = False
    while chunk := await _chunk(reader):
        *complete, rest = chunk.split(b"\n")
        for part in complete:
            held += part
            yield None if dropping or len(held) > limit else bytes(held)
            held.clear()
            dropping = False
        held += rest
        if len(held) > limit:
            held.clear()
            dropping = True
    if dropping:
        yield None
    elif held:
        yield bytes(held)


async def _chunk(reader: StreamReader) -> bytes:
    """A connection that broke has ended; asyncio tells the reader also when it was a write that found out."""
    try:
        return await reader.read(CHUNK)
    except ConnectionError:
        return b""
