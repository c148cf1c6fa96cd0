"""One schedule of the crash matrix: a seed says what is delegated, how the server misbehaves, and at which labelled moments the hub,
the server or both are killed. The same seed gives the same schedule.

The hub here is core with the real OpenCode adapter and the real journal. Its death is exact: from that moment on nothing that it
does comes to the disk or to the server, and another one is opened on what is there.
"""

import asyncio
import contextlib
import os
import signal
import time
from dataclasses import dataclass, field

from offload.core.assembly import open_core
from offload.core.caller import Caller
from offload.core.delegation import StartRequest
from offload.core.limits import Limits
from offload.domain.ask import Answer
from offload.domain.check import Check, Checked, CheckPlan
from offload.domain.errors import OffloadError, StorageFailed
from offload.domain.project import ProjectSettings
from offload.domain.route import Route
from offload.domain.task import Front, Phase
from offload.processes import Processes
from offload.recipes import RecipeFiles
from offload.storage.journal import SqliteJournal
from offload.workers.opencode.find import Finder
from offload.workers.opencode.servers import Launch
from offload.workers.opencode.worker import OpenCodeWorker
from offload.workers.registry import agents
from tests.crash.acting import ActingOpenCode
from tests.crash.clock import FastClock
from tests.crash.plans import plan
from tests.fakes.checks import FakeChecks
from tests.fakes.projects import FakeProjects
from tests.fakes.source import IndentedSource
from tests.fakes.workspace import FakeWorkspace

FIRST_REAL = 1_000_000  # the numbers from here on are no seeds: they are those of the kills on the real OpenCode
SPEED = 5
CALL_LIMIT_S = 5.0  # shorter than the time after which a server that does not answer is lost, as that clock counts it
BOUND_S = 90


class DyingJournal(SqliteJournal):
    """Writes nothing more once its hub is dead."""

    def __init__(self, path, run):
        super().__init__(path)
        self._run = run

    async def append(self, task, events, *, expect):
        names = [type(event).__name__ for event in events]
        for name in names:
            await self._run.hit(f"journal {name}: before")
        if self._run.dead:
            raise StorageFailed("the hub is dead")
        revision = await super().append(task, events, expect=expect)
        for name in names:
            await self._run.hit(f"journal {name}: after")
        return revision


class LabelledWorkspace(FakeWorkspace):
    run = None

    async def snapshot(self, *arguments):
        return await self._around("snapshot", super().snapshot, *arguments)

    async def open_folder(self, *arguments):
        return await self._around("open_folder", super().open_folder, *arguments)

    async def collect(self, *arguments):
        return await self._around("collect", super().collect, *arguments)

    async def merge(self, *arguments):
        return await self._around("merge", super().merge, *arguments)

    async def write(self, *arguments):
        return await self._around("apply", super().write, *arguments)

    async def _around(self, label, work, *arguments):
        await self.run.hit(f"{label}: before")
        done = await work(*arguments)
        await self.run.hit(f"{label}: after")
        return done


class LabelledChecks(FakeChecks):
    """The check leaves something in the folder, as tests do."""

    def __init__(self, run):
        super().__init__()
        self._run = run

    async def run(self, folder, check, environment):
        await self._run.hit("check: before")
        (folder / "x9.txt").write_text("left by a check")
        result = await super().run(folder, check, environment)
        await self._run.hit("check: after")
        return result


class KnownProcesses(Processes):
    """Remembers what was started, by whichever hub."""

    def __init__(self, started):
        super().__init__()
        self._started = started

    async def start(self, command, *, cwd, environment):
        process = await super().start(command, cwd=cwd, environment=environment)
        self._started.append(process)
        return process


@dataclass
class Verdict:
    """What came of a schedule. The last three must be empty."""

    seed: int
    kills: list = field(default_factory=list)
    hubs: int = 0
    phases: list = field(default_factory=list)
    slowest_s: float = 0.0
    lost: list = field(default_factory=list)
    duplicates: list = field(default_factory=list)
    wrong: list = field(default_factory=list)


class Run:
    """A schedule as it is carried out in `folder`."""

    def __init__(self, seed, folder):
        self.plan = plan(seed)
        self.verdict = Verdict(seed)
        self.dead = False
        self._folder = folder
        self._root = folder / "project"
        self._root.mkdir(parents=True)
        (self._root / "shop.py").write_text("def price(): ...\n")
        self._workspace = LabelledWorkspace(folder / "state")
        self._workspace.run = self
        self._server = ActingOpenCode(folder, self.hit, self.plan.trouble)
        self._clock = FastClock(SPEED)
        self._passed = {}
        self._hub = None
        self._stopped = set()
        self._stopping = asyncio.Event()
        self._defects = []
        self._started = []

    async def hit(self, label):
        """A labelled moment has come. Whoever dies of it does nothing more."""
        count = self._passed[label] = self._passed.get(label, 0) + 1
        if label == self.plan.cancel_at:
            self._stopping.set()
        for kill in [each for each in self.plan.kills if (each.label, each.count) == (label, count)]:
            self.verdict.kills.append(f"{label} #{count}: {' and '.join(kill.victims)}")
            if "hub" in kill.victims and not self.dead:
                self.dead = self._server.hub_is_dead = True
                self._server.cut()
                self._hub.cancel()
            if "server" in kill.victims:
                self._server.crash()

    async def to_the_end(self):
        async with self._server:
            await self._all_hubs()
            self._judge()
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.identity.pid, signal.SIGKILL)
            await process.wait()
        return self.verdict

    async def _all_hubs(self):
        """Hub after hub until one comes to the end; one that hangs is judged as it stands."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(BOUND_S):
                over = False
                while not over:
                    self.verdict.hubs += 1
                    self.dead = self._server.hub_is_dead = False
                    self._hub = asyncio.create_task(self._one_hub())
                    try:
                        await asyncio.wait([self._hub])
                    finally:
                        self._hub.cancel()
                    over = not self._hub.cancelled()
                    if over:
                        self._hub.result()

    async def _one_hub(self):
        journal = DyingJournal(self._folder / "journal.sqlite3", self)
        processes = KnownProcesses(self._started)
        finder = Finder(agents()["opencode"], self._folder, str(self._server.program), processes)
        launch = Launch(self._folder / "worker", link_agents=False, call_limit_s=CALL_LIMIT_S)
        worker = OpenCodeWorker(finder, launch, self._clock, processes)
        try:
            await worker.adopt()
            async with open_core(
                journal=journal,
                workspace=self._workspace,
                workers={"opencode": worker},
                source=IndentedSource(),
                recipes=RecipeFiles(),
                projects=FakeProjects(ProjectSettings(plan=CheckPlan(checks=(Check("tests", "make test"),)))),
                checks=LabelledChecks(self),
                clock=self._clock,
                limits=Limits(),
                default_route=Route("opencode"),
                environment={"PATH": "/usr/bin:/bin", "HUB": "own"},
                defect=lambda what, error: self._defects.append((what, error)),
            ) as delegation:
                self._delegation = delegation
                await self._use(delegation)
        finally:
            await _die(worker)
            await journal.aclose()

    async def _use(self, delegation):
        """What fronts do: start with a key, answer, stop, take the results; and again with the next hub whatever got no answer."""
        caller = Caller(Front.TERMINAL, "rpc-1", self._root, "test", {"PATH": "/usr/bin:/bin"})
        for number, brief in enumerate(self.plan.briefs):
            await delegation.start(caller, StartRequest(brief=brief, key=f"key {number}"))
        stopping = asyncio.create_task(self._stop(delegation, caller))
        try:
            await self._rest(delegation, caller)
        finally:
            stopping.cancel()
        ready = [task for task in delegation.tasks() if task.phase is Phase.READY and not task.spec.integrates]
        if self.plan.then == "integrate" and ready:
            made = await delegation.integrate(caller, [task.id for task in ready], "together")
            await self._rest(delegation, caller)
            ready = [delegation.get(made.id)]
        for task in ready:
            await self._take(delegation, caller, task.id)

    async def _rest(self, delegation, caller):
        """Until no task is live; asks are answered meanwhile."""
        began = time.monotonic()
        with delegation.watching() as watcher:
            while live := [task for task in delegation.tasks() if task.live]:
                if not any(task.phase is Phase.RECOVERING for task in live) and self.verdict.hubs > 1:
                    self.verdict.slowest_s = max(self.verdict.slowest_s, time.monotonic() - began)
                    began = float("inf")
                for task in live:
                    for ask in task.asks:
                        with contextlib.suppress(OffloadError):
                            await delegation.answer(caller, task.id, ask, Answer("allow"))
                await watcher.changes()

    async def _take(self, delegation, caller, task_id):
        """What was done before the hub died is not done again."""
        if not delegation.get(task_id).landings:
            await delegation.apply(caller, task_id)
        landings = delegation.get(task_id).landings
        if self.plan.then == "undo" and len(landings) == 1:
            if landings[0].undone_at is None:
                await delegation.undo(caller, task_id)
            await delegation.apply(caller, task_id)

    async def _stop(self, delegation, caller):
        await self._stopping.wait()
        task = delegation.tasks()[-1]
        self._stopped.add(task.id)
        with contextlib.suppress(OffloadError):
            await delegation.cancel(caller, task.id)

    def _judge(self):
        """Every task against the server's truth and the files."""
        verdict, self._tasks = self.verdict, self._delegation.tasks()
        verdict.phases = [str(task.phase) for task in self._tasks]
        started = {task.spec.key for task in self._tasks}
        verdict.lost = [number for number in range(len(self.plan.briefs)) if f"key {number}" not in started]
        # A prompt that a killed server took and had not stored is in no session, so it has to be sent again.
        counts = [*self._server.sent.items(), *self._server.stored.items()]
        verdict.duplicates = [str(key) for key, count in counts if count > 1]
        if len(self._tasks) > len(self.plan.briefs) + (self.plan.then == "integrate"):
            verdict.duplicates.append("a task")
        for task in self._tasks:
            verdict.wrong += [f"{task.id} is {task.phase}: {why}" for why in self._lies(task)]
        verdict.wrong += [f"defect: {what}: {error!r}" for what, error in self._defects if not _expected(error)]

    def _lies(self, task):
        prompt = f"msg_{task.turn.id.removeprefix('turn_')}"
        folder = self._folder / "state" / task.id / self._root.name
        ended = self._server.ended.get(prompt)
        written = {path.name: path.read_text() for path in folder.glob("?[0-9].txt")}
        told = {file.path for file in task.turn.changes.files} if task.turn.changes else set()
        if not task.live and task.turn.session in self._server.playing:
            yield "its worker is at work"
        if not task.live and told != set(written):
            yield f"it changed {sorted(written)}, not {sorted(told)}"
        if task.live:
            yield "it is stuck"
        elif task.phase is Phase.READY:
            yield from self._lies_of_ready(task, ended, written)
        elif task.phase is Phase.CANCELLED:
            if task.id not in self._stopped:
                yield "nobody asked for that"
        elif ended is not None:
            yield f"its worker ended well: {task.turn.failure}"
        elif task.phase is Phase.FAILED:
            yield f"nothing failed but what was killed: {task.turn.failure}"
        elif not self._server.crashes:
            yield f"its worker was never killed: {task.turn.failure}"

    def _lies_of_ready(self, task, ended, written):
        made = task.integration
        if made is None and task.turn.text != ended:
            yield f"its worker said {ended!r}, not {task.turn.text!r}"
        if made is not None and (set(made.order), made.left_out) != (set(task.spec.integrates), ()):
            yield f"it holds {made.order}"
        landed = {name: (self._root / name).read_text() for name in written if (self._root / name).exists()}
        if landed != written:
            yield f"applied was {landed}"
        times = {"": 1, "undo": 2, "integrate": 0 if made is None else 1}[self.plan.then]
        if [landing.undone_at is None for landing in task.landings] != [False, True][2 - times :]:
            yield f"it was applied {len(task.landings)} times"
        if len(written) != 2 * (1 if made is None else len(made.order)):
            yield "it is not whole"
        if task.turn.checked is not Checked.PASSED and task.id not in self._stopped:
            yield f"it is {task.turn.checked}"


async def _die(worker):
    """What a killed hub's watchers and connections do: nothing more. Its server lives on."""
    await worker._servers._end_watching()
    for server in worker._servers._servers.values():
        await server.connection.close()


def _expected(error):
    """What a hub meets when it dies, or when a server was killed under a turn that had ended."""
    return isinstance(error, StorageFailed | OffloadError)
