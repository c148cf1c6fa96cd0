"""The lifecycle against a second, much simpler model, over any series of events, the impossible ones included."""

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from offload.domain.ask import AskId
from offload.domain.events import (
    ActivityChanged,
    Admitted,
    AskClosed,
    Asked,
    CannotResume,
    CheckRequested,
    ChecksEnded,
    Closed,
    ConsentAsked,
    ConsentClosed,
    Continued,
    Created,
    Integrated,
    Landed,
    Rebased,
    Rejected,
    SessionOpened,
    Snapshotted,
    StopIncomplete,
    Stopped,
    StopRequested,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    TurnSeen,
    Undone,
    UsageSeen,
    WorkLost,
)
from offload.domain.lifecycle import IllegalTransition, advance, begin, fold
from offload.domain.task import RESTING
from tests.domain.events import ASK, EVENTS, TASK, event

ENDS = {
    TurnEnded: "ready",
    TurnFailed: "failed",
    Stopped: "cancelled",
    StopIncomplete: "failed",
    CannotResume: "interrupted",
    ChecksEnded: "ready",
}
SEEN_AT_WORK = (UsageSeen, Asked, AskClosed)
NOBODY_WAITS = (WorkLost, TurnEnded, CheckRequested, Continued, Closed)
OF_A_RESULT = (Landed, Undone, Rejected, ConsentAsked, ConsentClosed)


class Model:
    """A task as a list of turns, each `waiting`, `started`, `seen`, `checking`, `lost` or how it ended, and three facts."""

    def __init__(self):
        self.turns = ["waiting"]
        self.ended = set()
        self.stop = False
        self.closed = False
        self.asks = set()

    @property
    def phase(self):
        now = self.turns[-1]
        words = {"waiting": "queued", "started": "starting", "seen": "working", "lost": "recovering"}
        return "cancelling" if self.stop and now != "lost" else words.get(now, now)

    @property
    def over(self):
        return self.turns[-1] in ENDS.values()

    def can(self, event):
        now, kind = self.turns[-1], type(event)
        if kind in OF_A_RESULT:
            return self.over
        if kind in (Continued, Closed):
            return self.over and not self.closed
        if kind is StopRequested:
            return not self.over
        if kind is CheckRequested:
            return now == "ready" and not self.closed
        allowed = {
            Snapshotted: now in ("waiting", "lost"),
            Admitted: now == "waiting",
            Rebased: now in ("started", "lost") or self.stopping,
            SessionOpened: now in ("started", "lost") or self.stopping,
            TurnSeen: now in ("started", "lost") or self.stopping,
            TurnEnded: now in ("seen", "lost") or self.stopping,
            ActivityChanged: now in ("started", "seen", "checking", "lost") or self.stopping,
            Integrated: now in ("seen", "checking") or self.stopping,
            ChecksEnded: now == "checking" or self.stopping,
            Stopped: now == "lost" or self.stopping,
            StopIncomplete: now in ("started", "seen", "lost") or self.stopping,
            TurnFailed: not self.over,
            WorkLost: not self.over and now != "lost" and (now != "checking" or self.stopping),
            CannotResume: now == "lost" or self.stopping,
        }
        return (now == "seen" or self.stopping) if kind in SEEN_AT_WORK else allowed.get(kind, False)

    @property
    def stopping(self):
        return self.phase == "cancelling"

    def do(self, event):
        kind = type(event)
        self.asks = set() if kind in NOBODY_WAITS else self.asks
        if kind is Continued:
            self.turns.append("waiting")
        elif kind is Closed:
            self.closed = True
        elif kind is StopRequested:
            if self.turns[-1] == "waiting":
                self.end("cancelled")
            else:
                self.turns[-1] = "seen" if self.turns[-1] == "lost" else self.turns[-1]
                self.stop = True
        elif kind in (Asked, ConsentAsked):
            self.asks.add(event.ask.id)
        elif kind in (AskClosed, ConsentClosed):
            self.asks.discard(event.ask)
        elif kind is WorkLost:
            self.turns[-1] = "lost"
        elif kind is Admitted:
            self.turns[-1] = "started"
        elif kind is TurnSeen:
            self.turns[-1] = "seen"
        elif kind is CheckRequested or (kind is TurnEnded and event.to_check and not self.stop):
            self.turns[-1] = "checking"
        elif kind in ENDS:
            self.end("cancelled" if kind is CannotResume and self.stop else ENDS[kind])

    def end(self, how):
        self.turns[-1] = how
        self.ended.add(len(self.turns))
        self.stop = False
        self.asks = set()


class Lifecycle(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.history = [event(Created, turn="turn_1")]
        self.task = begin(TASK, self.history[0])
        self.model = Model()
        self.clock = 100.0

    @rule(
        kind=st.sampled_from(EVENTS),
        stale=st.integers(0, 12).map(lambda number: number == 0),
        ask=st.sampled_from(["ask_1", "ask_2"]),
        to_check=st.booleans(),
    )
    def happens(self, kind, stale, ask, to_check):
        self.clock += 1
        says = {}
        if kind is Continued:
            says["turn"] = f"turn_{len(self.model.turns) + 1}"
        elif issubclass(kind, TurnEvent):
            says["turn"] = "turn_1" if stale else f"turn_{len(self.model.turns)}"
        if kind in (Asked, ConsentAsked):
            says["ask"] = replace(ASK, id=AskId(ask))
        if kind in (AskClosed, ConsentClosed):
            says["ask"] = ask
        if kind is TurnEnded:
            says["to_check"] = to_check
        now = event(kind, at=self.clock, **says)
        before = self.task
        over = "turn" in says and kind is not Continued and self.model.turns[int(says["turn"][5:]) - 1] in ENDS.values()
        if over:
            self.task = advance(before, now)
            assert self.task == replace(before, revision=before.revision + 1)
        elif (says.get("turn") in (None, f"turn_{len(self.model.turns)}") or kind is Continued) and self.model.can(now):
            self.task = advance(before, now)
            self.model.do(now)
        else:
            with pytest.raises(IllegalTransition):
                advance(before, now)
            return
        self.history.append(now)

    @invariant()
    def agrees_with_the_model(self):
        task, model = self.task, self.model
        assert task.phase == model.phase
        assert task.live is not model.over
        assert (task.stop_requested, task.closed, set(task.asks)) == (model.stop, model.closed, model.asks)
        assert {number for number, turn in enumerate(task.turns, 1) if turn.ended_at is not None} == model.ended
        assert [turn.stopped for turn in task.turns] == [how == "cancelled" for how in model.turns]
        assert task.phase in RESTING or task.turn.failure is None

    @invariant()
    def is_the_fold_of_its_events(self):
        assert self.task == fold(TASK, self.history)
        assert self.task.revision == len(self.history)


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
