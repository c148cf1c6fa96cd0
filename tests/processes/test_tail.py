"""Commands that take their time: the end of what they print, and the end of all that they started."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from offload.processes import Identity, Processes, Tailed, alive, identify
from offload.processes.tree import session, stop_session

HERE = Path(__file__).parent
LIVE = "import time; time.sleep(600)"


async def run(code, *arguments, keep=1000, time_limit_s=60.0, grace_s=0.0):
    return await Processes().run_tail(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=HERE,
        environment=dict(os.environ),
        time_limit_s=time_limit_s,
        keep=keep,
        grace_s=grace_s,
    )


def descriptors():
    return len(list(Path("/dev/fd").iterdir()))


async def test_both_outputs_come_in_the_order_in_which_they_were_written():
    code = "import os, sys; os.write(1, b'one '); os.write(2, b'two '); os.write(1, b'three'); sys.exit(3)"
    assert await run(code) == Tailed(3, b"one two three", whole=True)


@pytest.mark.parametrize(("keep", "whole"), [(999, False), (1000, True), (1001, True)])
async def test_no_more_than_the_end_of_a_long_output_is_kept(keep, whole):
    done = await run("print('x' * 996 + 'end')", keep=keep)
    assert done == Tailed(0, (b"x" * 996 + b"end\n")[-keep:], whole=whole)


async def test_a_long_output_is_kept_across_pieces():
    assert (await run("print('x' * 1_000_000 + 'end')", keep=5)).output == b"xend\n"


async def test_a_command_that_a_signal_ended_has_a_negative_status():
    assert (await run("import os; os.kill(os.getpid(), 9)")).returncode == -signal.SIGKILL


async def test_a_command_that_cannot_be_started_is_an_os_error_and_leaves_no_descriptor():
    before = descriptors()
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            await Processes().run_tail(["no-such-program"], cwd=HERE, environment={}, time_limit_s=5, keep=5)
    await run("")
    assert descriptors() == before


async def test_a_command_that_closes_its_outputs_is_still_waited_for():
    assert await run("import os, time; os.close(1); os.close(2); time.sleep(0.1); os._exit(4)") == Tailed(
        4, b"", whole=True
    )


async def test_the_time_limit_ends_a_command_with_what_it_started():
    code = f"""
import subprocess, sys, time
print(subprocess.Popen([sys.executable, "-c", {LIVE!r}]).pid, flush=True)
time.sleep(600)
"""
    done = await run(code, time_limit_s=3)
    assert done.returncode is None
    assert not alive(identify(int(done.output)))


async def test_a_command_that_cleans_up_when_it_is_asked_to_end_has_time_for_it():
    code = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(print("cleaned")))
time.sleep(600)
"""
    assert await run(code, time_limit_s=3, grace_s=60) == Tailed(None, b"cleaned\n", whole=True)


async def test_a_command_that_ended_leaves_nothing_of_its_session():
    code = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {LIVE!r}]).pid)
"""
    done = await run(code)
    assert done.returncode == 0
    assert not alive(identify(int(done.output)))


async def test_a_stranger_that_holds_the_output_open_does_not_hold_us_up():
    code = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {LIVE!r}], start_new_session=True).pid)
"""
    done = await run(code)
    assert done.returncode == 0
    os.kill(int(done.output), signal.SIGKILL)


async def test_a_cancelled_command_ends_with_what_it_started(tmp_path):
    code = f"""
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {LIVE!r}])
open(sys.argv[1], "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(600)
"""
    os.mkfifo(tmp_path / "pids")
    async with asyncio.TaskGroup() as group:
        running = group.create_task(run(code, tmp_path / "pids"))
        pids = [int(pid) for pid in (await asyncio.to_thread((tmp_path / "pids").read_text)).split()]
        running.cancel()
    assert running.cancelled()
    assert [pid for pid in pids if alive(identify(pid))] == []


async def test_what_is_left_of_a_session_is_found_when_its_leader_has_gone():
    code = f"""
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", {LIVE!r}]).pid)
"""
    process = await Processes().start([sys.executable, "-c", code], cwd=HERE, environment=dict(os.environ))
    child = int(await process.output.readline())
    # Not `wait`: asyncio tells of the end only once the child has let go of the pipe.
    async with asyncio.timeout(20):
        while process.alive():  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0)
    assert [one.pid for one in session(process.identity)] == [child]
    assert await stop_session(process.identity, grace_s=0) == ()
    assert not alive(identify(child))
    await process.stop()


async def test_a_session_of_another_process_with_the_same_number_is_left_alone():
    stranger = Identity(os.getsid(0), identify(os.getsid(0)).started - 1)
    assert session(stranger) == ()
