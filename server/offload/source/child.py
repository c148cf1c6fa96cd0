"""The child process that parses: `python -m offload.source.child`. Ends with its standard input.

Request: a line "NUMBER GRAMMAR LENGTH", then LENGTH bytes of UTF-8 text. Answer: one line of JSON, [NUMBER, blocks]. A text
that cannot be parsed for any reason ends the process; the parent starts another.
"""

from __future__ import annotations

import json
import sys
from typing import BinaryIO

from offload.source.parsing import find_blocks


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the requests end."""
    while header := requests.readline():
        number, grammar, length = header.split()
        text = requests.read(int(length)).decode("utf-8", "replace")
        blocks = find_blocks(grammar.decode("ascii"), text)
        answers.write(json.dumps([int(number), blocks], separators=(",", ":")).encode("ascii") + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
