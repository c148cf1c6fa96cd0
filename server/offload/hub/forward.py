"""`offload lsp` and `offload mcp`: bytes from standard input to the hub, bytes from the hub to standard output.

Standard library only, one thread, no parsing: a front starts in the time of a bare interpreter and stays small. It ends
within two seconds of the end of its input, and when its parent is gone although somebody else holds the pipe open.

Exit status: 0 the hub closed the connection or the input ended, 1 nobody reads the output, 69 no hub.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from offload import __version__
from offload.hub import reach

ENDED, UNREAD, NO_HUB, INTERRUPTED = 0, 1, 69, 130

GRACE_S = 1.2  # for the hub's last words after the end of the input
PARENT_CHECK_S = 1.0
CHUNK = 65536


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
    front = Front(stdin, stdout, parent)
    try:
        link = reach.reach(kind, environ, command=command, pause=front.pause)
    except Over as over:
        return over.status
    if link.version != __version__:
        sys.stderr.write(
            f"offload: the hub that runs is offload {link.version}, this is {__version__}; `offload hub stop` ends the other\n"
        )
    with link.connection:
        return front.carry(link.connection, link.rest)


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
        self._deadline: float | None = None  # when to leave, whatever is still on its way

    def pause(self, seconds: float) -> None:
        """Wait for a hub. The first chunk of the input is read already, because its end must be seen here too."""
        self._look_at_parent()
        if self._up:
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
        self._down = first
        try:
            self._send(connection)
            while True:
                self._step(connection)
        except Over as over:
            return over.status

    def _step(self, connection: socket.socket) -> None:
        events = self._wait(connection)
        self._look_at_parent()
        if self._stdout in events:
            self._write_output(events[self._stdout])
        if self._stdin in events:
            if self._up:  # asked for a hang-up only: the hub does not take what there is, but the time runs
                self._leave_soon()
            else:
                self._read_input()
        # Room to send is no reason to receive, and what we hold is written before more is taken.
        if not self._down and events.get(connection.fileno(), 0) & ~select.POLLOUT:
            self._receive(connection)
        self._send(connection)

    def _wait(self, connection: socket.socket) -> dict[int, int]:
        """What can be done, by file descriptor. Waits until there is something, or it is time to look around."""
        poller = select.poll()
        # Without events asked for, a hang-up is still told: of the output always, of the input once.
        poller.register(self._stdout, select.POLLOUT if self._down else 0)
        if not self._input_ended and not (self._up and self._deadline):
            poller.register(self._stdin, 0 if self._up else select.POLLIN)
        wanted = (0 if self._down else select.POLLIN) | (select.POLLOUT if self._up else 0)
        if wanted:
            poller.register(connection, wanted)
        seconds = PARENT_CHECK_S
        if self._deadline is not None:
            left = self._deadline - time.monotonic()
            if left <= 0:
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
            self._down = connection.recv(CHUNK)
        except ConnectionResetError:
            self._down = b""  # the hub was killed
        if not self._down:
            raise Over(ENDED)

    def _send(self, connection: socket.socket) -> None:
        try:
            if self._up:
                self._up = self._up[connection.send(self._up) :]
            if self._input_ended and not self._up and not self._said_goodbye:
                self._said_goodbye = True
                connection.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            pass  # the hub is slow: the input waits
        except OSError:
            # The hub takes no more; what it said before is still to be written.
            self._up, self._input_ended, self._said_goodbye = b"", True, True
            self._leave_soon()


def _keep_standard_streams() -> None:
    """A front started with a standard stream closed must not find its socket in that place."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)  # noqa: FBT003
    os.close(descriptor)
