"""The commands behind code actions and lenses. Each takes one JSON object, the params of its operation, and answers at once:
an editor may freeze until `workspace/executeCommand` is answered, so long work belongs to core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types

from offload.domain.errors import ApplyRefused, OffloadError
from offload.domain.task import TaskId
from offload.lsp import requests, telling
from offload.lsp.editor import Editor
from offload.wire.operations import BY_NAME

START = "offload.start"
CONTINUE = "offload.continue"
RESUME = "offload.resume"
CANCEL = "offload.cancel"
ANSWER = "offload.answer"
APPLY = "offload.apply"
REJECT = "offload.reject"
UNDO = "offload.undo"
INTEGRATE = "offload.integrate"
CHECK = "offload.check"
CLOSE = "offload.close"
SHOW = "offload.show"
SHOW_DIFF = "offload.showDiff"

_LONGEST_MESSAGE = 2000

Command = Callable[[Editor, Any], Awaitable[dict[str, Any]]]


def _operation(name: str) -> Command:
    async def run(editor: Editor, argument: Any) -> dict[str, Any]:
        return await requests.call(BY_NAME[name], editor, argument)

    return run


async def _apply(editor: Editor, argument: Any) -> dict[str, Any]:
    result = await _landed(editor, "apply_task", argument)
    editor.client.say(telling.applied(result))
    return result


async def _undo(editor: Editor, argument: Any) -> dict[str, Any]:
    result = await _landed(editor, "undo_apply", argument)
    editor.client.say(telling.undone(result, editor.delegation.get(TaskId(result["task_id"])).spec.title))
    return result


async def _answer(editor: Editor, argument: Any) -> dict[str, Any]:
    return await _landed(editor, "answer_task", argument)  # "allow" to a model that wants to apply does that


async def _landed(editor: Editor, operation: str, argument: Any) -> dict[str, Any]:
    """Where it conflicts with what the person has, both sides are shown."""
    try:
        return await requests.call(BY_NAME[operation], editor, argument)
    except ApplyRefused as refused:
        if refused.conflicts:
            await _show_text(editor, "conflicts.txt", telling.conflicts(refused.conflicts))
        raise


async def _integrate(editor: Editor, argument: Any) -> dict[str, Any]:
    status = await requests.call(BY_NAME["integrate_tasks"], editor, argument)
    editor.client.say(f"begun: {status['title']}")  # It is about no block, so that no mark shows it.
    return status


async def _show(editor: Editor, argument: Any) -> dict[str, Any]:
    status = await requests.call(BY_NAME["get_task_status"], editor, argument)
    said = [f"{status['title']} — {status['state']}", *status["checks"], *status["warnings"]]
    said.append(status["partial_text"] or status["next_step"])
    editor.client.say(". ".join(said)[:_LONGEST_MESSAGE])
    return status


async def _show_diff(editor: Editor, argument: Any) -> dict[str, Any]:
    changes = await requests.call(BY_NAME["get_changes"], editor, argument)
    await _show_text(editor, f"{changes['task_id']}.diff", changes["patch"])
    return changes


async def _show_text(editor: Editor, name: str, text: str) -> None:
    """As a document, or as a message where the editor shows none."""
    path = await editor.patches.write(name, text)
    if not await editor.client.show_document(path.as_uri()):
        editor.client.say(f"{path}\n{text}"[:_LONGEST_MESSAGE])


COMMANDS: dict[str, Command] = {
    START: _operation("start_task"),
    CONTINUE: _operation("continue_task"),
    RESUME: _operation("resume_task"),
    CANCEL: _operation("cancel_task"),
    ANSWER: _answer,
    APPLY: _apply,
    REJECT: _operation("reject_task"),
    UNDO: _undo,
    INTEGRATE: _integrate,
    CHECK: _operation("run_checks"),
    CLOSE: _operation("close_task"),
    SHOW: _show,
    SHOW_DIFF: _show_diff,
}


async def execute(command: Command, editor: Editor, argument: Any) -> dict[str, Any]:
    """Run a command; an error is also shown, since most editors drop the error answer of a command."""
    try:
        return await command(editor, argument)
    except OffloadError as error:
        editor.client.say(telling.refused(error), types.MessageType.Error)
        raise


def link(command: str, title: str, **argument: Any) -> types.Command:
    """A command with its argument, as actions and lenses carry it."""
    return types.Command(title, command, arguments=[argument])
