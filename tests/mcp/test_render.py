"""Results under 8 kB, whatever is in them (hosts cut or hide what is longer)."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offload.core.delegation import Live
from offload.core.worker import AgentInfo, ModelInfo, WorkerInfo
from offload.domain.change import ChangeSet, FileChange, FileStatus, Hunk
from offload.domain.events import Admitted, Created, SessionOpened, Snapshotted, TurnEnded, TurnSeen
from offload.domain.lifecycle import fold
from offload.domain.recipe import Recipe
from offload.domain.route import Route
from offload.domain.task import Phase, TaskId, TaskSpec
from offload.domain.turn import TurnId
from offload.mcp.render import LIMIT, render
from offload.mcp.tools import OPERATIONS_FOR_MODELS
from offload.wire import convert, offers, outcomes
from offload.wire.results import GetChangesResult, ListTasksResult, TaskResult, WaitForTasksResult
from offload.wire.views import AskView, FailureView, TaskState, TaskStatus, UsageView

TURN = TurnId("turn_0000000000000123456789abcd")


def changes(count, hunks=3):
    return ChangeSet(
        "a" * 40,
        "b" * 40,
        tuple(
            FileChange(
                f"packages/a-rather-long-name/src/module_{n:05}.py",
                FileStatus.MODIFIED,
                "100644",
                "100644",
                12,
                3,
                hunks=tuple(Hunk(20 * m + 1, 10, 20 * m + 1, 12, f"h{n:06}{m:06}") for m in range(hunks)),
            )
            for n in range(count)
        ),
    )


def ready(text="done", files=1, hunks=3):
    events = [
        Created(at=1.0, turn=TURN, spec=TaskSpec("/w", "tests", "b", "p", Route("fake"), "tests")),
        Snapshotted(at=1.0, turn=TURN, base="a" * 40),
        Admitted(at=2.0, turn=TURN),
        SessionOpened(at=2.0, turn=TURN, session="s"),
        TurnSeen(at=2.5, turn=TURN),
        TurnEnded(at=3.0, turn=TURN, text=text, changes=changes(files, hunks)),
    ]
    return fold(TaskId("k2j4h6f8"), events)


def status(number=0, state=TaskState.WORKING, **more):
    return TaskStatus(
        **{
            "task_id": f"task{number:04}",
            "title": "Write tests for Cart.total",
            "state": state,
            "phase": Phase.WORKING,
            "revision": 12,
            "turn_id": TURN,
            "elapsed_s": 3.2,
            "total_tokens": 4,
            "next_step": "The worker is at work: call wait_for_tasks.",
            **more,
        }
    )


def rendered(view):
    facts, text = render(view)
    assert json.loads(text) == facts
    assert len(text.encode()) <= LIMIT < 8_000
    type(view).model_validate(facts)  # what is left still fits the tool's output schema
    return facts


def test_a_small_result_is_complete_but_for_defaults_and_hunks():
    task = ready()
    assert rendered(convert.result(task, task.turn)) == {
        "task_id": "k2j4h6f8",
        "turn_id": TURN,
        "state": "completed",
        "phase": "ready",
        "text": "done",
        "text_offset": 0,
        "next_text_offset": None,
        "changes": {
            "base": "a" * 40,
            "result": "b" * 40,
            "files": [
                {
                    "path": "packages/a-rather-long-name/src/module_00000.py",
                    "file_id": task.turn.changes.files[0].id,
                    "status": "modified",
                    "state": "pending",
                    "old_mode": "100644",
                    "new_mode": "100644",
                    "added_lines": 12,
                    "removed_lines": 3,
                }
            ],
            "added_lines": 12,
            "removed_lines": 3,
        },
        "ran": None,
        "usage": {
            "input_tokens": 0,
            "output_tokens": 0,
            "reasoning_tokens": 0,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "total_tokens": 0,
            "cost": None,
        },
        "needs_review": "",
        "failure": None,
        "next_step": "Review it with get_task_result and get_changes; then apply_task takes it, whole or in parts, reject_task says "
        "what is not wanted, and continue_task sends it back.",
    }


def test_of_200_changed_files_those_that_do_not_fit_are_counted():
    facts = rendered(convert.result(ready(files=200), ready(files=200).turn))
    shown = facts["changes"]["files"]
    assert 30 < len(shown) < 200
    assert facts["changes"]["files_left_out"] == 200 - len(shown)
    assert facts["changes"]["added_lines"] == 2400
    assert facts["text"] == "done"


@pytest.mark.parametrize("letter", ["x", "é", "漢", "🙂", "\n", "\0", '"'])
def test_a_text_of_5_mb_can_be_read_to_its_end_piece_by_piece(letter):
    """Each piece is as long as fits, and no character is cut or lost."""
    task = ready(text=letter * 5_000_000, files=200)
    facts = rendered(convert.result(task, task.turn, 4_990_000))
    read, pieces = facts["text"], 1
    while facts["next_text_offset"] is not None:
        assert facts["next_text_offset"] == facts["text_offset"] + len(facts["text"])
        facts = rendered(convert.result(task, task.turn, facts["next_text_offset"]))
        read += facts["text"]
        pieces += 1
    assert read == letter * 10_000
    assert pieces <= 12
    assert len(facts["changes"]["files"]) >= 10


@pytest.mark.parametrize("letter", ["x", "€", "\\"])
def test_a_patch_of_any_size_can_be_read_to_its_end_piece_by_piece(letter):
    """A model that reviews needs the patch itself, not the names of the files; whoever reads on loses no character."""
    patch = "".join(f"+{letter * 30}{number}\n" for number in range(2_000))
    task = ready(files=200)
    made, read, pages = outcomes.changes(task.turn.changes, task, task.turn), "", 0
    while True:
        view = GetChangesResult(task_id="k2j4h6f8", changes=made, patch=patch[len(read) :], patch_offset=len(read))
        facts = rendered(view)
        read, pages = read + facts["patch"], pages + 1
        assert len(facts["changes"]["files"]) >= 10
        if "next_patch_offset" not in facts:
            break
        assert facts["next_patch_offset"] == len(read)
    assert read == patch
    assert 8 < pages < 60


def test_the_longest_list_of_models_is_shortened_and_counted():
    many = tuple(
        ModelInfo(f"provider/model-number-{n}", f"Model number {n}", ("low", "high"), 0.5, 2.0) for n in range(300)
    )
    workers = [
        WorkerInfo("opencode", "1", (AgentInfo("build", "Writes code."),), many, "provider/model-number-0"),
        WorkerInfo("other", "1", (), many[:6]),
    ]
    facts = rendered(offers.agents(workers, [Recipe("tests", "Delegate tests", "")], "opencode"))
    first, second = facts["workers"]
    assert first["models_left_out"] == 300 - len(first["models"]) > 200
    assert len(second["models"]) == 6
    assert "models_left_out" not in second
    assert first["agents"] == [{"name": "build", "description": "Writes code."}]


def test_several_workers_with_many_models_all_fit():
    many = tuple(ModelInfo(f"provider/model-number-{n}", f"Model number {n}") for n in range(300))
    workers = [WorkerInfo(f"worker-{n}", models=many) for n in range(8)]
    facts = rendered(offers.agents(workers, [], "worker-0"))
    assert all(len(worker["models"]) >= 5 for worker in facts["workers"])


def test_a_list_of_500_tasks_shows_the_first_and_counts_the_rest():
    facts = rendered(ListTasksResult(tasks=[status(n, partial_text="x" * 400) for n in range(500)], left_out=7))
    names = [each["task_id"] for each in facts["tasks"]]
    assert names == [f"task{n:04}" for n in range(len(names))]
    assert len(names) > 10
    assert facts["left_out"] == 507 - len(names)


def test_after_a_wait_for_100_tasks_those_that_ended_are_shown_first():
    """A model asks again for those that still work; it must not miss one that is over."""
    ended = {5, 50, 99}
    tasks = [status(n, TaskState.COMPLETED if n in ended else TaskState.WORKING) for n in range(100)]
    revisions = {task.task_id: task.revision for task in tasks}
    facts = rendered(WaitForTasksResult(done=False, tasks=tasks, after_revision=revisions))
    assert [each["task_id"] for each in facts["tasks"][:3]] == ["task0005", "task0050", "task0099"]
    assert facts["left_out"] == 100 - len(facts["tasks"])
    assert facts["after_revision"] == revisions


def test_partial_text_goes_first():
    tasks = [status(n, partial_text="漢" * 400) for n in range(10)]
    facts = rendered(WaitForTasksResult(done=True, tasks=tasks, after_revision={}))
    assert len(facts["tasks"]) == 10
    assert not any("partial_text" in each for each in facts["tasks"])


def test_a_long_sentence_is_cut_and_an_id_never():
    ask = AskView(ask_id="a" * 1500, kind="permission", subject="bash", detail="x" * 100_000, choices=["allow", "deny"])
    facts = rendered(status(asks=[ask], failure=FailureView(code="c", message="🙂" * 5_000)))
    assert facts["asks"][0]["detail"] == "x" * 1000 + "…"
    assert facts["asks"][0]["ask_id"] == "a" * 1500
    assert facts["failure"]["message"] == "🙂" * 200 + "…" or facts["failure"]["message"] == "🙂" * 1000 + "…"


def test_many_long_questions_at_once_still_fit():
    asks = [
        AskView(ask_id=f"ask_{n}", kind="question", subject="漢" * 900, detail="🙂" * 900, choices=["漢" * 900] * 9)
        for n in range(30)
    ]
    facts = rendered(status(asks=asks))
    assert facts["asks"][0]["ask_id"] == "ask_0"


TEXTS = st.one_of(st.text(max_size=50), st.integers(0, 6000).map(lambda n: "🙂" * n), st.just("\ud800"))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(text=TEXTS, files=st.integers(0, 400), doubt=TEXTS, message=TEXTS)
def test_any_result_fits(text, files, doubt, message):
    rendered(
        TaskResult(
            task_id="k2j4h6f8",
            turn_id=TURN,
            state=TaskState.COMPLETED,
            phase=Phase.READY,
            text=text,
            text_offset=0,
            next_text_offset=None,
            changes=outcomes.changes(changes(files), ready(), ready().turn),
            ran=None,
            usage=UsageView(
                input_tokens=0,
                output_tokens=0,
                reasoning_tokens=0,
                cache_read_tokens=0,
                cache_write_tokens=0,
                total_tokens=0,
                cost=None,
            ),
            needs_review=doubt,
            failure=FailureView(code="x", message=message),
            next_step="",
        )
    )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(st.tuples(TEXTS, TEXTS, st.lists(TEXTS, max_size=8)), max_size=20), TEXTS)
def test_any_status_fits(asks, title):
    rendered(
        status(
            title=title,
            needs_review=title,
            partial_text=title[:400],
            asks=[
                AskView(ask_id="ask_1", kind="question", subject=subject, detail=detail, choices=choices)
                for subject, detail, choices in asks
            ],
        )
    )


def test_a_live_task_shows_what_its_worker_is_doing(live_status):
    assert live_status["activity"] == {"kind": "tool", "label": "running the test suite", "tool": "bash"}
    assert live_status["partial_text"] == "Now I run them."


@pytest.fixture
def live_status():
    from offload.domain.events import ActivityChanged
    from offload.domain.turn import Activity, ActivityKind

    activity = Activity(ActivityKind.TOOL, "running the test suite", "bash")
    task = fold(
        TaskId("k2j4h6f8"),
        [
            Created(at=1.0, turn=TURN, spec=TaskSpec("/w", "tests", "b", "p", Route("fake"), "tests")),
            Admitted(at=2.0, turn=TURN),
            TurnSeen(at=2.5, turn=TURN),
            ActivityChanged(at=3.0, turn=TURN, activity=activity),
        ],
    )
    return rendered(convert.status(task, Live(text="Now I run them."), 9.0))


def test_hunks_stand_beside_the_beginning_of_the_patch_that_shows_them():
    """A model that applies a part of a result names it by its hunks' ids."""
    task = ready()
    made = outcomes.changes(task.turn.changes, task, task.turn)
    first = rendered(GetChangesResult(task_id="k2j4h6f8", changes=made, patch="+a", patch_offset=0))
    assert [hunk["hunk_id"] for hunk in first["changes"]["files"][0]["hunks"]] == list(task.turn.changes.units)
    later = rendered(GetChangesResult(task_id="k2j4h6f8", changes=made, patch="+a", patch_offset=9))
    assert "hunks" not in later["changes"]["files"][0]


def test_of_many_hunks_those_that_do_not_fit_are_counted():
    task = ready(hunks=500)
    made = outcomes.changes(task.turn.changes, task, task.turn)
    (file,) = rendered(GetChangesResult(task_id="k2j4h6f8", changes=made, patch="+a", patch_offset=0))["changes"][
        "files"
    ]
    assert file["hunks_left_out"] == 500 - len(file["hunks"])
    assert len(file["hunks"]) >= 20
    two = [made.files[0], made.files[0].model_copy(update={"path": "b.py", "hunks": made.files[0].hunks[:1]})]
    view = GetChangesResult(
        task_id="k2j4h6f8", changes=made.model_copy(update={"files": two}), patch="+a", patch_offset=0
    )
    first, second = rendered(view)["changes"]["files"]
    assert (first["hunks_left_out"] > 400, "hunks_left_out" in second) == (True, False), "the longest list gives way"


def test_every_tool_has_a_result_that_render_knows():
    assert {each.result.__name__ for each in OPERATIONS_FOR_MODELS.values()} == {
        "ApplyTaskResult",
        "GetChangesResult",
        "ListAgentsResult",
        "ListTasksResult",
        "TaskResult",
        "TaskStatus",
        "UndoApplyResult",
        "WaitForTasksResult",
    }
