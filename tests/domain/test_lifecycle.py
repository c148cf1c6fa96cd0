"""The table of transitions, row by row and pair by pair. docs/ARCHITECTURE.md, "The life of a task"."""

from dataclasses import fields, replace

import pytest

from offload.domain.ask import Ask, AskId, AskKind, AskOutcome
from offload.domain.errors import Defect
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
from offload.domain.lifecycle import TRANSITIONS, IllegalTransition, advance, begin, fold
from offload.domain.route import Route
from offload.domain.task import LIVE, RESTING, Phase
from offload.domain.turn import INTERRUPTED, Failure
from offload.domain.usage import Usage
from tests.domain.events import (
    ASK,
    CHANGES,
    EVENTS,
    FIRST,
    ROADS,
    SAYS,
    SECOND,
    SPEC,
    STRANGE,
    TASK,
    event,
    task_in,
)

# The table as the plan has it, written down a second time and without functions: what each event of the running turn makes of
# a task in which no stop was asked for. A pair that is not here is illegal.
QUEUED, STARTING, WORKING, CHECKING = Phase.QUEUED, Phase.STARTING, Phase.WORKING, Phase.CHECKING
CANCELLING, RECOVERING, READY, FAILED = Phase.CANCELLING, Phase.RECOVERING, Phase.READY, Phase.FAILED
CANCELLED, INTERRUPTED_ = Phase.CANCELLED, Phase.INTERRUPTED
OF_A_RESULT = (Landed, Undone, Rejected, ConsentAsked, ConsentClosed)  # a task may be closed by then
PLAN = {
    (QUEUED, Snapshotted): QUEUED,
    (QUEUED, Admitted): STARTING,
    (QUEUED, StopRequested): CANCELLED,
    (QUEUED, TurnFailed): FAILED,
    (QUEUED, WorkLost): RECOVERING,
    (STARTING, ActivityChanged): STARTING,
    (STARTING, Rebased): STARTING,
    (STARTING, SessionOpened): STARTING,
    (STARTING, TurnSeen): WORKING,
    (STARTING, StopRequested): CANCELLING,
    (STARTING, StopIncomplete): FAILED,
    (STARTING, TurnFailed): FAILED,
    (STARTING, WorkLost): RECOVERING,
    (WORKING, Integrated): WORKING,
    (WORKING, ActivityChanged): WORKING,
    (WORKING, UsageSeen): WORKING,
    (WORKING, Asked): WORKING,
    (WORKING, AskClosed): WORKING,
    (WORKING, TurnEnded): READY,
    (WORKING, StopRequested): CANCELLING,
    (WORKING, StopIncomplete): FAILED,
    (WORKING, TurnFailed): FAILED,
    (WORKING, WorkLost): RECOVERING,
    (CHECKING, ActivityChanged): CHECKING,
    (CHECKING, Integrated): CHECKING,
    (CHECKING, ChecksEnded): READY,
    (CHECKING, StopRequested): CANCELLING,
    (CHECKING, TurnFailed): FAILED,
    (CANCELLING, Rebased): CANCELLING,
    (CANCELLING, Integrated): CANCELLING,
    (CANCELLING, SessionOpened): CANCELLING,
    (CANCELLING, TurnSeen): CANCELLING,
    (CANCELLING, ActivityChanged): CANCELLING,
    (CANCELLING, UsageSeen): CANCELLING,
    (CANCELLING, Asked): CANCELLING,
    (CANCELLING, AskClosed): CANCELLING,
    (CANCELLING, StopRequested): CANCELLING,
    (CANCELLING, TurnEnded): READY,
    (CANCELLING, ChecksEnded): READY,
    (CANCELLING, Stopped): CANCELLED,
    (CANCELLING, StopIncomplete): FAILED,
    (CANCELLING, TurnFailed): FAILED,
    (CANCELLING, WorkLost): RECOVERING,
    (CANCELLING, CannotResume): CANCELLED,
    (RECOVERING, Snapshotted): RECOVERING,
    (RECOVERING, ActivityChanged): RECOVERING,
    (RECOVERING, Rebased): RECOVERING,
    (RECOVERING, SessionOpened): RECOVERING,
    (RECOVERING, TurnSeen): WORKING,
    (RECOVERING, StopRequested): CANCELLING,
    (RECOVERING, TurnEnded): READY,
    (RECOVERING, Stopped): CANCELLED,
    (RECOVERING, StopIncomplete): FAILED,
    (RECOVERING, TurnFailed): FAILED,
    (RECOVERING, CannotResume): INTERRUPTED_,
    (READY, CheckRequested): CHECKING,
    **{(phase, Continued): QUEUED for phase in (READY, FAILED, CANCELLED, INTERRUPTED_)},
    **{(phase, Closed): phase for phase in (READY, FAILED, CANCELLED, INTERRUPTED_)},
    **{(phase, kind): phase for phase in (READY, FAILED, CANCELLED, INTERRUPTED_) for kind in OF_A_RESULT},
}
PAIRS = [(phase, kind) for phase in Phase for kind in EVENTS]
ILLEGAL = [pair for pair in PAIRS if pair not in PLAN]


def of_the_running_turn(phase, kind, **says):
    """An event that is not stale: a task that rests has none of a running turn, so a strange one stands for it."""
    if issubclass(kind, TurnEvent):
        says["turn"] = STRANGE if phase in RESTING else FIRST
    return event(kind, **says)


def names(pairs):
    return [f"{phase}-{kind.__name__}" for phase, kind in pairs]


def test_there_is_a_sample_of_every_event_and_a_road_to_every_phase():
    assert set(SAYS) == set(EVENTS)
    assert {phase: task_in(phase).phase for phase in Phase} == {phase: phase for phase in Phase}
    assert set(TRANSITIONS) == set(Phase)


def test_every_phase_is_live_or_resting_and_not_both():
    assert set(Phase) == LIVE | RESTING
    assert not LIVE & RESTING
    assert {phase for phase in Phase if task_in(phase).live} == LIVE


@pytest.mark.parametrize(("phase", "kind"), PLAN, ids=names(PLAN))
def test_an_event_of_the_plan_leads_where_the_plan_says(phase, kind):
    before = task_in(phase)
    after = advance(before, of_the_running_turn(phase, kind))
    assert after.phase is PLAN[phase, kind]
    assert after.revision == before.revision + 1
    assert after.changed_at == 50.0


@pytest.mark.parametrize(("phase", "kind"), ILLEGAL, ids=names(ILLEGAL))
def test_any_other_event_is_refused_and_changes_nothing(phase, kind):
    before = task_in(phase)
    untouched = replace(before)
    with pytest.raises(IllegalTransition, match=f"{kind.__name__} cannot happen to a task that is {phase}") as refused:
        advance(before, of_the_running_turn(phase, kind))
    assert before == untouched == task_in(phase)
    assert refused.value.phase is phase
    assert isinstance(refused.value.event, kind)
    assert isinstance(refused.value, Defect)


@pytest.mark.parametrize("kind", [kind for kind in EVENTS if issubclass(kind, TurnEvent)])
@pytest.mark.parametrize("phase", Phase)
def test_an_event_of_a_turn_that_has_ended_counts_and_changes_nothing_else(phase, kind):
    """The second turn stands in every phase in turn; the first one is over."""
    road = [replace(each, turn=SECOND) if hasattr(each, "turn") else each for each in ROADS[phase][1:]]
    task = fold(TASK, [*ROADS[Phase.READY], event(Continued, at=8.0), *road])
    assert task.phase is phase
    assert advance(task, event(kind, turn=FIRST)) == replace(task, revision=task.revision + 1)


@pytest.mark.parametrize("kind", [kind for kind in EVENTS if issubclass(kind, TurnEvent)])
def test_an_event_of_a_turn_that_nobody_knows_is_refused(kind):
    for phase in Phase:
        with pytest.raises(IllegalTransition):
            advance(task_in(phase), event(kind, turn=STRANGE))


def test_a_task_begins_queued_with_its_first_turn():
    task = begin(TASK, event(Created, at=7.0))
    assert (task.phase, task.revision, task.spec, task.created_at, task.changed_at) == (QUEUED, 1, SPEC, 7.0, 7.0)
    (turn,) = task.turns
    assert (turn.id, turn.brief, turn.prompt, turn.asked, turn.queued_at) == (FIRST, "brief", "prompt", SPEC.route, 7.0)
    assert task.turn is turn


@pytest.mark.parametrize("kind", [kind for kind in EVENTS if kind is not Created])
def test_no_task_begins_with_another_event(kind):
    with pytest.raises(IllegalTransition, match=f"{kind.__name__} cannot happen to a task that is not there"):
        begin(TASK, event(kind))


@pytest.mark.parametrize("phase", Phase)
def test_a_task_is_the_fold_of_its_events_and_its_revision_is_their_count(phase):
    task = begin(TASK, ROADS[phase][0])
    for each in ROADS[phase][1:]:
        task = advance(task, each)
    assert task == fold(TASK, ROADS[phase])
    assert task.revision == len(ROADS[phase])


def test_what_an_event_says_is_written_down():
    task = task_in(QUEUED)
    task = advance(task, event(Snapshotted))
    assert (task.base, task.notes) == ("base", ("left out: sub",))
    task = advance(task, event(Admitted, at=3.0))
    assert task.turn.started_at == 3.0
    task = advance(task, event(SessionOpened))
    assert task.turn.session == "session_1"
    task = advance(advance(task, event(TurnSeen)), event(ActivityChanged))
    assert task.activity == SAYS[ActivityChanged]["activity"]
    task = advance(task, event(UsageSeen))
    assert (task.turn.usage, task.turn.ran) == (Usage(10, 2), Route("fake", model="fake/worker"))
    task = advance(task, event(UsageSeen, usage=Usage(20, 3), ran=None))
    assert (task.turn.usage, task.turn.ran) == (Usage(20, 3), Route("fake", model="fake/worker"))
    ended = event(TurnEnded, at=9.0, needs_review="look", to_check=True)
    task = advance(task, ended)
    assert (task.turn.text, task.turn.changes, task.turn.needs_review) == ("done", CHANGES, "look")
    assert (task.turn.usage, task.turn.ran) == (Usage(20, 3), Route("fake", model="fake/worker"))
    assert task.turn.ended_at is None
    task = advance(task, event(ChecksEnded, at=10.0))
    assert task.turn.checks == SAYS[ChecksEnded]["results"]
    assert task.turn.ended_at == 10.0
    task = advance(task, event(Landed))
    assert task.landings == (SAYS[Landed]["landing"],)
    task = advance(task, event(Rejected))
    assert task.rejections == (SAYS[Rejected]["rejection"],)
    task = advance(task, event(CheckRequested))
    assert (task.plan, task.turn.checks, task.turn.ended_at) == (SAYS[CheckRequested]["plan"], (), 10.0)
    task = advance(task, event(ChecksEnded, at=20.0))
    assert (task.turn.checks, task.turn.ended_at) == (SAYS[ChecksEnded]["results"], 10.0)
    assert advance(task, event(Closed)).closed


def test_what_a_folder_was_brought_onto_is_the_base_from_then_on():
    task = advance(task_in(STARTING), event(Rebased))
    assert (task.base, task.turn.start, task.turn.marked) == ("onto", "merged", ("a.py",))
    assert task.notes == ("left out: sub", "marked: a.py")


def test_what_the_formatter_changed_is_a_part_of_the_result():
    own = replace(CHANGES, result="own")
    turn = advance(task_in(CHECKING), event(ChecksEnded, changes=replace(CHANGES, result="formatted"), own=own)).turn
    assert (turn.changes.result, turn.own) == ("formatted", own)
    turn = advance(task_in(CHECKING), event(ChecksEnded)).turn
    assert (turn.changes, turn.own) == (CHANGES, None)


def test_what_was_done_before_the_worker_came_is_over_when_it_is_seen():
    task = advance(task_in(STARTING), event(ActivityChanged))
    assert task.activity == SAYS[ActivityChanged]["activity"]
    assert advance(task, event(TurnSeen)).activity is None


def test_the_worker_asks_nothing_and_does_nothing_while_its_result_is_checked():
    task = advance(task_in(WORKING), event(TurnEnded, to_check=True))
    assert (task.phase, task.asks, task.activity) == (CHECKING, {}, None)


def test_an_end_that_reports_route_and_usage_has_the_last_word():
    ended = event(TurnEnded, ran=Route("fake", model="fake/other"), usage=Usage(99))
    turn = advance(advance(task_in(WORKING), event(UsageSeen)), ended).turn
    assert (turn.ran, turn.usage) == (Route("fake", model="fake/other"), Usage(99))


@pytest.mark.parametrize(
    ("phase", "kind", "failure"),
    [
        (FAILED, TurnFailed, SAYS[TurnFailed]["failure"]),
        (CANCELLED, Stopped, None),
        (INTERRUPTED_, CannotResume, Failure(INTERRUPTED, "the hub ended")),
    ],
)
def test_a_turn_without_a_result_keeps_what_it_changed_so_far(phase, kind, failure):
    turn = task_in(phase).turn
    assert turn.changes == CHANGES
    assert turn.failure == failure
    assert turn.text == SAYS[kind].get("text", "")


def test_open_asks_are_a_map():
    other = Ask(AskId("ask_2"), AskKind.QUESTION, "Colour", "Which?", ("Red", "Blue"))
    task = task_in(WORKING)
    assert task.asks == {ASK.id: ASK}
    task = advance(task, event(Asked, ask=other))
    assert task.asks == {ASK.id: ASK, other.id: other}
    task = advance(task, event(AskClosed, ask=ASK.id, outcome=AskOutcome.TIMED_OUT))
    assert task.asks == {other.id: other}
    task = advance(task, event(AskClosed, ask=ASK.id))
    assert task.asks == {other.id: other}


@pytest.mark.parametrize(
    "end",
    [event(TurnEnded), event(TurnFailed), event(StopRequested)],
    ids=lambda end: type(end).__name__,
)
def test_activity_and_asks_are_gone_when_the_task_rests_and_only_then(end):
    task = advance(task_in(WORKING), end)
    assert bool(task.asks) is bool(task.activity) is task.live
    assert (task.turn.ended_at is None) is task.live


@pytest.mark.parametrize("phase", [STARTING, WORKING, CHECKING, RECOVERING])
def test_a_stop_is_remembered_until_the_task_rests(phase):
    task = advance(task_in(phase), event(StopRequested))
    assert (task.phase, task.stop_requested) == (CANCELLING, True)
    task = advance(task, event(Stopped))
    assert (task.phase, task.stop_requested, task.turn.stopped) == (CANCELLED, False, True)


def test_a_stop_that_was_asked_is_kept_through_recovering():
    task = advance(task_in(CANCELLING), event(WorkLost))
    assert (task.phase, task.stop_requested) == (RECOVERING, True)
    assert advance(task, event(TurnSeen)).phase is CANCELLING
    cancelled = advance(task, event(CannotResume))
    assert (cancelled.phase, cancelled.turn.stopped) == (CANCELLED, True)


def test_what_is_asked_of_lost_work_is_unknown_until_it_is_met_again():
    task = advance(task_in(WORKING), event(WorkLost))
    assert (task.asks, task.activity) == ({}, None)
    task = advance(advance(task, event(TurnSeen)), event(Asked))
    assert task.asks == {ASK.id: ASK}


def test_a_queued_task_is_cancelled_at_once():
    task = advance(task_in(QUEUED), event(StopRequested, at=4.0))
    assert (task.phase, task.stop_requested, task.turn.stopped, task.turn.ended_at) == (CANCELLED, False, True, 4.0)


@pytest.mark.parametrize(("end", "phase"), [(TurnEnded, READY), (TurnFailed, FAILED)])
def test_a_worker_that_is_first_wins_against_a_stop(end, phase):
    task = advance(task_in(CANCELLING), event(end))
    assert (task.phase, task.turn.stopped, task.stop_requested) == (phase, False, False)


@pytest.mark.parametrize("road", [[], [event(WorkLost)]], ids=["cancelling", "recovering"])
def test_no_checks_follow_an_end_after_a_stop(road):
    task = task_in(CANCELLING)
    for each in [*road, event(TurnEnded, to_check=True)]:
        task = advance(task, each)
    assert (task.phase, task.stop_requested) == (READY, False)


@pytest.mark.parametrize("phase", [WORKING, RECOVERING])
def test_checks_follow_an_end_that_says_so(phase):
    assert advance(task_in(phase), event(TurnEnded, to_check=True)).phase is CHECKING


@pytest.mark.parametrize("phase", sorted(RESTING))
def test_a_follow_up_is_a_new_turn_in_the_same_session(phase):
    before = task_in(phase)
    after = advance(before, event(Continued, at=60.0))
    assert after.turns[:-1] == before.turns
    assert (after.turn.id, after.turn.session, after.turn.queued_at) == (SECOND, "session_1", 60.0)
    assert (after.turn.brief, after.turn.prompt, after.turn.asked) == ("more", "more", Route("fake"))
    assert (after.turn.changes, after.turn.failure, after.turn.stopped) == (None, None, False)


@pytest.mark.parametrize("phase", sorted(RESTING))
@pytest.mark.parametrize("kind", EVENTS)
def test_a_closed_task_takes_nothing_but_what_becomes_of_its_result(phase, kind):
    closed = advance(task_in(phase), event(Closed))
    if kind in OF_A_RESULT:
        assert advance(closed, event(kind)).phase is phase
    else:
        with pytest.raises(IllegalTransition):
            advance(closed, of_the_running_turn(phase, kind))


@pytest.mark.parametrize("kind", EVENTS)
def test_events_are_values_that_cannot_be_changed(kind):
    sample = event(kind)
    assert sample == event(kind)
    for each in fields(kind):
        with pytest.raises(AttributeError):
            setattr(sample, each.name, None)
