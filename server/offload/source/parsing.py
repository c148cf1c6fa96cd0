"""Finds the named blocks of a text. Runs in the child process: py-tree-sitter holds the interpreter lock while it parses."""

from __future__ import annotations

import importlib
from bisect import bisect_right
from functools import cache

from tree_sitter import Language, Node, Parser, Query, QueryCursor

from offload.domain.text import split_lines
from offload.source.found import Found
from offload.source.grammars import GRAMMARS

# A definition's wrapper belongs to its block.
_WRAPPERS = frozenset({"decorated_definition", "export_statement", "ambient_declaration"})

# So do these where they hold that one definition alone: `const f = () => …`, `type T struct …`, `local f = function …`.
_LONE_WRAPPERS = frozenset(
    {
        "lexical_declaration",
        "variable_declaration",
        "expression_statement",
        "type_declaration",
        "var_declaration",
    }
)

# TypeScript's decorators of methods and Rust's attributes stand before their definition, not around it.
_PREFIXES = frozenset({"decorator", "attribute_item"})

_TYPES = frozenset({"class", "interface", "enum", "impl"})

# Generated code can nest and name without end; dotted names must not grow with the square of that.
_DEEPEST = 40
_LONGEST_NAME = 200


@cache
def _grammar(name: str) -> tuple[Parser, Query]:
    grammar = GRAMMARS[name]
    language = Language(getattr(importlib.import_module(grammar.module), grammar.function)())
    return Parser(language), Query(language, grammar.definitions)


def find_blocks(grammar: str, text: str) -> list[Found]:
    """All named blocks, outer before inner, in the order of the text."""
    parser, query = _grammar(grammar)
    source = text.encode("utf-8", "replace")
    tree = parser.parse(source)
    definitions: list[tuple[int, int, str, str]] = []
    for _, captures in QueryCursor(query).matches(tree.root_node):
        names = captures.pop("receiver", []) + captures.pop("name")
        name = ".".join(_text(node) for node in names)[:_LONGEST_NAME]
        ((kind, (node,)),) = captures.items()
        definitions.append((*_widened(node), kind, name))
    definitions.sort(key=lambda found: (found[0], -found[1]))
    places = _Places(text, source)
    blocks: list[Found] = []
    around: list[tuple[int, str, str]] = []
    for start, end, kind, name in definitions:
        while around and around[-1][0] < end:
            around.pop()
        if len(around) == _DEEPEST:
            continue
        symbol = f"{around[-1][1]}.{name}" if around else name
        if kind == "function" and around and around[-1][2] in _TYPES:
            kind = "method"  # noqa: PLW2901 - what a function is called inside of a type
        around.append((end, symbol, kind))
        blocks.append(Found(symbol, kind, *places.at(start), *places.at(end)))
    return blocks


def _text(node: Node) -> str:
    # `M:f` of Lua is the dotted name `M.f`; a node of a parsed text always has its text.
    return (node.text or b"").decode("utf-8", "replace").replace(":", ".")


def _widened(node: Node) -> tuple[int, int]:
    """Start and end in bytes, with all that belongs to the definition."""
    parent = node.parent
    while parent is not None and (
        parent.type in _WRAPPERS or (parent.type in _LONE_WRAPPERS and parent.named_child_count == 1)
    ):
        node, parent = parent, parent.parent
    first = node
    while first.prev_named_sibling is not None and first.prev_named_sibling.type in _PREFIXES:
        first = first.prev_named_sibling
    return first.start_byte, node.end_byte


class _Places:
    """Line and column of a byte offset. tree-sitter's own rows do not count a lone CR as a line's end, editors do."""

    def __init__(self, text: str, source: bytes) -> None:
        self._source = source
        self._starts = [0]
        for line in split_lines(text):
            if line.endswith(("\r", "\n")):
                self._starts.append(self._starts[-1] + len(line.encode("utf-8", "replace")))

    def at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset) - 1
        return line, len(self._source[self._starts[line] : offset].decode("utf-8", "replace"))
