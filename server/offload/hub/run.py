"""`offload hub run|status|stop`: the hub's process from its lock to its end, and how the command line asks after it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from offload import log, settings
from offload.core.ports import Clock
from offload.domain.errors import HubUnavailable, OffloadError, WorkerRefused
from offload.hub import address, reach
from offload.hub.clock import SystemClock
from offload.hub.greeting import CONTROL
from offload.hub.lock import Lock, hub_lock
from offload.hub.server import Limits, Server
from offload.hub.services import Build

TURN_S = 20.0  # how long a new hub waits for one that is ending
END_S = 20.0  # for the whole of an orderly stop; what has not ended then is cut off
LOOK_S = 0.05


def main(build: Build) -> int:
    """`offload hub run`: settings, log, and the hub until it ends; gives the exit status."""
    try:
        state = address.state_folder(os.environ)
        chosen = settings.load(os.environ)
        address.prepare(state)
        log.set_up(chosen.log_level, os.path.join(state, "hub.log"))
        return run(build, state, SystemClock(), Limits(idle_exit_s=chosen.idle_exit_s))
    except (OffloadError, address.AddressError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def run(build: Build, state: str, clock: Clock, limits: Limits, end_s: float = END_S) -> int:
    """Be the hub of `state`, unless there is one: then 0 at once, because whoever asked is served by that one."""
    path = address.prepare(state)
    lock = hub_lock(state)
    if not _take(lock, path):
        sys.stderr.write(f"a hub runs already, process {lock.holder()}\n")
        return 0
    os.chdir("/")  # no folder is kept from being removed or unmounted
    try:
        asyncio.run(_serve(build, Place(state, path, lock), clock, limits, end_s))
    finally:
        lock.release()
    return 0


def _take(lock: Lock, path: str) -> bool:
    """Another hub that holds the lock but has no socket is ending: its place is waited for."""
    until = time.monotonic() + TURN_S
    while not lock.acquire():
        if os.path.exists(path) or time.monotonic() > until:
            return False
        time.sleep(LOOK_S)  # waiting in the lock itself could not end when a socket appears, or the time is over
    return True


class Place:
    """Where the hub is found, and what makes it the only one there."""

    def __init__(self, state: str, path: str, lock: Lock) -> None:
        self.path = path
        self._state = state
        self._lock = lock

    def is_own(self) -> bool:
        """Whether the state folder is still the one that this hub was started for; the socket's own folder is made again."""
        if not self._lock.is_own():
            return False
        try:
            address.prepare(self._state)
        except address.AddressError:
            return False
        return True


async def _serve(build: Build, place: Place, clock: Clock, limits: Limits, end_s: float) -> None:
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    # Started at the stop; a thread, so that it also ends a hub whose loop is stuck.
    cut_off = threading.Timer(end_s, os._exit, [70])
    cut_off.daemon = True
    async with build() as services:
        server = Server(place.path, services, clock, limits, place.is_own)

        def stop(number: signal.Signals) -> None:
            for one in signals:
                loop.remove_signal_handler(one)  # a second signal ends the process the hard way
            server.stop(number.name)

        for one in signals:
            loop.add_signal_handler(one, stop, one)
        await server.run(cut_off.start)
    if server.left:
        # asyncio would end the workers, which are its children, with its loop.
        os._exit(0)
    cut_off.cancel()


def status(environ: Mapping[str, str] = os.environ) -> dict[str, Any] | None:
    """What the hub says of itself, None when there is none. Raises `HubUnavailable` when there is one that does not answer."""
    _state(environ)
    return _ask(environ, "status")


def stop(environ: Mapping[str, str] = os.environ, wait_s: float = END_S + 5) -> bool:
    """End the hub and wait until it has ended; False when there is none. Its tasks are found again by the next one.

    Raises `HubUnavailable` when it does not end.
    """
    lock = hub_lock(_state(environ))
    if not lock.is_held():
        return False
    until, told = time.monotonic() + wait_s, 0
    while lock.is_held():
        # Another one may have waited for the place, and have it now: a front had started it in vain.
        holder = lock.holder() or 0
        if holder != told and _tell_to_stop(environ, lock):
            told = holder
        if time.monotonic() > until:
            pid = lock.holder()
            raise HubUnavailable(
                f"the hub, process {pid}, does not end; `kill -9 {pid}` ends it, and its tasks are kept"
            )
        time.sleep(LOOK_S)  # whoever waited in the lock itself would hold it for a moment, and a new hub be refused
    return True


def _tell_to_stop(environ: Mapping[str, str], lock: Lock) -> bool:
    """False when there is nobody to tell yet: the hub is starting, or ending already."""
    try:
        return _ask(environ, "stop") is not None
    except HubUnavailable:
        # It does not answer as a hub does. Who holds the lock has written its process id into it.
        with suppress(ProcessLookupError):  # gone in the meantime
            os.kill(cast("int", lock.holder()), signal.SIGTERM)
        return True


def _state(environ: Mapping[str, str]) -> str:
    try:
        return address.state_folder(environ)
    except address.AddressError as error:
        raise HubUnavailable(str(error)) from error


def _ask(environ: Mapping[str, str], method: str) -> dict[str, Any] | None:
    try:
        link = reach.find(CONTROL, environ)
        if link is None:
            return None
        with link.connection as connection:
            connection.settimeout(reach.ANSWER_S)
            connection.sendall(json.dumps({"method": method}).encode() + b"\n")
            with connection.makefile("rb") as answers:
                answer: dict[str, Any] = json.loads(answers.readline())["result"]
        return answer
    except reach.Unreachable as error:
        of = WorkerRefused if error.code == WorkerRefused.code else HubUnavailable
        raise of(f"the hub does not answer: {error}") from error
    except (OSError, ValueError, KeyError) as error:
        raise HubUnavailable(f"the hub does not answer: {error}") from error
