"""How a result looks to a person. Names of operations in the hub's advice become commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from rich.console import RenderableType
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from offload.domain.check import Checked
from offload.domain.review import ReviewState
from offload.domain.task import Phase, Place
from offload.wire import words
from offload.wire.operations import OPERATIONS
from offload.wire.results import (
    ApplyTaskResult,
    CleanedTask,
    CleanTasksResult,
    GetChangesResult,
    ListAgentsResult,
    ListTasksResult,
    TaskListView,
    TaskResult,
    TrustWorkspaceResult,
    UndoApplyResult,
    WaitForTasksResult,
)
from offload.wire.views import (
    AppliedFileView,
    AskView,
    ChangesView,
    CheckView,
    TaskStatus,
    TaskView,
    UsageView,
    View,
    WorkerView,
)

COMMANDS = {operation.name: operation.command for operation in OPERATIONS}
OF_ONE_TASK = frozenset(
    operation.name for operation in OPERATIONS if {"task_id", "task_ids"} & operation.params.model_fields.keys()
) - {"clean_tasks", "integrate_tasks"}  # an integration is not made of itself
CHECKED = {
    Checked.NOT_CHECKED: "not checked",
    Checked.PASSED: "checked",
    Checked.FAILED: "checks fail",
}
COLOURS = {
    "ready": "green",
    "failed": "red",
    "interrupted": "red",
    "cancelled": "yellow",
    "waits for you": "bold yellow",
}


def rendered(view: View) -> Iterator[RenderableType]:
    """The parts of a result, to be printed one after another."""
    return RENDERERS[type(view)](view)


def as_commands(text: str, task_id: str = "", named: Sequence[str] = ()) -> str:
    """Advice that names operations, in the words of the command line: with the id, as one would type it. `named` are ids that
    the advice itself may name."""

    def command(found: re.Match[str]) -> str:
        ids = found[2] or (f" {task_id}" if task_id and found[1] in OF_ONE_TASK else "")
        onto = f" --onto {found[3]}" if found[3] else ""
        return f"`offload {COMMANDS[found[1]]}{ids}{onto}`"

    known = "|".join(named) or "(?!)"
    told = re.sub(rf"\b({'|'.join(COMMANDS)})\b((?: (?:{known})\b)*)(?:(?: with)? onto=(\w+))?", command, text)
    return re.sub(r"\binclude_outside\b", "`--include-outside`", told)


def task_table(tasks: Sequence[TaskStatus], selected: str = "", *, narrow: bool = False) -> Table:
    """One row per task; the one with the id `selected` stands out. A `narrow` one has titles, but not what is done now."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("task", "state", "time", "tokens"):
        table.add_column(heading, no_wrap=True, justify="right" if heading in {"time", "tokens"} else "left")
    # Where a table is as wide as the terminal these two share what is left: an id that is cut could not be typed.
    table.add_column("title", ratio=2, no_wrap=True, overflow="ellipsis")
    if not narrow:
        table.add_column("", ratio=3, no_wrap=True, overflow="ellipsis")
    several = len({task.workspace for task in tasks}) > 1
    for task in tasks:
        begun = task.phase is not Phase.QUEUED or task.elapsed_s
        place = "/".join(filter(None, (PurePath(task.workspace).name if several else "", task.path)))
        row = (
            task.task_id,
            _coloured(words.state(task)),
            words.seconds(task.elapsed_s) if begun else "",
            words.count(task.total_tokens),
            Text(words.one_line(", ".join(filter(None, (task.title, place))))),
            Text(", ".join(filter(None, (words.doing(task), _standing(task))))),
        )
        table.add_row(*row[: len(table.columns)], style="reverse" if task.task_id == selected else "")
    return table


def _standing(task: TaskStatus) -> str:
    """What is known of a result that is there, and whether anything of it waits to be decided on."""
    if task.phase is not Phase.READY or not task.files_changed:
        return ""
    return f"{CHECKED[task.checked]}{', reviewed' if task.hunks_pending == 0 else ''}"


def _coloured(state: str) -> Text:
    return Text(state, style=COLOURS.get(state, ""))


def _status(task: TaskStatus) -> Iterator[RenderableType]:
    yield Text.assemble((task.task_id, "bold"), "  ", _coloured(words.state(task)), "  ", words.one_line(task.title))
    used = f"{words.seconds(task.elapsed_s)}, {_tokens(task.total_tokens, task.cost)}"
    yield Text(f"  {used}  {words.doing(task)}".rstrip())
    for ask in task.asks:
        yield Text(f"  asks {ask.ask_id}: {words.one_line(ask.subject)}: {words.one_line(ask.detail)}")
        yield Text(f"  answer with {_answers(task.task_id, ask)}")
    for line in (*task.checks, *task.warnings):
        yield Text(f"  {words.one_line(line)}")
    if task.next_step:
        yield Text(f"  {as_commands(task.next_step, task.task_id)}")


def _answers(task_id: str, ask: AskView) -> str:
    """A command for each choice, each as a shell takes it: "allow|deny" would be a pipe, and choices hold blanks."""
    choices = [shlex.quote(words.one_line(choice)) for choice in ask.choices] or ["WORDS"]
    return " or ".join(f"`offload answer-task {task_id} {choice}`" for choice in choices)


def _result(result: TaskResult) -> Iterator[RenderableType]:
    yield Text.assemble((result.task_id, "bold"), "  ", _coloured(result.phase.value))
    if result.text and result.integration is not None:  # That is our own report, no worker's words.
        named = (result.task_id, *result.integration.task_ids)
        yield Text(words.harmless(as_commands(result.text, named=named)))
    elif result.text:
        yield Text(words.harmless(result.text))
    if result.next_text_offset is not None:
        yield Text(f"[the text goes on: --text-offset {result.next_text_offset}]")
    if result.failure is not None:
        yield Text(f"failed: {words.harmless(result.failure.message)}", style="red")
    if result.needs_review:
        yield Text(f"needs a look: {words.harmless(result.needs_review)}", style="yellow")
    if result.changes is not None:
        yield changes_table(result.changes)
        yield from _checks(result.checked, result.checks)
    yield Text(_usage(result.usage))
    if result.next_step:
        yield Text(as_commands(result.next_step, result.task_id))


def changes_table(changes: ChangesView) -> Table:
    """Files with the lines that were added and removed, and what has become of them; those out of the task's scope last."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for file in sorted(changes.files, key=lambda file: file.outside):
        lines = "binary" if file.binary else f"+{file.added_lines} -{file.removed_lines}"
        path = f"{file.old_path} → {file.path}" if file.old_path else file.path
        state = "" if file.state is ReviewState.PENDING else file.state.value
        note = ", ".join(filter(None, (state, "outside of its allowed paths" if file.outside else "")))
        table.add_row(file.status.value, Text(words.harmless(path)), lines, note)
    if changes.files_left_out:
        table.add_row("", f"{changes.files_left_out} more files", "", "")
    table.add_row("", "all", f"+{changes.added_lines} -{changes.removed_lines}", "")
    for path in changes.claimed_only:
        table.add_row("no change", Text(words.harmless(path)), "", "though the worker says it wrote it")
    return table


def _checks(checked: Checked, checks: Sequence[CheckView]) -> Iterator[RenderableType]:
    """Each check in a few words; of one that failed also what it printed last."""
    if checked is Checked.NOT_CHECKED:
        yield Text("not checked")
    for check in checks:
        yield Text(words.one_line(check.told), style="" if check.passed else "red")
        if not check.passed and check.tail:
            yield Text(words.harmless(check.tail))


def _task(task: TaskView) -> Iterator[RenderableType]:
    yield Text.assemble((task.task_id, "bold"), "  ", _coloured(task.phase.value), "  ", words.one_line(task.title))
    place = f"{task.anchor.path}:{task.anchor.first_line} {task.anchor.symbol}" if task.anchor else "no block"
    yield Text(f"  {words.one_line(task.workspace)}, {words.one_line(place)}, recipe {task.recipe}")
    for note in (*task.notes, *task.warnings):
        yield Text(f"  note: {words.one_line(note)}")
    for turn in task.turns:
        yield Text(f"\n> {words.harmless(turn.brief)}", style="bold")
        if turn.text:
            yield Text(words.harmless(turn.text))
        if turn.failure is not None:
            yield Text(f"failed: {words.harmless(turn.failure.message)}", style="red")
        if turn.changes is not None:
            yield changes_table(turn.changes)
            yield from _checks(turn.checked, turn.checks)
        yield Text(_usage(turn.usage))
    if task.live_text:
        yield Text(words.harmless(task.live_text))
    for landing in task.landings:
        undone = "" if landing.undone_at is None else ", and undone"
        yield Text(f"applied ({landing.apply_id}{undone}): {', '.join(map(words.one_line, landing.paths))}")


def _whole_tasks(result: TaskListView) -> Iterator[RenderableType]:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("task", "phase", "workspace", "title"):
        table.add_column(
            heading, ratio=1 if heading in {"workspace", "title"} else None, no_wrap=True, overflow="ellipsis"
        )
    for task in result.tasks:
        workspace, title = words.one_line(task.workspace), words.one_line(task.title)
        table.add_row(task.task_id, _coloured(task.phase.value), Text(workspace), Text(title))
    yield table


def _tasks(result: ListTasksResult) -> Iterator[RenderableType]:
    yield task_table(result.tasks)
    if result.left_out:
        yield Text(f"{result.left_out} more; --limit shows them")


def _waited(result: WaitForTasksResult) -> Iterator[RenderableType]:
    yield task_table(result.tasks)
    if not result.done:
        yield Text("not all of this is over yet")


def patch(text: str, *, word_wrap: bool = False) -> Syntax:
    """In the terminal's own colours: what is neither added nor removed has that of all its text, on light and dark ground."""
    return Syntax(words.harmless(text), "diff", theme="ansi_dark", background_color="default", word_wrap=word_wrap)


def _diff(result: GetChangesResult) -> Iterator[RenderableType]:
    yield patch(result.patch, word_wrap=True)
    table = Table(box=None, pad_edge=False, show_header=False)
    for file in result.changes.files:
        path = Text(words.harmless(file.path))
        for hunk in file.hunks:
            table.add_row(
                hunk.hunk_id, path, f"lines {hunk.new_start}-{hunk.new_start + max(hunk.new_lines - 1, 0)}", hunk.state
            )
        if not file.hunks:
            table.add_row(file.file_id, path, "", file.state)
    yield table
    yield Text(f"`offload apply {result.task_id} --hunk ID` takes one of these, `offload reject` refuses it")


def _applied(result: ApplyTaskResult) -> Iterator[RenderableType]:
    yield from _files(result.files)
    if not result.files:
        yield Text("nothing was left to be written")
    if result.needs_review:
        yield Text(words.one_line(f"needs a look: {result.needs_review}"), style="yellow")
    if result.hunks_pending:
        waits = "hunk waits" if result.hunks_pending == 1 else "hunks wait"
        yield Text(f"{result.hunks_pending} more {waits}: `offload diff {result.task_id}` shows what")
    if not all(file.unchanged for file in result.files):
        yield Text(f"`offload undo {result.task_id} --apply {result.apply_id}` takes it back")


def _undone(result: UndoApplyResult) -> Iterator[RenderableType]:
    yield from _files(result.files, unchanged="as it was already")
    yield Text(f"taken back: {result.apply_id}")


def _files(files: Sequence[AppliedFileView], unchanged: str = "there already") -> Iterator[RenderableType]:
    places = {Place.BUFFER: "in the editor, not saved", Place.DISK: "written"}
    for file in files:
        done = "removed" if file.removed else places[file.place]
        yield Text(f"{unchanged if file.unchanged else done}: {words.harmless(file.path)}")


def _trust(result: TrustWorkspaceResult) -> Iterator[RenderableType]:
    yield Text(f"{words.one_line(result.workspace)}: {'trusted' if result.trusted else 'not trusted'}", style="bold")
    commands = [("setup", result.setup), ("format", result.format), *(("check", command) for command in result.checks)]
    for what, command in commands:
        if command:
            # Line by line, as the shell reads it: on one line what comes after a comment would look like a part of it.
            yield Text(f"  {what}: " + words.harmless(command).rstrip("\n").replace("\n", "\n    "))
    for what, patterns in (("carry", result.carry), ("never send", result.never_send)):
        if patterns:
            yield Text(f"  {what}: {words.one_line(', '.join(patterns))}")
    if result.note:
        yield Text(f"  {words.one_line(result.note)}")


def _cleaned(result: CleanTasksResult) -> Iterator[RenderableType]:
    yield from _looked("would be removed" if result.dry_run else "removed", result.removed)
    yield from _looked("kept", result.kept)
    if result.left_over_bytes:
        yield Text(f"left over by workers: {words.size(result.left_over_bytes)}")
    if result.younger:
        yield Text(f"{result.younger} younger tasks were not looked at")
    if result.kept:
        yield Text("`offload clean TASK --include-unaccepted` removes what was never applied")


def _looked(heading: str, tasks: Sequence[CleanedTask]) -> Iterator[RenderableType]:
    yield Text(f"{heading}: {len(tasks)}", style="bold")
    table = Table(box=None, pad_edge=False, show_header=False)
    for column, ratio in (("task", None), ("phase", None), ("size", None), ("title", 2), ("note", 3)):
        table.add_column(column, no_wrap=True, ratio=ratio, overflow="ellipsis")
    for task in tasks:
        texts = Text(words.one_line(task.title)), Text(words.one_line(task.note))
        table.add_row(task.task_id, _coloured(task.phase.value), words.size(task.size_bytes), *texts)
    yield table


def _agents(result: ListAgentsResult) -> Iterator[RenderableType]:
    for worker in result.workers:
        yield from _worker(worker, is_default=worker.name == result.default_worker)
    yield Text("recipes: " + ", ".join(f"{recipe.name} ({recipe.title})" for recipe in result.recipes))


def _worker(worker: WorkerView, *, is_default: bool) -> Iterator[RenderableType]:
    yield Text.assemble((worker.name, "bold"), f" {worker.version}", " (default)" if is_default else "")
    if worker.problem:
        yield Text(f"  {words.one_line(worker.problem)}", style="red")
    if worker.note:
        yield Text(f"  {words.one_line(worker.note)}", style="yellow")
    for agent in worker.agents:
        yield Text(f"  agent {words.one_line(agent.name)}  {words.one_line(agent.description)}".rstrip())
    for model in worker.models:
        price = (
            f"  ${model.input_price:g} in, ${model.output_price:g} out per million tokens"
            if model.input_price is not None
            else ""
        )
        variants = f"  variants: {', '.join(model.variants)}" if model.variants else ""
        default = "  (default)" if model.id == worker.default_model else ""
        yield Text(words.harmless(f"  model {model.id}{default}{price}{variants}"))
    if worker.models_left_out:
        yield Text(f"  {worker.models_left_out} more models; narrow it with --search")


def _usage(usage: UsageView) -> str:
    return f"{_tokens(usage.total_tokens, usage.cost)} ({usage.input_tokens} in, {usage.output_tokens} out)"


def _tokens(total: int, cost: float | None) -> str:
    return f"{words.count(total)} tokens" + ("" if cost is None else f", ${cost:.4f}")


RENDERERS: Mapping[type[View], Callable[[Any], Iterator[RenderableType]]] = {
    ApplyTaskResult: _applied,
    CleanTasksResult: _cleaned,
    GetChangesResult: _diff,
    ListAgentsResult: _agents,
    ListTasksResult: _tasks,
    TaskListView: _whole_tasks,
    TaskResult: _result,
    TaskStatus: _status,
    TaskView: _task,
    TrustWorkspaceResult: _trust,
    UndoApplyResult: _undone,
    WaitForTasksResult: _waited,
}
