"""One turn of an OpenCode session, from the prompt to a proven end.

A turn is over when the session is not busy and the last message that answers our prompt is complete: neither alone is enough.
Events and a tick only say when to look; what is believed is what the server answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import httpx

from offload.core.ports import (
    AskOpened,
    Clock,
    Doing,
    Failed,
    Finished,
    Halted,
    Opened,
    Said,
    Seen,
    TurnOrder,
    Used,
    WorkerEvent,
)
from offload.domain.ask import DENY, Answer, AskId, AskOutcome
from offload.domain.errors import Defect, OffloadError, TurnLost, UnknownAsk, WorkerError
from offload.domain.route import differences
from offload.domain.turn import Activity, ActivityKind, Failure
from offload.workers.opencode.client import Client, Json, NotThere
from offload.workers.opencode.offer import Offer
from offload.workers.opencode.progress import Progress
from offload.workers.opencode.servers import Server
from offload.workers.opencode.transcript import answers, ending, is_completed

logger = logging.getLogger(__name__)

POLL_S = 2.0
SILENCE_S = 35.0  # the server's heartbeat is every 10 s
RECONNECT_S = 0.5
CONNECT_LIMIT_S = 30.0
NOT_STARTED_S = 30.0
LOST_S = 30.0
UNSETTLED_S = 10.0  # busy and finished, or idle and unfinished, may both be true for a moment
STALLED_S = 60.0
ABORT_LIMIT_S = 5.0
NO = "The person did not allow this. Go on without it, or say what you would need it for."
NO_EDIT_OUTSIDE = "Files outside of the task's folder cannot be edited. Work inside of it."

End = Finished | Failed | Halted


class OpenCodeTurn:
    """`run` is the turn's own task: it puts events into a queue that `events` reads, so that reading never waits for a reader."""

    def __init__(
        self, server: Server, client: Client, offer: Offer, order: TurnOrder, session: str, clock: Clock
    ) -> None:
        self._server = server
        self._client = client
        self._offer = offer
        self._order = order
        self._session = session
        self._clock = clock
        self._prompt = f"msg_{order.turn.removeprefix('turn_')}"
        self._events: asyncio.Queue[WorkerEvent] = asyncio.Queue()
        self._progress = Progress(order, session, self._prompt, offer, self._put)
        self._hint = asyncio.Event()
        self._patience: asyncio.Timeout | None = None
        self._stop_asked = False
        self._go = False
        self._seen = False
        self._connected = False
        self._look_closely = False
        self._stream_trouble: WorkerError | None = None
        self._heard = self._news = self._reached = clock.now()
        self._unsettled_since: float | None = None

    # What core calls.

    async def events(self) -> AsyncIterator[WorkerEvent]:
        yield Opened(self._session)
        self._go = True
        self._hint.set()
        while True:
            event = await self._events.get()
            yield event
            if isinstance(event, End):
                return

    async def answer(self, ask: AskId, answer: Answer) -> None:
        request = self._progress.take(ask)
        if request is None:
            raise UnknownAsk(f"The request {ask} is not open any more.")
        try:
            if "questions" in request:
                await self._client.reply(ask, _replies(request, answer))
            elif answer.choice == DENY:
                await self._client.refuse(ask, answer.message or NO)
            else:
                await self._client.permit(ask)
        except NotThere:
            raise UnknownAsk(f"The request {ask} is not open any more.") from None

    async def stop(self) -> None:
        self._stop_asked = True
        self._hint.set()

    # The turn's own task.

    async def run(self) -> None:
        """Ends by itself with the turn, and never with an error: one turn's defect must not end the others."""
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [group.create_task(helper()) for helper in (self._follow, self._tick, self._guard)]
                end = await self._told_end()
                for helper in helpers:
                    helper.cancel()
        except ExceptionGroup as errors:
            logger.exception("a turn of OpenCode met a defect")
            end = Failed(Failure(Defect.code, f"offload made a mistake: {errors.exceptions[0]!r}"), self._progress.text)
        self._put(end)

    async def _told_end(self) -> End:
        """The end, where an error that we know is one as well."""
        try:
            return await self._to_the_end()
        except OffloadError as error:
            return Failed(Failure(error.code, str(error)), self._progress.text)
        except NotThere:
            failure = Failure(TurnLost.code, "OpenCode does not know the session any more.")
            return Failed(failure, self._progress.text)

    def _put(self, event: WorkerEvent) -> None:
        """The worker is at work when it does anything at all, so that is said first."""
        if isinstance(event, Doing | Said | Used | AskOpened | Finished) and not self._seen:
            self._seen = True
            self._events.put_nowait(Seen())
        self._events.put_nowait(event)

    async def _follow(self) -> None:
        """Read the directory's events; a stream that breaks or falls silent is opened again."""
        while True:
            try:
                async with asyncio.timeout(None) as self._patience, self._client.stream() as stream:
                    async for event in stream:
                        self._heard = self._clock.now()
                        if event is not None:
                            self._take(event)
            except (TimeoutError, httpx.HTTPError, ValueError) as error:
                logger.debug("the event stream ended: %r", error)
            except WorkerError as error:
                self._stream_trouble = error
            self._patience = None
            self._connected = False
            await self._clock.sleep(RECONNECT_S)
            self._heard = self._clock.now()

    def _take(self, event: Json) -> None:
        if event.get("type") == "server.connected":
            # Nothing is replayed, so what was missed is read from the server.
            self._connected = self._look_closely = True
            self._hint.set()
        try:
            if self._progress.reduce(event):
                self._hint.set()
            if event["type"] != "server.heartbeat":
                self._news = self._clock.now()
        except (KeyError, TypeError, AttributeError) as error:
            logger.warning("an event of OpenCode was not understood: %r", error)

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(POLL_S)
            if self._patience is not None and self._clock.now() - self._heard > SILENCE_S:
                self._patience.reschedule(0)
                self._patience = None
            self._look_closely = True
            self._hint.set()

    async def _guard(self) -> None:
        await self._server.gone.wait()
        self._hint.set()

    async def _wake(self) -> None:
        await self._hint.wait()
        self._hint.clear()
        if self._server.gone.is_set():
            raise TurnLost(f"OpenCode {self._server.why} in the middle of the turn.")

    async def _to_the_end(self) -> End:
        """Wait for the go and for the event stream, send the prompt once, and look until it is over."""
        began = self._clock.now()
        while not (self._go and self._connected) and not self._stop_asked:
            await self._wake()
            if not self._connected and self._clock.now() - began > CONNECT_LIMIT_S:
                raise self._stream_trouble or TurnLost("OpenCode's event stream could not be opened; nothing was sent.")
        sent = False
        if self._order.session:
            sent = await self._sent_before()
        if self._stop_asked and not sent:
            return Halted()
        if not sent:
            await self._send()
        began = self._reached = self._clock.now()
        while True:
            try:
                end = await (self._halt() if self._stop_asked else self._look(began))
                self._reached = self._clock.now()
                if end is not None:
                    return end
            except WorkerError:
                # A server that is gone is told by `_wake`; one that only stumbles is asked again.
                if self._clock.now() - self._reached > LOST_S:
                    raise
            await self._wake()

    async def _sent_before(self) -> bool:
        """Whether this very prompt is in the session already; then its turn is met again. A busy session would queue another."""
        messages = await self._client.messages(self._session)
        if any(message["info"]["id"] == self._prompt for message in messages):
            for message in answers(messages, self._prompt):
                self._progress.round(message["info"])
            return True
        if self._session in await self._client.status():
            raise TurnLost("The worker's session is still busy with an earlier turn; nothing was sent.")
        return False

    async def _send(self) -> None:
        route = self._order.route
        provider, _, model = route.model.partition("/")
        body: Json = {"messageID": self._prompt, "parts": [{"type": "text", "text": self._order.prompt}]}
        body["agent"] = route.agent or self._offer.default_agent
        if model:
            body["model"] = {"providerID": provider, "modelID": model}
        if route.variant:
            body["variant"] = route.variant
        try:
            await self._client.prompt(self._session, body)
        except TurnLost:
            # It may have come through: a look tells, and never a second sending.
            logger.info("the answer to a prompt was lost")

    async def _look(self, began: float) -> End | None:
        """Ask how things are; gives the end when it is proven."""
        for ask in self._progress.unwanted[:]:
            self._progress.unwanted.remove(ask)
            await self._refuse(ask, NO_EDIT_OUTSIDE)
        if self._look_closely:
            self._look_closely = False
            await self._read_asks()
        status = (await self._client.status()).get(self._session)
        now = self._clock.now()
        if status is not None:
            self._progress.status(status)
            return await self._look_at_busy(now)
        return await self._look_at_idle(now, began)

    async def _look_at_busy(self, now: float) -> End | None:
        rounds = self._progress.rounds.own
        if not self._seen and (rounds or self._progress.prompt_stored):
            self._seen = True
            self._events.put_nowait(Seen())
        if rounds and is_completed(rounds[-1]) and rounds[-1].get("finish") == "stop":
            if self._settled(now):
                return await self._ended(
                    "OpenCode still calls itself busy, though the worker's last message is complete"
                )
            return None
        self._unsettled_since = None
        if now - self._news > STALLED_S and not self._progress.running and not self._progress.asks:
            self._progress.do(Activity(ActivityKind.STALLED, since=self._news))
        return None

    async def _look_at_idle(self, now: float, began: float) -> End | None:
        if end := await self._ended():
            return end
        if not self._progress.rounds.own:
            if self._progress.error and self._settled(now):
                return Failed(Failure("not_started", f"OpenCode did not start the turn: {self._progress.error}"))
            if now - began > NOT_STARTED_S:
                return Failed(Failure("not_started", "OpenCode took the prompt, but did not begin to work on it."))
        elif self._settled(now):
            failure = Failure(TurnLost.code, "OpenCode is idle, but never finished its last message; was it restarted?")
            return Failed(failure, self._progress.text)
        return None

    def _settled(self, now: float) -> bool:
        """Whether what does not fit together has been so for long enough to be believed."""
        if self._unsettled_since is None:
            self._unsettled_since = now
        return now - self._unsettled_since > UNSETTLED_S

    async def _ended(self, doubt: str = "") -> End | None:
        """What the messages say of the end, None while they say that it is not over."""
        own = answers(await self._client.messages(self._session), self._prompt)
        for message in own:
            self._progress.round(message["info"])
        found = ending(own)
        if found is None:
            return None
        await self._read_family()
        usage = self._progress.rounds.usage(self._offer.priced)
        ran = self._progress.rounds.ran(self._order.route.worker)
        text = found.text or self._progress.text
        if found.aborted:
            return (
                Halted(text)
                if self._stop_asked
                else Failed(Failure("aborted", "Somebody else stopped the turn."), text)
            )
        if found.failure is not None:
            return Failed(found.failure, text)
        doubts = [part for part in (found.doubt, doubt, *differences(self._order.route, ran)) if part]
        return Finished(found.text, ran, usage, "; ".join(doubts))

    async def _read_family(self) -> None:
        """Find sub-agents that no event told of, at any depth, and what they used in this turn."""
        waiting = [self._session]
        while waiting:
            for child in await self._client.children(waiting.pop()):
                waiting.append(child)
                self._progress.family.add(child)
                for message in await self._client.messages(child):
                    info = message["info"]
                    # Ids sort by time: what is older than the prompt belongs to an earlier turn.
                    if info["role"] == "assistant" and info["id"] > self._prompt:
                        self._progress.round(info)

    async def _read_asks(self) -> None:
        known = set(self._progress.asks)
        requests = [*await self._client.permissions(), *await self._client.questions()]
        if any(request["sessionID"] not in self._progress.family for request in requests):
            await self._read_family()
        for request in requests:
            if request["sessionID"] in self._progress.family:
                self._progress.open(request)
        for gone in known - {AskId(request["id"]) for request in requests}:
            self._progress.close(gone, AskOutcome.WITHDRAWN)

    async def _refuse(self, ask: AskId, words: str) -> None:
        try:
            await self._client.refuse(ask, words)
        except NotThere:
            logger.debug("a request was gone before it was refused")

    async def _halt(self) -> End:
        """Refuse what is asked, abort sub-agents, then the session, and see that all of them are idle; twice if need be."""
        await self._read_family()
        for _ in range(2):
            await self._read_asks()
            for ask in [*self._progress.asks]:
                request = self._progress.take(ask) or {}
                try:
                    await (self._client.reject(ask) if "questions" in request else self._client.refuse(ask, NO))
                except NotThere:
                    logger.debug("a request was gone before it was refused")
            for session in sorted(self._progress.family - {self._session}):
                await self._client.abort(session)
            await self._client.abort(self._session)
            began = self._clock.now()
            while self._clock.now() - began <= ABORT_LIMIT_S:
                if not self._progress.family & set(await self._client.status()):
                    return await self._halted()
                await self._wake()
        failure = Failure(
            "stop_incomplete", f"OpenCode was told to stop twice, but its session {self._session} goes on."
        )
        return Failed(failure, self._progress.text)

    async def _halted(self) -> End:
        """The worker is idle. What it finished before the abort came is finished."""
        end = await self._ended()
        return end if isinstance(end, Finished) else Halted(self._progress.text)


def _replies(request: Json, answer: Answer) -> list[list[str]]:
    """One list of labels per question. A refusal is told in words, so that the turn goes on."""
    words = answer.message or NO if answer.choice == DENY else answer.choice
    return [[words] for _ in request["questions"]]
