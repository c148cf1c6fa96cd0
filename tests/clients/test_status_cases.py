"""The table of status texts itself: tasks as the hub sends them, in the words that the server's own marks have."""

from offload.core.delegation import Live
from offload.domain import check
from offload.domain.ask import Ask, AskId
from offload.domain.change import ChangeSet, FileChange, Hunk
from offload.domain.route import Route
from offload.domain.task import Landing, Phase, Rejection, Task, TaskId, TaskSpec
from offload.domain.turn import Activity, ActivityKind, Failure, Turn, TurnId
from offload.lsp import titles
from offload.wire.views import CheckView, FileChangeView, LandingView, TaskView, TurnView
from tests.clients import status_cases

VIEWS = [(mark, TaskView.model_validate(task)) for mark, _, task in status_cases.CASES]


def file_of(view: FileChangeView) -> FileChange:
    hunks = tuple(
        Hunk(hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines, hunk.hunk_id) for hunk in view.hunks
    )
    return FileChange(view.path, view.status, "", "", view.added_lines, view.removed_lines, hunks=hunks)


def check_of(view: CheckView) -> check.CheckResult:
    tests = view.tests and check.ReportCounts(
        view.tests.passed, view.tests.failed, view.tests.skipped, tuple(view.tests.failing)
    )
    return check.CheckResult(view.name, view.passed, view.seconds, exit_code=view.exit_code, tests=tests)


def turn_of(view: TurnView) -> Turn:
    changes = view.changes and ChangeSet(
        view.changes.base,
        view.changes.result,
        tuple(file_of(file) for file in view.changes.files),
    )
    return Turn(
        id=TurnId(view.turn_id),
        brief=view.brief,
        prompt="",
        asked=Route(view.asked.worker),
        queued_at=view.queued_at,
        started_at=view.started_at,
        changes=changes,
        failure=view.failure and Failure(view.failure.code, view.failure.message),
        needs_review="" if view.checks else view.needs_review,
        checks=tuple(check_of(each) for each in view.checks),
    )


def landing_of(view: LandingView) -> Landing:
    return Landing(
        TurnId(view.turn_id), "", tuple(view.paths), view.at,
        id=view.apply_id, units=tuple(view.hunks), undone_at=view.undone_at,
    )  # fmt: skip


def task_of(view: TaskView) -> Task:
    """The task that the hub would have sent as `view`, as far as its words go."""
    activity = view.activity
    asks = (Ask(AskId(ask.ask_id), ask.kind, ask.subject, ask.detail, tuple(ask.choices)) for ask in view.asks)
    return Task(
        id=TaskId(view.task_id),
        spec=TaskSpec(view.workspace, view.title, "", "", Route("opencode"), view.recipe),
        phase=view.phase,
        revision=view.revision,
        created_at=view.created_at,
        changed_at=view.changed_at,
        turns=tuple(turn_of(turn) for turn in view.turns),
        activity=activity and Activity(activity.kind, activity.label, activity.tool),
        asks={ask.id: ask for ask in asks},
        landings=tuple(landing_of(each) for each in view.landings),
        rejections=tuple(Rejection(TurnId(each.turn_id), tuple(each.hunks), each.at) for each in view.rejections),
    )


def test_every_phase_and_every_activity_has_a_case():
    assert {view.phase for _, view in VIEWS} == set(Phase)
    assert {view.activity.kind for _, view in VIEWS if view.activity} == set(ActivityKind)


def test_the_server_says_the_same():
    """Its pieces are cut shorter; files that were left out of a view it counts itself."""
    for mark, view in VIEWS:
        said = titles.state(task_of(view), Live(place=view.place), view.changed_at)
        own_words = view.recipe == "instruction"
        status = mark.partition(" — ")[2] if own_words else mark.split(maxsplit=2)[2]
        if view.turns[-1].changes and view.turns[-1].changes.files_left_out:
            continue
        assert status == said or (said.endswith("…") and status.startswith(said[:-1]))
