"""What the scripted model does next: reads the file, writes tests for the block, runs them, learns from the output, sums up; and
when it is told of a conflict, keeps both sides.

Like any language model it has no memory: all is taken from the conversation that it is sent. It knows nothing of HTTP.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offload.demo import derive

# What an agent answers in place of a result when a turn was stopped in the middle of a call, which then has not been done
# and may even lack its arguments.
NOT_DONE = re.compile(r"\[?Tool execution (?:aborted|interrupted|was interrupted)")

# A line as the read tool prints it.
NUMBERED = re.compile(r"^ *0*\d+[:|] ?(.*)$", re.MULTILINE)

RUNS_PER_TURN = 3  # one that shows what was guessed wrongly, one that proves the correction, one to spare


@dataclass(frozen=True, slots=True)
class Say:
    """The turn's last words."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, with a few words before it."""

    tool: str
    arguments: Mapping[str, Any]
    words: str


@dataclass(frozen=True, slots=True)
class Step:
    """A tool call that is over; `turn` counts the user's messages up to it."""

    tool: str
    arguments: Mapping[str, Any]
    result: str
    turn: int


@dataclass(frozen=True, slots=True)
class Conversation:
    """`prompts` are the user's messages, `folder` is where the agent works, "" when it did not say; `spoke` is whether the
    turn before this one came to its last words."""

    prompts: tuple[str, ...]
    steps: tuple[Step, ...]
    folder: str
    spoke: bool = True

    def in_turn(self, tool: str) -> list[Step]:
        return [step for step in self.steps if step.tool == tool and step.turn == len(self.prompts)]


def read_conversation(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """The messages of a chat completions request, taken apart."""
    prompts: list[str] = []
    calls: dict[str, tuple[str, str, int]] = {}
    steps: list[Step] = []
    folder = ""
    spoke = speaking = False
    for message in messages:
        text = flatten(message.get("content"))
        match message["role"]:
            case "user":
                prompts.append(text)
                spoke = speaking
            case "system":
                found = re.search(r"[Ww]orking directory: (.+)", text)
                folder = found[1].strip() if found else folder
            case "tool":
                name, arguments, turn = calls[message["tool_call_id"]]
                if not NOT_DONE.match(text):
                    steps.append(Step(name, json.loads(arguments), text, turn))
            case _:
                speaking = not message.get("tool_calls")
                for call in message.get("tool_calls") or ():
                    function = call["function"]
                    calls[call["id"]] = (function["name"], function["arguments"], len(prompts))
    return Conversation(tuple(prompts), tuple(steps), folder, spoke)


def flatten(content: object) -> str:
    """The text of a message's content, which is a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part.get("text", "") for part in parts)


def next_move(conversation: Conversation) -> Say | Call:
    """One model round."""
    first = conversation.prompts[0]
    path = re.search(r"[\w./-]+\.py\b", first)
    if path is None:
        return Say(
            "I am the scripted model of offload's demo: I only write tests for a block of Python, and I see none here."
        )
    reads = [step for step in conversation.steps if step.tool == "read"]
    if not reads:
        return Call("read", {"filePath": absolute(conversation, path[0])}, f"I read {path[0]} first.")
    subject = derive.find_subject(path[0], unnumbered(reads[0].result), first)
    if subject is None:
        return Say(
            f"I found no function of the block in {path[0]}, so I wrote nothing. The tool said: {reads[0].result[:200]}"
        )
    return _work_on(conversation, subject)


def _work_on(conversation: Conversation, subject: derive.Subject) -> Say | Call:
    looked = [
        step
        for step in conversation.steps
        if step.tool == "read" and step.arguments["filePath"].endswith(subject.test_path)
    ]
    if not looked:
        return Call("read", {"filePath": absolute(conversation, subject.test_path)}, "Are there tests of it already?")
    path = subject.own_test_path if NUMBERED.search(looked[0].result) else subject.test_path
    target = absolute(conversation, path)
    follow_up = conversation.prompts[-1] if len(conversation.prompts) > 1 else ""
    if _of_conflict(conversation, path) and not conversation.in_turn("write"):
        return _unite(conversation, target)
    text = written(conversation)
    if not text:
        return Call(
            "write", {"filePath": target, "content": derive.draft(subject)}, f"Now the tests for `{subject.name}`."
        )
    runs = conversation.in_turn("bash")
    if follow_up and not runs and not conversation.in_turn("edit") and not conversation.in_turn("write"):
        edges = tuple(edge for edge in derive.EDGES if edge in follow_up.lower())
        new = derive.extended(text, derive.edge_cases(subject, edges))
        if new != text:
            return _edit(target, text, new, "I add what you asked for.")
        if conversation.spoke:
            return Say(f"I know no further case for `{subject.name}` in what you ask, so I changed nothing.")
    command = f"python3 -m unittest {path}"
    if not runs or conversation.steps[-1].tool != "bash":
        return Call("bash", {"command": command, "description": "Runs the new tests"}, "I run them.")
    mended = derive.mend(text, runs[-1].result)
    if mended.learnt and len(runs) < RUNS_PER_TURN:
        return _edit(
            target, text, mended.text, f"I guessed wrongly in {len(mended.learnt)}; I write down what the code does."
        )
    return Say(_summary(conversation, subject, path, text, mended))


def _of_conflict(conversation: Conversation, path: str) -> bool:
    """Whether the last thing said is that there are marks of a conflict in this file."""
    last = conversation.prompts[-1]
    return len(conversation.prompts) > 1 and "conflict" in last.lower() and path in last


def _unite(conversation: Conversation, target: str) -> Call:
    """The file with the marks is read first: what stands between them is not what was written in this conversation."""
    reads = conversation.in_turn("read")
    if not reads:
        return Call("read", {"filePath": target}, "I look at the conflict.")
    content = derive.united(unnumbered(reads[-1].result))
    return Call("write", {"filePath": target, "content": content}, "I keep the tests of both sides.")


def _edit(target: str, old: str, new: str, words: str) -> Call:
    """The lines that differ, with the one before them, or as many as make the place unmistakable."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    start = max(0, derive.common(before, after) - 1)
    end = derive.common(before[start:][::-1], after[start:][::-1])
    while old.count("".join(before[start : len(before) - end])) != 1:
        start -= 1
    arguments = {
        "filePath": target,
        "oldString": "".join(before[start : len(before) - end]),
        "newString": "".join(after[start : len(after) - end]),
    }
    return Call("edit", arguments, words)


def _summary(conversation: Conversation, subject: derive.Subject, path: str, text: str, mended: derive.Mended) -> str:
    said = [f"{path} holds {text.count('    def test_')} tests for `{subject.name}`."]
    output = conversation.in_turn("bash")[-1].result
    if _of_conflict(conversation, path):
        said.append("I kept the tests of both sides of the conflict.")
    failing = [*mended.broken, *mended.learnt]
    if failing:
        said.append(f"Failing: {', '.join(failing)}; please look at the code.")
    elif re.search(r"^OK$", output, re.MULTILINE):
        said.append("They pass.")
    else:
        said.append(f"I could not see them pass. The shell said: {output[:300].strip()}")
    corrected = [name for step in conversation.in_turn("edit") for name in _changed(step)]
    if corrected:
        said.append(f"I guessed wrongly in {', '.join(corrected)} and wrote down what the code does: please check it.")
    return " ".join(said)


def _changed(step: Step) -> list[str]:
    """The tests that an edit changed, without those that it added."""
    old, new = (
        dict(re.findall(r"^    def (test_\w+)\(self\):\n((?: {8}.*\n)*)", step.arguments[side], re.MULTILINE))
        for side in ("oldString", "newString")
    )
    return [name for name, body in old.items() if name in new and new[name] != body]


def written(conversation: Conversation) -> str:
    """The test file as it stands after all that was written and edited."""
    text = ""
    for step in conversation.steps:
        if step.tool == "write":
            text = step.arguments["content"]
        elif step.tool == "edit":
            text = text.replace(step.arguments["oldString"], step.arguments["newString"], 1)
    return text


def absolute(conversation: Conversation, path: str) -> str:
    return f"{conversation.folder}/{path}" if conversation.folder and not path.startswith("/") else path


def unnumbered(result: str) -> str:
    """The text of a file out of what the read tool printed, which numbers its lines."""
    numbered = NUMBERED.findall(result)
    return "\n".join(numbered) + "\n" if numbered else result
