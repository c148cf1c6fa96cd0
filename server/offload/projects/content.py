"""What may stand in an `offload.toml`, and what it comes to."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from offload.domain.check import CHECK_TIMEOUT_S, FORMAT, Check, CheckPlan
from offload.domain.project import ProjectSettings

ROUNDS = CheckPlan().rounds
LONGEST_S = 24 * 3600.0


def _command(line: str) -> str:
    if not line.strip() or "\0" in line:
        raise ValueError("should be a command for the shell")
    return line


def _report(pattern: str) -> str:
    place = PurePath(pattern)
    if place.is_absolute() or ".." in place.parts or "\0" in pattern:
        raise ValueError("should be a path in the workspace")
    if any("**" in part and part != "**" for part in place.parts):
        raise ValueError('"**" should stand alone between two "/"')
    return pattern


def _pattern(pattern: str) -> str:
    if not pattern.strip("/ ") or pattern.startswith("!") or "\0" in pattern:
        raise ValueError('should be a pattern of paths, without "!"')
    return pattern


def _as_table(value: Any) -> Any:
    if not isinstance(value, str | dict):
        raise ValueError("should be a command for the shell, or a table")  # noqa: TRY004 - pydantic tells of no other
    return {"command": value} if isinstance(value, str) else value


Line = Annotated[str, AfterValidator(_command)]
Pattern = Annotated[str, AfterValidator(_pattern)]
Seconds = Annotated[float, Field(gt=0, le=LONGEST_S)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Format(_Table):
    command: Line
    timeout_s: Seconds = CHECK_TIMEOUT_S


class _Check(_Format):
    name: str = ""
    junit: Annotated[str, AfterValidator(_report)] = ""


class _NeverSend(BaseModel):
    """The one key that counts of every file, whatever else is in it."""

    model_config = ConfigDict(extra="ignore", strict=True)

    never_send: list[Pattern] = []


class _Content(_Table):
    setup: Line = ""
    format: Annotated[_Format | None, BeforeValidator(_as_table)] = None
    checks: list[Annotated[_Check, BeforeValidator(_as_table)]] = []
    check_rounds: Annotated[int, Field(ge=0, le=10)] = ROUNDS
    carry: list[Pattern] = []
    never_send: list[Pattern] = []


def settings_of(values: dict[str, Any]) -> ProjectSettings:
    """All that the file says, as if it was trusted. Raises `ValueError` naming the key."""
    try:
        content = _Content.model_validate(values)
    except ValidationError as error:
        raise ValueError(_told(error)) from None
    checks = tuple(
        Check(each.name or each.command, each.command, each.timeout_s, each.junit) for each in content.checks
    )
    for name, count in Counter(check.name for check in checks).items():
        if count > 1 or name == FORMAT:
            raise ValueError(f"checks: {name!r} is {'the name of two' if count > 1 else 'taken by the formatter'}")
    formatter = Check(FORMAT, content.format.command, content.format.timeout_s) if content.format else None
    plan = CheckPlan(formatter, checks, content.check_rounds)
    return ProjectSettings(content.setup, plan, tuple(content.carry), tuple(content.never_send), trusted=True)


def never_send_of(values: dict[str, Any]) -> tuple[str, ...]:
    """What must never be sent, whether the rest is right or not. Raises `ValueError`."""
    try:
        return tuple(_NeverSend.model_validate(values).never_send)
    except ValidationError as error:
        raise ValueError(_told(error)) from None


def _told(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{key} is not a key of this file"
    message = first["msg"].removeprefix("Value error, ")
    return f"{key}: {message[0].lower()}{message[1:]}"
