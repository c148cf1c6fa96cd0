"""The table of status texts itself: it must hold tasks as the hub sends them, or the clients are tested on something else."""

from offload.domain.task import Phase
from offload.domain.turn import ActivityKind
from offload.wire.views import TaskView
from tests.clients import status_cases


def test_every_case_is_a_task_as_it_goes_over_the_wire():
    for _, _, task in status_cases.CASES:
        TaskView.model_validate(task)


def test_every_phase_and_every_activity_has_a_case():
    views = [TaskView.model_validate(task) for _, _, task in status_cases.CASES]
    assert {view.phase for view in views} == set(Phase)
    assert {view.activity.kind for view in views if view.activity} == set(ActivityKind)
