"""`offload top` in a real terminal: a pty whose screen is read and whose keys are pressed."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pytest
from rich.console import Console

from offload.cli.exits import Exit
from offload.cli.top import Board
from tests.cli.test_program import PROGRAM
from tests.cli.test_words import status

BOUND_S = 30


class Screen:
    """What the program in the terminal has drawn since a key was pressed."""

    def __init__(self, environ, columns=160):
        self._outer, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.before = termios.tcgetattr(inner)
        self._inner = inner
        environ = {**environ, "TERM": "xterm", "PAGER": 'echo "pager: LESS=$LESS"; cat'}
        environ.pop("LESS", None)
        for name in ("COLUMNS", "LINES"):
            environ.pop(name, None)  # the terminal's own size counts
        command = [sys.executable, "-c", PROGRAM, "top"]
        self.process = subprocess.Popen(
            command, env=environ, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        self._drawn = ""

    def shows(self, pattern):
        """Waits until the pattern was drawn."""
        end = time.monotonic() + BOUND_S
        while not (found := re.search(pattern, self._plain())):
            ready, _, _ = select.select([self._outer], [], [], max(0, end - time.monotonic()))
            assert ready, f"{pattern!r} is not in {self._plain().split()[-200:]}"
            self._drawn += os.read(self._outer, 65536).decode(errors="replace")
        return found

    def press(self, keys):
        self._drawn = ""
        os.write(self._outer, keys.encode())

    def ended(self):
        """The exit code, with the terminal as it was before."""
        code = None
        end = time.monotonic() + BOUND_S
        while code is None:
            # The program cannot end while nobody reads what it draws.
            if select.select([self._outer], [], [], 0.05)[0]:
                os.read(self._outer, 65536)
            assert time.monotonic() < end
            code = self.process.poll()
        assert termios.tcgetattr(self._inner) == self.before
        return code

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._outer)
        os.close(self._inner)

    def _plain(self):
        return re.sub(r"\x1b[\[(][0-9;?]*[a-zA-Z]", "", self._drawn)


@pytest.fixture
def screen(terminal):
    screens = []

    def opened(**options):
        screens.append(Screen(terminal.environ, **options))
        return screens[-1]

    yield opened
    for each in screens:
        if each.process.poll() is None:
            each.press("q")
            each.ended()
        each.close()


@pytest.fixture(autouse=True)
def _nothing_left(terminal):
    """Each test sees its own tasks only."""
    yield
    for task in terminal.json("list-tasks")["tasks"]:
        terminal.run("cancel-task", task["task_id"])
        terminal.run("wait", task["task_id"])
        assert terminal.run("close-task", task["task_id"]).exit_code == Exit.OK


def test_without_a_terminal_the_tasks_are_printed_once(terminal, plain):
    task = terminal.start("::text hello", "--wait", "60")
    result = terminal.run("top")
    assert result.exit_code == Exit.OK
    assert f"{task} ready" in plain(result.stdout)


def test_changes_are_drawn_and_q_ends_it(terminal, screen):
    board = screen()
    board.shows("q quit")
    task = terminal.start("::text hello")
    board.shows(f"{task} +ready")
    board.press("q")
    assert board.ended() == Exit.OK


def test_the_selected_task_is_stopped_and_closed(terminal, screen):
    older, newer = terminal.start("::gate one"), terminal.start("::gate two")
    board = screen()
    board.shows(f"{older} +working")
    board.press("j")
    board.shows(older)
    board.press("s")
    stopped = board.shows(f"{older} +cancelled[^$]*?q quit")
    assert "stopping" not in stopped[0], "it has stopped"
    assert terminal.json("task-status", newer)["phase"] == "working"
    board.press("c")
    board.shows("\\nclosed ")
    board.press("\x1b[Ac")
    board.shows(f"task {newer} is working; it can be closed when it is over")
    assert terminal.json("task-status", newer)["phase"] == "working", "a live task cannot be closed"
    board.press("q")
    assert board.ended() == Exit.OK


class SlowHub:
    """A hub whose one task stays in `phase` whatever is asked of it."""

    def __init__(self):
        self.phase = "working"

    def call(self, method, params):
        if method == "list_tasks":
            return {"tasks": [status(phase=self.phase).model_dump(mode="json")], "left_out": 0}
        return status(phase=self.phase).model_dump(mode="json")


def test_a_stop_is_told_until_the_task_has_stopped():
    def drawn():
        screen = Console(width=160)
        board.refresh()
        with screen.capture() as captured:
            screen.print(board.picture())
        return captured.get()

    hub = SlowHub()
    board = Board(hub, "")
    assert "stopping" not in drawn()
    board.press("s", open_patch=pytest.fail)
    hub.phase = "cancelling"
    assert "stopping" in drawn()
    hub.phase = "cancelled"
    assert "stopping" not in drawn()


def test_in_a_narrow_terminal_the_titles_can_be_read(terminal, screen):
    task = terminal.start("::text " + "word " * 3, "--wait", "60")
    screen(columns=60).shows(f"{task} +ready.*::text word word")


def test_a_permission_is_answered(terminal, screen):
    task = terminal.start("::shell make everything")
    board = screen()
    board.shows(f"{task} +waits for you")
    board.press("a")
    board.shows("bash: make everything +y allow +n deny")
    board.press("x")
    board.shows("q quit")
    assert terminal.json("task-status", task)["asks"], "another key answers nothing"
    board.press("a")
    board.shows("y allow")
    board.press("y")
    board.shows("answered: allow")
    terminal.run("wait", task)
    assert terminal.json("task-result", task)["text"] == "make everything"


def test_a_question_is_answered_by_its_number(terminal, screen):
    task = terminal.start("::question which one")
    board = screen()
    board.shows(f"{task} +waits for you")
    board.press("a")
    board.shows("Colour: which one +1 Red +2 Blue")
    board.press("2")
    board.shows("answered: Blue")
    terminal.run("wait", task)
    assert terminal.json("task-result", task)["text"] == "Blue"


def test_a_patch_is_opened_and_the_board_is_back_afterwards(terminal, screen):
    task = terminal.start("::write new.txt hello", "--wait", "60")
    board = screen()
    board.shows(f"{task} +ready")
    board.press("o")
    board.shows("pager: LESS=R")
    board.shows(r"\+hello")
    board.shows(f"{task} +ready")


def test_what_cannot_be_done_is_told(terminal, screen):
    task = terminal.start("::text hello", "--wait", "60")
    board = screen()
    board.shows(f"{task} +ready")
    board.press("a")
    board.shows("this task asks nothing")
    board.press("o")
    board.shows("changed nothing")
    board.press("s")
    board.shows("this task is over already")
    board.press("?")
    board.shows("q quit")


def test_ctrl_c_gives_the_terminal_back(terminal, screen):
    board = screen()
    board.shows("q quit")
    board.press("x")
    board.shows("q quit")
    os.killpg(board.process.pid, 2)
    assert board.ended() == Exit.INTERRUPTED
