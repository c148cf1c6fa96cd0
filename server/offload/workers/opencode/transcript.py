"""What a session's messages say of one turn: whether it is over, its text, what it used and which route it really took.

OpenCode writes one assistant message per round of the model; those of a turn have the prompt's id as their parent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from offload.domain.route import Route
from offload.domain.turn import Failure
from offload.domain.usage import Usage
from offload.workers.opencode.activity import EDIT_TOOLS, PATCH_TOOLS

Json = dict[str, Any]
_PATCHED = re.compile(r"^\*\*\* (?:Add File|Update File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)


@dataclass
class Rounds:
    """The assistant messages that were seen of a turn and of its sub-agents, by id; a later report replaces an earlier one."""

    prompt: str
    infos: dict[str, Json] = field(default_factory=dict)

    def put(self, info: Json) -> None:
        self.infos[info["id"]] = info

    @property
    def own(self) -> list[Json]:
        """Those that answer the prompt, in order."""
        return sorted(
            (info for info in self.infos.values() if info.get("parentID") == self.prompt),
            key=lambda info: str(info["id"]),
        )

    def usage(self, priced: Callable[[str], bool]) -> Usage:
        """All rounds added up; the cost is unknown if no round's price is known."""
        total = Usage()
        for info in self.infos.values():
            total += _usage(info, priced(_model(info)))
        return total

    def ran(self, worker: str) -> Route:
        """The route of the last round that answers the prompt."""
        if not self.own:
            return Route(worker)
        last = self.own[-1]
        return Route(worker, str(last.get("agent") or last.get("mode") or ""), _model(last), variant(last))


def variant(info: Mapping[str, Any]) -> str:
    """OpenCode says "default" for none in some places."""
    named = str(info.get("variant") or "")
    return "" if named == "default" else named


def _model(info: Mapping[str, Any]) -> str:
    return f"{info.get('providerID', '')}/{info.get('modelID', '')}"


def _usage(info: Mapping[str, Any], priced: bool) -> Usage:
    tokens = info.get("tokens") or {}
    cache = tokens.get("cache") or {}
    return Usage(
        int(tokens.get("input", 0)),
        int(tokens.get("output", 0)),
        int(tokens.get("reasoning", 0)),
        int(cache.get("read", 0)),
        int(cache.get("write", 0)),
        float(info.get("cost", 0)) if priced else None,
    )


@dataclass(frozen=True, slots=True)
class Ending:
    """What the messages say at the end: `failure`, or `text` with a `doubt` that may be "". `aborted` turns have neither."""

    text: str
    failure: Failure | None = None
    doubt: str = ""
    aborted: bool = False


def answers(messages: Sequence[Json], prompt: str) -> list[Json]:
    """The assistant messages of a turn, in order."""
    return [
        message
        for message in messages
        if message["info"].get("role") == "assistant" and message["info"].get("parentID") == prompt
    ]


def text_of(message: Json) -> str:
    return "".join(
        str(part["text"]) for part in message["parts"] if part["type"] == "text" and not part.get("synthetic")
    ).strip()


def claims(messages: Sequence[Json]) -> tuple[str, ...]:
    """The files that tools say they have written or removed, as their calls named them, each once."""
    found: dict[str, None] = {}
    for message in messages:
        for part in message["parts"]:
            if part["type"] == "tool" and part["state"]["status"] == "completed":
                found.update(dict.fromkeys(_written(str(part["tool"]), part["state"].get("input") or {})))
    return tuple(found)


def _written(tool: str, arguments: Mapping[str, Any]) -> list[str]:
    if tool in PATCH_TOOLS:
        return _PATCHED.findall(str(arguments.get("patchText", "")))
    return [str(arguments["filePath"])] if tool in EDIT_TOOLS and arguments.get("filePath") else []


def is_completed(info: Mapping[str, Any]) -> bool:
    return bool((info.get("time") or {}).get("completed"))


def ending(messages: Sequence[Json]) -> Ending | None:
    """How a turn with these answers ended, None while its last message is not complete."""
    if not messages or not is_completed(messages[-1]["info"]):
        return None
    info = messages[-1]["info"]
    text = text_of(messages[-1])
    if error := info.get("error"):
        name = str(error.get("name", "UnknownError"))
        if name == "MessageAbortedError":
            return Ending(text, aborted=True)
        said = str((error.get("data") or {}).get("message") or name)
        # An unknown one need not be the provider's: a refused permission comes as that when it is asked for in a model's answer.
        whose = "OpenCode ended the turn" if name == "UnknownError" else "The provider failed"
        return Ending(text, Failure(name, f"{whose}: {said}"))
    finish = str(info.get("finish") or "")
    if not finish and not text:
        return Ending(text, Failure("turn_lost", "OpenCode ended the turn without a word, an error or a reason."))
    doubts = {
        "stop": "",
        "tool-calls": "the worker stopped after a tool call: a permission was refused",
        "length": "the model's answer was cut off at its length limit",
    }
    return Ending(
        text, doubt=doubts.get(finish, f"the model ended for the reason {finish!r}" if finish else "no reason given")
    )
