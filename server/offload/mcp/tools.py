"""The tools that a model is offered: the operations table's rows for models, with schemas that every known host accepts.

Hosts lose whole tool lists over a schema that is not an object, and models' interfaces refuse `anyOf` and its like at the top, so
definitions stand where they are used, and "or null" is left out of parameters: a null counts as not given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import Tool, ToolAnnotations

from offload.domain.task import Front
from offload.wire.operations import OPERATIONS, Operation

OPERATIONS_FOR_MODELS: Mapping[str, Operation] = {
    operation.name: operation for operation in OPERATIONS if Front.MODEL in operation.fronts
}


def _tools() -> list[Tool]:
    return [
        Tool(
            name=operation.name,
            description=operation.doc,
            input_schema=inlined(operation.params.model_json_schema(), nullable=False),
            output_schema=inlined(operation.result.model_json_schema(), nullable=True),
            annotations=ToolAnnotations(
                read_only_hint=operation.reads_only,
                destructive_hint=operation.writes_files,
                open_world_hint=not operation.reads_only,
            ),
        )
        for operation in OPERATIONS_FOR_MODELS.values()
    ]


def inlined(schema: Mapping[str, Any], *, nullable: bool) -> dict[str, Any]:
    """The schema without references and without the titles that only repeat names; without "or null" if not `nullable`."""
    definitions = schema.get("$defs", {})

    def walk(node: Any) -> Any:
        if isinstance(node, list):
            return [walk(item) for item in node]
        if not isinstance(node, dict):
            return node
        if not nullable and "anyOf" in node:
            (only,) = (choice for choice in node["anyOf"] if choice.get("type") != "null")
            rest = {key: value for key, value in node.items() if key != "anyOf" and value is not None}
            return walk({**only, **rest})
        rest = {key: value for key, value in node.items() if key not in ("$ref", "$defs", "title", "properties")}
        walked = {key: walk(value) for key, value in rest.items()}
        if "properties" in node:
            walked["properties"] = {name: walk(value) for name, value in node["properties"].items()}
        if "$ref" in node:
            walked = {**walk(definitions[node["$ref"].removeprefix("#/$defs/")]), **walked}
        return walked

    result: dict[str, Any] = walk(schema)
    return result


# The whole list, made once: it takes 20 ms, and it stays the same while a host is connected, since some hosts read it once.
TOOLS = _tools()
