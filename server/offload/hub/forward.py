"""`offload lsp` and `offload mcp`: bytes from standard input to the hub, bytes from the hub to standard output.

Standard library only, one thread, no parsing: a front starts in the time of a bare interpreter and stays small. It ends
within two seconds of the end of its input, and when its parent is gone although somebody else holds the pipe open.

When the hub goes away, a front of a host comes back to the next one by itself (see `reconnect`). That of an editor ends, with
a status that tells of a failure: the editor holds what the server knew of its open texts, and starts another one.

Exit status: 0 the input ended or the editor said `exit`, 1 nobody reads the output, 69 no hub, 75 the hub went away.
"""

from __future__ import annotations

import os
import re
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from offload import __version__
from offload.hub import address, reach

TYPE_CHECKING = False  # what `typing` costs, a front does not pay
if TYPE_CHECKING:
    from typing import NoReturn

ENDED, UNREAD, NO_HUB, LOST, INTERRUPTED = 0, 1, 69, 75, 130

GRACE_S = 1.2  # for the hub's last words after the end of the input
PARENT_CHECK_S = 1.0
CHUNK = 65536
EXIT = re.compile(rb'"method"\s*:\s*"exit"')
EXIT_SIZE = 200  # bytes that hold the whole message


def main(kind: str, *, command: Sequence[str] = reach.COMMAND) -> int:
    """Serve standard input and output as a front of `kind`; gives the exit status."""
    _keep_standard_streams()
    try:
        return run(kind, os.environ, command=command)
    except reach.Unreachable as error:
        sys.stderr.write(f"offload: {error}\n")
        return NO_HUB
    except KeyboardInterrupt:
        return INTERRUPTED


def run(
    kind: str,
    environ: Mapping[str, str],
    *,
    command: Sequence[str] = reach.COMMAND,
    stdin: int = 0,
    stdout: int = 1,
    parent: Callable[[], int] = os.getppid,
) -> int:
    """As `main`, on any two file descriptors. Raises `Unreachable`."""
    told = {__version__}

    def link() -> reach.Link:
        found = reach.reach(kind, environ, command=command, pause=front.pause)
        if found.version not in told:
            told.add(found.version)
            sys.stderr.write(
                f"offload: the hub that runs is offload {found.version}, this is {__version__}; "
                "`offload hub stop` ends the other\n"
            )
        return found

    front = Front(stdin, stdout, parent)
    if kind == "mcp":
        from offload.hub.reconnect import HostFront  # noqa: PLC0415 - it is built on this module

        front = HostFront(stdin, stdout, parent, link, lambda: _socket_is_there(environ))
    try:
        first = link()
    except Over as over:
        return over.status
    with first.connection:
        return front.carry(first.connection, first.rest)


def _socket_is_there(environ: Mapping[str, str]) -> bool:
    return os.path.exists(address.socket_path(address.state_folder(environ)))


class Over(Exception):
    """The front has nothing more to do; `status` is its exit status."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status


class Front:
    """Both directions of one connection. At most one chunk of each is held; the rest waits with its sender."""

    def __init__(self, stdin: int, stdout: int, parent: Callable[[], int]) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._parent = parent
        self._first_parent = parent()
        self._up = b""  # read from the input, not yet sent
        self._down = b""  # received from the hub, not yet written
        self._input_ended = False
        self._said_goodbye = False
        self._refused = False  # the hub takes no more
        self._tail = b""  # the end of what the hub was sent
        self._deadline: float | None = None  # when to leave, whatever is still on its way

    def pause(self, seconds: float) -> None:
        """Wait for a hub. The first chunk of the input is read already, because its end must be seen here too."""
        self._look_at_parent()
        if self._up:
            # Another process has the lock or the socket, and nothing tells when that changes.
            time.sleep(seconds)
            return
        poller = select.poll()
        poller.register(self._stdin, select.POLLIN)
        if poller.poll(seconds * 1000):
            self._read_input()
            if self._input_ended:
                raise Over(ENDED)  # nothing was asked, and nobody is left to ask

    def carry(self, connection: socket.socket, first: bytes = b"") -> int:
        """Copy until one side is done; `first` are bytes that the hub sent already. Gives the exit status."""
        connection.setblocking(False)  # noqa: FBT003 - the method's own way
        try:
            self._take(first)
            self._send(connection)
            while True:
                self._step(connection)
        except Over as over:
            return over.status

    def _step(self, connection: socket.socket | None) -> None:
        events = self._wait(connection)
        self._look_at_parent()
        if self._stdout in events:
            self._write_output(events[self._stdout])
        if self._stdin in events:
            if self._up:  # asked for a hang-up only: the hub does not take what there is, but the time runs
                self._leave_soon()
            else:
                self._read_input()
        if connection is None:
            return
        # Room to send is no reason to receive, and what we hold is written before more is taken.
        if not self._down and events.get(connection.fileno(), 0) & ~select.POLLOUT:
            self._receive(connection)
        self._send(connection)

    def _wait(self, connection: socket.socket | None) -> dict[int, int]:
        """What can be done, by file descriptor. Waits until there is something, or it is time to look around."""
        poller = select.poll()
        # Without events asked for, a hang-up is still told: of the output always, of the input once.
        poller.register(self._stdout, select.POLLOUT if self._down else 0)
        if not self._input_ended and not self._refused and not (self._up and self._deadline):
            poller.register(self._stdin, 0 if self._up else select.POLLIN)
        wanted = (0 if self._down else select.POLLIN) | (select.POLLOUT if self._up and not self._refused else 0)
        if connection is not None and wanted:
            poller.register(connection, wanted)
        seconds = PARENT_CHECK_S
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
                if self._refused:
                    self._hub_ended()
                raise Over(ENDED)
            seconds = min(seconds, left)
        return dict(poller.poll(seconds * 1000))

    def _look_at_parent(self) -> None:
        # A sibling may hold our input open after the editor died, so the end of the input is not enough.
        if self._parent() != self._first_parent:
            raise Over(UNREAD)

    def _leave_soon(self) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + GRACE_S

    def _read_input(self) -> None:
        try:
            self._up = os.read(self._stdin, CHUNK)
        except OSError:
            self._up = b""  # a terminal that is gone
        if not self._up:
            self._input_ended = True
            self._leave_soon()

    def _write_output(self, event: int) -> None:
        if event & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
            raise Over(UNREAD)
        try:
            # The stream may be shared with others, so it stays blocking; this much never blocks after POLLOUT.
            written = os.write(self._stdout, self._down[: select.PIPE_BUF])
        except BrokenPipeError:
            raise Over(UNREAD) from None
        self._down = self._down[written:]

    def _receive(self, connection: socket.socket) -> None:
        try:
            received = connection.recv(CHUNK)
        except ConnectionResetError:
            received = b""  # the hub was killed
        if not received:
            self._hub_ended()
        self._take(received)

    def _take(self, received: bytes) -> None:
        """What the hub has said, for the output."""
        self._down = received

    def _sent(self, data: bytes) -> None:
        """The hub was given this."""
        self._tail = (self._tail + data[-EXIT_SIZE:])[-EXIT_SIZE:]

    def _hub_ended(self) -> NoReturn:
        """The hub has nothing more to say."""
        raise Over(ENDED if self._input_ended or EXIT.search(self._tail) else LOST)

    def _send(self, connection: socket.socket) -> None:
        if self._refused:
            return
        try:
            if self._up:
                sent = connection.send(self._up)
                self._sent(self._up[:sent])
                self._up = self._up[sent:]
            if self._input_ended and not self._up and not self._said_goodbye:
                self._said_goodbye = True
                connection.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass  # the hub is slow: the input waits
        except OSError:
            # The hub takes no more; what it said before is still to be written.
            self._refused = True
            self._leave_soon()


def _keep_standard_streams() -> None:
    """A front started with a standard stream closed must not find its socket in that place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)  # noqa: FBT003
    os.close(descriptor)
