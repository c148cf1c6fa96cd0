"""The runner that everybody's word "green" rests on."""

import sys
from pathlib import Path

import pytest

from tests import lanes

ONE_OF_EACH = """
import pytest
def test_right(): pass
def test_wrong(): assert False
@pytest.mark.skipif(True, reason="no such editor here")
def test_left_out(): pass
"""


@pytest.fixture(autouse=True)
def own_reports(tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "CACHE", tmp_path / "cache")


def pytest_lane(tmp_path: Path, text: str) -> lanes.Lane:
    (tmp_path / "test_some.py").write_text(text)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return lanes.Lane("some", (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)), 1)


def test_all_lanes_together_take_no_more_than_half_an_hour_and_the_crash_matrix_no_more_than_twelve_minutes():
    minutes = {lane.name: lane.minutes for lane in lanes.LANES}
    assert minutes.pop("crash") <= 12
    assert sum(minutes.values()) <= 30


def test_a_lane_is_counted_by_its_tests(tmp_path):
    outcome = lanes.run(pytest_lane(tmp_path, ONE_OF_EACH))
    assert (outcome.passed, outcome.failed, outcome.trouble) == (1, 1, "")
    assert [reason for _, reason in outcome.skipped] == ["no such editor here"]


def test_a_lane_that_runs_no_test_has_failed(tmp_path):
    outcome = lanes.run(pytest_lane(tmp_path, ""))
    assert (outcome.passed, outcome.failed, outcome.trouble) == (0, 1, "ran no test (exit code 5)")


def test_a_lane_over_its_budget_has_failed_and_is_ended():
    forever = lanes.Lane("forever", (sys.executable, "-c", "import signal; signal.pause()"), 0.005, junit=False)
    outcome = lanes.run(forever)
    assert (outcome.passed, outcome.failed, outcome.trouble) == (0, 1, "over its budget of 0.005 min")


@pytest.mark.parametrize(("code", "passed", "failed"), [(0, 1, 0), (3, 0, 1)])
def test_a_lane_without_a_report_counts_as_one(code, passed, failed):
    outcome = lanes.run(lanes.Lane("plain", (sys.executable, "-c", f"raise SystemExit({code})"), 1, junit=False))
    assert (outcome.passed, outcome.failed) == (passed, failed)


def test_the_last_line_is_the_counts_and_every_skip_is_named(capsys):
    lane = lanes.Lane("some", (), 1)
    lanes.show([lanes.Outcome(lane, 60.0, passed=2, failed=1, skipped=[("tests.x::test_y[a]", "no editor")])])
    *_, skip, counts = capsys.readouterr().out.splitlines()
    assert skip == "skipped in some: tests.x::test_y[a]: no editor"
    assert counts == "2 passed, 1 failed, 1 skipped"
