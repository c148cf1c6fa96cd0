"""What a worker may do, as rules of its session: the last rule that matches wins, and a session's come after its agent's.

The agent's own rules (built in, and the user's) stand. Ours only make them stricter, but for the declared commands: shell commands
ask, edits outside of the folder are denied. What is denied to a session is denied to its sub-agents, and nothing else is handed on;
so the shell is denied first and asked for after that: a sub-agent, whose rules we do not set, has none.

A shell that was allowed is no sandbox: a declared command may do anything, and a link in the folder is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

Rule = dict[str, str]

# OpenCode takes a command line apart at these by itself, but counts a redirection as part of the command.
SHELL_SYNTAX = (";", "&", "|", ">", "<", "`", "$(", "\n")
ASKED = ("webfetch", "websearch", "external_directory", "doom_loop")
SECRET_FILES = (".env", "*.env", "*.env.*")


def rule(permission: str, pattern: str, action: str) -> Rule:
    return {"permission": permission, "pattern": pattern, "action": action}


def session_rules(agent: Sequence[Any], commands: Sequence[str]) -> list[Rule]:
    """The rules for a session of the agent that has the rules `agent`, and that may run `commands` without asking."""
    rules = [*_shell(agent, commands)]
    for permission in ASKED:
        if action(agent, permission, "*") == "allow":
            rules += [rule(permission, "*", "deny"), rule(permission, "*", "ask")]
    rules += [rule("read", name, "ask") for name in SECRET_FILES if action(agent, "read", name) == "allow"]
    # Paths are relative to the work tree, so all that is outside begins like this.
    rules += [rule("edit", "../*", "deny")]
    return rules


def _shell(agent: Sequence[Any], commands: Sequence[str]) -> Iterator[Rule]:
    yield rule("bash", "*", "deny")
    if action(agent, "bash", "*") == "deny":
        return
    yield rule("bash", "*", "ask")
    for command in commands:
        yield rule("bash", command, "allow")
        yield rule("bash", f"{command} *", "allow")
    for syntax in SHELL_SYNTAX:
        yield rule("bash", f"*{syntax}*", "ask")
    for command in commands:
        yield rule("bash", f"{command} 2>&1", "allow")
    # What the user denies or wants to be asked about stays so, whatever we allow.
    for own in agent:
        if own["permission"] == "bash" and own["pattern"] != "*" and own["action"] != "allow":
            yield rule("bash", own["pattern"], own["action"])


def action(rules: Sequence[Any], permission: str, pattern: str) -> str:
    """What the rules say; OpenCode asks where none matches."""
    for own in reversed(rules):
        if fnmatchcase(permission, own["permission"]) and fnmatchcase(pattern, own["pattern"]):
            return str(own["action"])
    return "ask"
