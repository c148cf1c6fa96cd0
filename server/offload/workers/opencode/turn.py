"""One turn of an OpenCode session, from the prompt to a proven end.

A turn is over when the session is not busy and the last message that answers our prompt is complete: neither alone is enough.
Events and a tick only say when to look; what is believed is what the server answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx

from offload.core.ports import Clock
from offload.core.timing import within
from offload.core.worker import (
    Alive,
    AskOpened,
    Doing,
    End,
    Failed,
    Finished,
    Halted,
    Lost,
    Opened,
    Said,
    Seen,
    TurnOrder,
    Used,
    WorkerEvent,
)
from offload.domain.ask import DENY, Answer, AskId
from offload.domain.errors import Defect, OffloadError, TurnLost, UnknownAsk, WorkerBroken, WorkerError
from offload.domain.route import differences
from offload.domain.turn import STOP_INCOMPLETE, Failure
from offload.processes import Ended
from offload.workers import left
from offload.workers.opencode import marks
from offload.workers.opencode.client import Client, Json, NotThere
from offload.workers.opencode.family import NO, Family
from offload.workers.opencode.marks import Mark
from offload.workers.opencode.offer import Offer
from offload.workers.opencode.progress import Progress
from offload.workers.opencode.servers import Server
from offload.workers.opencode.transcript import answers, claims, ending, is_completed

logger = logging.getLogger(__name__)

POLL_S = 2.0
SILENCE_S = 35.0  # the server's heartbeat is every 10 s
RECONNECT_S = 0.5
CONNECT_LIMIT_S = 30.0
NOT_STARTED_S = 30.0
LOST_S = 30.0
LATE_S = 5.0  # a prompt may be stored a while after it was taken
UNSETTLED_S = 10.0  # busy and finished, or idle and unfinished, may both be true for a moment
STALLED_S = 60.0
ALIVE_S = 20.0
STOP_LIMIT_S = 20.0


class OpenCodeTurn:
    """`run` is the turn's own task: it puts events into a queue that `events` reads, so that reading never waits for a reader."""

    def __init__(
        self,
        server: Server,
        client: Client,
        offer: Offer,
        order: TurnOrder,
        session: str,
        clock: Clock,
        end_tools: Callable[[], Awaitable[Ended]],
        mark: Mark | None = None,
    ) -> None:
        self._server = server
        self._mark = mark
        self._restarted = mark is not None and not server.attached and mark.server != server.identity
        self._client = client
        self._offer = offer
        self._order = order
        self._session = session
        self._clock = clock
        self._prompt = f"msg_{order.turn.removeprefix('turn_')}"
        self._events: asyncio.Queue[WorkerEvent] = asyncio.Queue()
        self._progress = Progress(order, session, self._prompt, offer, self._put)
        self._family = Family(client, session, self._progress, clock)
        self._end_tools = end_tools
        self._hint = asyncio.Event()
        self._patience: asyncio.Timeout | None = None
        self._stop = asyncio.Event()
        self._go = False
        self._seen = False
        self._connected = False
        self._look_closely = False
        self._stream_trouble: WorkerError | None = None
        self._heard = self._news = self._told = clock.now()
        self._reached = 0.0
        """When the server last answered about a prompt that is out; 0 before."""
        self._unsettled_since: float | None = None

    @property
    def _stop_asked(self) -> bool:
        return self._stop.is_set()

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
        self._progress.answered(request, no=answer.choice == DENY and "questions" not in request)

    async def stop(self) -> None:
        self._stop.set()
        self._hint.set()

    async def _end_by_force(self) -> End:
        """The server goes on with the turn, or does not answer any more: it is ended, if that takes it from nobody else."""
        if not self._server.attached and self._server.turns.running_now == 1:
            await self._server.stop()
            return Halted(self._progress.text)
        words = f"OpenCode was told to stop, but its session {self._session} goes on."
        return Failed(Failure(STOP_INCOMPLETE, words), self._progress.text)

    # The turn's own task.

    async def run(self) -> None:
        """Ends by itself with the turn, and never with an error: one turn's defect must not end the others."""
        try:
            async with asyncio.TaskGroup() as group:
                helpers = [group.create_task(helper()) for helper in (self._follow, self._tick, self._guard)]
                end = left.told(await self._end_in_time(group), await self._end_tools())
                for helper in helpers:
                    helper.cancel()
        except ExceptionGroup as errors:
            logger.exception("a turn of OpenCode met a defect")
            end = Failed(Failure(Defect.code, f"offload made a mistake: {errors.exceptions[0]!r}"), self._progress.text)
        self._put(end)

    async def _end_in_time(self, group: asyncio.TaskGroup) -> End:
        """The end, which comes in a bounded time once the turn is told to stop, whatever the server does."""
        working, stop = group.create_task(self._told_end()), group.create_task(self._stop.wait())
        await asyncio.wait({working, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not working.done():
            await within(self._clock, STOP_LIMIT_S, asyncio.wait({working}))
        if working.done():
            return working.result()
        working.cancel()
        return await self._end_by_force()

    async def _told_end(self) -> End:
        """The end, where an error that we know is one as well; nobody works on the turn any more when it is told."""
        try:
            end = await self._to_the_end()
        except OffloadError as error:
            await self._give_up()
            text, failure = self._progress.text, Failure(error.code, str(error))
            if self._stop_asked and self._server.gone.is_set():
                return Halted(text)
            end = Lost(str(error), text) if isinstance(error, TurnLost) else Failed(failure, text)
        except NotThere:
            said = "OpenCode does not know the session any more."
            end = (
                Lost(said, sure=True)
                if self._order.resume
                else Failed(Failure(TurnLost.code, said), self._progress.text)
            )
        return end

    async def _give_up(self) -> None:
        """Nobody follows the turn from here on: it is aborted, or its server is ended."""
        if self._server.gone.is_set() or not (self._reached or self._order.resume):
            return
        try:
            await self._client.abort(self._session)
            if self._session not in await self._client.status():
                return
        except (OffloadError, NotThere) as error:
            logger.warning("a turn could not be aborted: %r", error)
        await self._server.stop()

    def _put(self, event: WorkerEvent) -> None:
        """The worker is at work when it does anything at all, so that is said first."""
        self._told = self._clock.now()
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
            if not event["type"].startswith("server."):
                self._live()
        except (KeyError, TypeError, AttributeError) as error:
            logger.warning("an event of OpenCode was not understood: %r", error)

    def _live(self) -> None:
        """The worker did something, if nothing to tell of."""
        self._news = self._clock.now()
        self._progress.revive()
        if self._news - self._told > ALIVE_S:
            self._put(Alive())

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
                raise self._no_stream()
        sent = bool(self._order.session) and await self._sent_before()
        if sent and self._restarted and not self._stop_asked:
            return await self._ended() or Lost(
                "OpenCode has ended since then, and the turn was not finished.", sure=True
            )
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
                # One that only stumbles is asked again; `_wake` tells of one that is gone.
                if not self._server.gone.is_set() and self._clock.now() - self._reached > LOST_S:
                    raise
                if self._server.gone.is_set():
                    self._hint.set()
            await self._wake()

    def _no_stream(self) -> Exception:
        said = "OpenCode's event stream could not be opened; nothing was sent."
        return TurnLost(said) if self._order.resume else self._stream_trouble or WorkerBroken(said)

    async def _sent_before(self) -> bool:
        """Whether this very prompt is in the session already; then its turn is met again. A busy session would queue another.

        One that may have been sent to this very server is waited for: it may be stored a while after it was taken.
        """
        late_s = LATE_S if self._mark is not None and self._mark.prompt == self._prompt and not self._restarted else 0
        began, busy = self._clock.now(), False
        while True:
            try:
                if await self._is_stored():
                    return True
                busy = self._session in await self._client.status()
                if self._clock.now() - began >= late_s:
                    break
            except WorkerError:
                if self._clock.now() - began > LOST_S:
                    raise
            await self._wake()
        if busy:
            raise WorkerBroken("The worker's session is still busy with an earlier turn; nothing was sent.")
        return False

    async def _is_stored(self) -> bool:
        messages = await self._client.messages(self._session)
        for message in answers(messages, self._prompt):
            self._progress.round(message["info"])
        self._progress.prompt_stored |= any(message["info"]["id"] == self._prompt for message in messages)
        return self._progress.prompt_stored

    async def _send(self) -> None:
        route = self._order.route
        provider, _, model = route.model.partition("/")
        body: Json = {"messageID": self._prompt, "parts": [{"type": "text", "text": self._order.prompt}]}
        body["agent"] = route.agent or self._offer.default_agent
        if model:
            body["model"] = {"providerID": provider, "modelID": model}
        if route.variant:
            body["variant"] = route.variant
        await asyncio.to_thread(marks.keep, self._server.folder, self._session, self._server.identity, self._prompt)
        try:
            await self._client.prompt(self._session, body)
        except TurnLost:
            # It may have come through: a look tells, and never a second sending.
            logger.info("the answer to a prompt was lost")

    async def _look(self, began: float) -> End | None:
        """Ask how things are; gives the end when it is proven."""
        await self._family.refuse_unwanted()
        if self._look_closely:
            self._look_closely = False
            await self._family.read_asks()
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
            self._progress.stall(self._news)
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
            return Lost("OpenCode is idle, but never finished its last message.", self._progress.text, sure=True)
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
        helpers = await self._family.read()
        usage = self._progress.rounds.usage(self._offer.priced)
        ran = self._progress.rounds.ran(self._order.route.worker)
        text = found.text or self._progress.text
        if found.aborted and self._stop_asked:
            return Halted(text)
        if found.aborted and self._restarted:
            return Lost("OpenCode was stopped in the middle of the turn.", text, sure=True)
        if found.aborted:
            return Failed(Failure("aborted", "Somebody else stopped the turn."), text)
        if found.failure is not None:
            return Failed(found.failure, text)
        doubts = [part for part in (found.doubt, doubt, *differences(self._order.route, ran)) if part]
        return Finished(found.text, ran, usage, "; ".join(doubts), claims([*own, *helpers]))

    async def _halt(self) -> End:
        """Stop all of it. What the worker finished before the abort came is finished."""
        if not await self._family.halt(self._wake):
            return await self._end_by_force()
        end = await self._ended()
        return end if isinstance(end, Finished | Halted) else Halted(self._progress.text)


def _replies(request: Json, answer: Answer) -> list[list[str]]:
    """One list of labels per question. A refusal is told in words, so that the turn goes on."""
    words = answer.message or NO if answer.choice == DENY else answer.choice
    return [[words] for _ in request["questions"]]
