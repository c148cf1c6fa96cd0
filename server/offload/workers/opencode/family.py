"""The session of a turn and those of its sub-agents at any depth: found, asked about, and stopped together.

Knows nothing of how a turn is begun or ends by itself.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from offload.core.ports import Clock
from offload.domain.ask import AskId, AskOutcome
from offload.workers.opencode.client import Client, Json, NotThere
from offload.workers.opencode.progress import Progress

logger = logging.getLogger(__name__)

ABORT_LIMIT_S = 5.0
ABORTS = 2
NO = "The person did not allow this. Go on without it, or say what you would need it for."
NO_EDIT_OUTSIDE = "Files outside of the task's folder cannot be edited. Work inside of it."


class Family:
    """`progress` keeps what is known of it; events tell of most, and what they do not is read from the server here."""

    def __init__(self, client: Client, session: str, progress: Progress, clock: Clock) -> None:
        self._client = client
        self._session = session
        self._progress = progress
        self._clock = clock

    async def read(self) -> list[Json]:
        """Find sub-agents that no event told of, and what they used in this turn; gives their messages of it."""
        waiting, found = [self._session], []
        while waiting:
            for child in await self._client.children(waiting.pop()):
                waiting.append(child)
                self._progress.family.add(child)
                for message in await self._client.messages(child):
                    info = message["info"]
                    # Ids sort by time: what is older than the prompt belongs to an earlier turn.
                    if info["role"] == "assistant" and info["id"] > self._progress.rounds.prompt:
                        self._progress.round(info)
                        found.append(message)
        return found

    async def read_asks(self) -> None:
        known = set(self._progress.asks)
        requests = [*await self._client.permissions(), *await self._client.questions()]
        if any(request["sessionID"] not in self._progress.family for request in requests):
            await self.read()
        for request in requests:
            if request["sessionID"] in self._progress.family:
                self._progress.open(request)
        for gone in known - {AskId(request["id"]) for request in requests}:
            self._progress.close(gone, AskOutcome.WITHDRAWN)

    async def refuse_unwanted(self) -> None:
        """What nobody is asked about is refused at once."""
        for ask in self._progress.unwanted[:]:
            self._progress.unwanted.remove(ask)
            await self._gone_or(self._client.refuse(ask, NO_EDIT_OUTSIDE))

    async def halt(self, wake: Callable[[], Awaitable[None]]) -> bool:
        """Refuse what is asked, abort sub-agents, then the session, and see that all of them are idle; twice if need be.

        False when they are not. `wake` waits until it is time to look again.
        """
        await self.read()
        for _ in range(ABORTS):
            await self.read_asks()
            for ask in [*self._progress.asks]:
                request = self._progress.take(ask) or {}
                await self._gone_or(
                    self._client.reject(ask) if "questions" in request else self._client.refuse(ask, NO)
                )
            for session in sorted(self._progress.family - {self._session}):
                await self._gone_or(self._client.abort(session))
            await self._client.abort(self._session)
            began = self._clock.now()
            while self._clock.now() - began <= ABORT_LIMIT_S:
                if await self._is_idle():
                    return True
                await wake()
        return False

    async def _is_idle(self) -> bool:
        """Whether nobody of the family works; one more sub-agent may have been made a moment ago."""
        if self._progress.family & set(await self._client.status()):
            return False
        await self.read()
        return not self._progress.family & set(await self._client.status())

    async def _gone_or(self, call: Awaitable[None]) -> None:
        try:
            await call
        except NotThere:
            logger.debug("a request or a sub-agent was gone before it was ended")
