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

from offload.processes.facts import Facts, command, environment, every, works_in
from offload.processes.tree import KILL_WAIT_S, LOOK_EVERY_S, Identity, alive

MARKER = "OFFLOAD_WORKER"
"""The variable that says which worker's server a process comes from."""
GRACE_S = 2.0
KILLS = 2

Send = Callable[[int, int], None]


def nobody(_: float) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose tools are meant: those of a task that works in `folder`, by the worker's `server` that gives `marker` to what it
    starts; without a folder those alone that have the marker. `claims` says of a start time whether the task alone can have been the reason; `servers` are all that run.
    What was started before `since` is not meant."""

    folder: Path | None
    servers: tuple[Identity, ...] = ()
    server: Identity | None = None
    marker: str = ""
    claims: Callable[[float], bool] = nobody
    since: float = 0.0


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
    table = _Table(origin)
    found = {pid for pid, each in table.all.items() if table.is_stray(each)}
    found |= {pid for pid in table.all if not found.isdisjoint(table.above(pid))}
    return tuple(
        Stray(Identity(each.pid, each.started), command(each.pid), each.parent not in found)
        for each in map(table.all.__getitem__, sorted(found))
    )


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
    """Every process at one moment, by number; this one and what it descends from are `ours`."""

    def __init__(self, origin: Origin) -> None:
        self.all = {each.pid: each for each in every() if not each.ended}
        self._origin = origin
        self._folder = origin.folder and origin.folder.resolve()
        self._servers = {server.pid: server for server in origin.servers if alive(server)}
        self._ours = {os.getpid(), *self.above(os.getpid())}

    def above(self, pid: int) -> Iterator[int]:
        """The numbers of what a process descends from, nearest first."""
        seen = {pid}
        while pid in self.all and (pid := self.all[pid].parent) not in seen:
            seen.add(pid)
            yield pid

    def is_stray(self, each: Facts) -> bool:
        if each.pid in self._ours or each.pid in self._servers or each.started < self._origin.since:
            return False
        line = [each.pid, *self.above(each.pid)]
        server = next((self._servers[one] for one in line if one in self._servers), None)
        if server is None and os.getpid() in line:
            return False  # ours
        if server is not None and _group(line[line.index(server.pid) - 1]) == _group(server.pid):
            return False  # the server's own
        if self._folder is not None and works_in(each.pid, self._folder):
            return server is not None or _comes_from_a_worker(each)
        if not self._origin.claims(each.started):
            return False
        return (server is not None and server == self._origin.server) or _is_marked(each.pid, self._origin.marker)


def _comes_from_a_worker(each: Facts) -> bool:
    """As far as its environment tells, which a person's program has whole."""
    known = environment(each.pid)
    return known is not None and (MARKER in known or ("HOME" not in known and not each.on_terminal))


def _is_marked(pid: int, marker: str) -> bool:
    known = environment(pid) if marker else None
    return known is not None and known.get(MARKER) == marker


def _group(pid: int) -> int:
    """The number of the process group, 0 for a process that has gone while we looked."""
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


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
