"""The demo's live table: one row per block. Where no terminal is, each change is one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from offload.wire import words
from offload.wire.views import TaskState, TaskStatus

COLOURS = {TaskState.COMPLETED: "green", TaskState.FAILED: "red", TaskState.CANCELLED: "yellow"}


class Screen:
    """`show` may be called as often as there is something new."""

    def __init__(self, console: Console, blocks: Mapping[str, str]) -> None:
        self._console = console
        self._blocks = blocks
        self._said: dict[str, str] = {}
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Screen:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, tasks: Sequence[TaskStatus]) -> None:
        if self._live is not None:
            self._live.update(table(self._blocks, tasks), refresh=True)
            return
        for task in tasks:
            line = f"{self._blocks[task.task_id]}: {words.state(task)}: {words.doing(task, talk=False)}".rstrip(": ")
            if self._said.get(task.task_id) != line:
                self._said[task.task_id] = line
                self._console.print(Text(line), soft_wrap=True)


def table(blocks: Mapping[str, str], tasks: Sequence[TaskStatus]) -> Table:
    """Block, status, what it is doing, elapsed time, tokens."""
    rows = Table(box=None, pad_edge=False, header_style="bold", expand=True)
    rows.add_column("block", no_wrap=True)
    rows.add_column("status", no_wrap=True)
    rows.add_column("", ratio=1, no_wrap=True, overflow="ellipsis")
    rows.add_column("elapsed", justify="right", no_wrap=True)
    rows.add_column("tokens", justify="right", no_wrap=True)
    for task in tasks:
        rows.add_row(
            Text(blocks[task.task_id]),
            Text(words.state(task), style=COLOURS.get(task.state, "")),
            Text(words.doing(task)),
            words.seconds(task.elapsed_s),
            words.count(task.total_tokens),
        )
    return rows
