"""What a worker may do, as rules of its session: the last rule that matches wins, and a session's come after its agent's.

The agent's own rules (built in, and the user's) stand, and ours only make them stricter: in a session come our allows, of what the
user allows as well, then the asks of both sides, then the denies of both. By profile:

    workspace-write   shell commands ask, but for the declared ones; edits outside of the folder are denied
    read-only         everything is denied but what reads the folder, so that a tool that we do not know is denied too
    full              no rule of ours

What is denied to a session is denied to its sub-agents, and nothing else is handed on; so the shell is denied first and asked for
after that: a sub-agent, whose rules we do not set, has none. With read-only it has no tool at all.

A shell that was allowed is no sandbox: a declared command may do anything, the network included, and a link in the folder is
followed. So no-network cannot be enforced with rules, and is not offered: without any shell left it would be another profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from offload.domain.profile import Profile

Rule = dict[str, str]

# OpenCode takes a command line apart at these by itself, but counts a redirection as part of the command.
SHELL_SYNTAX = (";", "&", "|", ">", "<", "`", "$(", "\n")
ASKED = ("webfetch", "websearch", "external_directory", "doom_loop")
READING = ("read", "grep", "glob", "list", "lsp", "todowrite", "todoread", "question", "skill")
STRICTNESS = ("deny", "ask", "allow")
PROFILES = frozenset({Profile.READ_ONLY, Profile.WORKSPACE_WRITE, Profile.FULL})
SECRET_FILES = (".env", "*.env", "*.env.*")


def rule(permission: str, pattern: str, action: str) -> Rule:
    return {"permission": permission, "pattern": pattern, "action": action}


def session_rules(
    agent: Sequence[Any], commands: Sequence[str], profile: Profile = Profile.WORKSPACE_WRITE
) -> list[Rule]:
    """The rules for a session of the agent that has the rules `agent`, and that may run `commands` without asking."""
    if profile is Profile.FULL:
        return []
    secrets = [rule("read", name, "ask") for name in SECRET_FILES if action(agent, "read", name) == "allow"]
    if profile is Profile.READ_ONLY:
        return [rule("*", "*", "deny"), *_own(agent, READING), *secrets]
    rules = [*_shell(agent, commands)]
    for permission in ASKED:
        if action(agent, permission, "*") == "allow":
            rules += [rule(permission, "*", "deny"), rule(permission, "*", "ask")]
    rules += secrets
    # Paths are relative to the work tree, so all that is outside begins like this.
    rules += [rule("edit", "../*", "deny")]
    return rules


def _shell(agent: Sequence[Any], commands: Sequence[str]) -> Iterator[Rule]:
    yield rule("bash", "*", "deny")
    if action(agent, "bash", "*") == "deny":
        return
    yield rule("bash", "*", "ask")
    allowed = [command for command in commands if action(agent, "bash", command) == "allow"]
    for command in allowed:
        yield rule("bash", command, "allow")
        yield rule("bash", f"{command} *", "allow")
    for syntax in SHELL_SYNTAX:
        yield rule("bash", f"*{syntax}*", "ask")
    for command in allowed:
        yield rule("bash", f"{command} 2>&1", "allow")
    for wanted in ("ask", "deny"):
        for own in agent:
            if fnmatchcase("bash", own["permission"]) and own["pattern"] != "*" and own["action"] == wanted:
                yield rule("bash", own["pattern"], wanted)


def _own(agent: Sequence[Any], permissions: Sequence[str]) -> Iterator[Rule]:
    """What the agent's own rules say of these, after a rule of ours that denied everything."""
    for permission in permissions:
        for own in agent:
            if fnmatchcase(permission, own["permission"]):
                yield rule(permission, own["pattern"], own["action"])


def looser(agent: Sequence[Any], wanted: Sequence[Any], got: Sequence[Any]) -> str:
    """What a session that has the rules `got` may do beyond those that were `wanted`; "" for nothing.

    Every pattern that any of the rules names is tried, as it stands and with something in the place of its stars.
    """
    for named in (*agent, *wanted, *got):
        for permission, pattern in (
            (named["permission"], named["pattern"]),
            (named["permission"].replace("*", "x"), named["pattern"].replace("*", "x")),
        ):
            is_, should = action([*agent, *got], permission, pattern), action([*agent, *wanted], permission, pattern)
            if STRICTNESS.index(is_) > STRICTNESS.index(should):
                return f"{permission} {pattern} ({is_}, not {should})"
    return ""


def action(rules: Sequence[Any], permission: str, pattern: str) -> str:
    """What the rules say; OpenCode asks where none matches."""
    for own in reversed(rules):
        if fnmatchcase(permission, own["permission"]) and fnmatchcase(pattern, own["pattern"]):
            return str(own["action"])
    return "ask"
