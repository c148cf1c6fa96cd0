"""What the system says of a process: where it comes from, when it was started, whether it is on a terminal.

Read from /proc on Linux, because psutil's start times move when the clock is set, so that every process that was written down
would seem to be another one, and because it knows only those terminals that there were when it was asked first.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Facts:
    """`started` can be compared with each other's and with `moment`: on Linux, seconds since the machine's start. `ended` is one
    that waits for its parent to notice."""

    pid: int
    parent: int
    started: float
    on_terminal: bool
    ended: bool


class Begun(Protocol):
    """As much of a `psutil.Process` as is asked for what it was started with."""

    def environ(self) -> dict[str, str]: ...

    def cmdline(self) -> list[str]: ...


def moment() -> float:
    """Now, on the scale of `started`."""
    if psutil.LINUX:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time()  # pragma: no cover - not on Linux


def facts(pid: int) -> Facts | None:
    """None for a process that is gone."""
    try:
        return _read(pid) if psutil.LINUX else _ask(pid)
    except (OSError, psutil.Error):
        return None


def every() -> Iterator[Facts]:
    """All processes, whoever's they are."""
    for pid in psutil.pids():
        if (known := facts(pid)) is not None:
            yield known


def works_in(pid: int, folder: Path) -> bool:
    """Whether a process works in the folder, of which the real path is wanted, or below it. Of another user's nobody knows."""
    try:
        place = _place(pid)
    except (OSError, psutil.Error):
        return False
    return place == folder or folder in place.parents


def environment(pid: int) -> Mapping[str, str] | None:
    """What a process was started with; None for one of another user, or that is gone."""
    try:
        return settled(psutil.Process(pid))
    except (OSError, psutil.Error):
        return None


def settled(process: Begun, looks: int = 100) -> Mapping[str, str]:
    """The environment of a process that may just be taking a program's place: for a moment it seems to have neither environment
    nor command line, as if somebody had emptied both."""
    for _ in range(looks):
        if (known := process.environ()) or process.cmdline():
            return known
        time.sleep(0.001)  # the system tells nobody when a process has taken a program's place
    return {}


def command(pid: int) -> str:
    """The command line, or what there is in place of it."""
    try:
        process = psutil.Process(pid)
        return " ".join(process.cmdline()) or process.name()
    except (OSError, psutil.Error):
        return "?"


def _place(pid: int) -> Path:
    if psutil.LINUX:
        return Path(str(Path(f"/proc/{pid}/cwd").readlink()).removesuffix(" (deleted)"))
    return Path(psutil.Process(pid).cwd())  # pragma: no cover - not on Linux


def _read(pid: int) -> Facts:
    # What follows the name, which may hold anything.
    state, parent, _, _, terminal, *more = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return Facts(pid, int(parent), int(more[14]) / TICKS, terminal != b"0", state in b"ZX")


def _ask(pid: int) -> Facts:  # pragma: no cover - not on Linux
    process = psutil.Process(pid)
    ended = process.status() == psutil.STATUS_ZOMBIE
    return Facts(pid, process.ppid(), process.create_time(), process.terminal() is not None, ended)
