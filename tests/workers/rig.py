"""A turn of the OpenCode worker against a server that does exactly what a test says; time is moved by hand."""

import asyncio
import shlex
import sys
from contextlib import asynccontextmanager

import psutil

from offload.core.worker import End, Opened, TurnOrder
from offload.domain.route import Route
from offload.processes import Processes
from offload.workers.opencode.find import Finder
from offload.workers.opencode.servers import Attach, Launch
from offload.workers.opencode.worker import OpenCodeWorker
from offload.workers.registry import agents
from tests.fakes.clock import ManualClock
from tests.fakes.opencode_server import FakeOpenCode

TURN = "turn_228aa1023001lhd6PV9O6bZmG4"
PROMPT = "msg_228aa1023001lhd6PV9O6bZmG4"
STATUS = "GET /session/status"
SEND = "POST /session/ses_.*/prompt_async"


class Watched:
    """A turn whose events are read as they come."""

    def __init__(self, turn, server):
        self.turn = turn
        self.server = server
        self.events = []
        self._more = asyncio.Condition()

    async def read(self):
        async for event in self.turn.events():
            async with self._more:
                self.events.append(event)
                self._more.notify_all()
            await self.server.poke()

    async def event(self, kind, count=1):
        """The `count`-th event of this kind, once it has come."""
        async with asyncio.timeout(20), self._more:
            await self._more.wait_for(lambda: len(self.of(kind)) >= count)
        return self.of(kind)[count - 1]

    @property
    def over(self):
        return bool(self.of(End))

    def of(self, kind):
        return [event for event in self.events if isinstance(event, kind)]


class Rig:
    def __init__(self, server, clock, worker, folder):
        self.server = server
        self.clock = clock
        self.worker = worker
        self.folder = folder
        self.session = ""

    def order(self, **changes):
        values = {"task": "t", "turn": TURN, "title": "a test", "folder": self.folder, "prompt": "do it"}
        values |= {"route": Route("opencode"), "commands": (), "session": "", "environment": {}}
        return TurnOrder(**{**values, **changes})

    @asynccontextmanager
    async def turn(self, **changes):
        async with self.worker.turn(self.order(**changes)) as turn, asyncio.TaskGroup() as group:
            watched = self.watched = Watched(turn, self.server)
            reading = group.create_task(watched.read())
            self.session = (await watched.event(Opened)).session
            yield watched
            reading.cancel()

    async def sent(self):
        await self.server.called(SEND)
        await self.server.called(STATUS)

    async def pass_time(self, seconds):
        """In steps of the turn's tick, each of which makes it look."""
        for _ in range(int(seconds // 2)):
            if self.watched.over:
                return
            looks = self.server.count(STATUS)
            await self.clock.sleepers(1)
            self.clock.advance(2)
            await self.server.until(lambda: self.server.count(STATUS) > looks or self.watched.over)  # noqa: B023


@asynccontextmanager
async def open_rig(folder, attach=Attach):
    """With a server that belongs to somebody else."""
    clock = ManualClock()
    async with FakeOpenCode() as server:
        finder = Finder(agents()["opencode"], folder / "worker", "", Processes())
        worker = OpenCodeWorker(finder, Launch(folder / "worker"), clock, Processes(), attach(server.url))
        yield Rig(server, clock, worker, folder)
        await worker.aclose()


# `opencode serve` as far as processes go: it says where it listens, which is where a test's own server is, and runs each line
# that is written to its pipe as OpenCode runs a shell command, in the task's folder and in a session of its own.
PROGRAM = """#!{python}
import os, subprocess, sys
if sys.argv[1] == "--version":
    print("1.18.33")
    raise SystemExit
new = {pipe!r} + str(os.getpid())  # several of them may start at once
os.mkfifo(new)
os.rename(new, {pipe!r})
print("opencode server listening on {url}", flush=True)
while True:
    for line in open({pipe!r}):
        subprocess.Popen(line, shell=True, cwd={task!r}, start_new_session=True)
"""


class OwnRig(Rig):
    """With a server that offload started: a real process, which runs `tool` commands."""

    @property
    def pipe(self):
        return self.folder.parent / "tools"

    async def tool(self, command):
        """Run a shell command that writes the number of the process in question into the file "pid"; gives that number."""
        pid = self.folder / "pid"
        await asyncio.to_thread(self.pipe.write_text, f"{command}\n")
        async with asyncio.timeout(20):
            while not pid.exists():  # noqa: ASYNC110 - a file is the fact
                await asyncio.sleep(0.01)
        return int(pid.read_text())


def environment_of(pid):
    return psutil.Process(pid).environ()


NAMED = "echo $$ > part; mv part pid"


def away(command):
    """A command whose process leaves its shell, its session and its group, as the public report (H06) has it."""
    return f"setsid sh -c {shlex.quote(f'{NAMED}; {command}')} > out 2>&1 &"


@asynccontextmanager
async def open_own_rig(folder, **options):
    clock = ManualClock()
    task = folder / "task"
    task.mkdir()
    async with FakeOpenCode() as server:
        program = folder / "opencode"
        pipe = str(folder / "tools")
        program.write_text(PROGRAM.format(python=sys.executable, url=server.url, pipe=pipe, task=str(task)))
        program.chmod(0o755)
        finder = Finder(agents()["opencode"], folder / "worker", str(program), Processes())
        worker = OpenCodeWorker(finder, Launch(folder / "worker"), clock, Processes(), **options)
        yield OwnRig(server, clock, worker, task)
        await worker.aclose()


def request(identity, session, permission="bash", **more):
    return {
        "id": identity,
        "sessionID": session,
        "permission": permission,
        "patterns": ["rm x"],
        "metadata": {"command": "rm x"},
        **more,
    }
