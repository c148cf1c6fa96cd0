"""What tasks cost: the acknowledgement of a start, the way from the worker's last word to the answer of a wait, and five at once."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.bench.measure import Lines, Rows, Server
from tests.e2e.stage import OFFLOAD, Stage, write
from tests.fakes.model import running

STOCK = Path(__file__).parent / "stock" / "model_server.py"
STARTS = 60
QUIET_S = 0.1
ENDS = 20
FIVE = 5
HELD_S = 10.0
BODY = "x" * 2000  # about what the first event of a task holds


def bench(rows: Rows, _cache: Path, folder: Path) -> None:
    with running() as model:
        starts(rows, model, folder)
        with opened(model) as (stage, host):
            ends(rows, stage, host, model)
            five(rows, stage, host, model)


@contextmanager
def opened(model: Any, **settings: str) -> Iterator[tuple[Stage, Server]]:
    """A hub of its own with the scripted model, and a host that is connected to it."""
    stage = Stage(model, **settings)
    host = Server([str(OFFLOAD), "mcp"], Lines, stage.environ)
    try:
        host.call(*Lines.opening)
        host.notify("notifications/initialized", {})
        yield stage, host
    finally:
        host.end()
        stage.close()


def tool(host: Server, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    answer = host.call("tools/call", {"name": name, "arguments": arguments})
    assert not answer.get("isError"), answer
    return dict(answer["structuredContent"])


def timed(work: Callable[[], object]) -> float:
    """Milliseconds."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def starts(rows: Rows, model: Any, folder: Path) -> None:
    """One task works, the others wait in line: what is measured is the start, not the work."""
    stock = Server([sys.executable, str(STOCK)], Lines, {})
    stock.call(*Lines.opening)
    stock.notify("notifications/initialized", {})
    journal = sqlite3.connect(folder / "bare.sqlite3", isolation_level=None)
    journal.execute("PRAGMA journal_mode = WAL")
    journal.execute("PRAGMA synchronous = FULL")
    journal.execute("CREATE TABLE events (seq INTEGER PRIMARY KEY, body TEXT)")

    def bare(_number: int) -> None:
        stock.call("tools/call", {"name": "start_task", "arguments": {"brief": "x"}})
        journal.execute("INSERT INTO events (body) VALUES (?)", (BODY,))

    with opened(model, OFFLOAD_MAX_TASKS="1") as (stage, host):
        project = str(stage.project())

        def start(number: int) -> None:
            place = {"workspace": project, "file": "shapes.py", "symbol": "area"}
            ids.append(tool(host, "start_task", {**place, "brief": f"::gate starts-{number} done"})["task_id"])

        ids: list[str] = []
        start(-1)  # The parser's child is started by the first one.
        taken: dict[str, list[float]] = {"bare": [], "start": [], "burst": []}
        for number in range(STARTS):
            time.sleep(QUIET_S)  # what is measured is one start, not the snapshot of the one before
            taken["bare"].append(timed(lambda number=number: bare(number)))
            taken["start"].append(timed(lambda number=number: start(number)))
        for number in range(STARTS, 2 * STARTS):
            taken["burst"].append(timed(lambda number=number: start(number)))
        for task in reversed(ids):
            tool(host, "cancel_task", {"task_id": task})
        tool(host, "wait_for_tasks", {"task_ids": ids[:1], "timeout_s": 30})
    stock.end()
    rows.add("one no-op MCP call and one synced commit", "ms", taken["bare"])
    rows.add(
        "start_task acknowledged, durable",
        "ms",
        taken["start"],
        against="one no-op MCP call and one synced commit",
        goal=3,
    )
    rows.add("… one right after the other", "ms", taken["burst"])


class Finishes:
    """A bare reader of OpenCode's events: when each session's last message was finished."""

    def __init__(self, server: Mapping[str, Any], directory: str) -> None:
        self.client = httpx.Client(
            base_url=server["url"],
            auth=("opencode", server["password"]),
            headers={"x-opencode-directory": directory},
            timeout=60,
        )
        self.at: float | None = None
        self.session = ""
        self.connected = threading.Event()
        self.finished = threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        assert self.connected.wait(30)

    def _read(self) -> None:
        with self.client.stream("GET", "/event") as response:
            for line in response.iter_lines():
                if not line.startswith("data:"):
                    continue
                event = json.loads(line[5:])
                self.connected.set()
                info = event["properties"].get("info") or {}
                if (
                    event["type"] == "message.updated"
                    and info.get("finish") == "stop"
                    and info["time"].get("completed")
                ):
                    self.at, self.session = time.time(), info["sessionID"]
                    self.finished.set()
                    return

    def close(self) -> None:
        self._thread.join()
        self.client.close()


def ends(rows: Rows, stage: Stage, host: Server, model: Any) -> None:
    """The gate of the model opens, the message is finished, the change set is stored, the wait is answered."""
    project = stage.project()
    stored, answered, bare = [], [], []
    for number in range(ENDS + 1):
        gate = model.gate(f"ends-{number}")
        brief = "\n".join(["Do this.", write("new.py", f"x = {number}\n"), f"::gate ends-{number} done"])
        task = tool(host, "start_task", {"workspace": str(project), "brief": brief})["task_id"]
        assert gate.reached.wait(60)
        clone = next((stage.state / "tasks").glob(f"{task}*/**/.git")).parent
        (server,) = stage.opencode()
        finishes = Finishes(server, str(clone))
        opening = threading.Timer(0.05, gate.opened.set)  # the wait is open by then
        opening.start()
        waited = tool(host, "wait_for_tasks", {"task_ids": [task], "timeout_s": 45})
        at = time.time()
        opening.join()
        assert waited["done"], waited
        assert finishes.finished.wait(10)
        assert finishes.at is not None
        read_back = timed(lambda f=finishes: f.client.get(f"/session/{f.session}/message").raise_for_status())
        collect = timed(lambda clone=clone: bare_collect(clone))
        finishes.close()
        whole = stage.json("show-task", task)
        if number:  # The first one warms up.
            stored.append((whole["turns"][-1]["ended_at"] - finishes.at) * 1000)
            answered.append((at - finishes.at) * 1000)
            bare.append(read_back + collect)
    rows.add("bare read-back of the message and bare collect", "ms", bare)
    rows.add("finished message to change set stored", "ms", stored)
    rows.add(
        "finished message to wait answered",
        "ms",
        answered,
        against="bare read-back of the message and bare collect",
        goal=1.5,
    )


def bare_collect(clone: Path) -> None:
    """What git alone needs to say what differs."""
    script = (
        "git ls-files -z -m -d -o --exclude-standard | git update-index --add --remove -z --stdin"
        " && tree=$(git write-tree) && git diff-tree -r -p --numstat HEAD $tree"
    )
    subprocess.run(["sh", "-c", script], cwd=clone, check=True, stdout=subprocess.DEVNULL)


def five(rows: Rows, stage: Stage, host: Server, model: Any) -> None:
    """Five tasks whose model takes ten seconds to answer, started one after another."""
    projects = [str(stage.project()) for _ in range(FIVE)]
    gates = [model.gate(f"five-{number}") for number in range(FIVE)]
    openings = []
    begun = time.perf_counter()
    ids = [
        tool(host, "start_task", {"workspace": project, "brief": f"::gate five-{number} done"})["task_id"]
        for number, project in enumerate(projects)
    ]
    for gate in gates:
        assert gate.reached.wait(60)
        opening = threading.Timer(HELD_S, gate.opened.set)
        opening.start()
        openings.append(opening)
    assert tool(host, "wait_for_tasks", {"task_ids": ids, "timeout_s": 45})["done"]
    took = time.perf_counter() - begun
    for opening in openings:
        opening.join()
    turns = [stage.json("show-task", task)["turns"][-1] for task in ids]
    rows.add("the longest of five tasks", "s", [max(turn["ended_at"] - turn["queued_at"] for turn in turns)])
    rows.add("five tasks at once", "s", [took], against="the longest of five tasks", goal=1.05)
