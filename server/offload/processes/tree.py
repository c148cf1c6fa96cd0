"""Processes by number and start time, and how a whole tree of them is ended.

A number alone is not enough: the system gives it to somebody else later. So a process is named by both, here and in what
is written down to find it again after a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import psutil

KILL_WAIT_S = 2.0
"""How long the system may take to end a process that was killed."""
LOOK_EVERY_S = 0.01
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Identity:
    """`started` is what `started` tells of it."""

    pid: int
    started: float


def started(pid: int) -> float:
    """When a process was started, 0.0 for one that is gone; to be compared with each other and with `moment`.

    On Linux in seconds since the machine's start: `psutil.Process.create_time` moves when the clock is set, and every process
    that was written down would seem to be another one. Elsewhere the system keeps the time of day as it was.
    """
    try:
        if psutil.LINUX:
            return int(_stat(pid)[19]) / TICKS
        return psutil.Process(pid).create_time()  # pragma: no cover - not on Linux
    except (OSError, psutil.NoSuchProcess):
        return 0.0


def moment() -> float:
    """Now, on the scale of `started`."""
    if psutil.LINUX:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.time()  # pragma: no cover - not on Linux


def on_terminal(pid: int) -> bool:
    """Whether a process has a terminal that it is controlled from. psutil knows only those that there were when it was asked
    first."""
    try:
        if psutil.LINUX:
            return int(_stat(pid)[4]) != 0
        return psutil.Process(pid).terminal() is not None  # pragma: no cover - not on Linux
    except (OSError, psutil.Error):
        return False


def _stat(pid: int) -> list[bytes]:
    """The fields of a process that follow its name, which may hold anything."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def identify(pid: int) -> Identity:
    return Identity(pid, started(pid))


def alive(identity: Identity) -> bool:
    """Whether the process still runs; one that has ended and waits for its parent to notice does not."""
    try:
        process = psutil.Process(identity.pid)
        return started(identity.pid) == identity.started and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def tree(identity: Identity) -> tuple[Identity, ...]:
    """The process, all that descend from it, and all of its session: a child whose parent has gone is found by that."""
    if not alive(identity):
        return ()
    found = {identity.pid: identity}
    parents: dict[int, list[Identity]] = {}
    for process in psutil.process_iter(["ppid"]):
        own = identify(process.pid)
        parents.setdefault(process.info["ppid"], []).append(own)
        if _session(own.pid) == identity.pid:
            found[own.pid] = own
    waiting = list(found)
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                waiting.append(child.pid)
    return tuple(found.values())


def below(folder: Path) -> tuple[Identity, ...]:
    """The processes that work in the folder or below it, wherever they come from: a worker's tool that left its group, its
    session and its parents is found by that. Those on a terminal are a person's, and our own children are ours."""
    found = []
    for process in psutil.process_iter(["cwd", "ppid"]):
        info = process.info
        if info["cwd"] and not on_terminal(process.pid) and os.getpid() not in (process.pid, info["ppid"]):
            place = Path(info["cwd"])
            if place == folder or folder in place.parents:
                found.append(identify(process.pid))
    return tuple(found)


async def stop_below(folder: Path, grace_s: float = 1.0) -> tuple[Identity, ...]:
    """End all that works in the folder or below it, with what it started; returns those that are still there."""
    found = await asyncio.to_thread(below, folder)
    return tuple(one for left in await asyncio.gather(*(stop(each, grace_s) for each in found)) for one in left)


def _session(pid: int) -> int:
    """The number of the session's leader, 0 when the process has gone while we looked."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


async def stop(identity: Identity, grace_s: float = 5.0) -> tuple[Identity, ...]:
    """End a process and its tree: ask, wait up to `grace_s`, kill, and look. Returns those that are still there."""
    wanted = set(await asyncio.to_thread(tree, identity))
    _signal(wanted, signal.SIGTERM)
    await _gone(wanted, grace_s)
    # What was started while we waited is found below those that are left.
    for survivor in [one for one in wanted if alive(one)]:
        wanted.update(await asyncio.to_thread(tree, survivor))
    _signal(wanted, signal.SIGKILL)
    await _gone(wanted, KILL_WAIT_S)
    return tuple(one for one in wanted if alive(one))


def _signal(wanted: Collection[Identity], number: signal.Signals) -> None:
    for one in wanted:
        if alive(one):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, number)


async def _gone(wanted: Collection[Identity], bound_s: float) -> None:
    """Look until all have ended or the time is over: the system tells us only about our own children."""
    end = asyncio.get_running_loop().time() + bound_s
    while any(alive(one) for one in wanted) and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 - see above
        await asyncio.sleep(LOOK_EVERY_S)
