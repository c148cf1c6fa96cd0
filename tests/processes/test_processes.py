"""Real programs, started, bounded and ended."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from offload.processes import (
    Identity,
    OutputTooLarge,
    Process,
    Processes,
    TookTooLong,
    alive,
    identify,
    stop,
    tree,
    without,
)
from offload.processes.tree import _session

HERE = Path(__file__).parent
BOUND_S = 20.0


@pytest.fixture
def processes():
    return Processes()


async def run(processes: Processes, code: str, **options):
    return await processes.run([sys.executable, "-c", code], cwd=HERE, environment=dict(os.environ), **options)


@pytest.fixture
async def start(processes):
    """Start a program that stays; what is left of it at the end of the test is ended."""
    started: list[Process] = []

    async def one(code: str) -> Process:
        program = [sys.executable, "-u", "-c", code]
        started.append(await processes.start(program, cwd=HERE, environment=dict(os.environ)))
        return started[-1]

    yield one
    for process in started:
        await process.stop(grace_s=0)


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(BOUND_S):
        while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0)


async def test_a_short_command_gives_its_status_and_both_outputs(processes):
    done = await run(processes, "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")

    assert (done.returncode, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


async def test_a_command_reads_nothing_unless_it_is_given_input(processes):
    code = "import sys; print(len(sys.stdin.buffer.read()))"

    assert (await run(processes, code)).stdout == b"0\n"
    assert (await run(processes, code, stdin=b"x" * 300_000)).stdout == b"300000\n"


async def test_a_command_that_does_not_read_its_input_still_ends(processes):
    assert (await run(processes, "import os; os.close(0)", stdin=b"x" * 3_000_000)).returncode == 0


async def test_the_environment_is_what_was_given_and_nothing_else(processes):
    done = await processes.run(["/usr/bin/env"], cwd=HERE, environment={"ONE": "1"})

    assert done.stdout == b"ONE=1\n"


def test_variables_are_left_out_by_their_beginning():
    assert without({"GIT_DIR": "/x", "GITHUB": "y", "HOME": "/h"}, "GIT_") == {"GITHUB": "y", "HOME": "/h"}


async def test_a_command_runs_in_a_session_of_its_own(processes):
    done = await run(processes, "import os; print(os.getsid(0) == os.getpid())")

    assert done.stdout == b"True\n"


async def test_a_program_that_does_not_exist_is_an_os_error(processes):
    with pytest.raises(FileNotFoundError):
        await processes.run(["no-such-program"], cwd=HERE, environment={})


async def test_a_command_over_its_time_limit_is_killed_with_its_children(processes, tmp_path):
    pid_file = tmp_path / "pid"
    code = f"""
import subprocess, sys, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))
child.wait()
"""
    # The limit must be long enough for the child to be there; that it is reached is the point of the test.
    with pytest.raises(TookTooLong, match="did not end within 2 seconds"):
        await run(processes, code, time_limit_s=2)

    await until_gone(int(pid_file.read_text()))


async def test_a_command_that_writes_too_much_is_killed(processes):
    with pytest.raises(OutputTooLarge, match="more than 1000 bytes"):
        await run(processes, "while True: print('x' * 100)", output_limit=1000)


async def test_a_stranger_that_holds_the_output_open_does_not_outlast_the_time_limit(processes, tmp_path):
    """A daemon left behind in a session of its own keeps the pipe; asyncio would wait for it for ever."""
    pid_file = tmp_path / "pid"
    code = f"""
import subprocess, sys, pathlib
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path({str(pid_file)!r}).write_text(str(child.pid))
"""
    with pytest.raises(TookTooLong):
        await run(processes, code, time_limit_s=2)

    os.kill(int(pid_file.read_text()), signal.SIGKILL)


async def test_a_cancelled_command_is_killed(processes, tmp_path):
    pid_file = tmp_path / "pid"
    os.mkfifo(pid_file)
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run(processes, code))
        pid = int(await asyncio.to_thread(pid_file.read_text))
        running.cancel()

    assert running.cancelled()
    await until_gone(pid)


async def test_no_more_commands_run_at_once_than_there_are_places(tmp_path):
    code = f"""
import os, pathlib
folder = pathlib.Path({str(tmp_path)!r})
own = folder / str(os.getpid())
own.touch()
print(len(list(folder.iterdir())))
own.unlink()
"""
    processes = Processes(at_once=2)
    done = await asyncio.gather(*(run(processes, code) for _ in range(8)))

    assert {int(one.stdout) for one in done} <= {1, 2}


async def test_a_program_that_stays_is_read_line_by_line_and_stopped(start):
    process = await start("import time; print('ready'); time.sleep(600)")

    assert await process.output.readline() == b"ready\n"
    assert process.alive()
    assert await process.stop() == ()
    assert not process.alive()
    assert await process.wait() == -signal.SIGTERM


async def test_a_program_that_ended_by_itself_can_be_stopped_again(start):
    process = await start("raise SystemExit(7)")

    assert await process.wait() == 7
    assert await process.stop() == ()


async def test_a_program_that_ignores_the_request_to_end_is_killed(start):
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); time.sleep(600)"
    process = await start(code)
    await process.output.readline()

    assert await process.stop(grace_s=0.05) == ()
    assert await process.wait() == -signal.SIGKILL


async def test_stopping_takes_a_grandchild_that_left_the_session(start):
    """Public trouble report: a cancel ended the turn but not a detached grandchild, which kept writing (H06)."""
    code = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid)
time.sleep(600)
"""
    process = await start(code)
    grandchild = int(await process.output.readline())

    assert grandchild in {one.pid for one in tree(process.identity)}
    assert await process.stop() == ()
    await until_gone(grandchild)


async def test_the_tree_holds_a_member_of_the_session_whose_parent_is_gone(start):
    code = """
import os, time
if os.fork() == 0:
    orphan = os.fork()
    if orphan == 0:
        time.sleep(600)
    print(orphan)
    os._exit(0)
os.wait()
print("parent gone")
time.sleep(600)
"""
    process = await start(code)
    orphan = int(await process.output.readline())
    assert await process.output.readline() == b"parent gone\n"

    assert {one.pid for one in tree(process.identity)} >= {process.identity.pid, orphan}
    assert await process.stop() == ()


async def test_the_tree_names_each_process_once(start):
    code = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid)
time.sleep(600)
"""
    process = await start(code)
    child = int(await process.output.readline())

    assert sorted(one.pid for one in tree(process.identity)) == sorted([process.identity.pid, child])
    assert await process.stop() == ()


async def test_another_process_with_the_same_number_is_left_alone():
    """Numbers are given out again: after a restart the one on file may belong to somebody else."""
    own = Identity(os.getpid(), identify(os.getpid()).started - 1)

    assert not alive(own)
    assert tree(own) == ()
    assert await stop(own) == ()


async def test_a_number_that_nobody_has_is_not_alive_and_in_no_session():
    nobody = 2**22 + 1  # Linux gives out no higher number than 2**22

    assert not alive(identify(nobody))
    assert _session(nobody) == 0
