"""What fronts are told about an integration: there is no worker in it that could go on."""

import pytest

from offload.core.delegation import Live
from offload.domain.change import ChangeSet, Conflict, FileChange, FileStatus
from offload.domain.events import (
    Admitted,
    Created,
    Integrated,
    Landed,
    Stopped,
    StopRequested,
    TurnEnded,
    TurnFailed,
    TurnSeen,
)
from offload.domain.integration import Integration, LeftOut, Overlap
from offload.domain.lifecycle import fold
from offload.domain.route import Route
from offload.domain.task import Landing, TaskSpec
from offload.domain.turn import Failure
from offload.wire import convert

CHANGES = ChangeSet("a" * 40, "b" * 40, (FileChange("x", FileStatus.MODIFIED, "100644", "100644", 1, 1),))
SPEC = TaskSpec("/w", "Integrate", "all", "", Route(""), "integration", integrates=("one", "two"))
STARTING = [Created(at=1.0, turn="t", spec=SPEC), Admitted(at=2.0, turn="t")]
WORKING = [*STARTING, TurnSeen(at=3.0, turn="t")]


def integration(**made):
    return Integrated(at=4.0, turn="t", integration=Integration(**made))


def told(*events):
    return convert.status(fold("id", events), Live(), now=9.0)


READY = [*WORKING, integration(order=("one", "two")), TurnEnded(at=5.0, turn="t", text="merged", changes=CHANGES)]


@pytest.mark.parametrize(
    ("events", "step"),
    [
        (STARTING, "Its folder is being made"),
        (WORKING, "The results are being merged"),
        ([*WORKING, StopRequested(at=4.0)], "It is being stopped"),
        (READY, "takes all of it in one step"),
        ([*WORKING, StopRequested(at=4.0), Stopped(at=5.0, turn="t")], "integrate_tasks makes it anew"),
        ([*WORKING, TurnFailed(at=5.0, turn="t", failure=Failure("x", "y"))], "then call integrate_tasks again"),
    ],
)
def test_each_phase_says_what_to_do_and_speaks_of_no_worker(events, step):
    status = told(*events)
    assert step in status.next_step
    assert "worker" not in status.next_step
    assert "resume_task" not in status.next_step


def test_one_that_is_applied_can_be_undone_and_not_continued():
    landing = Landing("t", "b" * 40, ("x",), 6.0, id="a1", units=CHANGES.units)
    assert told(*READY, Landed(at=6.0, landing=landing)).next_step == (
        "Applied to the user's files; undo_apply takes that back."
    )


def test_what_was_left_out_comes_first_and_is_shown_with_both_sides():
    conflict = Conflict("x", "both changed it", "h1", 3, "yours", "base", "theirs")
    made = integration(
        order=("one",),
        overlaps=(Overlap("one", "two", ("x",), hunks=True),),
        left_out=(LeftOut("two", ("one",), (conflict,)),),
    )
    task = fold("id", [*WORKING, made, READY[-1]])
    assert convert.status(task, Live(), now=9.0).next_step.startswith("Left out for conflicts: two.")
    view = convert.result(task, task.turn).integration
    assert view.task_ids == ["one", "two"]
    assert [(each.task_ids, each.paths, each.hunks) for each in view.overlaps] == [(["one", "two"], ["x"], True)]
    (left,) = view.left_out
    assert (left.task_id, left.with_tasks) == ("two", ["one"])
    assert [(each.yours, each.base, each.theirs) for each in left.conflicts] == [("yours", "base", "theirs")]
