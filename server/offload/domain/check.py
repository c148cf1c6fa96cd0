"""Commands that are run over a result to see whether it holds, and what came of them."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

CHECK_TIMEOUT_S = 600.0
FORMAT = "format"  # the name of the formatter's result


@dataclass(frozen=True, slots=True)
class Check:
    """`command` is a line for the shell, run in the task folder; `junit` is the JUnit XML file that it writes, relative to
    the folder, "" for none."""

    name: str
    command: str
    timeout_s: float = CHECK_TIMEOUT_S
    junit: str = ""


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """What is run after each turn: first `format`, whose changes join the result, then the checks. `rounds` is how often in a
    row failing checks go back to the worker by themselves."""

    format: Check | None = None
    checks: tuple[Check, ...] = ()
    rounds: int = 2

    def __bool__(self) -> bool:
        return self.format is not None or bool(self.checks)


@dataclass(frozen=True, slots=True)
class ReportCounts:
    """What a JUnit report says; `failing` names the tests that failed or ended with an error."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`seconds` is the wall time; `tail` holds the last lines that the command printed; `problem` is "" for a command that
    ran to its end, else why it did not ("timed out after 600 s"); `exit_code` is None then."""

    name: str
    passed: bool
    seconds: float
    tail: str = ""
    command: str = ""
    exit_code: int | None = None
    problem: str = ""
    tests: ReportCounts | None = None


class Checked(enum.StrEnum):
    """What is known of a result."""

    NOT_CHECKED = "not_checked"
    PASSED = "passed"
    FAILED = "failed"


def checked(results: Sequence[CheckResult]) -> Checked:
    """A formatter alone checks nothing, unless it fails."""
    if any(not result.passed for result in results):
        return Checked.FAILED
    return Checked.PASSED if any(result.name != FORMAT for result in results) else Checked.NOT_CHECKED


def told(result: CheckResult) -> str:
    """One result in a few words: "tests: 14 passed, 2 failed: test_a, test_b". A command that fails though no test has, for
    want of coverage say, is told with its status."""
    if result.problem:
        return f"{result.name}: {result.problem}"
    if result.tests is None:
        return f"{result.name}: {'passed' if result.passed else f'failed with status {result.exit_code}'}"
    counts = [f"{result.tests.passed} passed"]
    if not result.passed and not result.tests.failed:
        counts.insert(0, f"failed with status {result.exit_code}")
    if result.tests.failed:
        counts.append(f"{result.tests.failed} failed")
    if result.tests.skipped:
        counts.append(f"{result.tests.skipped} skipped")
    named = f": {', '.join(result.tests.failing)}" if result.tests.failing else ""
    return f"{result.name}: {', '.join(counts)}{named}"
