"""How a front gets a connection to the hub, starting the hub when there is none. Standard library only, and little of it."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from offload.hub import address
from offload.hub.greeting import (
    CONTROL,
    MARKER,
    NOT_A_PERSON,
    PROTOCOL,
    WORKER_REFUSED,
    Refusal,
    greeting,
    welcome,
)
from offload.hub.lock import start_lock

DEADLINE_S = 30.0  # a cold start takes half a second; this is for a machine that is busy with something else
ANSWER_S = 10.0  # the hub answers a hello at once, unless its machine is very busy
GLANCE_S = 0.5  # how often a front that waits for the answer looks at its own side
FIRST_PAUSE_S, LAST_PAUSE_S = 0.005, 0.1

# `-E -P`: another project's PYTHONPATH or folder must not decide what the hub imports. The interpreter is the front's own, so
# offload is found where the front's is: in its venv, its pipx or its uv environment.
COMMAND = (sys.executable, "-E", "-P", "-X", "utf8", "-m", "offload", "hub", "run")


class Unreachable(Exception):
    """There is no hub to talk to. The message is one sentence that says what to do; `code` is a word of the error tree,
    `protocol` that of the hub that refused, 0 if there is none."""

    def __init__(self, message: str, code: str = "hub_unavailable", protocol: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.protocol = protocol


class Link:
    """An accepted connection: hello and answer are over. `rest` is what the hub sent right after its answer."""

    __slots__ = ("connection", "pid", "rest", "version")

    def __init__(self, connection: socket.socket, version: str, pid: int, rest: bytes) -> None:
        self.connection = connection
        self.version = version
        self.pid = pid
        self.rest = rest


def reach(
    kind: str,
    environ: Mapping[str, str],
    *,
    client: str = "",
    command: Sequence[str] = COMMAND,
    pause: Callable[[float], None] = time.sleep,
    deadline_s: float = DEADLINE_S,
) -> Link:
    """Connect to the hub of `environ`, started by `command` when there is none. `pause` is called between two attempts.

    A hub of an older protocol is asked to make room for one of ours. Raises `Unreachable`.
    """
    if environ.get(MARKER):
        # The hub would see it too; but a hub that a worker starts would end with the worker.
        raise Unreachable(NOT_A_PERSON, WORKER_REFUSED)
    try:
        state = address.state_folder(environ)
        path = address.prepare(state)
    except address.AddressError as error:
        raise Unreachable(str(error)) from error
    hello = greeting(kind, environ, client)
    starter = Starter(state, environ, command)
    began, seconds = time.monotonic(), FIRST_PAUSE_S
    try:
        while (link := _attempt_or_relieve(path, hello, environ, pause)) is None:
            starter.start()
            if time.monotonic() - began > deadline_s:
                raise Unreachable(f"no hub answered within {deadline_s:g} s; see {starter.log}")
            pause(seconds)
            seconds = min(seconds * 1.5, LAST_PAUSE_S)
        return link
    except OSError as error:
        raise Unreachable(f"the hub cannot be started: {error}; mend {state} or set OFFLOAD_STATE_DIR") from error
    finally:
        starter.close()


def find(kind: str, environ: Mapping[str, str], *, client: str = "") -> Link | None:
    """Connect to the hub if there is one. Raises `Unreachable` when there is one that refuses."""
    try:
        path = address.socket_path(address.state_folder(environ))
    except address.AddressError as error:
        raise Unreachable(str(error)) from error
    return attempt(path, greeting(kind, environ, client))


def attempt(
    path: str, hello: bytes, pause: Callable[[float], None] = time.sleep, answer_s: float = ANSWER_S
) -> Link | None:
    """One try. None: nobody listens, or a hub that is ending; nothing but the hello was sent, so that another try is safe."""
    connection, link = socket.socket(socket.AF_UNIX), None
    connection.settimeout(GLANCE_S)
    try:
        connection.connect(path)
        link = _greet(connection, hello, pause, answer_s)
    except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
        pass
    except Refusal as refusal:
        raise Unreachable(str(refusal), refusal.code, refusal.protocol) from refusal
    except TimeoutError as error:
        raise Unreachable(f"the hub at {path} does not answer; end it with `offload hub stop`") from error
    except OSError as error:
        raise Unreachable(f"the hub's socket {path} cannot be used: {error.strerror}") from error
    finally:
        if not link:
            connection.close()
    return link


def _attempt_or_relieve(
    path: str, hello: bytes, environ: Mapping[str, str], pause: Callable[[float], None]
) -> Link | None:
    """As `attempt`; a hub of an older protocol is on its way out after this. One of a newer protocol is left alone: else two
    versions that are both in use would end each other's hubs for ever."""
    try:
        return attempt(path, hello, pause)
    except Unreachable as refused:
        if not 0 < refused.protocol < PROTOCOL or not _drain(path, environ):
            raise
        return None


def _drain(path: str, environ: Mapping[str, str]) -> bool:
    """Ask the hub to leave its tasks to the next one; whether it will, or is gone."""
    link = attempt(path, greeting(CONTROL, environ))
    if link is None:
        return True
    try:
        with link.connection as connection:
            connection.settimeout(ANSWER_S)
            connection.sendall(b'{"method": "drain"}\n')
            answer = connection.recv(65536)
    except OSError:
        return True
    return not answer or b'"result"' in answer


def _greet(connection: socket.socket, hello: bytes, pause: Callable[[float], None], answer_s: float) -> Link | None:
    try:
        connection.sendall(hello)
    except BrokenPipeError:
        pass  # refused before all of it was read; the reason may be there to be read
    answer = b""
    until = time.monotonic() + answer_s
    while b"\n" not in answer:
        try:
            received = connection.recv(65536)
        except TimeoutError:
            if time.monotonic() > until:
                raise
            pause(0)
            continue
        if not received:
            return None
        answer += received
    line, _, rest = answer.partition(b"\n")
    version, pid = welcome(line)
    connection.settimeout(None)
    return Link(connection, version, pid, rest)


class Starter:
    """Starts at most one hub at a time for all fronts of a state folder, and notices when it did not work."""

    def __init__(self, state: str, environ: Mapping[str, str], command: Sequence[str]) -> None:
        self.log = os.path.join(state, "hub.log")
        self._state = state
        self._environ = environ
        self._command = command
        self._lock = start_lock(state)
        self._holds = False
        self._child = 0
        self._log_from = 0

    def start(self) -> None:
        """Start a hub unless one is being started. Raises `Unreachable` when ours ended with an error."""
        if self._child and not self._ended():
            return
        self._holds = self._holds or self._lock.acquire()
        if self._holds:
            self._spawn()

    def close(self) -> None:
        """The hub is reached, or given up: others may start one."""
        self._lock.release()

    def _ended(self) -> bool:
        """A hub that ends well has met another one, which may be ending: it is tried again."""
        child, status = os.waitpid(self._child, os.WNOHANG)
        if child and status:
            raise Unreachable(f"the hub did not start: {self._last_words()} (see {self.log})")
        return child != 0

    def _spawn(self) -> None:
        # Everything that this process was given beyond the three standard streams stays here: a hub that lives on with the
        # write end of an editor's pipe would keep that pipe open for ever.
        for descriptor in os.listdir("/dev/fd"):
            if int(descriptor) > 2:
                _keep(int(descriptor))
        # Nor does the hub take over what was meant for the git or the Python of one project.
        environ = {name: value for name, value in self._environ.items() if not name.startswith(("GIT_", "PYTHON"))}
        environ["OFFLOAD_STATE_DIR"] = self._state
        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._log_from = os.fstat(log).st_size
        try:
            self._child = os.posix_spawn(
                self._command[0],
                tuple(self._command),
                environ,
                file_actions=(
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                ),
                setsid=True,
                setsigmask=(),
            )
        except OSError as error:
            raise Unreachable(f"the hub could not be started with {self._command[0]}: {error.strerror}") from error
        finally:
            os.close(log)

    def _last_words(self) -> str:
        with open(self.log, "rb") as log:
            log.seek(self._log_from)
            lines = log.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def _keep(descriptor: int) -> None:
    try:
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - takes no name
    except OSError:
        pass  # the listing's own, closed by now
