"""What a person can set, from `OFFLOAD_*` variables and `config.toml` in the configuration folder.

A variable goes before the file. docs/SETTINGS.md is made from the descriptions here: `python -m offload.settings`.
"""

from __future__ import annotations

import enum
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from offload.domain.ask import ModelApply
from offload.domain.errors import EnvironmentFailure
from offload.domain.profile import Profile

FILE = "config.toml"


class LogLevel(enum.StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Section(BaseModel):
    """Unknown names are refused, so that a typing error is told."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class OpenCodeSettings(Section):
    """How OpenCode is found, started or attached to."""

    # The variable is short because it is the one that people set by hand.
    path: Annotated[
        str,
        Field(
            description="The `opencode` program; empty to look for it on PATH and in its usual places.",
            json_schema_extra={"variable": "OFFLOAD_OPENCODE"},
        ),
    ] = ""
    url: Annotated[str, Field(description="Attach to a server that runs at this URL; empty to start one.")] = ""
    password_file: Annotated[str, Field(description="File that holds the password of the server at `url`.")] = ""
    user: Annotated[
        str,
        Field(
            min_length=1,
            description="Name of the user of the server at `url`.",
            json_schema_extra={"variable": "OPENCODE_SERVER_USERNAME"},
        ),
    ] = "opencode"
    agents: Annotated[bool, Field(description="Offer the agents of the user's own OpenCode folder.")] = True
    config: Annotated[
        str,
        Field(description="OpenCode configuration file to use in place of the user's own; empty for the user's own."),
    ] = ""


class Settings(Section):
    """All settings, with their defaults."""

    # Not OFFLOAD_WORKER: that is the mark of a worker's own processes, which are refused.
    worker: Annotated[
        str,
        Field(
            description="Worker of a task that names none.",
            json_schema_extra={"variable": "OFFLOAD_DEFAULT_WORKER"},
        ),
    ] = "opencode"
    agent: Annotated[
        str, Field(description="The worker's agent of a task that names none; empty for the worker's default.")
    ] = ""
    model: Annotated[
        str, Field(description="Model, as PROVIDER/MODEL, of a task that names none; empty for the worker's default.")
    ] = ""
    max_tasks: Annotated[
        int, Field(ge=1, le=100, description="Tasks that work at a time in one workspace; the rest wait their turn.")
    ] = 5
    profile: Annotated[
        Profile,
        Field(description="What a task that says nothing may do: read-only, workspace-write, no-network or full."),
    ] = Profile.WORKSPACE_WRITE
    mcp_apply: Annotated[
        ModelApply,
        Field(
            description=(
                "Whether a model may apply results of tasks that it started: allow, ask (you are asked each time) or never."
            ),
        ),
    ] = ModelApply.ASK
    max_minutes: Annotated[
        float,
        Field(gt=0, description="Minutes of work of one task; waiting for you and the machine's sleep do not count."),
    ] = 240
    max_turns: Annotated[int, Field(ge=1, description="Turns of one task.")] = 100
    max_tokens: Annotated[int, Field(ge=1, description="Tokens of one task, of all kinds together.")] = 100_000_000
    max_cost: Annotated[
        float, Field(ge=0, description="US dollars that one task may cost; a price that is not known counts as 0.")
    ] = 50
    max_daily_cost: Annotated[
        float, Field(ge=0, description="US dollars that all tasks of one workspace may cost on one day (UTC).")
    ] = 250
    stall_after_s: Annotated[
        float,
        Field(
            gt=0,
            description="Seconds without any sign of life from worker, tools or files after which a turn is stopped.",
        ),
    ] = 600
    ask_timeout_s: Annotated[
        float, Field(gt=0, description="Seconds after which a worker's request that nobody answers is denied.")
    ] = 300
    idle_exit_s: Annotated[
        float, Field(gt=0, description="Seconds without a front and without a live task after which the hub ends.")
    ] = 600
    keep_days: Annotated[
        float,
        Field(
            ge=0,
            description=(
                "Days after which the hub removes a task, unless it holds work that was never applied; 0: only `offload clean` does."
            ),
        ),
    ] = 30
    log_level: Annotated[
        LogLevel,
        Field(description="What is logged: debug, info, warning or error. Prompts and code only ever at debug."),
    ] = LogLevel.INFO
    opencode: OpenCodeSettings = OpenCodeSettings()


def config_folder(environ: Mapping[str, str]) -> Path:
    """The folder that holds what a person wrote for offload: `config.toml`, recipes."""
    if own := environ.get("OFFLOAD_CONFIG_DIR"):
        folder = Path(own)
    elif (shared := environ.get("XDG_CONFIG_HOME", "")).startswith("/"):
        folder = Path(shared, "offload")
    else:
        folder = Path(environ.get("HOME") or "~").expanduser() / ".config" / "offload"
    if not folder.is_absolute():
        raise EnvironmentFailure(f"{folder} is not an absolute folder; set OFFLOAD_CONFIG_DIR to one")
    return folder


def load(environ: Mapping[str, str]) -> Settings:
    """The settings as they are now. Raises `EnvironmentFailure` naming the file and the key, or the variable."""
    path = config_folder(environ) / FILE
    values = _read(path)
    variables: dict[tuple[str, ...], str] = {}
    for key, _, variable in _keys():
        if text := environ.get(variable):
            variables[key] = variable
            _put(values, key, text)
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = tuple(str(part) for part in first["loc"])
        where = variables.get(key) or f"{path}: {'.'.join(key)}"
        raise EnvironmentFailure(f"{where}: {_reason(first)}") from None


def reference() -> str:
    """docs/SETTINGS.md."""
    rows = [
        f"| `{'.'.join(key)}` | `{_default(field)}` | `{variable}` | {field.description} |"
        for key, field, variable in _keys()
    ]
    return "\n".join(
        [
            "<!-- Made by `python -m offload.settings`; do not edit. -->",
            "# Settings",
            "",
            f"offload reads `{FILE}` in its configuration folder: `$OFFLOAD_CONFIG_DIR`, else `$XDG_CONFIG_HOME/offload`, else",
            "`~/.config/offload`. A variable goes before the file; an empty variable counts as not set. The hub reads both when it",
            "starts: run `offload hub stop` after a change, and the next front starts it anew.",
            "",
            "| key | default | variable | meaning |",
            "|---|---|---|---|",
            *rows,
            "",
            "A key with a dot is in a table of the file:",
            "",
            "```toml",
            "max_tasks = 3",
            "",
            "[opencode]",
            'path = "/opt/opencode/bin/opencode"',
            "```",
            "",
            "Two variables have no key, because fronts need them before any file is read: `OFFLOAD_STATE_DIR` (what offload keeps, and",
            "the hub's socket; else `$XDG_STATE_HOME/offload`, else `~/.local/state/offload`, on macOS `~/Library/Application",
            "Support/offload`) and `OFFLOAD_CONFIG_DIR`.",
            "",
        ]
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            return tomllib.load(file)
    except (FileNotFoundError, NotADirectoryError):  # some users have a HOME that is no folder
        return {}
    except OSError as error:
        raise EnvironmentFailure(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise EnvironmentFailure(f"{path} is not valid TOML: {error}") from error


def _keys() -> Iterator[tuple[tuple[str, ...], FieldInfo, str]]:
    """Every key as its path, with its field and the variable that sets it."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.default, Section):
            for inner, inner_field in type(field.default).model_fields.items():
                yield (name, inner), inner_field, _variable((name, inner), inner_field)
        else:
            yield (name,), field, _variable((name,), field)


def _variable(key: tuple[str, ...], field: FieldInfo) -> str:
    extra = field.json_schema_extra
    return str(extra["variable"]) if isinstance(extra, dict) else "_".join(("OFFLOAD", *key)).upper()


def _put(values: dict[str, Any], key: tuple[str, ...], text: str) -> None:
    *sections, name = key
    for section in sections:
        inner = values.setdefault(section, {})
        if not isinstance(inner, dict):
            return  # the file has a plain value where a table belongs; the check of all values will say so
        values = inner
    values[name] = text


def _reason(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return f"there is no such setting; the settings are {', '.join('.'.join(key) for key, _, _ in _keys())}"
    return f"{error['msg'][0].lower()}{error['msg'][1:]}, not {error['input']!r}"


def _default(field: FieldInfo) -> str:
    default = field.default
    return f'"{default}"' if isinstance(default, str) else str(default).lower()


if __name__ == "__main__":
    sys.stdout.write(reference())
