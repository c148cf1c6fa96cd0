"""The `Source` port: parses in one child process and remembers what it found. Knows nothing of grammars' insides."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from offload.domain.anchor import Block
from offload.domain.errors import EnvironmentFailure
from offload.domain.text import split_lines
from offload.source.found import Found
from offload.source.grammars import grammar_name, language_name

# -I: a file `json.py` in the folder that the hub was started from must not become part of the parser.
_CHILD = (sys.executable, "-I", "-m", "offload.source.child")
_MAX_CHARACTERS = 4_000_000  # about half a second of parsing; beyond it a file is data, and lines can still be selected
_REMEMBERED = 64  # texts whose blocks are kept
_GRACE_S = 1.0  # for a child that is told to end by the end of its input
_ANSWER_LIMIT = 64 * 1024 * 1024

_Key = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class _Child:
    process: asyncio.subprocess.Process
    requests: asyncio.StreamWriter
    answers: asyncio.StreamReader


class TreeSitterSource:
    """Parsing is bounded by `timeout_s`; a child that dies or takes longer is replaced."""

    def __init__(self, *, timeout_s: float = 10.0, command: Sequence[str] = _CHILD) -> None:
        self._timeout_s = timeout_s
        self._command = command
        self._child: _Child | None = None
        self._turn = asyncio.Lock()
        self._numbers = itertools.count(1)
        self._found: OrderedDict[_Key, Sequence[Found]] = OrderedDict()

    def language(self, path: str) -> str:
        """The language's name ("python") by the file's ending, "" for an unknown one."""
        return language_name(path)

    async def blocks(self, path: str, text: str) -> Sequence[Block]:
        """All named blocks, outer before inner; none for an unknown language or a file beyond four million characters.

        Raises `EnvironmentFailure` when the text cannot be parsed in time.
        """
        return [_block(found) for found in await self._parse(path, text)]

    async def block_at(self, path: str, text: str, line: int, column: int) -> Block | None:
        """The innermost named block around a position (0-based; `column` counts code points), errors as for `blocks`.

        In the white space beside a line's text the line's first or last character counts; a blank line directly below a
        block counts as its last line, because that is where one is after typing it.
        """
        if not self.language(path):
            return None
        place = _place(text, line, column)
        around = [found for found in await self._parse(path, text) if _holds(found, place)]
        return _block(max(around, key=_depth)) if around else None

    async def warm(self) -> None:
        """Start the child ahead of the first question."""
        async with self._turn:
            await self._running()

    async def aclose(self) -> None:
        """End the child. Must be the last call."""
        async with self._turn:
            await self._end()

    async def _parse(self, path: str, text: str) -> Sequence[Found]:
        grammar = grammar_name(path)
        if not grammar or not text or len(text) > _MAX_CHARACTERS:
            return ()
        key = (grammar, len(text), hash(text))
        async with self._turn:  # whoever waited for the same text finds it remembered
            if key not in self._found:
                self._found[key] = await self._bounded(path, grammar, text)
                if len(self._found) > _REMEMBERED:
                    self._found.popitem(last=False)
            self._found.move_to_end(key)
            return self._found[key]

    async def _bounded(self, path: str, grammar: str, text: str) -> Sequence[Found]:
        try:
            async with asyncio.timeout(self._timeout_s):
                for _ in range(2):  # the child may have died since the last question
                    answer = await self._ask(grammar, text)
                    if answer is not None:
                        return answer
                    await self._end()
        except TimeoutError:
            await self._end()
            raise EnvironmentFailure(
                f"{path} could not be parsed within {self._timeout_s:g} seconds; select the lines instead of naming a block"
            ) from None
        raise EnvironmentFailure(f"the parser ended while it read {path}; select the lines instead of naming a block")

    async def _ask(self, grammar: str, text: str) -> Sequence[Found] | None:
        """The child's answer, None when it died or made no sense."""
        child = await self._running()
        number = next(self._numbers)
        body = text.encode("utf-8", "replace")
        try:
            child.requests.write(f"{number} {grammar} {len(body)}\n".encode("ascii") + body)
            await child.requests.drain()
            while line := await child.answers.readline():
                answered, blocks = json.loads(line)
                if answered == number:  # an earlier one is for a caller that did not wait for it
                    return [Found(*block) for block in blocks]
        except (OSError, ValueError):
            return None
        return None

    async def _running(self) -> _Child:
        if self._child is None:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_ANSWER_LIMIT,
                start_new_session=True,  # Ctrl-C in the hub's terminal is the hub's business
            )
            requests = cast("asyncio.StreamWriter", process.stdin)
            answers = cast("asyncio.StreamReader", process.stdout)
            self._child = _Child(process, requests, answers)
        return self._child

    async def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.requests.close()
        try:
            await asyncio.wait_for(child.process.wait(), _GRACE_S)
        except TimeoutError:
            child.process.kill()
            await child.process.wait()


def _block(found: Found) -> Block:
    return Block(found.symbol, found.kind, found.start_line, found.end_line)


def _place(text: str, line: int, column: int) -> tuple[int, int]:
    """The position that a cursor stands for."""
    lines = split_lines(text)
    content = lines[line].rstrip() if line < len(lines) else ""
    if content:
        indent = len(content) - len(content.lstrip())
        return line, min(max(column, indent), len(content))
    if 0 < line <= len(lines) and lines[line - 1].strip():
        return line - 1, len(lines[line - 1].rstrip())
    return line, column


def _holds(found: Found, place: tuple[int, int]) -> bool:
    return (found.start_line, found.start_column) <= place <= (found.end_line, found.end_column)


def _depth(found: Found) -> tuple[int, int, int, int]:
    """Of blocks that hold one position the innermost starts last; of equal starts it ends first."""
    return found.start_line, found.start_column, -found.end_line, -found.end_column
