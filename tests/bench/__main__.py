"""`make bench`: one table on the screen, and the same as JSON in .cache/bench.json."""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench import fronts, results, tasks
from tests.bench.measure import Row, Rows

CACHE = Path(__file__).resolve().parents[2] / ".cache"
PARTS = {"fronts": fronts.bench, "tasks": tasks.bench, "results": results.bench}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure offload beside stock programs, in one run.")
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all parts, or some")
    parser.add_argument("--json", type=Path, default=CACHE / "bench.json", help="where the figures go")
    arguments = parser.parse_args()
    rows = Rows()
    for name in arguments.parts or PARTS:
        with tempfile.TemporaryDirectory(prefix="offload-bench-") as folder:
            PARTS[name](rows, CACHE, Path(folder))
    machine = (
        f"{os.cpu_count()} processors, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    )
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    written = {"machine": machine, "rows": [row.as_json() for row in rows.rows.values()]}
    arguments.json.write_text(json.dumps(written, indent=1) + "\n")
    show(rows, machine)


def show(rows: Rows, machine: str) -> None:
    table = Table(title=f"offload, {machine}; medians of one run")
    for column in ("figure", "median", "p95", "n", "ratio", "goal", ""):
        table.add_column(column, justify="left" if column == "figure" else "right")
    for row in rows.rows.values():
        table.add_row(row.name, *figures(row))
    Console(width=120).print(table)


def figures(row: Row) -> tuple[str, ...]:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    goal = "" if row.goal is None else f"≤ {row.goal:.2f}"
    met = {None: "", True: "met", False: "missed"}[row.met]
    return f"{row.median:.2f} {row.unit}", f"{row.p95:.2f}", str(len(row.samples)), ratio, goal, met


if __name__ == "__main__":
    main()
