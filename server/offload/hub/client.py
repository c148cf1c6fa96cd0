"""The command line's connection to the hub: one call after another, as JSON lines (see `rpc`)."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from offload.domain.change import Conflict
from offload.domain.errors import ApplyRefused, HubUnavailable, OffloadError, all_errors
from offload.hub import reach

KIND = "rpc"

# Parents go before their children, so that a code that both have means the parent.
_CLASSES = {error.code: error for error in reversed(all_errors())}


class Client:
    """An open connection. Raises what the hub answers as the class of `domain.errors` that the answer's code names."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lines = connection.makefile("rb")
        self._last_id = 0

    def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Ask, and wait for the answer. Raises `HubUnavailable` when the hub ends before it has answered."""
        self._last_id += 1
        request = {"id": self._last_id, "method": method, "params": dict(params)}
        try:
            self._connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise HubUnavailable(f"the hub has ended ({error.strerror}); call again, a new one will start") from error
        answer = self._read()
        while answer.get("id") != self._last_id:
            answer = self._read()
        if "error" in answer:
            raise _raised(answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def watch(self) -> Iterator[dict[str, Any]]:
        """Every task that changes from now on, as a TaskView, until the hub ends. The connection is then for this alone."""
        self.call("watch_tasks", {})
        return self._changes()

    def fileno(self) -> int:
        """For `select`: readable means that a change is coming."""
        return self._connection.fileno()

    def _changes(self) -> Iterator[dict[str, Any]]:
        while True:
            message = self._read()
            if message.get("method") == "task_changed":
                yield message["params"]

    def close(self) -> None:
        """End the connection; tasks go on."""
        self._lines.close()
        self._connection.close()

    def _read(self) -> dict[str, Any]:
        try:
            line = self._lines.readline()
        except ConnectionError:
            line = b""
        if not line.endswith(b"\n"):
            raise HubUnavailable("the hub ended before it answered; call again, a new one will start")
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def connect(environ: Mapping[str, str] = os.environ, *, command: Sequence[str] = reach.COMMAND) -> Iterator[Client]:
    """A connection to the hub, which is started when there is none. Raises `HubUnavailable`, `VersionMismatch`."""
    try:
        link = reach.reach(KIND, environ, client="offload", command=command)
    except reach.Unreachable as error:
        raise _CLASSES.get(error.code, HubUnavailable)(str(error)) from error
    client = Client(link.connection)
    try:
        yield client
    finally:
        client.close()


def _raised(error: Mapping[str, Any]) -> OffloadError:
    """A code that this version does not know, from a newer hub, still has its sentence."""
    of = _CLASSES.get(error["code"], OffloadError)
    if of is ApplyRefused:
        pairs = (line.partition(": ") for line in error["reasons"])
        conflicts = tuple(_conflict(each) for each in error.get("conflicts", ()))
        return ApplyRefused(error["message"], tuple((path, reason) for path, _, reason in pairs), conflicts)
    return of(error["message"])


def _conflict(view: Mapping[str, Any]) -> Conflict:
    return Conflict(
        view["path"],
        view["reason"],
        view["hunk_id"],
        view["first_line"],
        view["yours"],
        view["base"],
        view["theirs"],
    )
