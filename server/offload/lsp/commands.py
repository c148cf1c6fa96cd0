"""The commands behind code actions and lenses. Each takes one JSON object, the params of its operation, and answers at once:
an editor may freeze until `workspace/executeCommand` is answered, so long work belongs to core."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types

from offload.domain.errors import OffloadError
from offload.lsp import requests
from offload.lsp.editor import Editor
from offload.wire.operations import BY_NAME

START = "offload.start"
CONTINUE = "offload.continue"
RESUME = "offload.resume"
CANCEL = "offload.cancel"
ANSWER = "offload.answer"
APPLY = "offload.apply"
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
    result = await requests.call(BY_NAME["apply_task"], editor, argument)
    editor.client.say(f"written to disk: {', '.join(result['paths'])}")
    return result


async def _show(editor: Editor, argument: Any) -> dict[str, Any]:
    status = await requests.call(BY_NAME["get_task_status"], editor, argument)
    said = status["partial_text"] or status["next_step"]
    editor.client.say(f"{status['title']} — {status['state']}. {said}"[:_LONGEST_MESSAGE])
    return status


async def _show_diff(editor: Editor, argument: Any) -> dict[str, Any]:
    changes = await requests.call(BY_NAME["get_changes"], editor, argument)
    patch: str = changes["patch"]
    path = await editor.patches.write(f"{changes['task_id']}.diff", patch)
    if not await editor.client.show_document(path.as_uri()):
        editor.client.say(f"{path}\n{patch}"[:_LONGEST_MESSAGE])
    return changes


COMMANDS: dict[str, Command] = {
    START: _operation("start_task"),
    CONTINUE: _operation("continue_task"),
    RESUME: _operation("resume_task"),
    CANCEL: _operation("cancel_task"),
    ANSWER: _operation("answer_task"),
    APPLY: _apply,
    CLOSE: _operation("close_task"),
    SHOW: _show,
    SHOW_DIFF: _show_diff,
}


async def execute(command: Command, editor: Editor, argument: Any) -> dict[str, Any]:
    """Run a command; an error is also shown, since most editors drop the error answer of a command."""
    try:
        return await command(editor, argument)
    except OffloadError as error:
        editor.client.say(str(error), types.MessageType.Error)
        raise


def link(command: str, title: str, **argument: Any) -> types.Command:
    """A command with its argument, as actions and lenses carry it."""
    return types.Command(title, command, arguments=[argument])
