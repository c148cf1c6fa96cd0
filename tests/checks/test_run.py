"""Real commands, run as checks of a folder: what is known of them afterwards, and that nothing of them is left."""

import asyncio
import contextlib
import os
import signal
import sys

import psutil
import pytest

from offload.checks import ShellChecks
from offload.domain.check import Check
from offload.processes import MARKER, Processes, alive, identify, moment

BOUND_S = 20


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "task"
    folder.mkdir()
    return folder


@pytest.fixture
def run(folder):
    async def run(command, *, environment=None, **options):
        check = Check("tests", command, **options)
        return await ShellChecks(Processes()).run(folder, check, os.environ if environment is None else environment)

    return run


def gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


async def pid_in(path):
    """The number that a command writes to a file, once it is there as a whole line."""
    async with asyncio.timeout(BOUND_S):
        while not (path.exists() and path.read_text().endswith("\n")):  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0)
        return int(path.read_text())


async def left_by_an_earlier_hub(folder, mark):
    """A process in the folder that is no child of this hub, older than the next check by more than the system's clock tells apart."""
    start = f"{MARKER}={mark} setsid sh -c 'echo $$ > pid; exec sleep 600' > out 2>&1 &"
    await Processes().run(["sh", "-c", start], cwd=folder, environment=dict(os.environ))
    left = identify(await pid_in(folder / "pid"))
    async with asyncio.timeout(BOUND_S):
        while moment() < left.started + 0.25:  # noqa: ASYNC110 - the clock is the fact
            await asyncio.sleep(0.01)
    return left


async def test_a_command_that_ends_well_has_passed(run):
    result = await run("echo fine; echo really >&2")
    assert (result.name, result.command) == ("tests", "echo fine; echo really >&2")
    assert (result.passed, result.exit_code, result.problem, result.tests) == (True, 0, "", None)
    assert result.tail == "fine\nreally"
    assert result.seconds > 0


async def test_a_command_that_ends_with_another_status_has_failed(run):
    result = await run("echo bad; exit 7")
    assert (result.passed, result.exit_code, result.problem, result.tail) == (False, 7, "", "bad")


async def test_it_runs_in_the_folder_without_input(run, folder):
    assert (await run("pwd -P; cat; echo end")).tail == f"{folder.resolve()}\nend"


async def test_a_command_that_is_not_there_has_failed_with_what_the_shell_says(run):
    result = await run("no-such-command-at-all")
    assert (result.passed, result.exit_code) == (False, 127)
    assert "no-such-command-at-all" in result.tail


async def test_a_command_over_its_time_limit_is_told_with_what_it_said(run):
    result = await run("echo begun; exec sleep 600", timeout_s=2)
    assert (result.passed, result.exit_code, result.problem) == (False, None, "timed out after 2 s")
    assert result.tail == "begun"


async def test_a_command_that_does_not_want_to_end_is_killed(run, folder):
    result = await run("trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", timeout_s=2)
    assert result.problem == "timed out after 2 s"
    assert gone(int((folder / "pid").read_text()))


async def test_a_command_that_a_signal_ended_is_told(run):
    result = await run("echo begun; kill -9 $$")
    assert (result.passed, result.exit_code, result.problem) == (False, None, "was ended by signal 9")
    assert result.tail == "begun"


async def test_a_command_that_cannot_be_started_is_told(run, folder):
    result = await run("echo \0")
    assert (result.passed, result.exit_code, result.problem) == (
        False,
        None,
        "could not be started: embedded null byte",
    )
    folder.rmdir()
    assert (await run("true")).problem.startswith("could not be started: [Errno 2]")


LEFT = {
    "background": "sleep 600 & echo $! > PID",
    "orphan": "(sleep 600 & echo $! > PID) > out 2>&1",
    "nohup": "nohup sleep 600 > out 2>&1 & echo $! > PID",
    "own session": "setsid sh -c 'echo $$ > PID; exec sleep 600' & until [ -s PID ]; do sleep 0.01; done",
    "own session elsewhere": "setsid sh -c 'echo $$ > PID; cd /; exec sleep 600' > out 2>&1 & until [ -s PID ]; do sleep 0.01; done",
    "own session, empty environment": "setsid env -i sh -c 'echo $$ > PID; exec sleep 600' > out 2>&1 & until [ -s PID ]; do sleep 0.01; done",
}


@pytest.mark.parametrize("start", LEFT.values(), ids=LEFT)
async def test_nothing_that_a_command_started_is_left(run, folder, start):
    assert (await run(start.replace("PID", "pid"))).passed
    assert gone(int((folder / "pid").read_text()))


async def test_nothing_that_a_command_started_is_left_when_its_time_is_over(run, folder):
    starts = [start.replace("PID", f"pid{number}") for number, start in enumerate(LEFT.values())]
    result = await run("\n".join([*starts, "exec sleep 600"]), timeout_s=3)
    assert result.problem == "timed out after 3 s"
    pids = [int((folder / f"pid{number}").read_text()) for number in range(len(starts))]
    assert [pid for pid in pids if not gone(pid)] == []


async def test_a_cancelled_check_leaves_nothing(run, folder):
    async with asyncio.TaskGroup() as group:
        check = group.create_task(run("sleep 600 & echo $! > pid; wait"))
        pid = await pid_in(folder / "pid")
        check.cancel()
    assert gone(pid)


async def test_what_the_check_of_a_hub_that_was_killed_left_is_ended_before_the_next_one(run, folder):
    mark = (await run(f"echo ${MARKER}")).tail
    left = await left_by_an_earlier_hub(folder, mark)
    try:
        assert (await run("true")).passed
        assert gone(left.pid)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(left.pid, signal.SIGKILL)


async def test_programs_that_are_not_the_checks_are_left_alone(run, folder):
    """A person's shell in a folder of ours, and what another task runs."""
    person = await Processes().start(
        ["sleep", "600"], cwd=folder, environment={"HOME": "/", "PATH": os.environ["PATH"]}
    )
    try:
        assert (await run("true")).passed
        assert person.alive()
    finally:
        await person.stop(grace_s=0)


async def test_what_a_worker_runs_for_itself_in_the_folder_is_left_alone(run, folder):
    """A language server of a worker that an earlier hub had started: it has a worker's mark, and is no child of this hub."""
    server = await left_by_an_earlier_hub(folder, "other")
    try:
        assert (await run("true")).passed
        assert alive(server)
    finally:
        os.kill(server.pid, signal.SIGKILL)


async def test_only_the_last_lines_are_kept(run):
    result = await run("seq 1 100000")
    lines = result.tail.splitlines()
    assert lines[-1] == "100000"
    assert lines == [str(number) for number in range(100001 - len(lines), 100001)]
    assert 3900 < len(result.tail) <= 4000


async def test_an_endless_output_is_no_trouble(run):
    result = await run("yes", timeout_s=2)
    assert result.problem == "timed out after 2 s"
    assert set(result.tail.splitlines()) == {"y"}
    assert len(result.tail) <= 4000


@pytest.mark.parametrize("ending", ["", "\\n"])
@pytest.mark.parametrize("before", ["", "a", "ab"])
async def test_a_line_without_an_end_is_cut_between_characters(run, before, ending):
    code = f"import sys; sys.stdout.buffer.write(('{before}' + '\u20ac' * 20000 + '{ending}').encode())"
    assert (await run(f'"{sys.executable}" -c "{code}"')).tail == "\u20ac" * 4000


async def test_characters_are_never_cut_where_bytes_are_dropped(run):
    code = r"import sys; sys.stdout.buffer.write(('\U0001f600' * 5000 + '\n').encode()[:-2])"
    assert (await run(f"'{sys.executable}' -c \"{code}\"")).tail == "\U0001f600" * 3999 + "\ufffd"


async def test_output_that_is_no_text_is_shown_with_replacements(run):
    assert (await run(r"printf 'a\377b\033[0m\n'")).tail == "a\ufffdb\x1b[0m"


async def test_the_environment_is_the_callers_without_what_is_offloads_or_gits(run):
    given = {
        "PATH": os.environ["PATH"],
        "HOME": "/home/me",
        "TOKEN": "t",
        "OFFLOAD_STATE_DIR": "/s",
        "GIT_DIR": "/g",
        "GIT_INDEX_FILE": "/i",
    }
    seen = dict(line.split("=", 1) for line in (await run("env", environment=given)).tail.splitlines())
    assert {name: seen.get(name) for name in given} == {
        **given,
        "OFFLOAD_STATE_DIR": None,
        "GIT_DIR": None,
        "GIT_INDEX_FILE": None,
    }


async def test_a_check_carries_the_mark_by_which_offload_refuses_a_workers_own_calls(run):
    assert (await run(f"echo ${MARKER}", environment={MARKER: "given"})).tail.startswith("check-")


async def test_many_checks_can_run_at_a_time(run):
    results = await asyncio.gather(*(run(f"echo {number}") for number in range(8)))
    assert [result.tail for result in results] == [str(number) for number in range(8)]
