"""Every error is told with its code and what to do."""

import pytest
from pydantic import ValidationError

from offload.domain.change import Conflict
from offload.domain.errors import ApplyRefused, UnknownTask, all_errors
from offload.mcp.errors import HINTS, error_text, params_text
from offload.wire.params import StartTaskParams, WaitForTasksParams


def test_every_error_of_the_tree_has_a_hint_and_no_hint_is_left_over():
    assert {error.code for error in all_errors()} == set(HINTS)


def test_an_error_is_its_code_its_message_and_what_to_do():
    assert error_text(UnknownTask("there is no task 'x'")) == (
        "unknown_task: there is no task 'x'\nCall list_tasks for the ids."
    )


def test_reasons_are_listed_and_counted_when_there_are_too_many():
    text = error_text(ApplyRefused("2 files are in the way", tuple((f"f{n}.py", "conflict") for n in range(25))))
    assert "\n- f0.py: conflict\n" in text
    assert "\n- f19.py: conflict\n- and 5 more\n" in text
    assert "f20.py" not in text


def test_a_reason_that_the_message_gives_is_not_said_again():
    told = error_text(ApplyRefused("Nothing was written. a.py: conflict.", (("a.py", "conflict"), ("b.py", "unsaved"))))
    assert told.splitlines()[:2] == ["apply_refused: Nothing was written. a.py: conflict.", "- b.py: unsaved"]


def test_both_sides_of_the_first_conflicts_are_shown_and_the_rest_counted():
    long = Conflict("a.py", "both changed it", "h1", 7, "mine", "old", "x" * 500)
    plain = Conflict("b.png", "both changed it")
    text = error_text(ApplyRefused("in the way", (), (long, *(plain,) * 6)))
    assert f"\n- conflict in a.py at line 7 (hunk h1)\n  the user has: 'mine'\n  the task has: '{'x' * 400}'…\n" in text
    assert "\n- conflict in b.png\n  the user has: ''\n" in text
    assert text.count("- conflict in b.png") == 4
    assert "\n- and 2 more conflicts\n" in text
    assert "more conflicts" not in error_text(ApplyRefused("in the way", (), (long,)))


def test_a_long_message_is_cut():
    assert len(error_text(UnknownTask("x" * 10_000))) < 1_100


def refused(params, **arguments):
    with pytest.raises(ValidationError) as caught:
        params(**arguments)
    return params_text(caught.value, params)


def test_wrong_arguments_are_named_one_by_one():
    text = refused(WaitForTasksParams, task_ids=["a", 5], timeout_s=99, mode="both")
    assert "\n- task_ids.1: Input should be a valid string\n" in text
    assert "\n- timeout_s: Input should be less than or equal to 45\n" in text
    assert "\n- mode: Input should be 'all' or 'any'\n" in text


def test_a_misspelt_argument_is_named_with_those_that_exist():
    assert "\n- breif: Extra inputs are not permitted; there are brief, file, symbol," in refused(
        StartTaskParams, breif="x"
    )


def test_a_very_long_name_of_an_argument_is_cut():
    assert len(refused(StartTaskParams, **{"x" * 50_000: 1})) < 2_000
