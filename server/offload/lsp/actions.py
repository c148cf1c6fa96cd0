"""Code actions: the one way to everything that all editors have."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lsprotocol import types

from offload.domain.errors import OffloadError
from offload.lsp import commands, task_actions, titles
from offload.lsp.documents import OpenDocument
from offload.lsp.editor import Editor
from offload.lsp.task_actions import Near

logger = logging.getLogger(__name__)

# Below "refactor", which every editor lists; a kind of its own lets a key be bound to it.
KIND = "refactor.offload"

# The words of a comment in any of our languages: # // -- /* */ and the lines of a block comment.
_COMMENT = re.compile(r"^\s*(?:.*\s)?(?:#|//|--|/\*+|\*)\s*offload:\s*(?P<words>\S.*?)\s*(?:\*/)?\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Target:
    """What the actions are about: a named block, or lines that were selected (`symbol` is "" then)."""

    symbol: str
    start_line: int
    end_line: int


async def code_actions(editor: Editor, params: types.CodeActionParams) -> list[types.CodeAction]:
    """What can be done at the cursor or with the selection. Async, because the text is parsed in another process."""
    document = editor.documents.find(params.text_document.uri)
    if document is None or not _wanted(params.context.only):
        return []
    first, column = document.buffer.locate(params.range.start)
    last, _ = document.buffer.locate(params.range.end)
    try:
        target = await _target(editor, document, first, column, last)
    except OffloadError as error:  # An error at every movement of the cursor would be noise.
        logger.warning("no block for code actions: %s", error)
        target = None
    words = _words(document, first, last, target)
    offered = [
        *_starts(editor, document, target or _Target("", first, last), words, has_block=target is not None),
        *_of_tasks(editor, document, first, last, words),
    ]
    return [types.CodeAction(command.title, kind=KIND, command=command) for command in offered]


def _wanted(only: Sequence[types.CodeActionKind | str] | None) -> bool:
    kinds = [str(getattr(kind, "value", kind)) for kind in only or [""]]
    return any(kind in ("", KIND) or KIND.startswith(f"{kind}.") for kind in kinds)


async def _target(editor: Editor, document: OpenDocument, first: int, column: int, last: int) -> _Target | None:
    if last > first:
        return _Target("", first, last)
    lines = document.buffer.lines
    block = await editor.delegation.block_at(str(document.path), document.buffer.text, first, column)
    if block is None and _COMMENT.match(lines[first].rstrip()):
        # A comment above a block is about the block.
        below = next((number for number in range(first + 1, len(lines)) if lines[number].strip()), None)
        if below is not None:
            block = await editor.delegation.block_at(str(document.path), document.buffer.text, below, 0)
    return None if block is None else _Target(block.symbol, block.start_line, block.end_line)


def _words(document: OpenDocument, first: int, last: int, target: _Target | None) -> list[str]:
    """What comments ask for: on the lines of the cursor, in the block, on the line above it."""
    lines = document.buffer.lines
    numbers = list(range(first, last + 1))
    if target is not None:
        numbers += range(max(0, target.start_line - 1), target.end_line + 1)
    found = (_COMMENT.match(lines[number].rstrip("\r\n")) for number in numbers)
    return list(dict.fromkeys(match["words"] for match in found if match))


def _starts(
    editor: Editor, document: OpenDocument, target: _Target, words: list[str], *, has_block: bool
) -> Iterator[types.Command]:
    place = {
        "file": str(document.path),
        "symbol": target.symbol,
        "lines": f"{target.start_line + 1}-{target.end_line + 1}",
    }
    for text in words:
        yield commands.link(commands.START, f"Delegate: {titles.short(text)}", **place, brief=text)
    language = editor.delegation.source.language(str(document.path))
    for recipe in editor.delegation.recipes.all():
        if has_block and not recipe.needs_brief and (not recipe.languages or language in recipe.languages):
            yield commands.link(commands.START, recipe.title, **place, recipe=recipe.name)


def _of_tasks(
    editor: Editor, document: OpenDocument, first: int, last: int, words: list[str]
) -> Iterator[types.Command]:
    """Of tasks about a block here, and of those whose result changes lines here."""
    about = {task.id: editor.places.of(task, anchor, document) for task, anchor in editor.places.tasks(document.path)}
    for task in editor.delegation.tasks():
        here = Near.of(task, document, first, last)
        block = about.get(task.id)
        if block is not None and block.start_line <= last and first <= block.end_line:
            yield from task_actions.of_block(task, here, words)
        elif here is not None:
            yield from task_actions.of_lines(task, here, words)
