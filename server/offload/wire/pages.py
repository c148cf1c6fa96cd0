"""The generated parts of the documentation: the operations with their types, and the diagram of a task's life."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import product
from types import SimpleNamespace

from offload.domain.events import Created, Event
from offload.domain.lifecycle import TRANSITIONS, Target
from offload.domain.task import Phase
from offload.wire.operations import OPERATIONS
from offload.wire.schema import Schema, reference


def operations(schema: Schema) -> str:
    """The table of operations, the params of each, and every type that is sent."""
    return "\n".join((*_overview(schema), "", *_params(schema), *_views(schema))).rstrip()


def _overview(schema: Schema) -> Iterator[str]:
    yield "| operation (MCP tool, rpc method) | LSP request | command | for models | params | result | what it does |"
    yield "|---|---|---|---|---|---|---|"
    for operation in OPERATIONS:
        row = schema["operations"][operation.name]
        params, result = reference(row["params"]), reference(row["result"])
        cells = (
            f"`{operation.name}`",
            f"`{row['lsp']}`",
            f"`offload {operation.command}`",
            "yes" if row["mcp"] else "no",
            f"[{params}](#{params.lower()})",
            f"[{result}](#{result.lower()})",
            operation.doc,
        )
        yield f"| {' | '.join(cells)} |"


def _params(schema: Schema) -> Iterator[str]:
    yield "### Params"
    yield ""
    for name in sorted({reference(row["params"]) for row in schema["operations"].values()}):
        yield f"#### {name}"
        yield ""
        yield "| field | type | default | meaning |"
        yield "|---|---|---|---|"
        node = schema["$defs"][name]
        for field, each in node["properties"].items():
            default = "required" if field in node.get("required", ()) else f"`{json.dumps(each.get('default', []))}`"
            yield f"| `{field}` | {_kind(each)} | {default} | {each['description']} |"
        yield ""


def _views(schema: Schema) -> Iterator[str]:
    yield "### Results"
    yield ""
    params = {reference(row["params"]) for row in schema["operations"].values()}
    for name, node in schema["$defs"].items():
        if name in params:
            continue
        yield f"#### {name}"
        yield ""
        if "description" in node:
            yield node["description"]
            yield ""
        if "enum" in node:
            yield f"One of {', '.join(f'`{value}`' for value in node['enum'])}."
        else:
            yield ", ".join(f"`{field}`: {_kind(each)}" for field, each in node["properties"].items()) + "."
        yield ""


def _kind(node: Schema) -> str:
    """The type of one field in words, with its limits."""
    if "$ref" in node:
        return f"[{reference(node)}](#{reference(node).lower()})"
    if "anyOf" in node:
        return " or ".join(_kind(choice) for choice in node["anyOf"])
    if node["type"] == "array":
        return f"list of {_kind(node['items'])}"
    if node["type"] == "object":
        return f"map to {_kind(node['additionalProperties'])}"
    return str(node["type"])


def lifecycle(transitions: Mapping[Phase, Mapping[type[Event], Target]] = TRANSITIONS) -> str:
    """The state diagram, from the table. Events that leave a task in its phase are not drawn."""
    edges: dict[tuple[str, str], list[str]] = {("[*]", Phase.QUEUED): [Created.__name__]}
    for phase, row in transitions.items():
        for event, target in row.items():
            for reached, condition in _reached(phase, target).items():
                if reached is not phase:
                    edges.setdefault((phase, reached), []).append(event.__name__ + condition)
    lines = (f"    {source} --> {target}: {', '.join(events)}" for (source, target), events in edges.items())
    return "\n".join(("```mermaid", "stateDiagram-v2", *lines, "```"))


def _reached(phase: Phase, target: Target) -> dict[Phase, str]:
    """Every phase that a row can lead to, with its condition; a rule is asked about all that it can depend on."""
    if isinstance(target, Phase):
        return {target: ""}
    cases: dict[Phase, set[tuple[bool, bool]]] = {}
    for stop, check in product((False, True), repeat=2):
        reached = target(SimpleNamespace(phase=phase, stop_requested=stop), SimpleNamespace(to_check=check))  # type: ignore[arg-type]
        cases.setdefault(reached, set()).add((stop, check))
    return {reached: _condition(met) for reached, met in cases.items()}


def _condition(met: set[tuple[bool, bool]]) -> str:
    if {stop for stop, _ in met} == {True}:
        return " (a stop was asked)"
    if {check for _, check in met} == {True}:
        return " (with checks)"
    return ""
