"""The Neovim plugin over the real forwarder and a real hub, as a user has it."""

import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from offload.demo.model import opencode_config, scripted_model
from offload.demo.project import copy_sample
from offload.demo.run import OFFLINE
from offload.hub import run as hub
from tests.fakes import model as fake_model

BLOCK = "def price("  # in shop/money.py of the sample, where it has no tests

# The first mark in the buffer, with its line, once it says one of the texts given.
FIRST_MARK = """
local space = require('offload.marks').namespace
local mark = vim.api.nvim_buf_get_extmarks(0, space, 0, -1, { details = true })[1]
for _, text in ipairs(mark and { ... } or {}) do
  local said = mark[4].virt_text[1][1]
  if said:find(text, 1, true) then
    return { vim.api.nvim_buf_get_lines(0, mark[2], mark[2] + 1, true)[1], said }
  end
end
"""


NO_MARK = "#vim.api.nvim_buf_get_extmarks(0, require('offload.marks').namespace, 0, -1, {}) == 0"


def wait_for_mark(editor, words):
    """Waits until the block's only mark says `words`, and gives the block's first line and the whole mark.

    A task that has failed will not say anything else.
    """
    line, text = editor.until(f"(function(...) {FIRST_MARK} end)(...)", words, "failed: ")
    assert words in text
    return line, text


@pytest.fixture
def project(tmp_path):
    """A git repository with an untested function."""
    return copy_sample(tmp_path)


@pytest.fixture
def hub_environment(tmp_path):
    """The environment of a hub that is ended with the test; its state folder is short, because of its socket."""
    state = Path(tempfile.mkdtemp(prefix="offload-"))
    own = {"OFFLOAD_STATE_DIR": str(state), "OFFLOAD_CONFIG_DIR": str(tmp_path / "config")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("OFFLOAD_", "OPENCODE_"))}
    yield own
    hub.stop(kept | own)
    shutil.rmtree(state)


def open_at_block(editor):
    """Opens the sample's file with the plugin on the real `offload lsp`, the cursor in the block."""
    command = [sys.executable, "-m", "offload", "lsp"]
    editor.lua("require('offload').setup({ cmd = ... })", command)
    editor.command("edit shop/money.py")
    editor.until("(vim.lsp.get_clients({ bufnr = 0, name = 'offload' })[1] or {}).initialized")
    editor.lua("vim.fn.search(..., 'w')", BLOCK)
    editor.command("normal! jj")


def test_when_the_hub_is_killed_the_server_is_started_again_and_the_tasks_are_shown(
    hub_environment, start_neovim, project
):
    """Neovim starts no server again by itself."""
    missing = {"OFFLOAD_OPENCODE": str(project / "no-such-opencode")}
    editor = start_neovim(project, hub_environment | missing)
    open_at_block(editor)
    editor.command("Offload tests")
    wait_for_mark(editor, "failed: ")
    first = editor.lua("return vim.lsp.get_clients({ name = 'offload' })[1].id")
    environment = dict(os.environ) | hub_environment
    os.kill(hub.status(environment)["pid"], signal.SIGKILL)
    again = "(vim.lsp.get_clients({ bufnr = 0, name = 'offload' })[1] or {})"
    editor.until(f"{again}.initialized and {again}.id ~= ...", first)
    wait_for_mark(editor, "failed: ")
    assert hub.status(environment) is not None


def test_a_task_that_cannot_be_done_says_why_at_its_block(hub_environment, start_neovim, project):
    missing = {"OFFLOAD_OPENCODE": str(project / "no-such-opencode")}
    editor = start_neovim(project, hub_environment | missing)
    open_at_block(editor)
    editor.command("Offload tests")
    line, text = wait_for_mark(editor, "failed: ")
    assert line.startswith(BLOCK)
    assert text.startswith("◀ tests failed: ")
    assert "OpenCode" in text
    editor.command("OffloadClose")
    editor.until(NO_MARK)


@contextmanager
def on_opencode(start_neovim, project, hub_environment, config):
    """An editor at the block, whose hub has a real OpenCode; both end before their model does, and the editor does not start
    them again."""
    written = project.parent / "opencode.json"
    written.write_text(json.dumps(config))
    settings = {
        "OFFLOAD_OPENCODE": os.environ["OFFLOAD_OPENCODE"],
        "OFFLOAD_OPENCODE_CONFIG": str(written),
        "OFFLOAD_OPENCODE_AGENTS": "false",
        "OFFLOAD_MODEL": config["model"],
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    editor = start_neovim(project, hub_environment | OFFLINE | settings)
    open_at_block(editor)
    yield editor
    editor.lua("vim.lsp.enable('offload', false)")
    hub.stop(dict(os.environ) | hub_environment)


@pytest.fixture
def editor_of_demo(start_neovim, project, hub_environment):
    """The demo's model: it writes tests."""
    with (
        scripted_model(pace_s=0) as url,
        on_opencode(start_neovim, project, hub_environment, opencode_config(url)) as editor,
    ):
        yield editor


@pytest.fixture
def editor_of_steps(start_neovim, project, hub_environment):
    """A model that does the steps which it is told."""
    with (
        fake_model.running() as model,
        on_opencode(start_neovim, project, hub_environment, model.opencode_config()) as editor,
    ):
        yield editor


needs_opencode = pytest.mark.skipif(
    "not os.environ.get('OFFLOAD_OPENCODE')", reason="needs OFFLOAD_OPENCODE: sh tests/opencode/install"
)


@pytest.mark.opencode
@needs_opencode
def test_a_block_is_delegated_watched_looked_at_and_applied(editor_of_demo, project):
    editor = editor_of_demo
    editor.command("Offload tests")
    wait_for_mark(editor, "working")
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, { '# typed while the worker works' })")
    line, _ = wait_for_mark(editor, "ready: 1 file")
    assert line.startswith(BLOCK)

    editor.command("OffloadDiff")
    editor.until("vim.bo.filetype == 'diff'")
    patch = editor.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)")
    assert "+++ b/tests/test_money.py" in patch
    editor.command("close")

    editor.command("OffloadApply")
    wait_for_mark(editor, "applied: 1 file")
    assert (project / "tests" / "test_money.py").exists()
    editor.until("#said > 0")  # the news of the change can come before the answer
    assert editor.said() == ["offload: applied: tests/test_money.py on disk"]


@pytest.mark.opencode
@needs_opencode
def test_a_change_of_the_open_file_comes_into_its_buffer_and_goes_again(editor_of_steps, project):
    editor, file = editor_of_steps, project / "shop" / "money.py"
    before = file.read_text()
    old, new = "somebody has to pay", "nobody is there to pay"
    assert before.count(old) == 1
    change = {"filePath": "shop/money.py", "oldString": old, "newString": new}
    steps = [
        "Please.",
        '::tool read {"filePath": "shop/money.py"}',
        f"::tool edit {json.dumps(change)}",
        "::text Done.",
    ]
    editor.lua("require('offload.commands').start(...)", "\n".join(steps))
    wait_for_mark(editor, "ready: 1 file")
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 0, true, { '# typed and not saved' })")
    editor.command("OffloadApply")
    editor.until("#said == 1")
    assert editor.said() == ["offload: applied: shop/money.py in the buffer (not saved)"]
    lines = "return vim.api.nvim_buf_get_lines(0, 0, -1, true)"
    assert editor.lua(lines) == ["# typed and not saved", *before.replace(old, new).splitlines()]
    assert file.read_text() == before

    editor.command("OffloadUndo")
    editor.until("#said == 2")
    assert editor.said()[1] == "offload: taken back of “Please.”: shop/money.py in the buffer (not saved)"
    assert editor.lua(lines) == ["# typed and not saved", *before.splitlines()]
