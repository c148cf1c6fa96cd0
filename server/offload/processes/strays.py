"""Finds what a worker's tools have left running, whatever it did to get away, and ends it.

A process is a tool's if it works in or below the task's folder and comes from a worker: it descends from a worker's server, or
carries the worker's marker in its environment, which children inherit, or its environment was emptied (no HOME) and it has no
terminal. One that works elsewhere is a tool's if it comes from this worker and `claims` says so of its start. What descends from
those is as well. What a server runs for itself (language servers, say) is in the server's own process group and stays.

So a person's shell or editor in the folder is left alone. What escapes: a process that clears the marker, keeps a HOME, leaves its
parents, and so is like a person's; and one of another user, whose folder and environment cannot be read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from offload.processes.tree import KILL_WAIT_S, LOOK_EVERY_S, Identity, alive, identify, on_terminal, started

MARKER = "OFFLOAD_WORKER"
"""The variable that says which worker's server a process comes from."""
GRACE_S = 2.0
KILLS = 2

UNKNOWN = {"HOME": ""}

Send = Callable[[int, int], None]
T = TypeVar("T")


def nobody(_: float) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose tools are meant: those of a task that works in `folder`, by the worker's `server` that gives `marker` to what it
    starts. `claims` says of a start time whether the task alone can have been the reason; `servers` are all that run."""

    folder: Path
    servers: tuple[Identity, ...] = ()
    server: Identity | None = None
    marker: str = ""
    claims: Callable[[float], bool] = nobody


@dataclass(frozen=True, slots=True)
class Stray:
    """`root` is true unless its parent is a stray as well."""

    identity: Identity
    command: str
    root: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """`survivors` could not be ended."""

    gone: tuple[Stray, ...] = ()
    survivors: tuple[Stray, ...] = ()


def strays(origin: Origin) -> tuple[Stray, ...]:
    """Reads every process's facts: not for the event loop's thread."""
    table, folder = _Table(), origin.folder.resolve()
    found = {pid for pid in table.parents if table.is_stray(pid, origin, folder)}
    found |= {pid for pid in table.parents if not found.isdisjoint(table.above(pid))}
    every = (table.stray(pid, root=table.parents[pid] not in found) for pid in sorted(found))
    return tuple(stray for stray in every if alive(stray.identity))


async def end_strays(
    origin: Origin, grace_s: float = GRACE_S, send: Send = os.kill, wait_s: float = KILL_WAIT_S
) -> Ended:
    """Ask them to end, kill those that do not within `grace_s`, and look again, since they may have started others."""
    met: dict[Identity, Stray] = {}

    async def look() -> list[Stray]:
        met.update(
            (stray.identity, stray) for stray in await asyncio.to_thread(strays, origin) if stray.identity not in met
        )
        return [stray for identity, stray in met.items() if alive(identity)]

    left = await look()
    if left:
        _signal(left, (signal.SIGTERM,), send)
        await _gone(left, grace_s)
        left = await look()
    for _ in range(KILLS):
        if left:
            # Stopped first, so that none starts another between the look and its own end.
            _signal(left, (signal.SIGSTOP, signal.SIGKILL), send)
            await _gone(left, wait_s)
            left = await look()
    return Ended(tuple(stray for stray in met.values() if stray not in left), tuple(left))


class _Table:
    """Every process at one moment, by number, and those that are ours: this one, what it descends from and what it runs."""

    def __init__(self) -> None:
        self._processes: dict[int, psutil.Process] = {}
        self.parents: dict[int, int] = {}
        for process in psutil.process_iter(["ppid"]):
            self._processes[process.pid] = process
            self.parents[process.pid] = process.info["ppid"]
        self._ours = {os.getpid(), *self.above(os.getpid())}

    def above(self, pid: int) -> Iterator[int]:
        """The numbers of what a process descends from, nearest first."""
        seen = {pid}
        while (pid := self.parents.get(pid, 0)) and pid not in seen:
            seen.add(pid)
            yield pid

    def stray(self, pid: int, *, root: bool) -> Stray:
        process = self._processes[pid]
        command = " ".join(_fact(process.cmdline, [])) or _fact(process.name, "?")
        return Stray(identify(pid), command, root)

    def is_stray(self, pid: int, origin: Origin, folder: Path) -> bool:
        servers = {server.pid for server in origin.servers if alive(server)}
        if pid in self._ours or pid in servers:
            return False
        line = [pid, *self.above(pid)]
        server = next((one for one in line if one in servers), 0)
        if server and _group(line[line.index(server) - 1]) == _group(server):
            return False  # the server's own
        if not server and os.getpid() in line:
            return False  # ours
        process = self._processes[pid]
        environment = _fact(process.environ, UNKNOWN)
        place = _fact(process.cwd, "")
        if place and (Path(place) == folder or folder in Path(place).parents):
            emptied = "HOME" not in environment and not on_terminal(pid)
            return bool(server) or MARKER in environment or emptied
        of_this = bool(origin.server and server == origin.server.pid)
        marked = bool(origin.marker) and environment.get(MARKER) == origin.marker
        return (of_this or marked) and origin.claims(started(pid))


def _fact(read: Callable[[], T], unknown: T) -> T:
    """A fact of a process that may be another user's, or gone by now."""
    try:
        return read()
    except (psutil.Error, OSError):
        return unknown


def _group(pid: int) -> int:
    return _fact(lambda: os.getpgid(pid), 0)


def _signal(wanted: Iterable[Stray], numbers: Iterable[int], send: Send) -> None:
    for stray in wanted:
        for number in numbers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(stray.identity.pid, number)


async def _gone(wanted: Collection[Stray], bound_s: float) -> None:
    """Look until all have ended or the time is over: the system tells us only about our own children."""
    end = asyncio.get_running_loop().time() + bound_s
    while any(alive(one.identity) for one in wanted) and asyncio.get_running_loop().time() < end:  # noqa: ASYNC110 - see above
        await asyncio.sleep(LOOK_EVERY_S)
