"""A command line whose hub is a real one with a scripted worker; the hub is one for all tests of a file."""

import json
import os
import re
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from offload.cli.main import build
from offload.hub import client, run

ROOT = Path(__file__).resolve().parents[2]
# A hub is started without Python's own variables, so it is told here where the tests are.
START = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.support.fake_hub import main; sys.exit(main())"
HUB = (sys.executable, "-c", START)


class Terminal:
    """Runs command lines in this process. `connect` is what the commands use to reach the hub."""

    def __init__(self, environ):
        self.environ = environ
        self.connect = partial(client.connect, environ, command=HUB)
        self._app = build(self.connect)

    def run(self, *words, **options):
        return CliRunner().invoke(self._app, [str(word) for word in words], **options)

    def json(self, *words, code=0):
        """The printed object of a command with --json, which must end with `code`."""
        result = self.run(*words, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def start(self, brief, *words, code=0):
        """The id of a new task; with --wait it is over."""
        return self.json("start-task", brief, *words, code=code)["task_id"]


@pytest.fixture(scope="module")
def environ():
    folder = tempfile.mkdtemp(prefix="offload-cli-")
    environ = {**os.environ, "OFFLOAD_STATE_DIR": folder}
    yield environ
    run.stop(environ, wait_s=15)
    shutil.rmtree(folder)


@pytest.fixture
def terminal(environ, tmp_path, monkeypatch):
    """In a project of its own, with one file."""
    (tmp_path / "shop.py").write_text("def price(amount):\n    return amount\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OFFLOAD_STATE_DIR", environ["OFFLOAD_STATE_DIR"])
    monkeypatch.setenv("COLUMNS", "160")
    return Terminal(environ)


@pytest.fixture
def plain():
    """Output without colours, and with white space as single blanks."""
    return lambda text: " ".join(re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).split())
