"""OpenCode as core's `Worker`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import unquote

from offload.core.ports import Clock, TurnOrder, WorkerInfo
from offload.domain.errors import CallerError, OffloadError, WorkerBroken
from offload.processes import Processes
from offload.workers.opencode.client import NotThere
from offload.workers.opencode.find import Finder
from offload.workers.opencode.offer import Offer, read_offer
from offload.workers.opencode.permissions import session_rules
from offload.workers.opencode.servers import Attach, Launch, Server, Servers
from offload.workers.opencode.turn import OpenCodeTurn


class OpenCodeWorker:
    """Nothing runs before the first turn or description; `aclose` ends every server that was started."""

    def __init__(
        self, finder: Finder, launch: Launch, clock: Clock, processes: Processes, attach: Attach | None = None
    ) -> None:
        self._name = finder.agent.name
        self._clock = clock
        self._folder = launch.folder
        self._servers = Servers(finder, launch, clock, processes, attach)

    @property
    def name(self) -> str:
        return self._name

    async def describe(self, environment: Mapping[str, str]) -> WorkerInfo:
        try:
            async with self._servers.use(environment) as server:
                offer = await self._offer(server)
                return WorkerInfo(self._name, server.version, offer.agents, offer.models, offer.default_model)
        except OffloadError as error:
            return WorkerInfo(self._name, problem=str(error))

    async def _offer(self, server: Server) -> Offer:
        """What the server offers now. It is the same for every folder, as projects configure nothing; asking in a folder of
        our own spares each task's first call."""
        self._folder.mkdir(parents=True, exist_ok=True)
        server.offer = await read_offer(server.connection.client(str(self._folder)))
        return server.offer

    @asynccontextmanager
    async def turn(self, order: TurnOrder) -> AsyncIterator[OpenCodeTurn]:
        _check_folder(str(order.folder))
        async with self._servers.use(order.environment) as server:
            offer = await self._checked(server, order)
            client = server.connection.client(str(order.folder))
            agent = order.route.agent or offer.default_agent
            rules = session_rules(offer.rules.get(agent, ()), order.commands)
            session = order.session or await client.create(order.title, rules)
            turn = OpenCodeTurn(server, client, offer, order, session, self._clock)
            running = asyncio.create_task(turn.run(), name=f"opencode-{order.turn}")
            try:
                yield turn
            finally:
                running.cancel()
                await asyncio.wait([running])

    async def _checked(self, server: Server, order: TurnOrder) -> Offer:
        """The offer that holds the order's route; what was unknown may have been added since the server was asked last."""
        offer = server.offer
        if offer is not None:
            try:
                offer.check(order.route)
            except CallerError:
                offer = None
        if offer is None:
            offer = await self._offer(server)
            offer.check(order.route)
        return offer

    async def release(self, session: str, environment: Mapping[str, str]) -> None:
        """Delete the session, unless it is busy. No server is started only for that: what is in its database stays."""
        if not self._servers.runs(environment):
            return
        async with self._servers.use(environment) as server:
            try:
                own = await server.connection.client(str(self._folder)).session(session)
                client = server.connection.client(str(own["directory"]))
                if session in await client.status():
                    raise WorkerBroken(f"OpenCode's session {session} is busy; stop its turn first.")
                await client.delete(session)
            except NotThere:
                return

    async def clean(self, before: float, *, dry_run: bool) -> int:
        return await self._servers.clean(before, dry_run=dry_run)

    async def aclose(self) -> None:
        await self._servers.aclose()


def _check_folder(folder: str) -> None:
    """OpenCode 1.18 decodes a session's folder once more when it is prompted, and so would work in another folder."""
    if unquote(folder) != folder:
        raise WorkerBroken(
            f"OpenCode cannot work in {folder}: it takes the % in the path for an escape; rename the folder."
        )
