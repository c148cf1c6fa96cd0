"""The types as LuaCATS annotations and the methods as a table, for the Neovim plugin. Neovim decodes null as nil."""

from __future__ import annotations

import json
from collections.abc import Iterator

from offload.wire.schema import TASK_CHANGED, Schema, reference

_PLAIN = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean", "null": "nil"}


def module(schema: Schema, comment: str) -> str:
    """One module: annotations for every type, and a table of the requests by operation."""
    return "\n".join((f"-- {comment}", "", *_types(schema), *_table(schema)))


def _types(schema: Schema) -> Iterator[str]:
    for name, node in schema["$defs"].items():
        yield from (f"---{line}".rstrip() for line in node.get("description", "").splitlines())
        if "enum" in node:
            yield f"---@alias offload.{name} {'|'.join(json.dumps(value) for value in node['enum'])}"
        else:
            yield f"---@class offload.{name}"
            for field, each in node["properties"].items():
                mark = "" if field in node.get("required", ()) else "?"
                doc = f" {each['description']}" if "description" in each else ""
                yield f"---@field {field}{mark} {expression(each)}{doc}"
        yield ""


def _table(schema: Schema) -> Iterator[str]:
    yield "local M = {}"
    yield ""
    yield "---The requests by the operation that they ask for."
    yield "M.requests = {"
    for name, operation in schema["operations"].items():
        if operation["lsp"]:
            yield f"  ---{operation['doc']} Takes offload.{reference(operation['params'])},"
            yield f"  ---answered with offload.{reference(operation['result'])}."
            yield f"  {name} = '{operation['lsp']}',"
    yield "}"
    yield ""
    yield f"---A task changed: sent by the server with an offload.{reference(schema['notifications'][TASK_CHANGED]['params'])}."
    yield f"M.task_changed = '{TASK_CHANGED}'"
    yield ""
    yield "return M"
    yield ""


def expression(node: Schema) -> str:
    """The type of one field."""
    if "$ref" in node:
        return f"offload.{reference(node)}"
    if "anyOf" in node:
        return "|".join(expression(choice) for choice in node["anyOf"])
    if node["type"] == "array":
        return f"{expression(node['items'])}[]"
    if node["type"] == "object":
        return f"table<string, {expression(node['additionalProperties'])}>"
    return _PLAIN[node["type"]]
