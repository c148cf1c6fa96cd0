"""A task in few words."""

from dataclasses import replace

import pytest

from offload.core.delegation import Live
from offload.domain import check
from offload.domain.ask import Ask, AskId, AskKind
from offload.domain.change import ChangeSet, FileChange, FileStatus
from offload.domain.route import Route
from offload.domain.task import Landing, Phase, Rejection, Task, TaskId, TaskSpec
from offload.domain.turn import Activity, ActivityKind, Failure, Turn, TurnId
from offload.lsp import titles

ONE = FileChange("a.py", FileStatus.ADDED, "", "100644", 40, 0)
CHANGES = ChangeSet("b", "r", (ONE,))
TWO = ChangeSet("b", "r", (ONE, replace(ONE, path="b.py")))
PASSED = check.CheckResult("lint", passed=True, seconds=1.0, exit_code=0)
FAILED = check.CheckResult(
    "tests", passed=False, seconds=1.0, exit_code=1, tests=check.ReportCounts(14, 2, 0, ("test_a", "test_b"))
)
CONSENT = Ask(AskId("2"), AskKind.PERMISSION, "apply", "1 file, +40 -0", ("allow", "deny"))
ASK = Ask(AskId("1"), AskKind.PERMISSION, "bash", "rm -r build", ("allow", "deny"))


def task(phase, *, title="tests for Cart.total", recipe="tests", **turn):
    only = Turn(TurnId("t1"), "b", "p", Route("w"), 1.0, **turn)
    spec = TaskSpec("/w", title, "b", "p", Route("w"), recipe)
    return Task(TaskId("1"), spec, phase, 1, 1.0, 1.0, (only,))


def applied(*units, changes=CHANGES, undone_at=None):
    landing = Landing(TurnId("t1"), "r", ("a.py",), 1.0, id="apply_1", units=units, undone_at=undone_at)
    return replace(task(Phase.READY, changes=changes), landings=(landing,))


def rejected(*units, changes=CHANGES):
    return replace(task(Phase.READY, changes=changes), rejections=(Rejection(TurnId("t1"), units, 1.0),))


WORKING = task(Phase.WORKING, started_at=100.0)


@pytest.mark.parametrize(
    ("task", "live", "words"),
    [
        (task(Phase.QUEUED), Live(2), "queued, place 2"),
        (task(Phase.STARTING), Live(), "starting"),
        (WORKING, Live(), "working (12 s)"),
        (
            replace(WORKING, activity=Activity(ActivityKind.TOOL, "running the test suite", "bash")),
            Live(),
            "working: running the test suite (12 s)",
        ),
        (replace(WORKING, activity=Activity(ActivityKind.THINKING)), Live(), "working: thinking (12 s)"),
        (replace(WORKING, asks={ASK.id: ASK}), Live(), "waits for you: bash: rm -r build (12 s)"),
        (task(Phase.CHECKING, started_at=200.0), Live(), "checking the result (0 s)"),
        (
            replace(
                task(Phase.CHECKING, started_at=200.0), activity=Activity(ActivityKind.TOOL, "running the check a")
            ),
            Live(),
            "checking the result: running the check a (0 s)",
        ),
        (
            replace(
                task(Phase.CANCELLING, started_at=52.0), activity=Activity(ActivityKind.TOOL, "running the check a")
            ),
            Live(),
            "stopping (1:00)",
        ),
        (task(Phase.RECOVERING), Live(), "recovering"),
        (task(Phase.READY, changes=CHANGES), Live(), "ready: 1 file +40 -0, not checked"),
        (task(Phase.READY, changes=replace(CHANGES, files=(ONE, ONE))), Live(), "ready: 2 files +80 -0, not checked"),
        (task(Phase.READY, changes=CHANGES, checks=(PASSED,)), Live(), "ready: 1 file +40 -0, checked"),
        (
            task(Phase.READY, changes=CHANGES, checks=(PASSED, FAILED)),
            Live(),
            "ready: 1 file +40 -0, checks fail, needs a look: tests: 14 passed, 2 failed: test_a, test_b",
        ),
        (
            replace(task(Phase.READY, changes=CHANGES), asks={CONSENT.id: CONSENT}),
            Live(),
            "waits for you: apply: 1 file, +40 -0",
        ),
        (
            task(Phase.READY, needs_review="ran another model"),
            Live(),
            "ready: no change, needs a look: ran another model",
        ),
        (applied(*ONE.units), Live(), "applied: 1 file +40 -0, not checked"),
        (applied(*ONE.units, undone_at=2.0), Live(), "ready: 1 file +40 -0, not checked"),
        (applied(*ONE.units, changes=TWO), Live(), "partly applied: 2 files +80 -0, not checked"),
        (rejected(*ONE.units), Live(), "rejected: 1 file +40 -0, not checked"),
        (rejected(*ONE.units, changes=TWO), Live(), "ready: 2 files +80 -0, not checked"),
        (task(Phase.FAILED, failure=Failure("x", "no key")), Live(), "failed: no key"),
        (task(Phase.CANCELLED), Live(), "cancelled"),
        (
            task(Phase.INTERRUPTED, failure=Failure("interrupted", "the hub ended")),
            Live(),
            "interrupted: the hub ended",
        ),
    ],
)
def test_the_state_says_what_matters(task, live, words):
    assert titles.state(task, live, 112.0) == words


def test_the_mark_names_the_recipe_or_what_was_asked():
    assert titles.mark(task(Phase.QUEUED), Live(), 0) == "offload: tests — queued"
    words = task(Phase.QUEUED, title="make this retry on timeouts", recipe="instruction")
    assert titles.mark(words, Live(), 0) == "offload: make this retry on timeouts — queued"


def test_what_a_worker_says_becomes_one_harmless_short_line():
    assert titles.short("a\n\tb\x1b[2J") == "a b\N{REPLACEMENT CHARACTER}[2J"
    assert titles.short("x" * 100) == "x" * 59 + "…"
