"""The command itself, for what it does before it knows the rest of offload."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import offload
from offload.__main__ import main
from offload.hub import run
from offload.hub.client import connect
from tests.support import counted

MAIN = Path(offload.__file__).with_name("__main__.py")
FRONT_MEMORY_KB = 14 * 1024

# Runs the command in this process with an input that ends at once, then says what was imported and what was needed.
REPORT = """
import json, sys
sys.path.insert(0, sys.argv.pop(1))
before = set(sys.modules)
from offload.__main__ import main
status = main()
status_file = open("/proc/self/status").read()
print(json.dumps({
    "status": status,
    "modules": sorted(set(sys.modules) - before),
    "kb": int(status_file.partition("VmHWM:")[2].split()[0]),
}))
"""


def test_the_version_is_said(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"offload {offload.__version__}\n"


def test_windows_is_told_in_one_line(capsys):
    """Issue 2, item 4."""
    assert main(["lsp"], system="nt") == 69
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "offload: Windows is not supported yet; run it inside WSL.\n"


def test_the_rest_is_the_command_lines(capsys):
    assert main(["no-such-command"]) == 2
    assert "no-such-command" in capsys.readouterr().err


def test_a_front_with_arguments_that_it_does_not_know_is_told_so(capsys):
    assert main(["lsp", "--port=3"]) == 2


def run_isolated(tmp_path, *words):
    return subprocess.run(
        counted.command(MAIN, *words),
        env=counted.environment({"OFFLOAD_STATE_DIR": str(tmp_path / "file" / "state"), "HOME": "/"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_it_can_be_run_by_its_path_without_site_packages(tmp_path):
    assert run_isolated(tmp_path, "--version").stdout == f"offload {offload.__version__}\n"


@pytest.mark.parametrize("words", [["lsp"], ["mcp"], ["lsp", "--stdio", "--clientProcessId=1"]])
def test_a_front_goes_straight_to_the_hub(tmp_path, words):
    """Editors' client libraries add arguments of their own. Here there is no place for a hub, and that is what is said."""
    (tmp_path / "file").write_text("")
    ended = run_isolated(tmp_path, *words)
    assert ended.returncode == 69
    assert "Not a directory" in ended.stderr


def test_a_front_imports_little_and_stays_small(tmp_path):
    """Issue 2, item 13: a front within 14 MB. An editor waits for every module that is imported here."""
    (tmp_path / "file").write_text("")
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", REPORT, str(MAIN.parents[1]), "lsp"],
        env={"OFFLOAD_STATE_DIR": str(tmp_path / "file" / "state")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    report = json.loads(ended.stdout)
    assert report["status"] == 69
    slow = {"asyncio", "argparse", "dataclasses", "logging", "pathlib", "subprocess", "threading", "typing", "hashlib"}
    assert slow & set(report["modules"]) == set()
    assert report["kb"] < FRONT_MEMORY_KB


@pytest.fixture
def state():
    """A short one: a path that is too long for a socket gets a folder of its own, which stays."""
    with tempfile.TemporaryDirectory(prefix="hub-") as folder:
        yield folder


def test_who_needs_a_hub_starts_the_real_one(state, tmp_path):
    """`offload hub run` as fronts start it: the interpreter finds the package by itself, from any folder."""
    environ = {**os.environ, "OFFLOAD_STATE_DIR": state, "OFFLOAD_CONFIG_DIR": str(tmp_path)}
    try:
        with connect(environ) as hub:
            assert hub.call("list_tasks", {}) == {"tasks": [], "left_out": 0}
        found = run.status(environ)
        assert found["version"] == offload.__version__
        assert found["tasks"] == 0
    finally:
        assert run.stop(environ)
