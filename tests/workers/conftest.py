"""A real OpenCode for the whole session of tests, with the scripted model, and what is needed to give it orders."""

import asyncio
import itertools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from offload.core.ids import new_turn_id
from offload.core.worker import TurnOrder
from offload.domain.route import Route
from offload.hub.clock import SystemClock
from offload.processes import Processes
from offload.workers.opencode.find import Finder
from offload.workers.opencode.servers import Launch
from offload.workers.opencode.worker import OpenCodeWorker
from offload.workers.registry import agents
from tests.fakes import model as fake_model

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
    "npm_config_registry": "http://127.0.0.1:9/",
}
BOUND_S = 60


def opencode_program():
    given = os.environ.get("OFFLOAD_OPENCODE")
    return given or str(ROOT / ".cache/opencode/node_modules/opencode-linux-x64/bin/opencode")


@pytest.fixture(scope="session")
def model():
    with fake_model.running() as model:
        yield model


@dataclass
class Bench:
    """A worker with a folder to keep things in, and what its caller's environment is."""

    worker: OpenCodeWorker
    folder: Path
    environment: dict[str, str]
    model: fake_model.FakeModel
    numbers: itertools.count

    def order(self, prompt, **changes):
        """An order for a new repository, unless `folder` says another."""
        folder = changes.pop("folder", None) or repository(self.folder / f"repository-{next(self.numbers)}")
        values = {
            "task": "t1234567",
            "turn": new_turn_id(SystemClock().now()),
            "title": "a test",
            "folder": folder,
            "prompt": prompt,
            "route": Route("opencode"),
            "commands": (),
            "session": "",
            "environment": self.environment,
        }
        return TurnOrder(**{**values, **changes})


def repository(path):
    path.mkdir(parents=True)
    identity = ["-c", "user.email=nobody@example.invalid", "-c", "user.name=nobody"]
    subprocess.run(["git", "init", "-q", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), *identity, "commit", "-q", "--allow-empty", "-m", "start"], check=True)
    return path


def home(path):
    path.mkdir(parents=True, exist_ok=True)
    return {"HOME": str(path), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TMPDIR": str(path)}


def real_worker(folder, model, clock=None, **launch):
    processes = Processes()
    finder = Finder(agents()["opencode"], folder, opencode_program(), processes)
    options = {"config": model.opencode_config(), "extra_environment": OFFLINE, **launch}
    return OpenCodeWorker(finder, Launch(folder=folder, **options), clock or SystemClock(), processes)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bench(tmp_path_factory, model):
    """Shared: its server starts with the first turn and ends with the session of tests."""
    folder = tmp_path_factory.mktemp("opencode")
    # Sub-agents have none of their own unless both of these say so.
    deep = {"deep": {"description": "Asks others.", "mode": "subagent", "permission": {"task": "allow"}}}
    worker = real_worker(
        folder / "worker", model, config={**model.opencode_config(), "agent": deep, "subagent_depth": 3}
    )
    yield Bench(worker, folder, home(folder / "home"), model, itertools.count(1))
    await worker.aclose()


async def play(worker, order, on=None):
    """Run a turn to its end; `on` is called with the turn and each event. Gives all events."""
    events = []
    async with asyncio.timeout(BOUND_S), worker.turn(order) as turn:
        async for event in turn.events():
            events.append(event)
            if on is not None:
                await on(turn, event)
    return events
