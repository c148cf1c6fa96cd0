"""Whether who connects is a person's program or comes from a worker, which must never start, answer or apply anything itself.

The kernel says which process has connected. It comes from a worker when it, or a process that it descends from, carries the
worker's marker in its environment; a worker's server is started with it, and what the server starts inherits it. A process of
which this cannot be told is refused. docs/RELIABILITY.md says what this cannot see.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterator

import psutil

from offload.hub.greeting import MARKER, NOT_A_PERSON, WORKER_REFUSED, Refusal

# Python has a name for Linux's option alone.
SOL_LOCAL, LOCAL_PEERPID = 0, 2


def refuse_worker(connection: socket.socket) -> None:
    """Reads files of /proc: not for the event loop's thread. Raises `Refusal`."""
    refuse_descendant(peer(connection))


def peer(connection: socket.socket) -> int:
    """The process that has connected; 0 when it is in a container of its own."""
    if sys.platform == "darwin":  # pragma: no cover - the tests run on Linux
        return connection.getsockopt(SOL_LOCAL, LOCAL_PEERPID)
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", credentials)[0])


def refuse_descendant(pid: int) -> None:
    """As `refuse_worker`, of a process by its number."""
    try:
        process = psutil.Process(pid)
        is_marked = MARKER in process.environ() or any(_is_marked(above) for above in _above(process))
    except (psutil.Error, OSError, ValueError):
        # It has ended and left its connection to another one, or it hides its environment.
        raise Refusal(WORKER_REFUSED, f"the process that connects (number {pid}) does not show who it is") from None
    if is_marked:
        raise Refusal(WORKER_REFUSED, NOT_A_PERSON)


def _above(process: psutil.Process) -> Iterator[psutil.Process]:
    try:
        while above := process.parent():
            yield above
            process = above
    except psutil.Error:
        pass  # one that has just ended; its children are nobody's from now on


def _is_marked(process: psutil.Process) -> bool:
    try:
        return MARKER in process.environ()
    except (psutil.Error, OSError):
        return False  # another user's, as sshd is
