"""The OpenCode servers that run: one per environment of a caller, started once for all who want it, ended when nobody does.

A server's folder holds its database and `server.json` (0600), by which the next hub finds it again if this one dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from offload.core.ports import Clock
from offload.domain.errors import OffloadError, WorkerBroken
from offload.processes import Identity, Origin, Process, Processes, alive, end_strays
from offload.processes import stop as stop_tree
from offload.workers.opencode import marks, unused
from offload.workers.opencode.client import CALL_LIMIT_S, USER, Connection, NotThere
from offload.workers.opencode.environment import (
    digest,
    empty_temporary,
    prepare,
    relevant,
    server_environment,
    user_config,
    user_folder,
)
from offload.workers.opencode.find import Finder
from offload.workers.opencode.offer import Offer
from offload.workers.turns import Turns

FILE = "server.json"
LISTENING = b"listening on "
DISPOSE_LIMIT_S = 5.0
HEALTH_LIMIT_S = 5.0
LOOK_EVERY_S = 2.0
"""How often a server that is no child of ours is looked at."""


@dataclass(frozen=True, slots=True)
class Launch:
    """How servers are started. `config` goes before the user's own configuration; `extra_environment` is for demo and tests,
    which must not reach the network."""

    folder: Path
    user_config: str = ""
    link_agents: bool = True
    config: Mapping[str, object] = field(default_factory=dict)
    extra_environment: Mapping[str, str] = field(default_factory=dict)
    idle_s: float = 600.0
    start_limit_s: float = 60.0
    call_limit_s: float = CALL_LIMIT_S


@dataclass(frozen=True, slots=True)
class Attach:
    """A server that somebody else runs; it is never stopped."""

    url: str
    password_file: Path | None = None
    user: str = USER

    def password(self) -> str:
        if self.password_file is None:
            return ""
        try:
            if self.password_file.stat().st_mode & 0o077:
                raise WorkerBroken(f"{self.password_file} can be read by others; run `chmod 600 {self.password_file}`.")
            return self.password_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise WorkerBroken(f"The password of OpenCode cannot be read: {error}.") from None


NOBODY = Identity(0, 0.0)


@dataclass
class Server:
    """`gone` is set when it has ended, and `why` says how ("was ended by SIGKILL"); `offer` is what it said last; `made_for` is
    the digest of the environment that it runs with."""

    connection: Connection
    version: str
    folder: Path
    identity: Identity = NOBODY
    process: Process | None = None
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    why: str = ""
    users: int = 0
    idle_since: float = 0.0
    offer: Offer | None = None
    made_for: str = ""
    turns: Turns = field(default_factory=Turns)

    @property
    def marker(self) -> str:
        """By this the children of its tools are known, of this process and of those that served the same folder before."""
        return "" if self.attached else digest(self.folder)

    @property
    def attached(self) -> bool:
        """Somebody else's, which is not ours to stop."""
        return self.identity == NOBODY

    def end(self, why: str) -> None:
        self.why = why
        if not self.attached:
            (self.folder / FILE).unlink(missing_ok=True)
        self.gone.set()

    async def stop(self) -> None:
        """Dispose first: a signal alone would leave the shells that it started alive."""
        if not self.attached and not self.gone.is_set():
            self.why = "was stopped"
            with contextlib.suppress(OffloadError, NotThere, TimeoutError):
                async with asyncio.timeout(DISPOSE_LIMIT_S):
                    await self.connection.dispose()
            if self.process is not None:
                await self.process.stop()
            else:
                await stop_tree(self.identity)
            await _end_children(self.folder)
            await asyncio.to_thread(empty_temporary, self.folder)
        self.end(self.why or "was left")
        await _let_go(self)

    def remember(self) -> None:
        """Write down how the next hub finds it."""
        content = {
            "url": self.connection.url,
            "password": self.connection.password,
            "pid": self.identity.pid,
            "started": self.identity.started,
            "made_for": self.made_for,
        }
        _write_private(self.folder / FILE, content)


class Servers:
    """`aclose` ends all that were started or found again."""

    def __init__(
        self, finder: Finder, launch: Launch, clock: Clock, processes: Processes, attach: Attach | None = None
    ) -> None:
        self.launch = launch
        self._finder = finder
        self._clock = clock
        self._processes = processes
        self._attach = attach
        self._servers: dict[str, Server] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._group: asyncio.TaskGroup | None = None
        self._root: asyncio.Task[None] | None = None

    async def adopt(self) -> None:
        """Find again what an earlier hub left running, so that it is watched and ends when nobody needs it. Returns at once."""
        group = await self._tasks()
        for file in await asyncio.to_thread(lambda: [*self._folders().glob(f"*/{FILE}")]):
            group.create_task(self._adopt(file.parent))

    async def _adopt(self, folder: Path) -> None:
        key = folder.name
        async with self._locks.setdefault(key, asyncio.Lock()):
            if key not in self._servers:
                server = await self._find_again(folder)
                if server is not None:
                    await self._tend(key, server)

    @asynccontextmanager
    async def use(self, environment: Mapping[str, str], session: str = "") -> AsyncIterator[Server]:
        """The server that keeps the session, else the one for this environment; it stays as long as it is used. Raises
        `WorkerMissing`, `WorkerBroken`."""
        wanted = self._key(environment)
        key = (session and await asyncio.to_thread(marks.find, self._folders(), session)) or wanted
        async with self._locks.setdefault(key, asyncio.Lock()):
            server = self._servers.get(key)
            if server is not None and not server.attached and not alive(server.identity):
                await _notice(server)
            if server is not None and not session and server.made_for != wanted and not server.users:
                # It was started again for a session of it, with what that hub had at hand.
                await server.stop()
            if server is None or server.gone.is_set():
                server = await self._open(key, wanted, environment)
            server.users += 1
        try:
            yield server
        finally:
            server.users -= 1
            server.idle_since = self._clock.now()
            await _let_go(server)

    def runs(self, environment: Mapping[str, str], session: str = "") -> bool:
        """Whether the server that keeps the session, or the one for this environment, is there already."""
        server = self._servers.get(marks.find(self._folders(), session) or self._key(environment))
        return server is not None and not server.gone.is_set()

    async def clean(self, before: float, *, dry_run: bool) -> int:
        """Remove the folders of servers that are gone and were not used since `before`; gives their size in bytes."""
        total = 0
        for folder in await asyncio.to_thread(lambda: sorted(self._folders().glob("*"))):
            async with self._locks.setdefault(folder.name, asyncio.Lock()):
                size = await asyncio.to_thread(unused.size, folder, before)
                if size and not dry_run:
                    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                total += size
        return total

    def identities(self) -> tuple[Identity, ...]:
        """Every server that runs and is ours."""
        return tuple(server.identity for server in self._servers.values() if not server.attached)

    def _folders(self) -> Path:
        return self.launch.folder / "servers"

    def _key(self, environment: Mapping[str, str]) -> str:
        if self._attach is not None:
            return "attached"
        launch = self.launch
        own = user_config(environment, launch.user_config)
        return digest(relevant(environment), own, launch.config, launch.extra_environment, launch.link_agents)

    async def _open(self, key: str, wanted: str, environment: Mapping[str, str]) -> Server:
        folder = self._folders() / key
        if self._attach is not None:
            connection = Connection(
                self._attach.url, self._attach.password(), self.launch.call_limit_s, self._attach.user
            )
            try:
                version = await connection.health()
                self._finder.check(version, self._attach.url)
            except OffloadError:
                await connection.close()
                raise
            attached = self._servers[key] = Server(connection, version, folder, made_for=wanted)
            return attached
        server = await self._find_again(folder) or await self._start_anew(folder, wanted, environment)
        await self._tend(key, server)
        return server

    async def _start_anew(self, folder: Path, wanted: str, environment: Mapping[str, str]) -> Server:
        # Two must not share a folder, and a hub may have been killed before it could write down what it had started.
        await _end_children(folder)
        found = await self._finder.find(environment)
        server = await self._start(folder, found.path, found.version, environment)
        server.made_for = wanted
        server.remember()
        return server

    async def _tend(self, key: str, server: Server) -> None:
        """Watch over a server from now on."""
        server.idle_since = self._clock.now()
        self._servers[key] = server
        group = await self._tasks()
        group.create_task(self._watch(server))
        group.create_task(self._end_when_idle(key, server))

    async def _find_again(self, folder: Path) -> Server | None:
        """The server that an earlier hub left, if it is one that we know; else it is ended."""
        try:
            left = json.loads((folder / FILE).read_text(encoding="utf-8"))
            identity = Identity(left["pid"], left["started"])
            url, password, made_for = left["url"], left["password"], left.get("made_for", folder.name)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        if not alive(identity):
            (folder / FILE).unlink()
            return None
        connection = Connection(url, password, self.launch.call_limit_s)
        with contextlib.suppress(OffloadError, TimeoutError):
            async with asyncio.timeout(HEALTH_LIMIT_S):
                version = await connection.health()
            self._finder.check(version, url)
            return Server(connection, version, folder, identity, made_for=made_for)
        await connection.close()
        await stop_tree(identity)
        return None

    async def _start(self, folder: Path, program: Path, version: str, environment: Mapping[str, str]) -> Server:
        launch = self.launch
        password = secrets.token_urlsafe(24)
        own = user_config(environment, launch.user_config)
        whole = server_environment(
            environment,
            folder=folder,
            config=own,
            content=launch.config,
            password=password,
            extra=launch.extra_environment,
        )
        prepare(folder, version, user_folder(environment) if launch.link_agents else None)
        command: list[str | Path] = [program, "serve", "--hostname", "127.0.0.1", "--port", "0"]
        try:
            process = await self._processes.start(command, cwd=folder, environment=whole)
        except OSError as error:
            raise WorkerBroken(f"OpenCode at {program} cannot be started: {error}.") from None
        said = bytearray()
        try:
            async with asyncio.timeout(launch.start_limit_s):
                url = await _url(process.output, said)
        except (TimeoutError, EOFError):
            await process.stop()
            words = said[-1000:].decode(errors="replace").replace(password, "***").strip()
            raise WorkerBroken(
                f"OpenCode at {program} did not begin to listen; it said: {words or 'nothing'}"
            ) from None
        except asyncio.CancelledError:
            await process.stop()
            raise
        connection = Connection(url, password, launch.call_limit_s)
        return Server(connection, version, folder, process.identity, process)

    async def _tasks(self) -> asyncio.TaskGroup:
        """The group of what watches over servers. It lives in a task of its own, which `aclose` ends, because servers outlive
        the calls that start them."""
        if self._group is None:
            opened = asyncio.Event()

            async def hold() -> None:
                async with asyncio.TaskGroup() as self._group:
                    opened.set()
                    await asyncio.Event().wait()

            self._root = asyncio.create_task(hold(), name="opencode-servers")
            await opened.wait()
        assert self._group is not None
        return self._group

    async def _watch(self, server: Server) -> None:
        """Notice the end of a server, and keep its output from filling up."""
        process = server.process
        if process is not None:
            async with asyncio.TaskGroup() as group:
                drain = group.create_task(_drain(process.output))
                code = await process.wait()
                drain.cancel()
            ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit status {code}"
        else:
            while alive(server.identity):
                await self._clock.sleep(LOOK_EVERY_S)
            ended = "has ended"
        if not server.why:  # else it is being stopped, and told by that
            server.end(ended)
            await _let_go(server)

    async def _end_when_idle(self, key: str, server: Server) -> None:
        idle_s = self.launch.idle_s
        while not server.gone.is_set():
            left = idle_s if server.users else server.idle_since + idle_s - self._clock.now()
            await self._clock.sleep(max(left, 1.0))
            async with self._locks[key]:
                if not server.users and self._clock.now() - server.idle_since >= idle_s:
                    await server.stop()

    async def _end_watching(self) -> None:
        if self._root is not None:
            self._root.cancel()
            await asyncio.wait([self._root])
            self._root = self._group = None

    async def aclose(self) -> None:
        # What watches goes first: it would take the end of a server for a loss. What starts or stops one is let finish.
        async with contextlib.AsyncExitStack() as locks:
            for lock in [*self._locks.values()]:
                await locks.enter_async_context(lock)
            await self._end_watching()
        servers, self._servers = [*self._servers.values()], {}
        async with asyncio.TaskGroup() as group:
            for server in servers:
                group.create_task(server.stop())


async def _end_children(folder: Path) -> None:
    """Whatever comes from a server of the folder, wherever it works, is nobody's any more once the server is gone."""
    await end_strays(Origin(folder, marker=digest(folder), claims=lambda _: True))


async def _notice(server: Server) -> None:
    """The end of a server that is not told yet. A child's is told in a moment, with how it came."""
    if server.process is not None:
        await server.gone.wait()
    elif not server.why:
        server.end("has ended")
        await _let_go(server)


async def _let_go(server: Server) -> None:
    """Close the connection to a server that is gone, once nobody uses it."""
    if server.gone.is_set() and not server.users:
        await server.connection.close()


async def _url(output: asyncio.StreamReader, said: bytearray) -> str:
    """Read until the server says where it listens; all that was read is in `said`."""
    while True:
        chunk = await output.read(1 << 16)
        if not chunk:
            raise EOFError
        said += chunk
        _, found, after = bytes(said).partition(LISTENING)
        if found and b"\n" in after:
            return after.split(b"\n")[0].decode().strip()


async def _drain(output: asyncio.StreamReader) -> None:
    while await output.read(1 << 16):
        pass


def _write_private(path: Path, content: Mapping[str, object]) -> None:
    """Readable by the owner alone from the first moment on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        json.dump(content, file)
