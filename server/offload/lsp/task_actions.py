"""What can be done with a task, as commands in the order in which one looks for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lsprotocol import types

from offload.domain.change import FileChange
from offload.domain.review import review
from offload.domain.task import Phase, Task
from offload.lsp import commands, titles
from offload.lsp.documents import OpenDocument
from offload.lsp.standing import near, newest_changes, standing


@dataclass(frozen=True, slots=True)
class Near:
    """The document's `file` in a task's result that changes lines at the cursor; of its `hunks` there those that are left."""

    file: FileChange
    hunks: tuple[str, ...]

    @classmethod
    def of(cls, task: Task, document: OpenDocument, first: int, last: int) -> Near | None:
        """Asked of every task whenever the cursor moves, so what costs least is looked at first."""
        root, changes = Path(task.spec.workspace), newest_changes(task)
        if changes is None or task.live or not document.path.is_relative_to(root):
            return None
        path = document.path.relative_to(root).as_posix()
        for file in changes.files:
            if file.path == path and (hunks := near(file, first, last)):
                states = review(task)
                return cls(file, tuple(hunk.id for hunk in hunks if hunk.id not in states))
        return None


def of_block(task: Task, here: Near | None, words: Sequence[str]) -> Iterator[types.Command]:
    """For a task about the block at the cursor: all that there is. `words` are those of comments there."""
    name = titles.short(task.spec.title)
    yield from _answers(task)
    if task.live:
        if task.phase is not Phase.CANCELLING:
            yield commands.link(commands.CANCEL, f"Cancel: {name}", task_id=task.id)
        return
    if here is not None:
        yield from _of_hunks(task, here, words)
    yield from _of_result(task)
    yield from _of_worker(task, words)
    yield commands.link(commands.CLOSE, f"Close: {name}", task_id=task.id)


def of_lines(task: Task, here: Near, words: Sequence[str]) -> Iterator[types.Command]:
    """For a task about something else, or about no place at all, whose result changes lines at the cursor."""
    yield from _answers(task)
    yield from _of_hunks(task, here, words)
    yield from _of_result(task)


def _answers(task: Task) -> Iterator[types.Command]:
    for ask in task.asks.values():
        for choice in ask.choices:
            title = f"Answer {choice}: {titles.short(f'{ask.subject}: {ask.detail}')}"
            yield commands.link(commands.ANSWER, title, task_id=task.id, ask_id=ask.id, choice=choice)


def _of_hunks(task: Task, here: Near, words: Sequence[str]) -> Iterator[types.Command]:
    if not here.hunks:
        return
    name = titles.short(task.spec.title)
    these = "this hunk" if len(here.hunks) == 1 else f"these {len(here.hunks)} hunks"
    some = {"task_id": task.id, "hunks": [*here.hunks]}
    yield commands.link(commands.APPLY, f"Apply {these}: {name}", **some)
    yield commands.link(commands.REJECT, f"Reject {these}: {name}", **some)
    if not task.spec.integrates:  # there is no worker to send it back to
        for text in words:
            title = f"Send {these} back “{titles.short(text)}”: {name}"
            yield commands.link(commands.REJECT, title, **some, reason=text, send_back=True)
    if len(here.file.units) > len(here.hunks):
        title = f"Apply {titles.short(here.file.path)} of {name}"
        yield commands.link(commands.APPLY, title, task_id=task.id, paths=[here.file.path])


def _of_result(task: Task) -> Iterator[types.Command]:
    stands = standing(task)
    if stands is None:
        return
    name = titles.short(task.spec.title)
    if stands.left:
        what = "the rest" if stands.states else titles.summary(replace(stands.changes, files=stands.left))
        yield commands.link(commands.APPLY, f"Apply {what}: {name}", task_id=task.id)
    if stands.outside:
        title = f"Apply what is outside of its paths too: {name}"
        yield commands.link(commands.APPLY, title, task_id=task.id, include_outside=True)
    if stands.landings:
        yield commands.link(commands.UNDO, f"Undo apply: {name}", task_id=task.id)
    yield commands.link(commands.SHOW_DIFF, f"Show the diff: {name}", task_id=task.id)


def _of_worker(task: Task, words: Sequence[str]) -> Iterator[types.Command]:
    name = titles.short(task.spec.title)
    stands = standing(task)
    if stands is not None and task.phase is Phase.READY and not task.closed:
        yield commands.link(commands.CHECK, f"Run the checks: {name}", task_id=task.id)
    for text in words:
        title = f"Send back “{titles.short(text)}”: {name}"
        yield commands.link(commands.CONTINUE, title, task_id=task.id, brief=text)
    if stands is not None and stands.left:
        title = f"{titles.UP_TO_DATE}: {name}"
        yield commands.link(commands.CONTINUE, title, task_id=task.id, onto="files")
    if task.phase is not Phase.READY:
        yield commands.link(commands.RESUME, f"Resume: {name}", task_id=task.id)
