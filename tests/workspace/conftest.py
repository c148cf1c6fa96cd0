"""A user's repository and the real workspace."""

import os

import pytest

from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.workspace.repositories import commit_all, git


@pytest.fixture
async def workspace(tmp_path):
    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ | {"HOME": str(tmp_path)}) as workspace:
        yield workspace


@pytest.fixture
def root(tmp_path):
    """A repository with two committed files."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (root / "b.txt").write_text("b\n")
    git(root, "init", "-q", "-b", "main")
    commit_all(root)
    return root


@pytest.fixture
def opened(workspace, root):
    """Takes a snapshot of `root` and opens a task's folder: `folder, base = await opened()`."""

    async def open_now(task="t1", where=root, buffers=None):
        base = (await workspace.snapshot(where, buffers or {})).base
        return await workspace.open_folder(task, where, base), base

    return open_now
