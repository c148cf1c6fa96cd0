"""Code lenses: a task's state beside its block, and what one can do with it in one click."""

from __future__ import annotations

from lsprotocol import types

from offload.domain.ask import AskKind
from offload.domain.task import Phase, Task
from offload.lsp import commands
from offload.lsp.editor import Editor
from offload.lsp.standing import standing


def code_lens(editor: Editor, params: types.CodeLensParams) -> list[types.CodeLens]:
    """The lenses of an open file; none where a client of ours draws the marks."""
    document = editor.documents.find(params.text_document.uri)
    if document is None or editor.client.draws_marks:
        return []
    lenses: list[types.CodeLens] = []
    for task, block, words in editor.marks.shown(document):
        line = types.Position(block.start_line, 0)
        links = [commands.link(commands.SHOW, words, task_id=task.id), *_links(task)]
        lenses.extend(types.CodeLens(types.Range(line, line), link) for link in links)
    return lenses


def _links(task: Task) -> list[types.Command]:
    links: list[types.Command] = []
    for ask in task.asks.values():
        if ask.kind is AskKind.PERMISSION:
            links += [
                commands.link(commands.ANSWER, choice, task_id=task.id, ask_id=ask.id, choice=choice)
                for choice in ask.choices
            ]
    if task.live and task.phase is not Phase.CANCELLING:
        links.append(commands.link(commands.CANCEL, "cancel", task_id=task.id))
    stands = standing(task)
    if stands is not None:
        if stands.left:
            links.append(commands.link(commands.APPLY, "apply", task_id=task.id))
        if stands.landings:
            links.append(commands.link(commands.UNDO, "undo", task_id=task.id))
        links.append(commands.link(commands.SHOW_DIFF, "diff", task_id=task.id))
    if not task.live:
        links.append(commands.link(commands.CLOSE, "close", task_id=task.id))
    return links
