"""OpenCode as core's `Worker`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import unquote

from offload.core.ports import Clock
from offload.core.worker import TurnOrder, WorkerInfo
from offload.domain.errors import CallerError, OffloadError, TurnLost, WorkerBroken, WorkerError
from offload.domain.profile import Profile
from offload.domain.route import Route
from offload.processes import Ended, Origin, Processes, end_strays
from offload.workers.opencode import marks
from offload.workers.opencode.client import Client, NotThere
from offload.workers.opencode.find import Finder
from offload.workers.opencode.offer import Offer, read_offer
from offload.workers.opencode.permissions import PROFILES, Rule, looser, session_rules
from offload.workers.opencode.servers import Attach, Launch, Server, Servers
from offload.workers.opencode.turn import LOST_S, POLL_S, OpenCodeTurn


class OpenCodeWorker:
    """Nothing runs before the first turn or description; `aclose` ends every server that was started."""

    def __init__(
        self,
        finder: Finder,
        launch: Launch,
        clock: Clock,
        processes: Processes,
        attach: Attach | None = None,
        end: Callable[[Origin], Awaitable[Ended]] = end_strays,
    ) -> None:
        self._end = end
        self._finder = finder
        self._name = finder.agent.name
        self._clock = clock
        self._folder = launch.folder
        self._servers = Servers(finder, launch, clock, processes, attach)

    @property
    def name(self) -> str:
        return self._name

    @property
    def profiles(self) -> frozenset[Profile]:
        return PROFILES

    async def describe(self, environment: Mapping[str, str]) -> WorkerInfo:
        try:
            async with self._servers.use(environment) as server:
                offer = await self._offer(server)
                return WorkerInfo(
                    self._name,
                    server.version,
                    offer.agents,
                    offer.models,
                    offer.default_model,
                    profiles=tuple(profile for profile in Profile if profile in PROFILES),
                    note="" if offer.signed_in else await self._unsigned(server, offer, environment),
                )
        except OffloadError as error:
            return WorkerInfo(self._name, problem=str(error))

    async def _unsigned(self, server: Server, offer: Offer, environment: Mapping[str, str]) -> str:
        """Where code would be sent, and how to change that; a server that is somebody else's is signed in elsewhere."""
        goes = (
            f"tasks would go to {offer.default_model or 'a free model'} at OpenCode"
            if offer.models
            else "it knows no model"
        )
        if server.attached:
            return f"no sign-in found: {goes}"
        program = (await self._finder.find(environment)).path
        return f"no sign-in found: {goes}; sign in with `{program} {self._finder.agent.sign_in}`"

    async def check(self, route: Route, environment: Mapping[str, str], session: str = "") -> None:
        async with self._servers.use(environment, session) as server:
            await self._checked(server, route)

    async def _offer(self, server: Server) -> Offer:
        """What the server offers now. It is the same for every folder, as projects configure nothing; asking in a folder of
        our own spares each task's first call."""
        self._folder.mkdir(parents=True, exist_ok=True)
        server.offer = await read_offer(server.connection.client(str(self._folder)))
        return server.offer

    @asynccontextmanager
    async def turn(self, order: TurnOrder) -> AsyncIterator[OpenCodeTurn]:
        _check_folder(str(order.folder))
        async with self._servers.use(order.environment, order.session) as server:
            mark = await asyncio.to_thread(marks.read, server.folder, order.session) if order.session else None
            offer = await (self._known(server) if order.resume else self._checked(server, order.route))
            client = server.connection.client(str(order.folder))
            agent = order.route.agent or offer.default_agent
            own = offer.rules.get(agent, ())
            rules = session_rules(own, order.commands, order.profile)
            session = order.session or await client.create(order.title, rules)
            if not order.resume:
                await _read_back(client, session, order, own, rules)
            if mark is None:
                await asyncio.to_thread(marks.keep, server.folder, session, server.identity)
            with server.turns.running(order.turn, resumed=order.resume):
                end_tools = partial(self._end_tools, server, order)
                turn = OpenCodeTurn(server, client, offer, order, session, self._clock, end_tools, mark)
                running = asyncio.create_task(turn.run(), name=f"opencode-{order.turn}")
                try:
                    yield turn
                finally:
                    running.cancel()
                    await asyncio.wait([running])

    async def _end_tools(self, server: Server, order: TurnOrder) -> Ended:
        """End what the tools of the turn have left running. The server of a turn that is lost may be gone by now."""
        identity = None if server.attached else server.identity
        claims = partial(server.turns.alone, order.turn)
        origin = Origin(order.folder, self._servers.identities(), identity, server.marker, claims)
        return await self._end(origin)

    async def _known(self, server: Server) -> Offer:
        """What the server offers, for a turn that may run already: its route was checked, and what cannot be reached for a
        moment must not be taken for gone. Raises `TurnLost` when nobody works on it any more."""
        began = self._clock.now()
        while server.offer is None:
            try:
                return await self._offer(server)
            except WorkerError as error:
                if self._clock.now() - began > LOST_S or server.gone.is_set():
                    await server.stop()
                    raise TurnLost(f"OpenCode could not be talked to any more: {error}") from None
            await self._clock.sleep(POLL_S)
        return server.offer

    async def _checked(self, server: Server, route: Route) -> Offer:
        """The offer that holds the route; what was unknown may have been added since the server was asked last."""
        offer = server.offer
        if offer is not None:
            try:
                offer.check(route)
            except CallerError:
                offer = None
        if offer is None:
            offer = await self._offer(server)
            offer.check(route)
        return offer

    async def release(self, session: str, environment: Mapping[str, str]) -> None:
        """Delete the session, unless it is busy. No server is started only for that: what is in its database stays."""
        if not self._servers.runs(environment, session):
            return
        async with self._servers.use(environment, session) as server:
            try:
                own = await server.connection.client(str(self._folder)).session(session)
                client = server.connection.client(str(own["directory"]))
                if session in await client.status():
                    raise WorkerBroken(f"OpenCode's session {session} is busy; stop its turn first.")
                await client.delete(session)
                await asyncio.to_thread(marks.forget, server.folder, session)
            except NotThere:
                return

    async def adopt(self) -> None:
        await self._servers.adopt()

    async def clean(self, before: float, *, dry_run: bool) -> int:
        return await self._servers.clean(before, dry_run=dry_run)

    async def aclose(self) -> None:
        await self._servers.aclose()


async def _read_back(
    client: Client, session: str, order: TurnOrder, agent: Sequence[Any], rules: Sequence[Rule]
) -> None:
    """Raises `WorkerBroken` when the session may do more than was asked for; nothing was sent then."""
    try:
        got = (await client.session(session)).get("permission") or ()
    except NotThere:
        return  # There is no session, as the turn will tell.
    beyond = looser(agent, rules, got)
    if beyond:
        if not order.session:
            await client.delete(session)
        raise WorkerBroken(
            f"OpenCode gives the session more than the profile {order.profile} asks for: {beyond}; nothing was sent."
        )


def _check_folder(folder: str) -> None:
    """OpenCode 1.18 decodes a session's folder once more when it is prompted, and so would work in another folder."""
    if unquote(folder) != folder:
        raise WorkerBroken(
            f"OpenCode cannot work in {folder}: it takes the % in the path for an escape; rename the folder."
        )
