"""What parsing gives, as it crosses from the child process to the hub."""

from __future__ import annotations

from typing import NamedTuple


class Found(NamedTuple):
    """A block; lines and columns are 0-based, columns count code points, the end column is just past the block."""

    symbol: str
    kind: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int
