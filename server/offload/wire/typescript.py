"""The types as TypeScript, for clients that are written in it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from offload.wire.schema import Schema, reference

_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def module(schema: Schema, comment: str) -> str:
    """One module: every type, and the requests with their params and results."""
    return "\n".join((f"// {comment}", "", *_types(schema), *_requests(schema)))


def _types(schema: Schema) -> Iterator[str]:
    for name, node in schema["$defs"].items():
        yield from _doc(node, "")
        if "enum" in node:
            yield f"export type {name} = {' | '.join(json.dumps(value) for value in node['enum'])};"
        else:
            yield f"export interface {name} {{"
            for field, each in node["properties"].items():
                yield from _doc(each, "  ")
                mark = "" if field in node.get("required", ()) else "?"
                yield f"  {field}{mark}: {expression(each)};"
            yield "}"
        yield ""


def _requests(schema: Schema) -> Iterator[str]:
    yield "/** Each request that an editor can send, with its params and its result. */"
    yield "export interface Requests {"
    for operation in schema["operations"].values():
        if operation["lsp"]:
            params, result = reference(operation["params"]), reference(operation["result"])
            yield f"  /** {operation['doc']} */"
            yield f'  "{operation["lsp"]}": {{ params: {params}; result: {result} }};'
    yield "}"
    yield ""
    yield "/** Each notification that the server sends, with its params. */"
    yield "export interface Notifications {"
    for name, notification in schema["notifications"].items():
        yield f'  "{name}": {reference(notification["params"])};'
    yield "}"
    yield ""


def _doc(node: Schema, indent: str) -> Iterator[str]:
    lines = node.get("description", "").splitlines()
    if len(lines) == 1:
        yield f"{indent}/** {lines[0]} */"
    elif lines:
        yield f"{indent}/**"
        yield from (f"{indent} * {line}".rstrip() for line in lines)
        yield f"{indent} */"


def expression(node: Schema) -> str:
    """The type of one field."""
    if "$ref" in node:
        return reference(node)
    if "anyOf" in node:
        return " | ".join(expression(choice) for choice in node["anyOf"])
    if node["type"] == "array":
        return f"{expression(node['items'])}[]"
    if node["type"] == "object":
        return f"Record<string, {expression(node['additionalProperties'])}>"
    return _PLAIN[node["type"]]
