"""Reads the rows of a damaged SQLite file page by page, past everything that SQLite itself stumbles over.

It follows https://www.sqlite.org/fileformat2.html as far as our table needs it: leaf pages of tables, their overflow pages,
and the newest committed state of each page in the write-ahead log. It needs neither the header nor the inner pages of a tree,
so that what is whole is found whatever else is not. It knows nothing of events.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

Value = None | int | bytes

PAGE_SIZE = 4096  # what SQLite takes where nobody says otherwise, for files whose header is damaged
MAGIC = b"SQLite format 3\0"
LEAF = 0x0D
SCHEMA_AT = 100  # page 1 holds the file's header first
WAL_HEADER, FRAME_HEADER = 32, 24
INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}


class _NotARow(Exception):
    """These bytes are no row, or no longer."""


def rows(file: Path) -> Iterator[tuple[int, list[Value]]]:
    """Number and values of every row of every table that can be read; texts as bytes."""
    pages, size = _pages(file)
    for number, page in pages.items():
        start = SCHEMA_AT if number == 1 else 0
        if page[start] == LEAF:
            yield from _leaf(pages, page, start, size)


def _pages(file: Path) -> tuple[Mapping[int, bytes], int]:
    """All pages by number, those of the log in place of older ones, and their size."""
    content = file.read_bytes()
    size = _page_size(content)
    pages = {at // size + 1: content[at : at + size] for at in range(0, len(content) - size + 1, size)}
    log = file.with_name(f"{file.name}-wal")
    if log.exists():
        pages.update(_committed(log.read_bytes(), size))
    return pages, size


def _page_size(content: bytes) -> int:
    size = int.from_bytes(content[16:18], "big")
    # 1 means 65536, which does not fit into two bytes.
    size = 65536 if size == 1 else size
    sound = content.startswith(MAGIC) and size >= 512 and not size & (size - 1)
    return size if sound else PAGE_SIZE


def _committed(log: bytes, size: int) -> Mapping[int, bytes]:
    """What the log holds up to its last commit; a frame with other salts than the header's is left over from before."""
    found: dict[int, bytes] = {}
    pending: dict[int, bytes] = {}
    for at in range(WAL_HEADER, len(log) - FRAME_HEADER - size + 1, FRAME_HEADER + size):
        number, size_after_commit = struct.unpack_from(">II", log, at)
        if log[at + 8 : at + 16] != log[16:24]:
            break
        pending[number] = log[at + FRAME_HEADER : at + FRAME_HEADER + size]
        if size_after_commit:
            found.update(pending)
            pending.clear()
    return found


def _leaf(pages: Mapping[int, bytes], page: bytes, start: int, size: int) -> Iterator[tuple[int, list[Value]]]:
    (cells,) = struct.unpack_from(">H", page, start + 3)
    for index in range(min(cells, (size - start - 8) // 2)):
        (at,) = struct.unpack_from(">H", page, start + 8 + 2 * index)
        try:
            yield _cell(pages, page, at, size)
        except _NotARow:
            continue


def _cell(pages: Mapping[int, bytes], page: bytes, at: int, size: int) -> tuple[int, list[Value]]:
    length, at = _varint(page, at)
    number, at = _varint(page, at)
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    here = length
    if length > most:
        here = least + (length - least) % (size - 4)
        here = here if here <= most else least
    payload = page[at : at + here]
    if length > here:
        payload += _overflow(pages, int.from_bytes(page[at + here : at + here + 4], "big"), length - here)
    if len(payload) < length:
        raise _NotARow
    return number, _record(payload)


def _overflow(pages: Mapping[int, bytes], number: int, length: int) -> bytes:
    """The rest of a long row; every page names the next one. One that is missing, or comes twice, ends it."""
    parts: list[bytes] = []
    seen: set[int] = set()
    while length > 0 and number in pages and number not in seen:
        seen.add(number)
        page = pages[number]
        parts.append(page[4 : 4 + length])
        length -= len(page) - 4
        number = int.from_bytes(page[:4], "big")
    return b"".join(parts)


def _record(payload: bytes) -> list[Value]:
    end, at = _varint(payload, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        size = _size(kind)
        if at + size > len(payload):
            raise _NotARow
        values.append(_value(kind, payload[at : at + size]))
        at += size
    return values


def _size(kind: int) -> int:
    return (kind - 12) // 2 if kind >= 12 else INTEGER_SIZES.get(kind, 0)


def _value(kind: int, content: bytes) -> Value:
    """Floats are not told from integers, as none are stored."""
    if kind >= 12:
        return content
    if kind in (8, 9):
        return kind - 8
    return int.from_bytes(content, "big", signed=True) if content else None


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of one to nine bytes, seven bits in each but the ninth; and where it ends."""
    value = 0
    for index, byte in enumerate(content[at : at + 9], start=1):
        if index == 9:
            return value << 8 | byte, at + 9
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index
    raise _NotARow
