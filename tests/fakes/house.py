"""A ready `Delegation` on fakes: memory for the journal, a scripted worker, a folder for the workspace, a clock moved by hand.

async with open_house(tmp_path) as house:
    task = await house.start("::text hello")
    task = await house.rested(task.id)
"""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from offload.core.assembly import open_core
from offload.core.caller import Caller
from offload.core.delegation import Delegation, StartRequest, WaitFor
from offload.core.limits import Limits
from offload.domain.ask import ModelApply
from offload.domain.route import Route
from offload.domain.task import Front
from offload.recipes import RecipeFiles
from tests.fakes.checks import FakeChecks
from tests.fakes.clock import ManualClock
from tests.fakes.journal import MemoryJournal
from tests.fakes.projects import FakeProjects
from tests.fakes.source import IndentedSource
from tests.fakes.worker import FakeWorker
from tests.fakes.workspace import FakeWorkspace

SHOP = """def price(amount, rate):
    return amount * rate


class Cart:
    def total(self):
        return 0
"""


@dataclass
class House:
    """The parts, for tests that look behind the front; `defects` is what core said should not have happened."""

    delegation: Delegation
    caller: Caller
    root: Path
    clock: ManualClock
    journal: MemoryJournal
    worker: FakeWorker
    workspace: FakeWorkspace
    defects: list

    async def start(self, brief="::text hello", **request):
        return await self.delegation.start(self.caller, StartRequest(brief=brief, **request))

    async def until(self, task_id, wanted):
        """The task as soon as `wanted(task)` is true of it."""
        async with asyncio.timeout(20):
            with self.delegation.watching() as watcher:
                while not wanted(task := self.delegation.get(task_id)):
                    await watcher.changes()
                return task

    async def rested(self, task_id):
        return await self.until(task_id, lambda task: not task.live)

    async def wait(self, *task_ids, every=True, timeout_s=45, after_revision=None):
        return await self.delegation.wait(WaitFor(task_ids, every, timeout_s, after_revision))


@asynccontextmanager
async def open_house(
    folder,
    *,
    journal=None,
    workspace=None,
    worker=None,
    clock=None,
    limits=None,
    files=None,
    others=(),
    route=None,
    projects=None,
    checks=None,
    recipes=None,
    mcp_apply=ModelApply.ASK,
):
    """`files` are written into the workspace first (default: shop.py). Pass the parts of an earlier house to restart on them.

    `others` are more workers; `route` is the default one, else it names `worker` alone.
    """
    root = Path(folder) / "project"
    root.mkdir(exist_ok=True)
    for name, text in ({"shop.py": SHOP} if files is None else files).items():
        if not (root / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
    clock = clock or ManualClock()
    journal = journal or MemoryJournal()
    worker = worker or FakeWorker()
    workspace = workspace or FakeWorkspace(Path(folder) / "state")
    defects = []
    async with open_core(
        journal=journal,
        workspace=workspace,
        workers={each.name: each for each in (worker, *others)},
        source=IndentedSource(),
        recipes=recipes or RecipeFiles(),
        projects=projects or FakeProjects(),
        checks=checks or FakeChecks(),
        clock=clock,
        limits=limits or Limits(),
        default_route=route or Route(worker.name),
        mcp_apply=mcp_apply,
        environment={"PATH": "/usr/bin", "HUB": "own"},
        real_path=Path.resolve,
        defect=lambda what, error: defects.append((what, error)),
    ) as delegation:
        caller = Caller(Front.TERMINAL, "rpc-1", root, "test", {"PATH": "/usr/bin"})
        yield House(delegation, caller, root, clock, journal, worker, workspace, defects)
