"""`offload mcp`, which outlives its hub: the host's connection goes on with the next one.

When the hub goes away, the calls that were open are answered with an error, the host's `initialize` is said again to the next
hub (in the era of requests that carry everything there is none), and what the host sends meanwhile waits. A hub that crashed is
started anew at once, because its tasks wait for it; one that was stopped in order comes back with the host's next message.

Lines are looked into for their method and id only. Standard library only.
"""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from collections.abc import Callable

from offload.hub.forward import CHUNK, Front, Over
from offload.hub.reach import ANSWER_S, GLANCE_S, Link, Unreachable

TYPE_CHECKING = False  # what `typing` costs, a front does not pay
if TYPE_CHECKING:
    from typing import Any, NoReturn

SERVER_ERROR = -32000
LOST_TEXT = "the hub went away before it answered; tasks go on or are told as interrupted: call list_tasks"
EAGER_AGAIN_S = 5.0  # a hub that crashes sooner than this after a crash is not started again unasked

LONGEST = 64 * 1024  # bytes of a line that is read whole; of a longer one both ends are kept
KEPT = 1024
_ID = rb'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{0,200}")'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,100}"\s*,\s*){0,2}' + _ID + rb"\s*,")
_ID_LAST = re.compile(rb",\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


class Lost(Exception):
    """The hub went away, and the host is still there."""


class HostFront(Front):
    """A front that hands whole lines to the host, and remembers which calls the hub has not answered."""

    def __init__(
        self,
        stdin: int,
        stdout: int,
        parent: Callable[[], int],
        link: Callable[[], Link],
        crashed: Callable[[], bool],
    ) -> None:
        """`link` connects to the hub, and starts it; `crashed` says whether the one that went away left its socket behind."""
        super().__init__(stdin, stdout, parent)
        self._link = link
        self._crashed = crashed
        self._returned = float("-inf")
        self._part = b""  # of the hub's next line
        self._line = bytearray()  # of the host, as far as the hub has it
        self._is_long = False
        self._is_cut = False  # the hub that has the beginning of that line is gone
        self._open: dict[int | str, None] = {}
        self._initialize = b""
        self._initialize_id: int | str | None = None
        self._initialized = b""
        self._is_greeted = False

    def carry(self, connection: socket.socket, first: bytes = b"") -> int:
        """As long as the host is there, with one hub after another."""
        while True:
            try:
                with connection:
                    return super().carry(connection, first)
            except Lost:
                try:
                    connection, first = self._come_back()
                except Over as over:
                    return over.status

    # -- what passes ---------------------------------------------------------------------------------------------------

    def _take(self, received: bytes) -> None:
        """Half a line would spoil the next one if the hub went away now, so only whole ones are passed on."""
        lines, end, self._part = (self._part + received).rpartition(b"\n")
        if self._open:
            for line in lines.split(b"\n"):
                self._note_answer(_read(line))
        self._down += lines + end

    def _note_answer(self, message: dict[str, Any]) -> None:
        answered = message.get("id")
        if "method" in message or not isinstance(answered, int | str):
            return
        self._open.pop(answered, None)
        if answered == self._initialize_id:
            self._is_greeted = "error" not in message

    def _sent(self, data: bytes) -> None:
        self._follow(data)

    def _follow(self, data: bytes) -> list[int | str]:
        """Read on in what the host says; gives the ids of the calls whose lines have come to their end."""
        *ended, rest = data.split(b"\n")
        calls = []
        for piece in ended:
            self._add(piece)
            call = self._note(bytes(self._line))
            if call is not None:
                self._open[call] = None
                calls.append(call)
            self._line.clear()
            self._is_long = False
        self._add(rest)
        return calls

    def _add(self, piece: bytes) -> None:
        self._line += piece
        if len(self._line) > LONGEST:
            self._is_long = True
            del self._line[KEPT:-KEPT]

    def _note(self, line: bytes) -> int | str | None:
        """The id of a line that is a call."""
        if self._is_long:
            found = _ID_FIRST.match(line) or _ID_LAST.search(line)
            return _id(json.loads(found[1].decode("utf-8", "replace"))) if found and b'"method"' in line else None
        message = _read(line)
        method, call = message.get("method"), _id(message.get("id"))
        if method == "initialize":
            self._initialize, self._initialize_id, self._is_greeted = line + b"\n", call, False
        elif method == "notifications/initialized":
            self._initialized = line + b"\n"
        elif method == "notifications/cancelled":
            self._forget(message.get("params"))
        return call if "method" in message else None

    def _forget(self, params: object) -> None:
        """The host does not wait for this answer any more."""
        call = _id(params.get("requestId")) if isinstance(params, dict) else None
        if call is not None:
            self._open.pop(call, None)

    def _read_input(self) -> None:
        super()._read_input()
        self._drop_cut_line()

    def _drop_cut_line(self) -> None:
        """The rest of a line whose beginning went to a hub that is gone means nothing to another one."""
        if self._is_cut and self._up:
            rest, end, self._up = self._up.partition(b"\n")
            self._is_cut = not end
            for call in self._follow(rest + end):
                self._fail(call, LOST_TEXT)

    # -- the way back --------------------------------------------------------------------------------------------------

    def _hub_ended(self) -> NoReturn:
        if self._input_ended:
            super()._hub_ended()
        raise Lost

    def _come_back(self) -> tuple[socket.socket, bytes]:
        """A connection to the next hub, which knows the host, and the first bytes that are for the host."""
        at_once = self._crashed() and time.monotonic() - self._returned > EAGER_AGAIN_S
        self._refused, self._deadline, self._part = False, None, b""
        greeting = None if self._is_greeted or self._line else self._initialize_id
        self._fail_all(LOST_TEXT, but=greeting)
        if greeting in self._open:
            self._up = self._initialize + self._up
        while True:
            while self._down or not (at_once or self._up):
                self._step(None)
            at_once = False
            try:
                link = self._link()
                try:
                    first = self._introduce(link)
                except BaseException:  # It goes on to whoever handles it; the connection must not stay open for that.
                    link.connection.close()
                    raise
            except Unreachable as error:
                self._refuse(str(error))
            except OSError as error:
                self._refuse(f"the next hub went away at once: {error}")
            else:
                self._returned = time.monotonic()
                return link.connection, first

    def _fail_all(self, text: str, but: int | str | None = None) -> None:
        """Answer every call that the hub has not; the rest of a line that it has half is not for the next one."""
        for call in [call for call in self._open if call != but]:
            self._fail(call, text)
        self._is_cut = bool(self._line)
        self._drop_cut_line()

    def _fail(self, call: int | str, text: str) -> None:
        del self._open[call]
        error = {"code": SERVER_ERROR, "message": text, "data": {"code": "hub_unavailable"}}
        self._down += json.dumps({"jsonrpc": "2.0", "id": call, "error": error}).encode() + b"\n"

    def _refuse(self, text: str) -> None:
        """There is no hub: what was asked is answered with the reason. The next message tries again."""
        sys.stderr.write(f"offload: {text}\n")
        self._follow(self._up)
        self._up = b""
        self._fail_all(text)

    def _introduce(self, link: Link) -> bytes:
        """Say again who the host is, and keep the answer, which the host has already. Gives what came after it.

        Raises `Unreachable`, `OSError`."""
        if not self._is_greeted:
            return link.rest
        connection, received, until = link.connection, link.rest, time.monotonic() + ANSWER_S
        connection.settimeout(GLANCE_S)
        connection.sendall(self._initialize)
        while True:
            line, end, rest = received.partition(b"\n")
            message = _read(line) if end else {}
            if message.get("id") == self._initialize_id and "method" not in message:
                break
            if end:
                self._down += line + end
                received = rest
                continue
            try:
                more = connection.recv(CHUNK)
            except TimeoutError:
                if time.monotonic() > until:
                    raise
                self.pause(0)
                continue
            if not more:
                raise ConnectionResetError("it closed the connection")
            received += more
        if "error" in message:
            raise Unreachable(f"the next hub does not take this host: {message['error']}; restart the host")
        connection.sendall(self._initialized)
        return rest


def _read(line: bytes) -> dict[str, Any]:
    """Empty for what is no JSON object."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _id(value: object) -> int | str | None:
    return value if isinstance(value, int | str) and not isinstance(value, bool) else None
