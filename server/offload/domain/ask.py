"""What a worker asks a person during a turn, or a model about its result, and what came of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NewType

AskId = NewType("AskId", str)  # the worker's own id of the request


class AskKind(enum.StrEnum):
    PERMISSION = "permission"
    QUESTION = "question"


class ModelApply(enum.StrEnum):
    """Whether a model may apply the results of tasks that it started: by itself, with a person's word for each, or not at all."""

    ALLOW = "allow"
    ASK = "ask"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class WantedApply:
    """What a model wants to apply: `units` are the ids of the hunks and files, which `paths`, `hunks` and `include_outside`
    named; `by` is the model's name and `key` its own."""

    units: tuple[str, ...]
    paths: tuple[str, ...] = ()
    hunks: tuple[str, ...] = ()
    include_outside: bool = False
    by: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Ask:
    """One open request. `subject` is what is wanted: a permission's name ("bash", "external_directory") or a question's
    header; `detail` is the command, the path or the question itself; `choices` are the labels that can be answered; a worker
    gives a permission the choices "allow" and "deny", and offload adds "always". With `wanted` it is no worker's: a model
    wants to apply the result."""

    id: AskId
    kind: AskKind
    subject: str
    detail: str
    choices: tuple[str, ...]
    wanted: WantedApply | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """`choice` is one of the ask's choices (for a question free text too); `message` goes to the worker with a denial."""

    choice: str
    message: str = ""


class AskOutcome(enum.StrEnum):
    """Why an ask is no longer open."""

    ANSWERED = "answered"
    TIMED_OUT = "timed_out"  # nobody answered in time: it was denied and the turn goes on
    WITHDRAWN = "withdrawn"  # the worker no longer waits for it


ALLOW = "allow"
ALWAYS = "always"  # allow this, and the very same again in this task; no worker is ever told so
DENY = "deny"


@dataclass(frozen=True, slots=True)
class Closing:
    """How an ask was closed; `by` names who answered ("Neovim"), "" when nobody did, and `key` is that caller's own."""

    ask: Ask
    outcome: AskOutcome
    at: float
    choice: str = ""
    message: str = ""
    by: str = ""
    key: str = ""
