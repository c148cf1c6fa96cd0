"""Runs the test lanes one after another, each within a budget of minutes, and ends with one table and one line of counts.

A lane is a name, a command and a budget. One that writes a JUnit file is counted by its tests, any other as one. It knows nothing
about what the lanes test.

    python tests/lanes.py               every lane
    python tests/lanes.py unit e2e      some of them
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
PYTHON = sys.executable

# The Python processes that a test starts are counted too (see [tool.coverage.run]).
COUNTED_PYTEST = (PYTHON, "-m", "coverage", "run", "-m", "pytest", "--quiet")
APART = ("tests/e2e", "tests/clients", "tests/wheel", "tests/crash")
GRACE_S = 45  # what a lane gets to end the hubs and workers of its tests, which would outlive it
ROOMS = ("tests", *(f"--ignore={folder}" for folder in APART))


@dataclass(frozen=True)
class Lane:
    """One command with the minutes it may take; `junit` says that pytest runs it and writes its counts."""

    name: str
    command: tuple[str, ...]
    minutes: float
    junit: bool = True


LANES = (
    Lane("check", ("make", "--no-print-directory", "check"), 2, junit=False),
    Lane("unit", (*COUNTED_PYTEST, *ROOMS, "-m", "not opencode", "-n", "2"), 9),
    Lane("opencode", (*COUNTED_PYTEST, *ROOMS, "-m", "opencode"), 4),
    Lane("e2e", (*COUNTED_PYTEST, "tests/e2e", "-n", "2", "--dist", "loadfile"), 6),
    Lane("crash", (*COUNTED_PYTEST, "tests/crash", "-n", "2"), 12),
    Lane("clients", (*COUNTED_PYTEST, "tests/clients", "-n", "2"), 3),
    Lane("wheel", (PYTHON, "-m", "pytest", "--quiet", "tests/wheel"), 1),
    Lane("coverage", (PYTHON, "tests/lanes.py", "--report-coverage"), 0.5, junit=False),
)


@dataclass
class Outcome:
    """What a lane came to; `trouble` is why it failed when its tests do not say so."""

    lane: Lane
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    trouble: str = ""


def run(lane: Lane) -> Outcome:
    """Runs one lane with its output passed through; a lane over its budget is ended with all that it started."""
    report = CACHE / "lanes" / f"{lane.name}.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [*lane.command, f"--junitxml={report}"] if lane.junit else list(lane.command)
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, stdin=subprocess.DEVNULL)
    overran = False
    try:
        code = process.wait(timeout=lane.minutes * 60)
    except subprocess.TimeoutExpired:
        overran = True
        code = end(process)
    except KeyboardInterrupt:
        end(process)
        raise
    outcome = Outcome(lane, time.monotonic() - started)
    if lane.junit:
        read_report(report, outcome)
    elif code == 0:
        outcome.passed = 1
    if overran:
        outcome.trouble = f"over its budget of {lane.minutes:g} min"
    elif lane.junit and not (outcome.passed or outcome.failed):
        outcome.trouble = f"ran no test (exit code {code})"
    elif code != 0 and not outcome.failed:
        outcome.trouble = f"exit code {code}"
    if outcome.trouble:
        outcome.failed += 1
    return outcome


def end(process: subprocess.Popen[bytes]) -> int:
    """Asks the lane's process group to stop, so that coverage and JUnit files are written, then kills it."""
    for last_word in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, last_word)
        except ProcessLookupError:
            break
        try:
            return process.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            continue
    return process.wait()


def read_report(report: Path, outcome: Outcome) -> None:
    """Counts the tests of a JUnit file; a test whose teardown failed too counts once."""
    if not report.exists():
        return
    for case in ET.parse(report).iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed += 1
        elif skipped is not None:
            name = f"{case.get('classname')}::{case.get('name')}"
            outcome.skipped.append((name, skipped.get("message") or "no reason given"))
        else:
            outcome.passed += 1


def show(outcomes: list[Outcome]) -> None:
    """Prints the table, every skipped test with its reason, and the counts alone on the last line."""
    console = Console(width=None if sys.stdout.isatty() else 110, highlight=False)
    table = Table(title="Lanes", title_justify="left")
    for heading in ("lane", "passed", "failed", "skipped", "minutes", "budget"):
        table.add_column(heading, justify="left" if heading == "lane" else "right")
    table.add_column("")
    for outcome in outcomes:
        table.add_row(
            outcome.lane.name,
            str(outcome.passed),
            f"[bold red]{outcome.failed}[/]" if outcome.failed else "0",
            str(len(outcome.skipped)),
            f"{outcome.seconds / 60:.1f}",
            f"{outcome.lane.minutes:g}",
            outcome.trouble,
        )
    used, budget = sum(o.seconds for o in outcomes) / 60, sum(o.lane.minutes for o in outcomes)
    table.add_section()
    passed, failed = sum(o.passed for o in outcomes), sum(o.failed for o in outcomes)
    skipped = [(o.lane.name, *skip) for o in outcomes for skip in o.skipped]
    table.add_row("all", str(passed), str(failed), str(len(skipped)), f"{used:.1f}", f"{budget:g}", "")
    console.print(table)
    for lane, name, reason in skipped:
        console.print(f"skipped in {lane}: {name}: {reason}", markup=False, soft_wrap=True)
    console.print(f"{passed} passed, {failed} failed, {len(skipped)} skipped")


def report_coverage() -> int:
    """Combines what the lanes have counted and holds it to the rule in pyproject.toml."""
    combine = [PYTHON, "-m", "coverage", "combine", "--quiet"]
    report = [PYTHON, "-m", "coverage", "report", "--fail-under=100"]
    return subprocess.call(combine, cwd=ROOT) or subprocess.call(report, cwd=ROOT)


def main() -> int:
    """Runs the lanes that were named, or all of them."""
    names = [lane.name for lane in LANES]
    parser = argparse.ArgumentParser(description="Runs the test lanes.")
    parser.add_argument("lanes", nargs="*", metavar="LANE", help=f"some of: {', '.join(names)}; all when none is named")
    parser.add_argument("--report-coverage", action="store_true", help="what the lane `coverage` runs")
    arguments = parser.parse_args()
    if arguments.report_coverage:
        return report_coverage()
    if unknown := set(arguments.lanes) - set(names):
        parser.error(f"no lane is called {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    chosen = [lane for lane in LANES if not arguments.lanes or lane.name in arguments.lanes]
    if any(lane.name == "coverage" for lane in chosen):
        # Counts of an earlier run would hide what this one no longer reaches.
        shutil.rmtree(CACHE / "coverage", ignore_errors=True)
    (CACHE / "coverage").mkdir(parents=True, exist_ok=True)
    outcomes = []
    for lane in chosen:
        print(f"\n== {lane.name} ==", flush=True)
        outcomes.append(run(lane))
    print()
    show(outcomes)
    return 1 if any(outcome.failed for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
