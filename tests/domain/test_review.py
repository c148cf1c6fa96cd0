"""What has become of the parts of a result: derived from landings and rejections, in their order."""

from dataclasses import replace

import pytest

from offload.domain.change import ChangeSet, FileChange, FileStatus, Hunk
from offload.domain.review import ReviewState, Selection, claimed_only, outside, pending, review, standing
from offload.domain.route import Route
from offload.domain.task import Landing, Phase, Rejection, Task, TaskId, TaskSpec
from offload.domain.turn import Turn, TurnId

APPLIED, REJECTED = ReviewState.APPLIED, ReviewState.REJECTED
TURN = TurnId("turn_1")
SPEC = TaskSpec("/w", "Do it", "Do it.", "Do it.\n", Route("fake"), "instruction")


def landing(*units, undone=False):
    return Landing(TURN, "c1", (), 1.0, units=units, undone_at=2.0 if undone else None)


def rejection(*units, after=0):
    """Parts that were rejected when there were so many landings."""
    return Rejection(TURN, units, 1.0, landings=after)


def task(*, landings=(), rejections=(), **spec):
    return Task(
        TaskId("task_1"),
        replace(SPEC, **spec),
        Phase.READY,
        5,
        0.0,
        1.0,
        (Turn(TURN, "Do it.", "Do it.\n", Route("fake"), 0.0),),
        landings=landings,
        rejections=rejections,
    )


def file(path, *hunks, old_path=""):
    status = FileStatus.RENAMED if old_path else FileStatus.MODIFIED
    made = tuple(Hunk(1, 1, 1, 1, hunk) for hunk in hunks)
    return FileChange(path, status, "100644", "100644", 1, 1, hunks=made, old_path=old_path)


@pytest.mark.parametrize(
    ("landings", "rejections", "states"),
    [
        ([], [], {}),
        ([landing("h1", "h2")], [], {"h1": APPLIED, "h2": APPLIED}),
        ([landing("h1"), landing("h2")], [], {"h1": APPLIED, "h2": APPLIED}),
        ([landing("h1", undone=True)], [], {}),
        ([landing("h1"), landing("h1", "h2", undone=True)], [], {"h1": APPLIED}),
        ([], [rejection("h1")], {"h1": REJECTED}),
        ([landing("h1")], [rejection("h1", after=0)], {"h1": APPLIED}),
        ([landing("h1")], [rejection("h1", after=1)], {"h1": REJECTED}),
        ([landing("h1", undone=True)], [rejection("h1", after=0)], {"h1": REJECTED}),
        ([landing("h1"), landing("h1")], [rejection("h1", after=1)], {"h1": APPLIED}),
        (
            [landing("h1")],
            [rejection("h2", after=1), rejection("h3", after=1)],
            {"h1": APPLIED, "h2": REJECTED, "h3": REJECTED},
        ),
    ],
)
def test_what_came_last_counts(landings, rejections, states):
    assert review(task(landings=tuple(landings), rejections=tuple(rejections))) == states


def test_a_landing_stands_until_it_is_undone():
    first, second, third = landing("h1"), landing("h2", undone=True), landing("h3")
    assert standing(task(landings=(first, second, third))) == (first, third)


def test_all_that_was_neither_applied_nor_rejected_is_pending():
    changes = ChangeSet("b", "r", (file("a.py", "h1", "h2"), file("b.bin")))
    assert pending(changes, {"h2": APPLIED, "gone": REJECTED}) == ("h1", file("b.bin").id)


@pytest.mark.parametrize(
    ("change", "is_outside"),
    [
        (file("tests/a.py"), False),
        (file("shop.py"), True),
        (file("tests/a.py", old_path="tests/b.py"), False),
        (file("tests/a.py", old_path="shop.py"), True),
        (file("shop.py", old_path="tests/a.py"), True),
    ],
)
def test_a_file_is_outside_unless_it_is_in_scope_where_it_was_and_where_it_is(change, is_outside):
    changes = ChangeSet("b", "r", (change,))
    assert outside(task(allowed_paths=("tests",)), changes) == ((change,) if is_outside else ())
    assert outside(task(), changes) == ()


def test_files_that_a_worker_claims_and_that_did_not_change_are_named():
    changes = ChangeSet("b", "r", (file("a.py"), file("new.py", old_path="old.py")))
    turn = replace(task().turn, claims=("a.py", "old.py", "new.py", "b.py"))
    assert claimed_only(turn, changes) == ("b.py",)


def test_a_selection_that_names_nothing_means_everything():
    assert Selection().everything
    assert Selection(include_outside=True).everything
    assert not Selection(paths=("a.py",)).everything
    assert not Selection(hunks=("h1",)).everything
