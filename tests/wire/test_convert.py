"""What fronts are told about a task, phase by phase."""

import json
from dataclasses import replace

import pytest

from offload.core.delegation import Live, Waited
from offload.core.worker import AgentInfo, ModelInfo, WorkerInfo
from offload.domain.anchor import Anchor, Block
from offload.domain.ask import Ask, AskId, AskKind, AskOutcome
from offload.domain.change import ChangeSet, Conflict, FileChange, FileStatus, Hunk
from offload.domain.check import CheckResult
from offload.domain.errors import ApplyRefused, StorageFailed
from offload.domain.events import (
    ActivityChanged,
    Admitted,
    AskClosed,
    Asked,
    CannotResume,
    ChecksEnded,
    Closed,
    Continued,
    Created,
    Landed,
    Rejected,
    Snapshotted,
    Stopped,
    StopRequested,
    TurnEnded,
    TurnFailed,
    TurnSeen,
    UsageSeen,
    WorkLost,
)
from offload.domain.lifecycle import advance, fold
from offload.domain.recipe import Recipe
from offload.domain.route import Route
from offload.domain.task import Landing, Phase, Rejection, TaskId, TaskSpec
from offload.domain.turn import Activity, ActivityKind, Failure, TurnId
from offload.domain.usage import Usage
from offload.wire import convert, offers
from offload.wire.views import TaskState

ID = TaskId("k2j4h6f8")
T1, T2 = TurnId("turn_1"), TurnId("turn_2")
SPEC = TaskSpec(
    "/w",
    "Write tests",
    "do it",
    "Do it.",
    Route("fake", "build"),
    "tests",
    anchor=Anchor("src/shop.py", Block("Cart.total", "method", 4, 8), "def total"),
)
CHANGES = ChangeSet(
    "a" * 40,
    "b" * 40,
    (
        FileChange("t.py", FileStatus.ADDED, "", "100644", 3, 0, hunks=(Hunk(0, 0, 1, 3, "h1"),)),
        FileChange("logo.png", FileStatus.MODIFIED, "100644", "100644", 0, 0, binary=True),
    ),
)
MORE = ChangeSet(
    "a" * 40, "c" * 40, (FileChange("t.py", FileStatus.ADDED, "", "100644", 4, 0, hunks=(Hunk(0, 0, 1, 4, "h2"),)),)
)
RAN = Route("fake", "build", "p/m", "high")

QUEUED = [Created(at=10.0, turn=T1, spec=SPEC)]
STARTING = [*QUEUED, Snapshotted(at=11.0, turn=T1, base="a" * 40, notes=("left out",)), Admitted(at=20.0, turn=T1)]
WORKING = [*STARTING, TurnSeen(at=21.0, turn=T1)]
CHECKING = [*WORKING, TurnEnded(at=30.0, turn=T1, text="done", changes=CHANGES, to_check=True)]
READY = [*WORKING, TurnEnded(at=30.0, turn=T1, text="done", changes=CHANGES, ran=RAN, usage=Usage(5, 2, cost=0.25))]
FAILED = [*WORKING, TurnFailed(at=25.0, turn=T1, failure=Failure("boom", "It broke."))]
CANCELLING = [*WORKING, StopRequested(at=24.0)]
CANCELLED = [*CANCELLING, Stopped(at=25.0, turn=T1, text="so far", changes=CHANGES)]
RECOVERING = [*WORKING, WorkLost(at=25.0, turn=T1, reason="the hub ended")]
INTERRUPTED = [*RECOVERING, CannotResume(at=26.0, turn=T1, reason="the worker is gone")]
PHASES = {
    Phase.QUEUED: QUEUED,
    Phase.STARTING: STARTING,
    Phase.WORKING: WORKING,
    Phase.CHECKING: CHECKING,
    Phase.CANCELLING: CANCELLING,
    Phase.RECOVERING: RECOVERING,
    Phase.READY: READY,
    Phase.FAILED: FAILED,
    Phase.CANCELLED: CANCELLED,
    Phase.INTERRUPTED: INTERRUPTED,
}
STATES = {
    Phase.READY: TaskState.COMPLETED,
    Phase.FAILED: TaskState.FAILED,
    Phase.CANCELLED: TaskState.CANCELLED,
    Phase.INTERRUPTED: TaskState.FAILED,
}
PERMISSION = Ask(AskId("ask_1"), AskKind.PERMISSION, "bash", "rm x", ("allow", "deny"))
QUESTION = Ask(AskId("ask_2"), AskKind.QUESTION, "Colour", "Which?", ("Red", "Blue"))
NEXT = Continued(at=40.0, turn=T2, brief="again", prompt="Again.", route=Route("fake", "build"))


def told(events, live=Live(), now=100.0, **options):  # noqa: B008 a frozen value
    return convert.status(fold(ID, events), live, now, **options)


def test_the_phases_above_are_all_that_there_are():
    assert {phase: fold(ID, events).phase for phase, events in PHASES.items()} == {phase: phase for phase in Phase}


@pytest.mark.parametrize("phase", Phase)
def test_each_phase_has_its_state_and_says_what_can_be_done(phase):
    status = told(PHASES[phase])
    assert (status.phase, status.state) == (phase, STATES.get(phase, TaskState.WORKING))
    tool = "get_task_result" if phase is Phase.READY else "resume_task" if phase in STATES else "wait_for_tasks"
    assert tool in status.next_step


def test_a_working_task_with_an_open_ask_needs_input():
    status = told([*WORKING, Asked(at=22.0, turn=T1, ask=QUESTION)])
    assert status.state is TaskState.INPUT_REQUIRED
    assert status.next_step == "Call answer_task with one of the choices, then wait_for_tasks."
    assert status.asks[0].model_dump(mode="json") == {
        "ask_id": "ask_2",
        "kind": "question",
        "subject": "Colour",
        "detail": "Which?",
        "choices": ["Red", "Blue"],
    }


def test_a_task_in_the_queue_waits_for_a_place_and_one_that_has_just_begun_does_not():
    queued = PHASES[Phase.QUEUED]
    assert told(queued, Live(place=3)).next_step == "Waits for a free place, number 3: call wait_for_tasks."
    assert told(queued).next_step == "It has just begun: call wait_for_tasks."


def test_a_task_that_comes_after_others_says_whose_results_it_waits_for():
    after = replace(SPEC, after=(TaskId("one"), TaskId("two")))
    queued = [Created(at=1.0, turn=T1, spec=after)]
    assert told(queued).next_step == "Waits for the result of task one and task two: call wait_for_tasks."
    assert told(queued, Live(place=1)).next_step == "Waits for a free place, number 1: call wait_for_tasks."


def test_a_result_says_how_the_user_takes_it():
    assert "apply_task takes it, whole or in parts" in told(READY).next_step


def test_where_no_file_was_changed_nothing_is_there_to_be_taken():
    empty = ChangeSet("a" * 40, "a" * 40)
    ended = TurnEnded(at=30.0, turn=T1, text="done", changes=empty, ran=RAN)
    assert told([*WORKING, ended]).next_step.startswith("It changed no file: ")
    united = Created(at=1.0, turn=T1, spec=replace(SPEC, integrates=(TaskId("one"), TaskId("two"))))
    assert told([united, *WORKING[1:], ended]).next_step.startswith("There is nothing to apply: ")
    # What a follow-up takes back of an earlier result that was applied is still in the user's files.
    again = [*READY, landing(31.0, *CHANGES.units), NEXT, Admitted(at=41.0, turn=T2), TurnSeen(at=42.0, turn=T2)]
    again.append(TurnEnded(at=43.0, turn=T2, text="taken back", changes=empty))
    assert told(again).next_step.startswith("Applied to the user's files")


def test_what_was_rejected_whole_is_not_offered_to_be_applied():
    rejected = Rejected(at=31.0, rejection=Rejection(T1, CHANGES.units, 31.0, "no"))
    assert told([*READY, rejected]).next_step == "All of it was rejected: continue_task says what is wanted instead."
    united = Created(at=1.0, turn=T1, spec=replace(SPEC, integrates=(TaskId("one"), TaskId("two"))))
    assert "integrate_tasks again" in told([united, *READY[1:], rejected]).next_step


def test_the_time_is_that_of_all_turns_as_the_tokens_are():
    """The clock went back to 0 when a result was sent back."""
    first = told(READY).elapsed_s
    again = [*READY, NEXT, Admitted(at=41.0, turn=T2)]
    assert first > 0
    assert told(again, now=43.0).elapsed_s == first + 2
    task = fold(ID, again)
    assert convert.turn_status(task, task.turn, Live(), 43.0).elapsed_s == 2


def test_a_permission_is_answered_with_allow_always_or_deny():
    status = told([*WORKING, Asked(at=22.0, turn=T1, ask=PERMISSION)])
    assert status.next_step == "Call answer_task with allow, always (for this task) or deny, then wait_for_tasks."


def test_a_task_that_is_being_stopped_asks_for_nothing():
    assert told([*WORKING, Asked(at=22.0, turn=T1, ask=QUESTION), StopRequested(at=23.0)]).state is TaskState.WORKING


@pytest.mark.parametrize(
    ("events", "now", "elapsed"),
    [
        (QUEUED, 100.0, 0.0),
        (STARTING, 100.0, 80.0),
        (WORKING, 20.04, 0.0),
        (WORKING, 20.06, 0.1),
        (READY, 100.0, 10.0),
        (WORKING, 5.0, 0.0),
        ([*READY, NEXT], 100.0, 10.0),
        ([*READY, NEXT, Admitted(at=50.0, turn=T2)], 100.0, 60.0),
    ],
)
def test_elapsed_time_is_that_of_the_turns_without_their_time_in_the_queue(events, now, elapsed):
    """Also when the clock was set back: never below zero."""
    assert told(events, now=now).elapsed_s == elapsed


def test_partial_text_is_the_end_of_what_was_said_and_cuts_no_character():
    assert told(WORKING, Live(text="a" * 10 + "🙂" * 400)).partial_text == "🙂" * 400
    assert told(WORKING, Live(text="short")).partial_text == "short"


def test_progress_is_left_out_on_request():
    events = [*WORKING, ActivityChanged(at=22.0, turn=T1, activity=Activity(ActivityKind.TOOL, "reading", "read"))]
    status = told(events, Live(text="hello"), progress=False)
    assert (status.activity, status.partial_text) == (None, "")
    status = told(events, Live(text="hello"))
    assert status.activity.model_dump(mode="json") == {
        "kind": "tool",
        "label": "reading",
        "tool": "read",
        "until": None,
        "since": None,
    }


def test_tokens_and_cost_are_those_of_all_turns():
    events = [*READY, NEXT, Admitted(at=50.0, turn=T2), TurnSeen(at=50.5, turn=T2)]
    events.append(UsageSeen(at=51.0, turn=T2, usage=Usage(10, cost=0.5)))
    status = told(events)
    assert (status.total_tokens, status.cost) == (17, 0.75)
    assert (told(WORKING).total_tokens, told(WORKING).cost) == (0, None)


def test_a_place_in_the_queue_is_passed_on():
    assert told(QUEUED, Live(place=3)).place == 3


def test_a_finished_task_says_what_it_changed_and_what_ran():
    status = told(READY)
    assert status.files_changed == 2
    assert status.ran.model_dump() == {"worker": "fake", "agent": "build", "model": "p/m", "variant": "high"}
    assert told(WORKING).files_changed is None


def landing(at, *units):
    return Landed(at=at, landing=Landing(T1, "b" * 40, ("t.py",), at, id=f"apply_{at:.0f}", units=units))


def test_an_applied_or_closed_task_says_so():
    some, *others = CHANGES.units
    landed = [*READY, landing(31.0, some)]
    assert told(landed).next_step.startswith("1 of 2 hunks are neither applied nor rejected")
    landed += [landing(32.0, *others)]
    assert told(landed).next_step.startswith("Applied to the user's files")
    assert told([*landed, Closed(at=33.0)]).next_step.startswith("Closed: ")
    # A follow-up has a result of its own, which is not applied yet.
    again = [*landed, NEXT, Admitted(at=41.0, turn=T2), TurnSeen(at=42.0, turn=T2)]
    again.append(TurnEnded(at=43.0, turn=T2, text="more", changes=MORE))
    assert told(again).next_step.startswith("Review it with get_task_result")


def test_a_result_of_which_only_what_is_out_of_scope_is_left_says_how_that_is_taken():
    events = [Created(at=10.0, turn=T1, spec=replace(SPEC, allowed_paths=("*.png",))), *READY[1:]]
    assert told(events).next_step.startswith("Review it with")
    others = CHANGES.units[1:]
    told_of = told([*events, landing(31.0, *others)]).next_step
    assert told_of.startswith("What is left is outside of the paths that the task may change")


def test_the_result_of_the_last_turn_is_that_of_the_task():
    task = fold(ID, READY)
    result = convert.result(task, task.turn)
    assert (result.state, result.phase, result.text, result.next_text_offset) == ("completed", "ready", "done", None)
    assert result.changes.model_dump(mode="json") == {
        "base": "a" * 40,
        "result": "b" * 40,
        "files": [
            {
                "path": "t.py",
                "file_id": CHANGES.files[0].id,
                "status": "added",
                "state": "pending",
                "outside": False,
                "old_path": "",
                "old_mode": "",
                "new_mode": "100644",
                "size": None,
                "added_lines": 3,
                "removed_lines": 0,
                "binary": False,
                "hunks": [
                    {
                        "hunk_id": "h1",
                        "state": "pending",
                        "old_start": 0,
                        "old_lines": 0,
                        "new_start": 1,
                        "new_lines": 3,
                    }
                ],
                "hunks_left_out": 0,
            },
            {
                "path": "logo.png",
                "file_id": CHANGES.files[1].id,
                "status": "modified",
                "state": "pending",
                "outside": False,
                "old_path": "",
                "old_mode": "100644",
                "new_mode": "100644",
                "size": None,
                "added_lines": 0,
                "removed_lines": 0,
                "binary": True,
                "hunks": [],
                "hunks_left_out": 0,
            },
        ],
        "added_lines": 3,
        "removed_lines": 0,
        "files_left_out": 0,
        "claimed_only": [],
    }


@pytest.mark.parametrize(
    ("events", "phase", "state"),
    [
        (READY, Phase.READY, TaskState.COMPLETED),
        (FAILED, Phase.FAILED, TaskState.FAILED),
        (CANCELLED, Phase.CANCELLED, TaskState.CANCELLED),
        (INTERRUPTED, Phase.INTERRUPTED, TaskState.FAILED),
        ([*QUEUED, StopRequested(at=12.0)], Phase.CANCELLED, TaskState.CANCELLED),
    ],
)
def test_an_earlier_turn_keeps_the_phase_in_which_it_ended(events, phase, state):
    task = fold(ID, [*events, NEXT])
    result = convert.result(task, task.turns[0])
    assert (result.turn_id, result.phase, result.state) == (T1, phase, state)
    assert convert.result(task, task.turn).phase is Phase.QUEUED


@pytest.mark.parametrize("length", [0, 1, 2999, 3000, 3001, 6000, 7001])
def test_a_text_is_read_piece_by_piece_to_its_end(length):
    text = "".join(chr(0x1F600 + n % 50) for n in range(length))
    task = fold(ID, [*WORKING, TurnEnded(at=30.0, turn=T1, text=text, changes=CHANGES)])
    offset, read, pieces = 0, "", 0
    while offset is not None:
        piece = convert.result(task, task.turn, offset)
        assert len(piece.text) <= 3000
        read, offset, pieces = read + piece.text, piece.next_text_offset, pieces + 1
    assert read == text
    assert pieces == max(1, -(-length // 3000))


def test_an_offset_past_the_end_gives_nothing_more():
    task = fold(ID, READY)
    result = convert.result(task, task.turn, 500)
    assert (result.text, result.next_text_offset) == ("", None)


def test_a_wait_says_where_each_task_stands_and_how_to_go_on():
    task = fold(ID, WORKING)
    waited = convert.waited(Waited(done=False, tasks=(task,)), {ID: Live(text="x")}, 100.0, progress=False)
    assert waited.done is False
    assert waited.after_revision == {ID: task.revision}
    assert waited.tasks[0].partial_text == ""


def test_a_whole_task_has_lines_from_1_all_turns_and_all_landings():
    events = [
        *CHECKING,
        ChecksEnded(
            at=31.0, turn=T1, results=(CheckResult("tests", passed=False, seconds=1.5, tail="1 failed", exit_code=1),)
        ),
    ]
    events += [landing(32.0, "h1"), NEXT]
    view = convert.task(fold(ID, events), Live(place=2, text="now"))
    assert view.anchor.model_dump() == {
        "path": "src/shop.py",
        "symbol": "Cart.total",
        "kind": "method",
        "first_line": 5,
        "last_line": 9,
    }
    assert (view.place, view.live_text, view.notes, view.phase) == (2, "now", ["left out"], Phase.QUEUED)
    assert [turn.turn_id for turn in view.turns] == [T1, T2]
    first, second = view.turns
    assert (first.text, first.brief, first.asked.agent) == ("done", "do it", "build")
    assert first.checks[0].model_dump(exclude_defaults=True) == {
        "name": "tests",
        "passed": False,
        "seconds": 1.5,
        "tail": "1 failed",
        "exit_code": 1,
        "told": "tests: failed with status 1",
    }
    assert (first.checked, first.needs_review) == ("failed", "tests: failed with status 1")
    assert (first.started_at, first.ended_at) == (20.0, 31.0)
    assert (second.ended_at, second.changes, second.ran, second.failure) == (None, None, None, None)
    assert view.landings[0].model_dump() == {
        "apply_id": "apply_32",
        "turn_id": T1,
        "paths": ["t.py"],
        "files": [{"path": "t.py", "place": "disk", "unchanged": False, "removed": False}],
        "hunks": ["h1"],
        "at": 32.0,
        "by": "",
        "undone_at": None,
    }


def test_a_task_without_a_block_has_no_anchor():
    spec = TaskSpec("/w", "t", "b", "p", Route("fake"), "instruction")
    assert convert.task(fold(ID, [Created(at=1.0, turn=T1, spec=spec)]), Live()).anchor is None


def test_a_failure_is_passed_on():
    assert told(FAILED).failure.model_dump() == {"code": "boom", "message": "It broke."}
    assert told(INTERRUPTED).failure.code == "interrupted"


@pytest.mark.parametrize(
    ("search", "found"),
    [("", ["a/Big-1", "b/small-1"]), ("big", ["a/Big-1"]), ("1 SMALL", ["b/small-1"]), ("big small", [])],
)
def test_models_are_searched_by_words_in_any_order_and_case(search, found):
    models = (ModelInfo("a/Big-1", "Big", ("high",), 1.0, 2.0), ModelInfo("b/small-1", "Small"))
    worker = WorkerInfo("fake", "1", (AgentInfo("build", "Writes."),), models, "a/Big-1", "slow today")
    result = offers.agents([worker], [Recipe("tests", "Delegate tests", "…")], "fake", search)
    (view,) = result.workers
    assert [model.id for model in view.models] == found
    assert (view.problem, view.default_model, view.agents[0].name) == ("slow today", "a/Big-1", "build")
    assert result.recipes[0].model_dump() == {"name": "tests", "title": "Delegate tests"}


def test_an_error_is_its_code_its_message_and_its_reasons():
    assert convert.error(StorageFailed("full")).model_dump() == {
        "code": "storage_failed",
        "message": "full",
        "reasons": [],
        "conflicts": [],
    }
    refused = ApplyRefused("in the way", (("a.py", "conflict"), ("b.py", "unsaved text")))
    assert convert.error(refused).reasons == ["a.py: conflict", "b.py: unsaved text"]
    both = ApplyRefused("in the way", (("a.py", "conflict"),), (Conflict("a.py", "conflict", "h1", 7, "y", "b", "t"),))
    assert [each.model_dump() for each in convert.error(both).conflicts] == [
        {
            "path": "a.py",
            "reason": "conflict",
            "hunk_id": "h1",
            "first_line": 7,
            "yours": "y",
            "base": "b",
            "theirs": "t",
        }
    ]


def test_every_view_can_be_sent_whatever_text_is_in_it():
    r"""Worker text and file names may hold half of a surrogate pair, which UTF-8 cannot say."""
    changes = ChangeSet("a", "b", (FileChange("bad\udcff.py", FileStatus.ADDED, "", "100644", 1, 0),))
    ask = Ask(AskId("ask"), AskKind.QUESTION, "s\ud800", "d", ("one\udfff", "two"))
    task = fold(ID, [*WORKING, Asked(at=22.0, turn=T1, ask=ask)])
    ended = advance(task, TurnEnded(at=30.0, turn=T1, text="cut \ud83d", changes=changes))
    for view in (
        convert.task(task, Live(text="\ud83d")),
        convert.task(ended, Live()),
        convert.result(ended, ended.turn),
    ):
        json.dumps(view.model_dump(mode="json"), ensure_ascii=False).encode()
        view.model_dump_json()
    assert convert.task(task, Live()).asks[0].choices == ["one\ufffd", "two"]
    assert convert.result(ended, ended.turn).changes.files[0].path == "bad\ufffd.py"


def test_a_turn_in_short_has_its_own_usage_and_changes():
    own = ChangeSet("b" * 40, "c" * 40, (FileChange("own.py", FileStatus.ADDED, "", "100644", 1, 0),))
    task = fold(TaskId("abcd1234"), [*READY, NEXT, *again(own)])
    first, second = task.turns
    now = 100.0
    early, late = (convert.turn_status(task, turn, Live(), now) for turn in (first, second))
    assert (early.turn_id, early.phase, early.state) == (first.id, Phase.READY, TaskState.COMPLETED)
    assert (late.turn_id, late.phase, late.files_changed) == (second.id, Phase.WORKING, None)
    assert (early.activity, early.asks, late.total_tokens) == (None, [], 7)
    assert late.cost_note == "The price of fake/worker is not known and counts as 0."
    done = advance(task, TurnEnded(at=50.0, turn=second.id, text="x", changes=own, own=own, ran=Route("fake")))
    assert convert.turn_status(done, done.turn, Live(), now).files_changed == 1
    assert convert.result(done, done.turn, own=True).changes.files[0].path == "own.py"
    assert convert.task(done, Live()).turns[1].own_changes.files[0].path == "own.py"


def again(own):
    turn = NEXT.turn
    return [
        Admitted(at=41.0, turn=turn),
        TurnSeen(at=42.0, turn=turn),
        UsageSeen(at=43.0, turn=turn, usage=Usage(7), ran=Route("fake", model="fake/worker")),
    ]


def test_an_ask_that_was_closed_says_by_whom():
    asked = Asked(at=22.0, turn=T1, ask=PERMISSION)
    closed = AskClosed(at=23.0, turn=T1, ask=PERMISSION.id, outcome=AskOutcome.ANSWERED, choice="allow", by="Neovim")
    task = convert.task(fold(TaskId("abcd1234"), [*WORKING, asked, closed]), Live())
    (view,) = task.closed_asks
    assert (view.ask_id, view.choice, view.by, view.at) == (PERMISSION.id, "allow", "Neovim", 23.0)
