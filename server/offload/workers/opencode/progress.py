"""Turns the events of a directory into what a turn's reader wants to know. It reduces each event at once and keeps little.

Events are hints: which of them mean that the server should be asked is told by `reduce`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from offload.core.worker import AskOpened, AskOver, Doing, Said, TurnOrder, Used, WorkerEvent
from offload.domain.ask import Ask, AskId, AskOutcome
from offload.domain.turn import Activity, ActivityKind
from offload.workers.opencode.activity import (
    EDIT_TOOLS,
    PATCH_TOOLS,
    asking,
    denied,
    label,
    permission_ask,
    question_ask,
    trying_again,
)
from offload.workers.opencode.offer import Offer
from offload.workers.opencode.transcript import Rounds, is_completed

Json = dict[str, Any]


class Progress:
    """What is known of a running turn. `family` holds its session and all sub-agents' below; `busy_as` is the last status."""

    def __init__(
        self, order: TurnOrder, session: str, prompt: str, offer: Offer, put: Callable[[WorkerEvent], None]
    ) -> None:
        self.rounds = Rounds(prompt)
        self.family = {session}
        self.asks: dict[AskId, tuple[Json, Ask]] = {}
        self.unwanted: list[AskId] = []
        self.running: set[str] = set()
        self.error = ""
        self.prompt_stored = False
        self._order = order
        self._session = session
        self._offer = offer
        self._put = put
        self._answered: set[AskId] = set()
        self._calls: dict[str, str] = {}
        self._texts: dict[str, int] = {}
        self._said: list[str] = []
        self._speaker = ""
        self._activity: Activity | None = None
        self._before: Activity | None = None
        self._before_asking: Activity | None = None
        self._used: Used | None = None

    @property
    def text(self) -> str:
        """All that was said so far."""
        return "".join(self._said)

    def reduce(self, event: Mapping[str, Any]) -> bool:
        """Take one event in; True when it is time to ask the server how things are."""
        kind, properties = event["type"], event["properties"]
        if kind == "session.created" and properties["info"].get("parentID") in self.family:
            self.family.add(properties["info"]["id"])
        if kind in ("permission.asked", "question.asked"):
            if properties["sessionID"] in self.family:
                self.open(properties)
                return bool(self.unwanted)
        elif kind in ("permission.replied", "question.replied", "question.rejected"):
            self.close(AskId(properties["requestID"]), AskOutcome.ANSWERED)
        elif kind == "message.part.updated":
            if properties["part"]["sessionID"] in self.family:
                self._part(properties["part"])
        elif kind == "message.part.delta":
            self._delta(properties)
        elif properties.get("sessionID") in self.family:
            return self._session_event(kind, properties)
        return False

    def _session_event(self, kind: str, properties: Json) -> bool:
        own = bool(properties["sessionID"] == self._session)
        if kind == "message.updated":
            info = properties["info"]
            if info["id"] == self.rounds.prompt:
                self.prompt_stored = True
                return True
            if info["role"] == "assistant" and (not own or info.get("parentID") == self.rounds.prompt):
                self.round(info)
                return own
        elif kind == "session.status" and own:
            return self.status(properties["status"])
        elif kind == "session.error" and own:
            error = properties.get("error") or {}
            self.error = str((error.get("data") or {}).get("message") or error.get("name") or "unknown error")
            return True
        return own and kind == "session.idle"

    def status(self, status: Json) -> bool:
        if status["type"] == "retry":
            until = status["next"] / 1000 if status.get("next") else None
            self.do(Activity(ActivityKind.RETRYING, trying_again(str(status.get("message", "")), until), until=until))
            return False
        return True

    def round(self, info: Json) -> None:
        """An assistant message as it is now."""
        self.rounds.put(info)
        if is_completed(info):
            used = Used(self.rounds.usage(self._offer.priced), self.rounds.ran(self._order.route.worker))
            if used != self._used:
                self._used = used
                self._put(used)

    def stall(self, since: float) -> None:
        """Nothing has been heard since then."""
        if self._activity is None or self._activity.kind is not ActivityKind.STALLED:
            self._before = self._activity
        self.do(Activity(ActivityKind.STALLED, since=since))

    def revive(self) -> None:
        """The worker goes on with what it did, as far as is known."""
        if self._activity is not None and self._activity.kind is ActivityKind.STALLED:
            self.do(self._before or Activity(ActivityKind.THINKING))

    def do(self, activity: Activity) -> None:
        """Tell what goes on, once."""
        if activity != self._activity:
            self._activity = activity
            self._put(Doing(activity))

    def _part(self, part: Json) -> None:
        if part["type"] == "tool":
            state, name = part["state"], str(part["tool"])
            self._calls[str(part.get("callID"))] = name
            if state["status"] == "running":
                self.running.add(part["id"])
                text = label(name, state.get("input") or {}, self._order.folder, self._order.commands)
                self.do(Activity(ActivityKind.TOOL, text, name))
            elif state["status"] != "pending":
                self.running.discard(part["id"])
        elif part["type"] == "reasoning":
            self.do(Activity(ActivityKind.THINKING))
        elif part["type"] == "text" and part["messageID"] in self.rounds.infos and part["sessionID"] == self._session:
            # The rest of what deltas told; all of it, when they were missed.
            said = self._texts.setdefault(part["id"], 0)
            self._say(part["id"], str(part["text"])[said:])

    def _delta(self, properties: Json) -> None:
        part = properties["partID"]
        if part in self._texts and properties["field"] == "text":
            self._say(part, str(properties["delta"]))

    def _say(self, part: str, text: str) -> None:
        if text:
            self._texts[part] += len(text)
            break_ = "\n\n" if self._said and part != self._speaker else ""
            self._speaker = part
            self._said.append(break_ + text)
            self.do(Activity(ActivityKind.WRITING))
            self._put(Said(break_ + text))

    def open(self, request: Json) -> None:
        """A request that somebody must answer. An edit outside of the folder is denied whoever answers, so nobody is asked."""
        ask = _ask(request)
        if ask.id in self.asks or ask.id in self._answered:
            return
        tool = self._calls.get(str((request.get("tool") or {}).get("callID")))
        if ask.subject == "external_directory" and tool in (*EDIT_TOOLS, *PATCH_TOOLS):
            self._answered.add(ask.id)
            self.unwanted.append(ask.id)
            return
        if not self.asks:
            self._before_asking = self._activity
        self.asks[ask.id] = request, ask
        self._put(AskOpened(ask))
        self.do(Activity(ActivityKind.TOOL, asking(ask), tool or ""))

    def answered(self, request: Json, *, no: bool) -> None:
        """The worker goes on with what it asked for, unless that was denied."""
        if no:
            self.do(Activity(ActivityKind.TOOL, denied(_ask(request))))
        else:
            self._go_on()

    def _go_on(self) -> None:
        waiting = next(iter(self.asks.values()), None)
        before = self._before_asking or Activity(ActivityKind.THINKING)
        self.do(Activity(ActivityKind.TOOL, asking(waiting[1])) if waiting else before)

    def take(self, ask: AskId) -> Json | None:
        """The open request, which is ours to answer from now on; None if it is not open."""
        taken = self.asks.pop(ask, None)
        if taken is None:
            return None
        self._answered.add(ask)
        return taken[0]

    def close(self, ask: AskId, outcome: AskOutcome) -> None:
        """The server does not wait for it any more, and not because of us."""
        if self.asks.pop(ask, None):
            self._answered.add(ask)
            self._put(AskOver(ask, outcome))
            self._go_on()


def _ask(request: Json) -> Ask:
    return question_ask(request) if "questions" in request else permission_ask(request)
