"""Keeps what is typed while the demo shows something from being drawn into it, and from answering a question that comes later."""

from __future__ import annotations

import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager

LOCAL_FLAGS = 3


@contextmanager
def unheard() -> Iterator[None]:
    """Keys are not shown meanwhile; Ctrl-C still is Ctrl-C. Without a terminal nothing is typed."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    silent = [*before]
    silent[LOCAL_FLAGS] &= ~(termios.ECHO | termios.ECHONL)
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)


def forget() -> None:
    """What was typed before now answers nothing."""
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
