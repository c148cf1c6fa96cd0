"""The figures of the crash matrix: each schedule's verdict is written down, and all are added up when the tests are over."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.crash.schedule import FIRST_REAL

FIGURES = Path(__file__).resolve().parents[2] / ".cache" / "crash"


def pytest_sessionstart(session):
    if "PYTEST_XDIST_WORKER" not in os.environ:
        FIGURES.mkdir(parents=True, exist_ok=True)
        for file in FIGURES.glob("*.jsonl"):
            file.unlink()


@pytest.fixture
def figures():
    """To be called with every verdict."""

    def put(verdict):
        with (FIGURES / f"{os.getpid()}.jsonl").open("a") as file:
            file.write(json.dumps(asdict(verdict)) + "\n")

    return put


def pytest_terminal_summary(terminalreporter):
    verdicts = [json.loads(line) for file in FIGURES.glob("*.jsonl") for line in file.read_text().splitlines()]
    if not verdicts or "PYTEST_XDIST_WORKER" in os.environ:
        return
    verdicts.sort(key=lambda verdict: verdict["seed"])
    matrix = [verdict for verdict in verdicts if verdict["seed"] < FIRST_REAL]
    if matrix:
        seeds = f"seeds {matrix[0]['seed']} to {matrix[-1]['seed']}"
        terminalreporter.write_line(f"crash matrix: {len(matrix)} schedules ({seeds}), {figures_of(matrix)}")
    if real := verdicts[len(matrix) :]:
        terminalreporter.write_line(f"on the real OpenCode: {len(real)} moments, {figures_of(real)}")
    for verdict in verdicts:
        if verdict["lost"] or verdict["duplicates"] or verdict["wrong"]:
            terminalreporter.write_line(f"  seed {verdict['seed']}: {verdict}")


def figures_of(verdicts):
    ends = [phase for verdict in verdicts for phase in verdict["phases"]]
    return (
        f"{sum(len(verdict['kills']) for verdict in verdicts)} kills, {len(ends)} tasks "
        f"({', '.join(f'{ends.count(phase)} {phase}' for phase in sorted(set(ends)))}), "
        f"slowest recovery {max(verdict['slowest_s'] for verdict in verdicts):.1f} s; "
        f"{sum(len(verdict['lost']) for verdict in verdicts)} lost, "
        f"{sum(len(verdict['duplicates']) for verdict in verdicts)} duplicate prompts, "
        f"{sum(len(verdict['wrong']) for verdict in verdicts)} wrong statuses"
    )
