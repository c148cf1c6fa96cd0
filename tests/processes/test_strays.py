"""Whatever a tool did to get away is found and ended, and nothing that is a person's or the server's own (report H06)."""

import asyncio
import os
import pty
import signal
import sys
from pathlib import Path

import pytest

from offload.processes import MARKER, Ended, Identity, Origin, Processes, alive, end_strays, identify, moment, strays
from offload.processes.facts import command, environment, facts, settled, works_in
from offload.processes.strays import _group

BOUND_S = 20
LIVE = "import time; time.sleep(600)"
WRITE = "while :; do date >> written; sleep 0.02; done"

# A worker's server: it runs each line that it is given as a tool does, in a session of its own, and `own` as its own child.
SERVER = """
import os, subprocess, sys, time
for line in sys.argv[1:]:
    own, _, command = line.partition(" ")
    subprocess.Popen(command, shell=True, cwd=os.environ["TASK"], start_new_session=own == "tool")
print("ready", flush=True)
time.sleep(600)
"""


class House:
    """A worker's server with a marker that is its own, and a task's folder."""

    def __init__(self, folder):
        self.task = folder / "task"
        self.task.mkdir()
        self.elsewhere = folder / "elsewhere"
        self.elsewhere.mkdir()
        self.server = None
        self.marker = str(folder)  # tests run beside each other
        self._processes = Processes()
        self._begun = []

    async def run(self, *lines):
        """Start the server with its tools, and wait until every tool has written its pid to a file of its name."""
        environment = {**os.environ, "TASK": str(self.task), MARKER: self.marker}
        process = await self._processes.start(
            [sys.executable, "-c", SERVER, *lines], cwd=self.elsewhere, environment=environment
        )
        self._begun.append(process)
        self.server = process.identity
        await process.output.readline()

    async def person(self, command, **environment):
        """A program of the person's own, in the task's folder; not a child of ours, as the shell that starts it ends."""
        start = f"setsid {command} & echo $! > person.part; mv person.part person"
        await self._processes.run(["sh", "-c", f"({start}) > out 2>&1"], cwd=self.task, environment=environment)
        return await self.pid("person")

    async def pid(self, name):
        """The process whose number is in a file of the task's folder."""
        async with asyncio.timeout(BOUND_S):
            while not (self.task / name).exists():  # noqa: ASYNC110 - a file is the fact
                await asyncio.sleep(0.01)
        found = identify(int((self.task / name).read_text()))
        self._begun.append(found)
        return found

    async def kill_the_server(self):
        os.kill(self.server.pid, signal.SIGKILL)
        async with asyncio.timeout(BOUND_S):
            while alive(self.server):  # noqa: ASYNC110 - the end of a process is the fact
                await asyncio.sleep(0.01)

    def origin(self, **changes):
        values = {"folder": self.task, "servers": (self.server,), "server": self.server, "marker": self.marker}
        return Origin(**{**values, **changes})

    async def close(self):
        for one in self._begun:
            if isinstance(one, Identity):
                if alive(one):
                    os.kill(one.pid, signal.SIGKILL)
            else:
                await one.stop(grace_s=0)


@pytest.fixture
async def house(tmp_path):
    house = House(tmp_path)
    yield house
    await house.close()


def told(name):
    """Shell words that write the shell's own number into a file, at once as a whole, and stay."""
    return f"echo $$ > {name}.part; mv {name}.part {name}"


GETAWAYS = {
    "its session": f"tool setsid sh -c '{told('got')}; {WRITE}' &",
    "its parents": f"tool (setsid sh -c '{told('got')}; {WRITE}' &) ; true",
    "its parents twice": f"tool (setsid sh -c '(setsid sh -c \"{told('got').replace('$', chr(92) + '$')}; {WRITE}\" &) ; true' &) ; true",
    "its environment": f"tool (env -i PATH=/bin:/usr/bin setsid sh -c '{told('got')}; {WRITE}' &) ; true",
    "the request to end": f"tool (setsid sh -c 'trap \"\" TERM; {told('got')}; {WRITE}' &) ; true",
}


@pytest.mark.parametrize("left", GETAWAYS.values(), ids=GETAWAYS)
async def test_a_tool_that_left_is_found_ended_and_writes_no_more(house, left):
    """Report H06: `setsid sh -c "while :; do date >> f; sleep 1; done" &` went on with full rights after a cancel."""
    await house.run(left)
    got = await house.pid("got")
    ended = await end_strays(house.origin(), grace_s=0.2)
    assert not ended.survivors
    assert got in [stray.identity for stray in ended.gone]
    assert any("date >> written" in stray.command for stray in ended.gone if stray.root)
    assert not alive(got)
    assert strays(house.origin()) == ()
    assert alive(house.server)


async def test_a_tool_is_found_though_the_server_is_gone(house):
    await house.run(f"tool setsid sh -c '{told('got')}; {WRITE}' &")
    got = await house.pid("got")
    await house.kill_the_server()
    await end_strays(house.origin(server=None, marker=""))
    assert not alive(got)


async def test_what_a_server_runs_for_itself_stays(house):
    """Language servers and MCP servers work in the folder too, and the next turn needs them."""
    await house.run(f"own {told('got')}; exec sleep 600")
    got = await house.pid("got")
    assert strays(house.origin(claims=lambda _: True)) == ()
    assert alive(got)


async def test_what_works_elsewhere_is_ended_only_when_its_start_is_the_tasks(house):
    before = moment()
    await house.run(f"tool cd ../elsewhere; {told('../task/got')}; exec sleep 600")
    got = await house.pid("got")
    assert strays(house.origin()) == ()
    assert strays(house.origin(claims=lambda start: start < before - 1)) == ()
    assert strays(house.origin(claims=lambda _: True, server=None, marker="another")) == ()
    found = strays(house.origin(claims=lambda start: before - 0.02 <= start <= moment()))
    assert [stray.identity for stray in found] == [got]
    await house.kill_the_server()
    found = strays(house.origin(claims=lambda _: True, server=None))
    assert [stray.identity for stray in found] == [got]


async def test_what_was_started_before_a_moment_may_be_left_alone(house):
    await house.run(f"tool {told('got')}; exec sleep 600")
    got = await house.pid("got")
    assert strays(house.origin(since=got.started + 0.01)) == ()
    assert [stray.identity for stray in strays(house.origin(since=got.started))] == [got]


async def test_a_child_that_went_elsewhere_is_ended_with_its_parent(house):
    await house.run(f"tool {told('shell')}; sh -c 'cd ..; {told('task/got')}; exec sleep 600'; true")
    got = await house.pid("got")
    assert got in [stray.identity for stray in strays(house.origin()) if not stray.root]


async def test_a_persons_own_program_in_the_folder_is_left_alone(house):
    got = await house.person("sleep 600", HOME="/home/somebody", PATH=os.environ["PATH"])
    assert strays(Origin(house.task)) == ()
    assert alive(got)


async def test_a_program_on_a_terminal_is_a_persons_whatever_its_environment_holds(house):
    ours, terminal = pty.openpty()
    try:
        told_pid = f"setsid --ctty sh -c '{told('person')}; exec sleep 600' <&3 & true"
        environment = {"PATH": os.environ["PATH"]}
        shell = await asyncio.create_subprocess_exec(
            "sh", "-c", f"exec 3<&0; {told_pid}", stdin=terminal, cwd=house.task, env=environment
        )
        await shell.wait()
        got = await house.pid("person")
        assert strays(Origin(house.task)) == ()
        assert alive(got)
    finally:
        os.close(terminal)
        os.close(ours)


async def test_what_this_process_runs_in_the_folder_is_no_stray(house):
    """Reading a result with git happens there too, in an environment that is ours."""
    process = await Processes().start([sys.executable, "-c", LIVE], cwd=house.task, environment={MARKER: "m"})
    try:
        assert strays(Origin(house.task)) == ()
    finally:
        await process.stop(grace_s=0)


async def test_a_folder_whose_name_only_begins_alike_is_another(house):
    beside = house.task.with_name("task2")
    house.task, task = beside, house.task
    beside.mkdir()
    await house.run(f"tool {told('got')}; exec sleep 600")
    await house.pid("got")
    assert strays(house.origin(folder=task)) == ()


async def test_a_folder_is_the_same_by_another_name(house):
    link = house.task.with_name("link")
    link.symlink_to(house.task)
    await house.run(f"tool {told('got')}; exec sleep 600")
    got = await house.pid("got")
    assert [stray.identity for stray in strays(house.origin(folder=link))] == [got]


async def test_what_cannot_be_ended_is_named(house):
    """One that waits in the kernel, or that changed its user, takes no signal."""
    await house.run(f"tool {told('got')}; exec sleep 600")
    got = await house.pid("got")
    sent = []
    ended = await end_strays(house.origin(), 0.01, lambda pid, number: sent.append((pid, number)), wait_s=0.01)
    assert ended == Ended(survivors=strays(house.origin()))
    assert [(stray.identity, stray.command) for stray in ended.survivors] == [(got, "sleep 600")]
    assert sent[0] == (got.pid, signal.SIGTERM)
    assert sent[-1] == (got.pid, signal.SIGKILL)


async def test_what_is_gone_or_refused_when_it_is_signalled_is_no_error(house):
    await house.run(f"tool {told('got')}; exec sleep 600")
    got = await house.pid("got")

    def refuse(pid, number):
        if number == signal.SIGTERM:
            raise PermissionError
        os.kill(pid, number)
        raise ProcessLookupError

    assert not (await end_strays(house.origin(), 0.01, refuse)).survivors
    assert not alive(got)


async def test_nothing_is_ended_when_nothing_is_left(house):
    await house.run()
    assert await end_strays(house.origin()) == Ended()


def test_a_process_starts_before_now_on_one_scale():
    """A change of the wall clock must not make a process another one."""
    assert 0 < facts(os.getpid()).started <= moment()


def test_of_a_process_that_is_gone_nothing_is_known():
    nobody = 2**22 + 1
    assert facts(nobody) is None
    assert environment(nobody) is None
    assert command(nobody) == "?"
    assert not works_in(nobody, Path("/"))
    assert _group(nobody) == 0


class Beginning:
    """A process that takes a program's place while it is looked at: `looks` times there is nothing to be seen."""

    def __init__(self, looks, known):
        self.looks = looks
        self.known = known

    def environ(self):
        self.looks -= 1
        return self.known if self.looks < 0 else {}

    def cmdline(self):
        return ["program"] if self.looks < 0 else []


@pytest.mark.parametrize("known", [{"HOME": "/home/me"}, {}])
def test_a_program_that_is_just_being_started_is_not_taken_for_one_with_an_emptied_environment(known):
    """A person's program in the folder seemed to be a stray at that moment."""
    beginning = Beginning(3, known)
    assert settled(beginning) == known
    assert beginning.looks == -1
    assert settled(Beginning(3, known), looks=3) == {}
