"""Ids of tasks, turns and what else is named: sortable by time, safe in a file name, an argument and a message id."""

from __future__ import annotations

import itertools
import secrets
import string

from offload.domain.task import TaskId
from offload.domain.turn import TurnId

_LETTERS = string.digits + string.ascii_lowercase
_WORKER_LETTERS = string.digits + string.ascii_letters
_counter = itertools.count(1)


def new_task_id() -> TaskId:
    """Eight letters and digits, the first a letter: short enough to be typed, and never taken for an option."""
    first = secrets.choice(string.ascii_lowercase)
    return TaskId(first + "".join(secrets.choice(_LETTERS) for _ in range(7)))


def new_id(kind: str) -> str:
    """Names a part of a task: `KIND_`, then ten letters and digits."""
    return f"{kind}_" + "".join(secrets.choice(_LETTERS) for _ in range(10))


def new_turn_id(now: float) -> TurnId:
    """`turn_`, then 12 hex digits (milliseconds * 4096 + a counter) and 14 letters or digits: the form of OpenCode's own
    message ids, which sort by time."""
    stamp = (int(now * 1000) * 4096 + next(_counter) % 4096) & 0xFFFFFFFFFFFF
    return TurnId(f"turn_{stamp:012x}" + "".join(secrets.choice(_WORKER_LETTERS) for _ in range(14)))
