"""What a tool call is doing, in plain English."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offload.domain.ask import ALLOW, DENY, Ask, AskId, AskKind

SHORT = 60
TEST_WORDS = ("test", "spec")
PLAIN = {
    "grep": "searching",
    "glob": "searching",
    "list": "looking at the files",
    "webfetch": "reading a web page",
    "websearch": "searching the web",
    "task": "asking a sub-agent",
    "todowrite": "planning",
    "todoread": "planning",
    "question": "asking a question",
    "skill": "reading a skill",
}
EDIT_TOOLS = ("edit", "write", "multiedit")  # each of one file
PATCH_TOOLS = ("patch", "apply_patch")
FILE_VERBS = {"read": "reading", **dict.fromkeys(EDIT_TOOLS, "editing")}


def label(tool: str, arguments: Mapping[str, Any], folder: Path, commands: Sequence[str]) -> str:
    """For example "running the test suite" or "editing src/shop.py"."""
    if tool == "bash":
        command = str(arguments.get("command", ""))
        if any(runs(command, declared) and any(word in declared for word in TEST_WORDS) for declared in commands):
            return "running the test suite"
        return f"running {shortened(command)}".rstrip()
    if tool in FILE_VERBS:
        return f"{FILE_VERBS[tool]} {_relative(str(arguments.get('filePath', '')), folder)}".rstrip()
    if tool in PATCH_TOOLS:
        return "editing files"
    return PLAIN.get(tool, f"using {tool}")


def runs(command: str, declared: str) -> bool:
    """Whether a command line is the declared command, with or without arguments of its own."""
    return command.strip() == declared or command.strip().startswith(f"{declared} ")


def shortened(text: str) -> str:
    """One line of at most `SHORT` characters."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[: SHORT - 1]}…"


def _relative(path: str, folder: Path) -> str:
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path


def asking(ask: Ask) -> str:
    """For example "asks to run rm -r build"."""
    return f"asks to run {shortened(ask.detail)}" if ask.subject == "bash" else f"asks for {_wanted(ask)}"


def denied(ask: Ask) -> str:
    """For example "was denied rm -r build"."""
    return f"was denied {shortened(ask.detail) if ask.subject == 'bash' else _wanted(ask)}"


def _wanted(ask: Ask) -> str:
    return shortened(f"{ask.subject}: {ask.detail}")


def trying_again(reason: str, until: float | None) -> str:
    """Said while OpenCode waits before it asks the provider once more. The time is that of this machine, as people here read it."""
    when = time.strftime(" at %H:%M:%S", time.localtime(until)) if until else ""
    return f"trying again{when}: {reason}"


def permission_ask(request: Mapping[str, Any]) -> Ask:
    metadata = request.get("metadata") or {}
    patterns = ", ".join(str(pattern) for pattern in request.get("patterns") or ())
    detail = str(metadata.get("command") or metadata.get("filepath") or metadata.get("url") or patterns)
    return Ask(AskId(request["id"]), AskKind.PERMISSION, str(request["permission"]), detail, (ALLOW, DENY))


def question_ask(request: Mapping[str, Any]) -> Ask:
    """OpenCode may ask several questions at once; the choices are those of the first, free text goes to all."""
    questions = request.get("questions") or [{}]
    first = questions[0]
    choices = tuple(str(option["label"]) for option in first.get("options") or ())
    detail = "\n".join(str(question.get("question", "")) for question in questions)
    return Ask(AskId(request["id"]), AskKind.QUESTION, str(first.get("header", "question")), detail, choices)
