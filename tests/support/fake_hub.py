"""The hub that these tests start in place of `offload hub run`: the real hub, rpc and core, with a worker that plays its prompt."""

import os
import sys
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

from offload.core.assembly import open_core
from offload.core.caller import Caller
from offload.core.limits import Limits
from offload.core.worker import AgentInfo, ModelInfo, WorkerInfo
from offload.domain.route import Route
from offload.domain.task import Front
from offload.hub import address, run
from offload.hub import server as hub_server
from offload.hub.clock import SystemClock
from offload.hub.services import Services
from offload.recipes import RecipeFiles
from offload.rpc import serve
from tests.fakes.checks import FakeChecks
from tests.fakes.journal import MemoryJournal
from tests.fakes.projects import FakeProjects
from tests.fakes.source import IndentedSource
from tests.fakes.worker import FakeWorker
from tests.fakes.workspace import FakeWorkspace

INFOS = {
    "no-models": WorkerInfo("fake", "1.0"),
    "note": WorkerInfo(
        "fake",
        "1.0",
        (AgentInfo("build"),),
        (ModelInfo("fake/free", "Free"),),
        note="no sign-in found: it goes elsewhere",
    ),
    "problem": WorkerInfo("fake", problem="run the installer"),
}


def defect(what, error):
    raise AssertionError(what) from error


def status(delegation):
    return {"tasks": len(delegation.tasks()), "notes": os.environ.get("OFFLOAD_TEST_NOTES", "").splitlines()}


@asynccontextmanager
async def build():
    state = Path(address.state_folder(os.environ))
    worker = FakeWorker(info=INFOS.get(os.environ.get("OFFLOAD_TEST_WORKER", "")))
    numbers = count(1)
    async with open_core(
        journal=MemoryJournal(),
        workspace=FakeWorkspace(state / "folders"),
        workers={worker.name: worker},
        source=IndentedSource(),
        recipes=RecipeFiles(),
        projects=FakeProjects(),
        checks=FakeChecks(),
        clock=SystemClock(),
        limits=Limits(),
        default_route=Route(worker.name),
        environment={},
        defect=defect,
    ) as delegation:

        async def rpc(reader, writer, hello):
            caller = Caller(Front.TERMINAL, f"rpc-{next(numbers)}", Path(hello.cwd), hello.client, hello.environment)
            await serve.serve(reader, writer, caller, delegation)

        yield Services(serve={"rpc": rpc}, busy=lambda: False, status=lambda: status(delegation))
        await worker.aclose()


def main():
    state = address.state_folder(os.environ)
    address.prepare(state)
    return run.run(build, state, SystemClock(), hub_server.Limits(stop_s=0.5))


if __name__ == "__main__":
    sys.exit(main())
