"""Where results meet before they are merged, in which order they go, and what is said at a start about others at work."""

from dataclasses import replace

import pytest

from offload.core.integration.overlaps import WARNINGS, Result, overlaps, proposed, warnings
from offload.domain.anchor import Anchor, Block
from offload.domain.change import ChangeSet, FileChange, FileStatus, Hunk
from offload.domain.events import Created
from offload.domain.integration import Overlap
from offload.domain.lifecycle import begin
from offload.domain.route import Route
from offload.domain.task import Phase, TaskSpec


def task(name, **spec):
    made = TaskSpec("/w", f"title of {name}", "do it", "do it", Route("fake"), "instruction", **spec)
    return begin(name, Created(at=1.0, turn="turn", spec=made))


def file(path, *ranges, status=FileStatus.MODIFIED, old_path=""):
    """A file whose hunks take the place of these (first line, lines) of the old one."""
    hunks = tuple(Hunk(start, lines, start, lines) for start, lines in ranges)
    changed = sum(lines for _, lines in ranges)
    return FileChange(path, status, "100644", "100644", changed, changed, hunks=hunks, old_path=old_path)


def result(name, *files, needs=(), **spec):
    changes = ChangeSet("base", f"result of {name}", files)
    return Result(task(name, **spec), changes, changes, needs=frozenset(needs))


def meets(one, other):
    """Whether a result with the file `one` and one with the file `other` change close lines; None when they do not overlap."""
    found = overlaps([result("a", one), result("b", other)])
    return found[0].hunks if found else None


def test_results_of_different_files_do_not_overlap():
    assert overlaps([result("a", file("a.py", (1, 3))), result("b", file("b.py", (1, 3)))]) == ()


def test_every_pair_that_shares_files_is_named_with_all_of_them():
    one, two = result("a", file("x", (1, 3)), file("y", (1, 3))), result("b", file("y", (1, 3)), file("x", (9, 3)))
    third = result("c", file("x", (90, 3)))
    assert overlaps([one, two, third]) == (
        Overlap("a", "b", ("x", "y"), hunks=True),
        Overlap("a", "c", ("x",), hunks=False),
        Overlap("b", "c", ("x",), hunks=False),
    )


@pytest.mark.parametrize(
    ("one", "other", "close"),
    [
        ((10, 7), (17, 7), False),
        ((10, 7), (16, 7), True),
        ((16, 7), (10, 7), True),
        ((10, 0), (10, 0), True),  # both add lines at the same place
        ((10, 0), (11, 0), False),
        ((1, 100), (50, 1), True),
    ],
)
def test_hunks_are_close_when_they_share_a_line_of_the_old_file(one, other, close):
    assert meets(file("x", one), file("x", other)) is close


@pytest.mark.parametrize("status", [FileStatus.ADDED, FileStatus.DELETED, FileStatus.RENAMED, FileStatus.TYPE_CHANGED])
def test_a_file_that_both_add_delete_or_rename_is_close_whatever_its_lines(status):
    assert meets(file("x", (1, 1), status=status), file("x", (50, 1), status=status)) is True


def test_a_file_without_lines_is_close_to_any_change_of_it():
    assert meets(file("logo.png"), file("logo.png")) is True


def test_a_renamed_file_is_touched_where_it_was():
    renamed = file("new.py", (40, 7), status=FileStatus.RENAMED, old_path="old.py")
    assert meets(renamed, file("old.py", (1, 7))) is False
    assert meets(renamed, file("old.py", (42, 7))) is True


def order(*results):
    return [each.id for each in proposed(results, overlaps(results))]


def test_those_that_meet_no_other_go_first_then_those_that_meet_few():
    crowd = result("crowd", file("x", (1, 1)), file("y", (1, 1)))
    assert order(
        crowd, result("x", file("x", (1, 1))), result("y", file("y", (1, 1))), result("z", file("z", (1, 1)))
    ) == [
        "z",
        "x",
        "y",
        "crowd",
    ]


def test_of_those_that_meet_as_many_the_small_ones_go_first_and_else_it_is_as_given():
    assert order(
        result("big", file("a", (1, 9))), result("one", file("b", (1, 2))), result("two", file("c", (1, 2)))
    ) == [
        "one",
        "two",
        "big",
    ]


def test_a_result_goes_after_those_that_it_was_begun_from():
    first, second = result("first", file("a", (1, 90))), result("second", file("b", (1, 9)), needs=["first"])
    third = result("third", file("c", (1, 1)), needs=["second", "elsewhere"])
    assert order(third, second, first) == ["first", "second", "third"]


def test_two_that_were_brought_onto_each_other_go_by_size():
    assert order(result("a", file("x", (1, 9)), needs=["b"]), result("b", file("y", (1, 2)), needs=["a"])) == ["b", "a"]


def on(path):
    return {"anchor": Anchor(path, Block("f", "function", 0, 3), "")}


def named(*paths):
    return {"allowed_paths": paths, "paths_named": True}


def warned(new, *others):
    return warnings(task("new", **new).spec, others)


def test_a_task_that_works_on_the_same_file_is_told_of():
    others = [task("t1", **on("shop.py")), task("t2", **on("cart.py")), task("t3")]
    assert warned(on("shop.py"), *others) == ("task t1 (title of t1) works on shop.py too",)


def test_paths_that_both_callers_named_and_that_overlap_are_told_of():
    others = [task("t1", **named("shop/*.py")), task("t2", **named("docs"))]
    assert warned(named("/shop/cart.py"), *others) == ("task t1 (title of t1) may change shop/*.py too",)


def test_paths_that_a_recipe_gives_are_no_reason_to_warn():
    """Else any two tasks of the recipe "tests" would be told of each other."""
    assert warned(named("tests"), task("t1", allowed_paths=("tests",))) == ()
    assert warned({"allowed_paths": ("tests",)}, task("t1", **named("tests"))) == ()


def test_tasks_that_are_over_or_of_another_workspace_or_that_it_begins_from_are_not_told_of():
    other = task("t1", **on("shop.py"))
    assert warned(on("shop.py"), replace(other, phase=Phase.READY)) == ()
    assert warned(on("shop.py"), replace(other, spec=replace(other.spec, workspace="/other"))) == ()
    assert warned({"after": ("t1",), **on("shop.py")}, other) == ()


def test_no_more_is_told_than_somebody_reads():
    others = [task(f"t{number}", **on("shop.py")) for number in range(WARNINGS + 2)]
    assert len(warned(on("shop.py"), *others)) == WARNINGS
