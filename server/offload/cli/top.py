"""`offload top`: all tasks in one live table, with keys to stop, close, answer and open the selected one."""

from __future__ import annotations

import os
import re
import select
import shutil
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from offload.cli.calling import Connect, Hub, show
from offload.cli.exits import Exit
from offload.cli.output import console
from offload.cli.render import as_commands, patch, task_table
from offload.domain.ask import ALLOW, DENY, AskKind
from offload.domain.errors import OffloadError
from offload.domain.task import RESTING
from offload.wire import words
from offload.wire.results import ListTasksResult
from offload.wire.views import AskView, TaskStatus

NARROW = 80  # columns, below which titles would be cut to a word
REFRESH_S = 1.0  # elapsed times go on without any change
STOPPING = "stopping"  # said until the task has stopped
KEYS = "up/down select   s stop   c close   a answer   o open   q quit"
KEY = re.compile(r"\x1b[\[O][A-Z]|.", re.DOTALL)  # several may come together
ESCAPES = {"\x1b[A": "up", "\x1bOA": "up", "k": "up", "\x1b[B": "down", "\x1bOB": "down", "j": "down"}


def top(connect: Connect, workspace: str) -> int:
    """Shows the board until q is pressed; without a terminal prints it once."""
    with connect() as hub:
        board = Board(hub, workspace)
        board.refresh()
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            show(board.listed)
            return Exit.OK
        with connect() as watcher:
            _run(board, watcher)
    return Exit.OK


def _run(board: Board, watcher: Hub) -> None:
    changes = watcher.watch()
    stdin = sys.stdin.fileno()
    screen = console()
    with _keys(stdin), Live(board.picture(), console=screen, screen=True, auto_refresh=False) as live:
        while not board.over:
            ready, _, _ = select.select([stdin, watcher], [], [], REFRESH_S)
            if watcher in ready:
                next(changes)  # only a sign that something is new: the list tells what
            if stdin in ready:
                for key in KEY.findall(os.read(stdin, 64).decode(errors="replace")):
                    board.press(key, lambda text: _open(live, text))
            board.refresh()
            live.update(board.picture(), refresh=True)


@contextmanager
def _keys(stdin: int) -> Iterator[None]:
    """Each key arrives at once and is not shown; Ctrl-C still is Ctrl-C."""
    before = termios.tcgetattr(stdin)
    tty.setcbreak(stdin)
    try:
        yield
    finally:
        termios.tcsetattr(stdin, termios.TCSADRAIN, before)


def _open(live: Live, text: str) -> None:
    """The patch in the person's pager; the board is back afterwards. A `less` that is told nothing would show colours as codes."""
    os.environ.setdefault("LESS", "R")
    live.stop()
    with live.console.pager(styles=True):
        live.console.print(patch(text))
    live.start()


class Board:
    """What is shown and what a key does. `over` is true once q was pressed."""

    def __init__(self, hub: Hub, workspace: str) -> None:
        self._hub = hub
        self._workspace = workspace
        self._selected = ""
        self._asked: AskView | None = None
        self._said = ""
        self._stopping = ""
        self.listed = ListTasksResult(tasks=[], left_out=0)
        self.over = False

    def refresh(self) -> None:
        """Fetch the list; the selection stays on its task, or goes to the newest."""
        answer = self._hub.call("list_tasks", {"workspace": self._workspace})
        self.listed = ListTasksResult.model_validate(answer)
        ids = [task.task_id for task in self.listed.tasks]
        if self._stopping not in (task.task_id for task in self.listed.tasks if task.phase not in RESTING):
            self._said = "" if self._said == STOPPING else self._said
        if self._selected not in ids:
            self._selected = next(iter(ids), "")

    def picture(self) -> Group:
        """The table, with the selected row marked, and a line of help or of what a key did."""
        narrow = shutil.get_terminal_size().columns < NARROW
        table = task_table(self.listed.tasks, selected=self._selected, narrow=narrow)
        table.expand = True
        return Group(table, Text(), Text(self._said, style="bold"), Text(KEYS, style="dim"))

    def press(self, key: str, open_patch: Callable[[str], None]) -> None:
        """What the key stands for, done at once; an error is shown."""
        self._said = ""
        task = next((task for task in self.listed.tasks if task.task_id == self._selected), None)
        if self._asked is not None:
            self._answer(self._asked, key)
        elif key == "q":
            self.over = True
        elif task is not None:
            self._act(ESCAPES.get(key, key), task, open_patch)

    def _act(self, name: str, task: TaskStatus, open_patch: Callable[[str], None]) -> None:
        match name:
            case "up" | "down":
                self._move(-1 if name == "up" else 1)
            case "s" if task.phase in RESTING:
                self._said = "this task is over already"
            case "s":
                self._stopping = task.task_id
                self._call("cancel_task", STOPPING)
            case "c":
                self._call("close_task", "closed")
            case "a" if task.asks:
                self._asked = task.asks[0]
                self._said = _question(self._asked)
            case "a":
                self._said = "this task asks nothing"
            case "o":
                answer = self._call("get_changes", "this task has changed nothing")
                if answer.get("patch"):
                    self._said = ""
                    open_patch(answer["patch"])
            case _:  # a key without meaning
                pass

    def _move(self, by: int) -> None:
        ids = [task.task_id for task in self.listed.tasks]
        self._selected = ids[max(0, min(len(ids) - 1, ids.index(self._selected) + by))]

    def _answer(self, ask: AskView, key: str) -> None:
        """The key after `a`: one of the question's line; any other key answers nothing."""
        self._asked = None
        choice = _choices(ask).get(key)
        if choice is not None:
            self._call("answer_task", f"answered: {choice}", ask_id=ask.ask_id, choice=choice)

    def _call(self, method: str, done: str, **more: Any) -> dict[str, Any]:
        """The answer, empty when the hub refused; what is said is `done` or the reason."""
        answer: dict[str, Any] = {}
        try:
            answer = self._hub.call(method, {"task_id": self._selected, **more})
        except OffloadError as error:
            done = as_commands(str(error), self._selected)
        self._said = words.one_line(done)
        return answer


def _choices(ask: AskView) -> dict[str, str]:
    """The keys that answer it."""
    if ask.kind is AskKind.PERMISSION:
        return {"y": ALLOW, "n": DENY}
    return {str(number): choice for number, choice in enumerate(ask.choices[:9], 1)}


def _question(ask: AskView) -> str:
    offered = "   ".join(f"{key} {choice}" for key, choice in _choices(ask).items())
    return words.one_line(f"{ask.subject}: {ask.detail}   {offered}   (another key: not now)")
