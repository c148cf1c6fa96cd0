"""The calls of OpenCode's HTTP interface that offload makes, one method each; and its event stream, read line by line.

`Connection` is a server, `Client` is one directory of it: permissions, questions, status and events are kept per directory.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import httpx

from offload.domain.errors import TurnLost, WorkerBroken

Json = dict[str, Any]
USER = "opencode"  # whom a server takes for its user when it is told none
CALL_LIMIT_S = 60.0  # the first call in a directory makes its instance: seconds


class NotThere(Exception):
    """The server answers that there is no such session or request."""


class Connection:
    """One server. `close` ends all its streams."""

    def __init__(self, url: str, password: str, limit_s: float = CALL_LIMIT_S, user: str = USER) -> None:
        self.url = url
        self.password = password
        self._http = httpx.AsyncClient(
            base_url=url,
            auth=httpx.BasicAuth(user, password),
            timeout=httpx.Timeout(limit_s, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=False,  # a proxy of the user's is for the world, not for loopback
        )

    def client(self, directory: str) -> Client:
        return Client(self, self._http, directory)

    async def health(self) -> str:
        """The server's version."""
        try:
            answer = await call(self._http, "GET", "/global/health", {})
        except NotThere:
            answer = None
        if not isinstance(answer, dict) or not answer.get("healthy"):
            raise WorkerBroken(f"What answers at {self.url} is not an OpenCode server of version 1.")
        return str(answer.get("version", ""))

    async def dispose(self) -> None:
        """End all sessions and the shells that they started."""
        await call(self._http, "POST", "/global/dispose", {})

    async def close(self) -> None:
        await self._http.aclose()


class Client:
    """The calls for one directory. Each raises `TurnLost` when the server is gone and `WorkerBroken` when it is not well."""

    def __init__(self, connection: Connection, http: httpx.AsyncClient, directory: str) -> None:
        self.connection = connection
        self._http = http
        self._directory = directory
        # Always percent-encoded: the server decodes it, so that "100%" or "a b" would be another folder otherwise.
        self._headers = {"x-opencode-directory": quote(directory)}

    async def _call(self, method: str, path: str, body: Json | None = None) -> Any:
        return await call(self._http, method, path, self._headers, body)

    async def agents(self) -> Sequence[Json]:
        return list(await self._call("GET", "/agent"))

    async def providers(self) -> Sequence[Json]:
        return list((await self._call("GET", "/config/providers"))["providers"])

    async def config(self) -> Json:
        return dict(await self._call("GET", "/config"))

    async def create(self, title: str, permission: Sequence[Json]) -> str:
        """Raises `WorkerBroken` when the server takes the directory for another one: it would work there."""
        created = await self._call("POST", "/session", {"title": title, "permission": permission})
        session, directory = str(created["id"]), str(created.get("directory", self._directory))
        if not await asyncio.to_thread(_same, directory, self._directory):
            await self.delete(session)
            raise WorkerBroken(f"OpenCode would work in {directory} in place of {self._directory}; nothing was sent.")
        return session

    async def prompt(self, session: str, body: Json) -> None:
        await self._call("POST", f"/session/{session}/prompt_async", body)

    async def messages(self, session: str) -> Sequence[Json]:
        return list(await self._call("GET", f"/session/{session}/message"))

    async def children(self, session: str) -> Sequence[str]:
        return [str(child["id"]) for child in await self._call("GET", f"/session/{session}/children")]

    async def status(self) -> Mapping[str, Json]:
        """The sessions that are not idle."""
        return dict(await self._call("GET", "/session/status"))

    async def permissions(self) -> Sequence[Json]:
        return list(await self._call("GET", "/permission"))

    async def questions(self) -> Sequence[Json]:
        return list(await self._call("GET", "/question"))

    async def permit(self, request: str) -> None:
        """Only ever once: "always" would hold for all sessions of the directory."""
        await self._call("POST", f"/permission/{request}/reply", {"reply": "once"})

    async def refuse(self, request: str, message: str) -> None:
        """Always with words: without them the whole turn would end."""
        await self._call("POST", f"/permission/{request}/reply", {"reply": "reject", "message": message})

    async def reply(self, request: str, answers: Sequence[Sequence[str]]) -> None:
        await self._call("POST", f"/question/{request}/reply", {"answers": answers})

    async def reject(self, request: str) -> None:
        await self._call("POST", f"/question/{request}/reject", {})

    async def abort(self, session: str) -> None:
        await self._call("POST", f"/session/{session}/abort", {})

    async def session(self, session: str) -> Json:
        return dict(await self._call("GET", f"/session/{session}"))

    async def delete(self, session: str) -> None:
        await self._call("DELETE", f"/session/{session}")

    @asynccontextmanager
    async def stream(self) -> AsyncIterator[AsyncIterator[Json | None]]:
        """The directory's events from now on; None stands for bytes that are no event, a sign of life all the same.

        Raises `httpx.HTTPError` when the stream breaks.
        """
        timeout = httpx.Timeout(CALL_LIMIT_S, read=None)
        async with self._http.stream("GET", "/event", headers=self._headers, timeout=timeout) as response:
            if response.status_code == httpx.codes.UNAUTHORIZED:
                raise refused(self._http)
            if response.status_code != httpx.codes.OK:
                raise WorkerBroken(f"OpenCode refuses its events with status {response.status_code}.")
            yield events(response.aiter_bytes())


def refused(http: httpx.AsyncClient) -> WorkerBroken:
    """A server that wants to know who asks is alive and well."""
    return WorkerBroken(
        f"OpenCode at {http.base_url} refuses the user or the password; check the settings opencode.user and "
        "opencode.password_file."
    )


def _same(one: str, other: str) -> bool:
    """Whether both name one folder, of which one of them may not exist."""
    return os.path.realpath(one) == os.path.realpath(other)


async def call(
    http: httpx.AsyncClient, method: str, path: str, headers: Mapping[str, str], body: Json | None = None
) -> Any:
    """One call, its answer read from JSON; the errors in our words."""
    try:
        response = await http.request(method, path, headers=headers, json=body)
    except httpx.TimeoutException:
        raise WorkerBroken(f"OpenCode at {http.base_url} did not answer {method} {path} in time.") from None
    except httpx.HTTPError as error:
        raise TurnLost(
            f"OpenCode at {http.base_url} cannot be reached: {str(error) or type(error).__name__}."
        ) from None
    if response.status_code == httpx.codes.UNAUTHORIZED:
        raise refused(http)
    if response.status_code == httpx.codes.NOT_FOUND:
        raise NotThere(path)
    if response.is_error:
        raise WorkerBroken(
            f"OpenCode answered {method} {path} with status {response.status_code}: {response.text[:500]}"
        )
    try:
        return response.json() if response.content else None
    except ValueError:
        raise WorkerBroken(
            f"OpenCode answered {method} {path} with something that is not JSON; is its version 1?"
        ) from None


async def events(chunks: AsyncIterator[bytes]) -> AsyncIterator[Json | None]:
    """The events of a stream, of any length each; only line feed ends a line, since JSON may hold other line separators."""
    rest = bytearray()
    async for chunk in chunks:
        yield None
        begin = len(rest)
        rest += chunk
        while (end := rest.find(b"\n", begin)) >= 0:
            line = bytes(rest[:end])
            del rest[: end + 1]
            begin = 0
            if line.startswith(b"data:"):
                event = json.loads(line[5:])
                yield event
