"""The operations table and all types as one JSON schema, which the other generated files are made from."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from offload.domain.task import Front
from offload.wire.operations import OPERATIONS
from offload.wire.views import ErrorView, TaskView

TASK_CHANGED = "offload/taskChanged"

Schema = dict[str, Any]


def protocol() -> Schema:
    """`operations`, `notifications` and `$defs`; a type with a default is one that may be left out."""
    models: set[type[BaseModel]] = {ErrorView, TaskView}
    models.update(each.params for each in OPERATIONS)
    models.update(each.result for each in OPERATIONS)
    ordered = sorted(models, key=lambda model: model.__name__)
    _, schema = models_json_schema([(model, "validation") for model in ordered])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "offload protocol",
        "operations": {
            operation.name: {
                "doc": operation.doc,
                "lsp": f"offload/{operation.lsp}" if Front.EDITOR in operation.fronts else None,
                "mcp": operation.name if Front.MODEL in operation.fronts else None,
                "rpc": operation.name if Front.TERMINAL in operation.fronts else None,
                "params": {"$ref": f"#/$defs/{operation.params.__name__}"},
                "result": {"$ref": f"#/$defs/{operation.result.__name__}"},
                "reads_only": operation.reads_only,
            }
            for operation in OPERATIONS
        },
        "notifications": {TASK_CHANGED: {"params": {"$ref": "#/$defs/TaskView"}}},
        "$defs": dict(sorted(schema["$defs"].items())),
    }


def reference(node: Schema) -> str:
    """The name of the type that a node refers to."""
    return str(node["$ref"]).removeprefix("#/$defs/")


def as_json(schema: Schema, comment: str) -> str:
    """The schema's file; JSON has no comments, so the first line holds a member that is one."""
    body = json.dumps(schema, indent=2, ensure_ascii=False)
    return f'{{ "$comment": {json.dumps(comment)},\n' + body.removeprefix("{\n") + "\n"
