"""Processes by number and start time, and how a whole tree of them is ended.

A number alone is not enough: the system gives it to somebody else later. So a process is named by both, here and in what
is written down to find it again after a restart.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Collection
from dataclasses import dataclass

from offload.processes.facts import every, facts

KILL_WAIT_S = 2.0
"""How long the system may take to end a process that was killed."""
LOOK_EVERY_S = 0.01


@dataclass(frozen=True, slots=True)
class Identity:
    """`started` is what `facts` tells of it."""

    pid: int
    started: float


def identify(pid: int) -> Identity:
    known = facts(pid)
    return Identity(pid, known.started if known is not None else 0.0)


def alive(identity: Identity) -> bool:
    """Whether the process still runs; one that has ended and waits for its parent to notice does not."""
    known = facts(identity.pid)
    return known is not None and known.started == identity.started and not known.ended


def tree(identity: Identity) -> tuple[Identity, ...]:
    """The process, all that descend from it, and all of its session: a child whose parent has gone is found by that."""
    return session(identity) if alive(identity) else ()


def session(leader: Identity) -> tuple[Identity, ...]:
    """What `tree` gives, and what is left of it when the leader has ended. Only for whoever has just seen the leader: once all
    of the session has gone, the number may be that of another."""
    now = facts(leader.pid)
    if now is not None and now.started != leader.started:
        return ()
    found: dict[int, Identity] = {}
    parents: dict[int, list[Identity]] = {}
    for each in every():
        own = Identity(each.pid, each.started)
        parents.setdefault(each.parent, []).append(own)
        if not each.ended and (own == leader or _session(own.pid) == leader.pid):
            found[own.pid] = own
    waiting = list(found)
    while waiting:
        for child in parents.get(waiting.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                waiting.append(child.pid)
    return tuple(found.values())


def _session(pid: int) -> int:
    """The number of the session's leader, 0 when the process has gone while we looked."""
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0


async def stop(identity: Identity, grace_s: float = 5.0) -> tuple[Identity, ...]:
    """End a process and its tree: ask, wait up to `grace_s`, kill, and look. Returns those that are still there."""
    return await _end(await asyncio.to_thread(tree, identity), grace_s)


async def stop_session(leader: Identity, grace_s: float = 5.0) -> tuple[Identity, ...]:
    """`stop` for a leader that may have ended just now, see `session`."""
    return await _end(await asyncio.to_thread(session, leader), grace_s)


async def _end(found: Collection[Identity], grace_s: float) -> tuple[Identity, ...]:
    wanted = set(found)
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
