"""Makes one command of each operation: positional arguments and options come from the fields of its params.

Required fields, the brief, files and tasks are positional, everything else is an option, which may be repeated for a list;
seconds lose their `_s`. Nothing here knows a single operation, but for waiting: a person may wait longer than one call lasts.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Annotated, Any, get_origin

import typer
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from offload.cli.render import as_commands
from offload.wire.operations import Operation

POSITIONAL = frozenset({"brief", "paths", "task_ids"})
REVISIONS = "after_revision"  # a table of task ids and revisions, said as ID=REVISION
SECONDS = frozenset({"wait_s", "timeout_s"})

JSON_OPTION = typer.Option("--json", help="Print the result as JSON.")
JsonOption = Annotated[bool, JSON_OPTION]


def command_for(
    operation: Operation, run: Callable[[Operation, dict[str, Any], float | None, bool], int]
) -> Callable[..., None]:
    """A function that typer can make a command of. `run` gets the params, the seconds to wait (None: no limit) and --json."""

    def command(**given: Any) -> None:
        as_json = given.pop("json")
        wait = next((given.pop(name) for name in SECONDS & given.keys()), 0.0)
        if REVISIONS in given:
            given[REVISIONS] = _revisions(given[REVISIONS])
        try:
            params = operation.params.model_validate(given)
        except ValidationError as error:
            raise typer.BadParameter(_told(operation, error)) from None
        raise typer.Exit(run(operation, params.model_dump(mode="json"), wait, as_json))

    fields = operation.params.model_fields
    parameters = [_parameter(name, field) for name, field in fields.items()]
    # Python wants parameters with a default last; keyword-only ones may come in any order, and stay in that of the table.
    parameters.append(_keyword("json", bool, JSON_OPTION, default=False))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {}
    command.__doc__ = as_commands(operation.doc)
    return command


def is_positional(name: str, field: FieldInfo) -> bool:
    return name in POSITIONAL or field.is_required()


def option_name(name: str, field: FieldInfo | None = None) -> str:
    """One of a list is named by its singular ("--hunk")."""
    if field is not None and get_origin(field.annotation) is list:
        name = name.removesuffix("s")
    return "--" + name.removesuffix("_s").removesuffix("_id").replace("_", "-")


def _parameter(name: str, field: FieldInfo) -> inspect.Parameter:
    words = as_commands(field.description or "")
    if name == "wait_s":
        option = typer.Option(option_name(name), min=0, help="Seconds to wait for the end; 0: do not wait.")
        return _keyword(name, float, option, default=0.0)
    if name == "timeout_s":
        option = typer.Option(option_name(name), min=0, help="Seconds to wait at most; without it: until the end.")
        return _keyword(name, float | None, option, default=None)
    if name == REVISIONS:
        option = typer.Option(option_name(name), help=f"{words} As ID=REVISION; may be repeated.")
        return _keyword(name, list[str], option, default=[])
    default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
    if is_positional(name, field):
        argument = typer.Argument(metavar=metavar(name, field), help=words, show_default=False)
        return _keyword(name, field.annotation, argument, default=default)
    option_names = option_name(name, field) + (f"/--no-{option_name(name)[2:]}" if default is True else "")
    option = typer.Option(option_names, help=words, show_default=default not in ("", False, []))
    return _keyword(name, field.annotation, option, default=default)


def _keyword(name: str, kind: Any, info: Any, *, default: Any) -> inspect.Parameter:
    # The same as Annotated[kind, info], which a type checker takes for a type that it should know.
    annotation = operator.getitem(Annotated, (kind, info))
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def metavar(name: str, field: FieldInfo) -> str:
    """As in TASK and PATH: lists are named by their singular; typer adds the brackets and dots."""
    word = name.removesuffix("s") if get_origin(field.annotation) is list else name
    return word.removesuffix("_id").upper()


def _revisions(words: list[str]) -> dict[str, int] | None:
    try:
        return {task: int(revision) for task, _, revision in (word.rpartition("=") for word in words)} or None
    except ValueError:
        raise typer.BadParameter(f"--after-revision wants ID=REVISION, not {' '.join(words)!r}") from None


def _told(operation: Operation, error: ValidationError) -> str:
    """The first thing that is wrong, by the name that the person typed."""
    first = error.errors()[0]
    name = str(first["loc"][0])
    field = operation.params.model_fields[name]
    said = metavar(name, field) if is_positional(name, field) else option_name(name, field)
    return f"{said}: {first['msg']}"
