"""What is known of a result by its checks, and how it is told."""

import pytest

from offload.domain.check import FORMAT, Check, Checked, CheckPlan, CheckResult, checked, told
from offload.domain.check import ReportCounts as Counts  # pytest takes what begins with "Test" for tests

GOOD = CheckResult("tests", passed=True, seconds=1, exit_code=0)
BAD = CheckResult("lint", passed=False, seconds=1, exit_code=2)
LATE = CheckResult("tests", passed=False, seconds=5, problem="timed out after 5 s")
FORMATTED = CheckResult(FORMAT, passed=True, seconds=1, exit_code=0)
UNFORMATTED = CheckResult(FORMAT, passed=False, seconds=1, exit_code=1)


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([], Checked.NOT_CHECKED),
        ([FORMATTED], Checked.NOT_CHECKED),
        ([UNFORMATTED], Checked.FAILED),
        ([GOOD], Checked.PASSED),
        ([FORMATTED, GOOD], Checked.PASSED),
        ([UNFORMATTED, GOOD], Checked.FAILED),
        ([GOOD, BAD], Checked.FAILED),
        ([GOOD, LATE], Checked.FAILED),
    ],
)
def test_a_result_has_passed_when_a_check_has_and_none_has_failed(results, expected):
    assert checked(results) is expected


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (GOOD, "tests: passed"),
        (BAD, "lint: failed with status 2"),
        (LATE, "tests: timed out after 5 s"),
        (CheckResult("tests", passed=True, seconds=1, exit_code=0, tests=Counts(14)), "tests: 14 passed"),
        (
            CheckResult("tests", passed=False, seconds=1, exit_code=1, tests=Counts(14, 2, 0, ("a", "b"))),
            "tests: 14 passed, 2 failed: a, b",
        ),
        (
            CheckResult("tests", passed=False, seconds=1, exit_code=1, tests=Counts(0, 1, 3, ("a",))),
            "tests: 0 passed, 1 failed, 3 skipped: a",
        ),
    ],
)
def test_a_result_is_told_in_a_few_words(result, words):
    assert told(result) == words


def test_a_command_that_fails_though_all_its_tests_passed_is_not_told_as_a_pass():
    """A coverage threshold, say: the counts alone would hide why it failed."""
    result = CheckResult("tests", passed=False, seconds=1, exit_code=2, tests=Counts(14))
    assert told(result) == "tests: failed with status 2, 14 passed"


def test_a_plan_is_empty_when_nothing_is_run():
    assert not CheckPlan()
    assert not CheckPlan(rounds=9)
    assert CheckPlan(Check(FORMAT, "make format"))
    assert CheckPlan(checks=(Check("tests", "make test"),))
