"""The Neovim plugin over the real forwarder and a real hub, as a user has it."""

import json
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from offload.demo.model import MODEL, PROVIDER, opencode_config, scripted_model
from offload.demo.project import copy_sample
from offload.demo.run import OFFLINE
from offload.hub import run as hub

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


@pytest.mark.opencode
@pytest.mark.skipif(
    "not os.environ.get('OFFLOAD_OPENCODE')", reason="needs OFFLOAD_OPENCODE: sh tests/opencode/install"
)
def test_a_block_is_delegated_watched_looked_at_and_applied(start_neovim, project, hub_environment, tmp_path):
    with scripted_model(pace_s=0) as url:
        config = tmp_path / "opencode.json"
        config.write_text(json.dumps(opencode_config(url)))
        settings = {
            "OFFLOAD_OPENCODE": os.environ["OFFLOAD_OPENCODE"],
            "OFFLOAD_OPENCODE_CONFIG": str(config),
            "OFFLOAD_OPENCODE_AGENTS": "false",
            "OFFLOAD_MODEL": f"{PROVIDER}/{MODEL}",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        }
        editor = start_neovim(project, hub_environment | OFFLINE | settings)
        open_at_block(editor)
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
        # The hub and its OpenCode end before their model does, and the editor does not start them again.
        editor.lua("vim.lsp.enable('offload', false)")
        hub.stop(dict(os.environ) | hub_environment)
