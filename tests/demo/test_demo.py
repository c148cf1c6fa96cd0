"""The whole demo, as `make demo` runs it: the real OpenCode, the scripted model, a hub of its own."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from offload.demo.run import find_opencode
from offload.domain.errors import EnvironmentFailure, WorkerMissing

DEMO = (sys.executable, "-m", "offload", "demo", "--yes", "--pace", "0")


def processes_of(folder):
    """Those whose environment or command line names the demo's folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(folder in text for text in (*process.environ().values(), *process.cmdline())):
                found.append(process)
    return found


def left_over(folder):
    """Those that are still there when a process had time to end: the hub lets go of its lock before Python is down."""
    _, alive = psutil.wait_procs(processes_of(folder), timeout=10)
    return alive


@pytest.mark.opencode
@pytest.mark.timeout(180)
def test_five_blocks_get_tests_that_are_applied_and_green(tmp_path):
    """Five results, two of which conflict by design: checked each, made one, that applied as one step, the sample's tests green."""
    environ = {**os.environ, "OFFLOAD_STATE_DIR": str(tmp_path / "the-persons-own"), "TMPDIR": str(tmp_path)}
    done = subprocess.run([*DEMO, "--keep"], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("The language model is scripted")
    assert done.stdout.count("Sent back price: Also cover negative amounts.") == 1
    assert done.stdout.count("overlap: price and share both change tests/test_money.py") == 2
    left_out = re.search(
        r"left out: (price|share), which conflicts with (price|share) in tests/test_money.py", done.stdout
    )
    assert f"Sent back {left_out[1]}, with its conflicts marked in the files." in done.stdout
    assert (
        f"holds 6 tests for `{left_out[1]}`. I kept the tests of both sides of the conflict. They pass." in done.stdout
    )
    assert done.stdout.count("; tests: passed)") == 6
    assert done.stdout.count("Applied as one step") == 1
    assert "5 of 5 results applied; the project's tests are green." in done.stdout
    folder = re.search(r"Kept: (.+)", done.stdout)[1]
    written = Path(folder, "shop/tests")
    assert len(list(written.glob("test_*.py"))) == 6
    money = (written / "test_money.py").read_text()
    assert "self.assertEqual(price(-5), '-0.05')" in money
    assert "class ShareTest" in money
    assert "<<<<" not in money
    assert not (tmp_path / "the-persons-own/journal.sqlite3").exists(), "the person's own hub has nothing to do with it"
    assert left_over(folder) == []


@pytest.mark.opencode
def test_ctrl_c_ends_all_that_the_demo_has_started(tmp_path):
    environ = {**os.environ, "OFFLOAD_STATE_DIR": str(tmp_path / "the-persons-own"), "TMPDIR": str(tmp_path)}
    demo = subprocess.Popen(DEMO, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    folder = next(re.search(r"Project: (.+)/shop\.", line)[1] for line in demo.stdout if "Project: " in line)
    assert demo.stdout.readline().startswith("Checks of every result")
    assert demo.stdout.readline().startswith("merge: "), "the first task is on its way"
    assert processes_of(folder) != []
    demo.send_signal(signal.SIGINT)
    _, errors = demo.communicate(timeout=60)
    assert (demo.returncode, errors) == (130, "")
    assert left_over(folder) == []
    assert not Path(folder).exists()


def test_a_missing_opencode_is_told_at_once(tmp_path):
    environ = {
        **os.environ,
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "OFFLOAD_STATE_DIR": str(tmp_path / "state"),
    }
    environ.pop("OFFLOAD_OPENCODE", None)
    done = subprocess.run(DEMO, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "OpenCode was not found; run `offload install opencode`." in done.stderr


async def test_opencode_is_looked_for_where_the_hub_would(tmp_path):
    program = tmp_path / "opencode"
    program.write_text("#!/bin/sh\necho 1.18.33\n")
    program.chmod(0o755)
    found = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "OFFLOAD_STATE_DIR": str(tmp_path / "state")}
    assert await find_opencode({**found, "OFFLOAD_OPENCODE": str(program)}) == str(program)
    with pytest.raises(WorkerMissing):
        await find_opencode({**found, "OFFLOAD_OPENCODE": str(tmp_path / "nothing")})
    with pytest.raises(EnvironmentFailure, match="absolute"):
        await find_opencode({**found, "OFFLOAD_STATE_DIR": "relative"})
