"""On a machine that lacks something, make says so in one line and does nothing else."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci/prerequisites"
SHELL = shutil.which("sh")


@pytest.fixture
def machine(tmp_path):
    """A PATH that holds only what a test puts there."""

    def add(name, text=""):
        (tmp_path / name).write_text(f"#!{SHELL}\n{text}\n")
        (tmp_path / name).chmod(0o755)

    def check():
        alone = {"PATH": str(tmp_path)}
        return subprocess.run([SHELL, str(SCRIPT)], env=alone, capture_output=True, text=True, check=False)

    add("python3", f'exec {sys.executable} "$@"')
    add("node", "exit 0")
    for name in ("npm", "git", "make"):
        add(name)
    check.add, check.without = add, lambda name: (tmp_path / name).unlink()
    return check


def test_nothing_is_said_where_nothing_is_missing(machine):
    result = machine()
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_what_is_missing_is_said_in_one_line_with_the_packages_that_bring_it(machine):
    machine.without("npm")
    machine.without("git")
    result = machine()
    assert result.returncode == 1
    assert result.stderr == "offload: missing: npm, git; install with: apt-get install -y npm git\n"


def test_an_old_node_is_named_with_its_version(machine):
    machine.add("node", '[ "$1" = --version ] && echo v18.20.4; [ "$1" = --version ]')
    result = machine()
    assert result.returncode == 1
    assert result.stderr.startswith("offload: missing: Node.js >= 20 (node is v18.20.4; ")
    assert len(result.stderr.splitlines()) == 1


def test_an_old_python_is_named_with_its_version(machine):
    machine.add("python3", 'case "$2" in *platform*) echo 3.9.2;; *) exit 1;; esac')
    result = machine()
    assert result.returncode == 1
    assert "Python >= 3.11 (python3 is 3.9.2); install with: apt-get install -y python3 python3-venv" in result.stderr


def test_a_python_without_venv_is_told_from_an_old_one(machine):
    machine.add("python3", 'case "$2" in *ensurepip*) exit 1;; esac')
    result = machine()
    assert result.stderr == "offload: missing: Python's venv module; install with: apt-get install -y python3-venv\n"
