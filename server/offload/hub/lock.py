"""The lock that makes a hub the only one of its state folder. Standard library only.

It is held for the process's whole life and ends with it, however that comes; the file itself stays, because removing it
would let two processes hold locks on two files of the same name.
"""

from __future__ import annotations

import fcntl
import os


class Lock:
    """An exclusive lock on `path`, with the holder's process id in the file for people to read."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = -1

    def acquire(self) -> bool:
        """Take the lock if it is free; never waits."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return False
        os.ftruncate(file, 0)
        os.pwrite(file, b"%d\n" % os.getpid(), 0)
        self._file = file
        return True

    def is_held(self) -> bool:
        """Whether some process holds the lock now."""
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def is_own(self) -> bool:
        """Whether the lock that others would find is the one that is held here. False when the file was removed or replaced."""
        try:
            found = os.stat(self.path)
        except OSError:
            return False
        return self._file >= 0 and os.path.samestat(found, os.fstat(self._file))

    def release(self) -> None:
        """Give the lock back before the process ends. Releasing what is not held does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def holder(self) -> int | None:
        """The process that wrote itself into the file last; None when nobody did. It need not live any more."""
        try:
            with open(self.path, encoding="ascii", errors="replace") as file:
                return int(file.read(20))
        except (OSError, ValueError):
            return None


def hub_lock(state: str) -> Lock:
    """The lock that the hub of `state` lives by."""
    return Lock(os.path.join(state, "hub.lock"))


def start_lock(state: str) -> Lock:
    """Held by the front that is starting a hub, so that twelve fronts that come together start one and not twelve."""
    return Lock(os.path.join(state, "start.lock"))
