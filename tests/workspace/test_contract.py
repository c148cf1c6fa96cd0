"""The contract, kept by the fake that core's tests use and by the real workspace in every kind of folder."""

import os

import pytest

from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.fakes.workspace import FakeWorkspace
from tests.workspace.contract import WorkspaceContract
from tests.workspace.repositories import commit_all, git


class TestFake(WorkspaceContract):
    @pytest.fixture
    def workspace(self, tmp_path):
        return FakeWorkspace(tmp_path / "tasks")


class TestFolderWithoutGit(WorkspaceContract):
    @pytest.fixture
    async def workspace(self, tmp_path):
        async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace:
            yield workspace


class TestRepository(TestFolderWithoutGit):
    @pytest.fixture
    def root(self, files):
        git(files, "init", "-q")
        commit_all(files)
        return files


class TestRepositoryWithoutACommit(TestFolderWithoutGit):
    @pytest.fixture
    def root(self, files):
        git(files, "init", "-q")
        return files


class TestSubFolder(TestFolderWithoutGit):
    @pytest.fixture
    def root(self, files):
        git(files.parent, "init", "-q")
        (files.parent / "b.txt").write_text("not in the workspace\n")
        commit_all(files.parent)
        return files


class TestSecondWorkTree(TestFolderWithoutGit):
    """`git worktree add`: `.git` is a file there, and index and objects are in different places."""

    @pytest.fixture
    def root(self, files):
        git(files, "init", "-q")
        commit_all(files)
        other = files.parent / "other work tree"
        git(files, "worktree", "add", "-q", "--detach", str(other))
        return other


class TestSha256(TestFolderWithoutGit):
    @pytest.fixture
    def root(self, files):
        git(files, "init", "-q", "--object-format=sha256")
        commit_all(files)
        return files


class TestSplitIndex(TestFolderWithoutGit):
    @pytest.fixture
    def root(self, files):
        git(files, "init", "-q")
        git(files, "config", "core.splitIndex", "true")
        commit_all(files)
        (files / "src" / "c.py").write_text("c\n")
        git(files, "add", "-A")
        return files
