"""The whole demo, as `make demo` runs it: the real OpenCode, the scripted model, a hub of its own."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from offload.demo.run import find_opencode
from offload.domain.errors import EnvironmentFailure, WorkerMissing

DEMO = (sys.executable, "-m", "offload", "demo", "--yes")


def processes_of(folder):
    """Those whose environment or command line names the demo's folder."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(folder in text for text in (*process.environ().values(), *process.cmdline())):
                found.append((process.pid, process.name()))
    return found


@pytest.mark.opencode
@pytest.mark.timeout(180)
def test_five_blocks_get_tests_that_are_applied_and_green(tmp_path):
    """Issue 2, "Done when": five applied results and the sample's tests green; one result sent back once."""
    environ = {**os.environ, "OFFLOAD_STATE_DIR": str(tmp_path / "the-persons-own"), "TMPDIR": str(tmp_path)}
    done = subprocess.run([*DEMO, "--keep"], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("The language model is scripted")
    assert done.stdout.count("Sent back price: Also cover negative amounts.") == 1
    assert done.stdout.count("Applied ") == 5
    assert "5 of 5 results applied; the project's tests are green." in done.stdout
    folder = re.search(r"Kept: (.+)", done.stdout)[1]
    written = Path(folder, "shop/tests")
    assert len(list(written.glob("test_*.py"))) == 7
    assert "self.assertEqual(price(-5), '-0.05')" in (written / "test_money_price.py").read_text()
    assert not (tmp_path / "the-persons-own/journal.sqlite3").exists(), "the person's own hub has nothing to do with it"
    assert processes_of(folder) == []


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
    assert "OpenCode was not found; looked in " in done.stderr
    assert "run `offload install opencode`" in done.stderr


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
