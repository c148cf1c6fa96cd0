"""What a user installs: the wheel's contents, held to a list, and its start where nothing else is installed."""

import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONTENTS = Path(__file__).with_name("contents.txt")
VERSION = re.search(r'__version__ = "(.+)"', (ROOT / "server/offload/__init__.py").read_text())[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of commands of an environment that holds the wheel and its locked requirements."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=True)
    pip = (folder / "bin/python", "-m", "pip", "install", "-qq", "--disable-pip-version-check")
    run(*pip, "--only-binary", ":all:", "--require-hashes", "-r", ROOT / "requirements.lock")
    run(*pip, "--no-deps", wheel)
    return folder / "bin"


def run(*command, **options):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_wheel_holds_what_the_list_says_and_nothing_else(wheel, request):
    """A file that is missing breaks users, one that is too many ships by accident; --update-wheel writes the list."""
    names = sorted(name.replace(VERSION, "VERSION") for name in zipfile.ZipFile(wheel).namelist())
    if request.config.getoption("--update-wheel"):
        CONTENTS.write_text("\n".join(names) + "\n")
    assert names == CONTENTS.read_text().split("\n")[:-1]


def test_the_wheel_holds_every_committed_file_of_the_package(wheel):
    committed = run("git", "ls-files", "--", ".", cwd=ROOT / "server/offload").splitlines()
    shipped = {name.removeprefix("offload/") for name in zipfile.ZipFile(wheel).namelist()}
    assert set(committed) <= shipped


def test_the_installed_command_starts_in_an_empty_environment(installed, tmp_path):
    """No HOME, no PATH and another working folder: nothing of the checkout can be what answers."""
    assert VERSION in run(installed / "offload", "--version", env={}, cwd=tmp_path)


def test_the_installed_requirements_agree_with_each_other(installed):
    run(installed / "python", "-m", "pip", "--disable-pip-version-check", "check")


def test_every_installed_module_imports_without_the_development_packages(installed, tmp_path):
    program = """
import importlib, pkgutil, offload
for module in pkgutil.walk_packages(offload.__path__, "offload."):
    if not module.name.endswith("__main__") and ".sample" not in module.name:
        importlib.import_module(module.name)
"""
    run(installed / "python", "-c", program, env={}, cwd=tmp_path)
