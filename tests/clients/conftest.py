"""Editors for the tests of the clients."""

import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.neovim import Neovim

SCRIPTED_SERVER = Path(__file__).with_name("scripted_server.py")

MODULE = '''"""A shop's cart."""


def total(prices):
    """The sum."""
    return sum(prices)


def empty(prices):
    return not prices
'''


@contextmanager
def neovim(workspace: Path, environment: Mapping[str, str]) -> Iterator[Neovim]:
    """An editor with a home of its own, whose path is short, because a socket lies in it."""
    with tempfile.TemporaryDirectory(prefix="nvim-") as home:
        editor = Neovim(Path(home), workspace, environment)
        try:
            yield editor
        finally:
            status = editor.quit()
    assert status == 0


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A folder with one Python module in which `total` stands on lines 4 to 6."""
    (tmp_path / "workspace" / ".git").mkdir(parents=True)
    (tmp_path / "workspace" / "cart.py").write_text(MODULE)
    return tmp_path / "workspace"


@pytest.fixture
def start_neovim():
    """Starts editors that are ended with the test."""
    with ExitStack() as started:
        yield lambda folder, environment=None: started.enter_context(neovim(folder, environment or {}))


@pytest.fixture
def idle_editor(start_neovim, workspace):
    """Neovim in the workspace, with the plugin and no server."""
    return start_neovim(workspace)


@pytest.fixture(scope="module")
def shared_editor(tmp_path_factory):
    """Neovim with the plugin and no server, for tests that only call functions."""
    with neovim(tmp_path_factory.mktemp("empty"), {}) as editor:
        yield editor


@pytest.fixture
def attach():
    """Opens the module in an editor, with the plugin on a scripted server that has `answers` from its start."""

    def attach(editor: Neovim, answers: Mapping[str, object]) -> None:
        command = [sys.executable, "-I", "-S", str(SCRIPTED_SERVER), json.dumps(answers)]
        editor.lua("require('offload').setup({ cmd = ... })", command)
        editor.command("edit cart.py")
        editor.until("#vim.lsp.get_clients({ bufnr = 0, name = 'offload' }) == 1")

    return attach


@pytest.fixture
def editor(idle_editor, attach):
    """Neovim with the module open and the plugin attached to the scripted server."""
    attach(idle_editor, {})
    return idle_editor
