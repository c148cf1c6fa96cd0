"""The task's folder and what is collected from it, whatever its worker does there."""

import asyncio
import os
import shlex
import shutil

import pytest

from offload.domain.change import FileStatus
from offload.domain.errors import GitFailed
from offload.processes import MARKER, Processes, alive, identify
from offload.workspace import GitWorkspaces, index
from offload.workspace.git import Git
from tests.workspace.repositories import apply, commit_all, git

FILTERS = ("clean", "smudge", "process")


def plant(folder, canary):
    """Configuration that would run a command for nearly everything that git does."""
    touch = f"touch '{canary}'; cat"
    for name in FILTERS[:2]:
        git(folder, "config", f"filter.x.{name}", touch)
    git(folder, "config", "diff.x.textconv", touch)
    git(folder, "config", "diff.x.command", touch)
    git(folder, "config", "diff.external", touch)
    git(folder, "config", "merge.x.driver", touch)
    git(folder, "config", "core.fsmonitor", f"touch '{canary}'")
    hooks = folder / ".git" / "my hooks"
    hooks.mkdir()
    git(folder, "config", "core.hooksPath", str(hooks))
    for name in ("post-checkout", "post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{canary}'\n")
        (hooks / name).chmod(0o755)


def counts(change):
    return "binary" if change.binary else (change.added_lines, change.removed_lines)


def places(change):
    return [(hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines) for hunk in change.hunks]


async def test_nothing_that_the_users_repository_configures_is_run(workspace, root, opened, tmp_path):
    canary = tmp_path / "canary"
    (root / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    commit_all(root)
    plant(root, canary)
    (root / "src" / "a.py").write_text("one\ntwo\nTHREE\n")
    folder, base = await opened(buffers={"b.txt": "unsaved\n"})
    (folder / "src" / "a.py").write_text("ONE\ntwo\nTHREE\n")
    changes = await workspace.collect("t1", root, base)
    await workspace.diff(root, changes)
    await workspace.read(root, base, "b.txt")
    (root / "src" / "a.py").write_text("one\ntwo\nTHREE\nfour\n")
    await apply(workspace, root, changes)

    assert (root / "src" / "a.py").read_text() == "ONE\ntwo\nTHREE\nfour\n"
    assert not canary.exists()


async def test_nothing_that_a_worker_configures_is_run(workspace, root, opened, tmp_path):
    canary = tmp_path / "canary"
    folder, base = await opened()
    plant(folder, canary)
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (folder / "b.txt").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)
    await workspace.diff(root, changes)
    await apply(workspace, root, changes)
    await workspace.snapshot(root, {})

    assert not canary.exists()


async def test_the_folder_is_an_ordinary_repository_in_which_a_worker_can_commit(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    environment = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}
    for command in (["git", "commit", "-qam", "work"], ["git", "log", "--format=%an %s"], ["git", "remote"]):
        done = await Processes().run(command, cwd=folder, environment=environment)
        assert (done.returncode, done.stderr) == (0, b"")
        if command[1] == "log":
            assert done.stdout.decode().splitlines() == [
                "offload work",
                "offload Your files as they were",
                "User commit",
            ]
        if command[1] == "remote":
            assert done.stdout == b""
    changes = await workspace.collect("t1", root, base)

    assert [one.path for one in changes.files] == ["b.txt"]


async def test_committed_staged_and_only_written_work_is_collected_alike(workspace, root, opened):
    """Public trouble report: new files that were never staged were missing, and committed work gave no diff (H21)."""
    folder, base = await opened()
    (folder / ".gitignore").write_text("*.log\n")
    (folder / "b.txt").write_text("committed\n")
    commit_all(folder)
    (folder / "staged.py").write_text("staged\n")
    git(folder, "add", "staged.py")
    (folder / "src" / "a.py").unlink()
    (folder / "empty").write_text("")
    (folder / "binary").write_bytes(b"\0\1\2")
    (folder / "run.sh").write_text("x\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("b.txt")
    (folder / "out.log").write_text("ignored\n")
    changes = await workspace.collect("t1", root, base)

    a, m, d = FileStatus.ADDED, FileStatus.MODIFIED, FileStatus.DELETED
    found = [(one.path, one.status, one.old_mode, one.new_mode, counts(one)) for one in changes.files]
    assert found == [
        (".gitignore", a, "", "100644", (1, 0)),
        ("b.txt", m, "100644", "100644", (1, 1)),
        ("binary", a, "", "100644", "binary"),
        ("empty", a, "", "100644", (0, 0)),
        ("link", a, "", "120000", (1, 0)),
        ("run.sh", a, "", "100755", (1, 0)),
        ("src/a.py", d, "100644", "", (0, 3)),
        ("staged.py", a, "", "100644", (1, 0)),
    ]
    assert places(changes.files[0]) == [(0, 0, 1, 1)]
    assert places(changes.files[1]) == [(1, 1, 1, 1)]
    assert places(changes.files[2]) == []
    assert places(changes.files[6]) == [(1, 3, 0, 0)]
    await apply(workspace, root, changes)
    assert (root / "binary").read_bytes() == b"\0\1\2"
    assert (root / "link").readlink().name == "b.txt"
    assert os.access(root / "run.sh", os.X_OK)
    assert not (root / "src").exists()


async def test_hunks_are_those_of_the_patch(workspace, root, opened):
    (root / "long.txt").write_text("".join(f"{number}\n" for number in range(1, 101)))
    folder, base = await opened()
    lines = [f"{number}\n" for number in range(1, 101)]
    lines[9:10] = ["@@ -1 +1 @@\n", "diff --git a/x b/x\n"]
    (folder / "long.txt").write_text("".join(lines[:-1]) + "no line end")
    (folder / "mode.sh").write_text("")
    (folder / "b.txt").unlink()
    (folder / "b.txt").symlink_to("src")
    changes = await workspace.collect("t1", root, base)
    b, long, _ = changes.files

    assert places(long) == [(7, 7, 7, 8), (97, 4, 98, 4)]
    assert (long.added_lines, long.removed_lines) == (3, 2)
    assert b.status is FileStatus.TYPE_CHANGED
    assert b.units == (b.id,)
    assert (changes.added_lines, changes.removed_lines) == (4, 3)


async def test_folders_that_the_worker_made_repositories_are_walked(workspace, root, opened):
    folder, base = await opened()
    deep = folder / "inner" / "deeper"
    deep.mkdir(parents=True)
    for repository in (folder / "inner", deep):
        git(repository, "init", "-q")
        (repository / "file.py").write_text("x\n")
    (folder / "inner" / ".gitignore").write_text("node_modules\n")
    (folder / "inner" / "node_modules").mkdir()
    (folder / "inner" / "node_modules" / "x").write_text("x\n")
    commit_all(deep)
    changes = await workspace.collect("t1", root, base)

    assert [one.path for one in changes.files] == ["inner/.gitignore", "inner/deeper/file.py", "inner/file.py"]
    assert {one.new_mode for one in changes.files} == {"100644"}


async def test_a_folder_that_became_a_link_is_a_link_and_nothing_behind_it(workspace, root, opened, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("secret\n")
    folder, base = await opened()
    shutil.rmtree(folder / "src")
    (folder / "src").symlink_to(outside)
    changes = await workspace.collect("t1", root, base)

    assert [(one.path, one.new_mode) for one in changes.files] == [("src", "120000"), ("src/a.py", "")]


async def test_names_that_mean_git_are_not_collected(workspace, root, opened):
    folder, base = await opened()
    (folder / ".GIT").mkdir()
    (folder / ".GIT" / "config").write_text("x\n")
    (folder / "git~1").write_text("x\n")
    (folder / "good.py").write_text("x\n")
    changes = await workspace.collect("t1", root, base)

    assert [one.path for one in changes.files] == ["good.py"]


async def test_a_pipe_is_not_collected_and_one_in_place_of_a_file_is_an_error(workspace, root, opened):
    folder, base = await opened()
    os.mkfifo(folder / "pipe")
    assert (await workspace.collect("t1", root, base)).files == ()
    (folder / "b.txt").unlink()
    os.mkfifo(folder / "b.txt")

    with pytest.raises(GitFailed, match=r"b\.txt: unsupported file type"):
        await workspace.collect("t1", root, base)


async def test_only_changes_below_the_workspace_count(workspace, root, opened):
    folder, base = await opened(where=root / "src")
    assert folder.name == "src"
    (folder / "a.py").write_text("worker\n")
    (folder.parent / "b.txt").write_text("elsewhere\n")
    changes = await workspace.collect("t1", root / "src", base)
    await apply(workspace, root / "src", changes)

    assert [one.path for one in changes.files] == ["a.py"]
    assert (root / "src" / "a.py").read_text() == "worker\n"
    assert (root / "b.txt").read_text() == "b\n"


async def test_a_change_only_outside_of_the_workspace_is_no_change(workspace, root, opened):
    folder, base = await opened(where=root / "src")
    (folder.parent / "b.txt").write_text("elsewhere\n")

    assert (await workspace.collect("t1", root / "src", base)).result == base


async def test_an_empty_workspace_folder_exists_in_the_copy(workspace, root, opened):
    (root / "empty").mkdir()
    folder, _ = await opened(where=root / "empty")

    assert folder.is_dir()


async def test_a_folder_that_was_left_half_made_is_made_again(workspace, root, opened, tmp_path):
    (tmp_path / "state" / "tasks" / "t1" / "project" / ".git").mkdir(parents=True)
    folder, _ = await opened()

    assert (folder / "b.txt").read_text() == "b\n"


async def test_work_is_collected_after_a_restart(root, tmp_path):
    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as first:
        base = (await first.snapshot(root, {})).base
        folder = await first.open_folder("t1", root, base)
    (folder / "b.txt").write_text("worker\n")
    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as second:
        assert await second.open_folder("t1", root, base) == folder
        changes = await second.collect("t1", root, base)

        assert [one.path for one in changes.files] == ["b.txt"]
        assert (await second.snapshot(root, {})).base


async def test_a_change_in_the_second_of_the_checkout_is_seen_and_stays_seen(workspace, root, opened, tmp_path):
    """Size and time are as before, so only the contents tell: git compares them while the index is not newer than the file. It is
    written anew once, so that not every collection has to."""
    folder, base = await opened()
    (saved,) = (tmp_path / "state" / "repositories").glob("*/tasks/t1.index")
    status = (folder / "b.txt").stat()
    (folder / "b.txt").write_text("w\n")
    os.utime(folder / "b.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.utime(saved, ns=(status.st_atime_ns, status.st_mtime_ns - 5 * 10**9))
    first = await workspace.collect("t1", root, base)
    written = saved.stat()
    second = await workspace.collect("t1", root, base)

    assert [[one.path for one in changes.files] for changes in (first, second)] == [["b.txt"], ["b.txt"]]
    assert written.st_mtime_ns >= status.st_mtime_ns
    assert (saved.stat().st_ino, saved.stat().st_mtime_ns) == (written.st_ino, written.st_mtime_ns)
    (folder / "b.txt").write_text("b\n")
    assert (await workspace.collect("t1", root, base)).files == ()


async def test_a_later_setting_of_the_user_does_not_change_what_the_worker_is_held_to(workspace, root, opened):
    (root / "crlf.txt").write_bytes(b"one\r\n")
    commit_all(root)
    folder, base = await opened()
    git(root, "config", "core.autocrlf", "true")
    await workspace.snapshot(root, {})
    (folder / "crlf.txt").touch()

    assert (await workspace.collect("t1", root, base)).files == ()


@pytest.mark.parametrize("limit", ["MOST_FILES", "MOST_BYTES"])
async def test_a_worker_that_wrote_too_much_is_an_error_with_the_work_kept(workspace, root, opened, monkeypatch, limit):
    folder, base = await opened()
    (folder / "one").write_text("x" * 100)
    (folder / "two").write_text("x" * 100)
    monkeypatch.setattr(index, limit, 1)

    with pytest.raises(GitFailed, match="the work is kept there"):
        await workspace.collect("t1", root, base)
    assert (folder / "one").exists()


async def test_a_git_error_while_collecting_is_an_error_with_the_work_kept(workspace, root, opened, tmp_path):
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    (saved,) = (tmp_path / "state" / "repositories").glob("*/tasks/t1.index")
    good = saved.read_bytes()
    saved.write_bytes(b"not an index")
    with pytest.raises(GitFailed, match=r"git (diff|ls)-files failed"):
        await workspace.collect("t1", root, base)
    saved.write_bytes(good)

    assert [one.path for one in (await workspace.collect("t1", root, base)).files] == ["b.txt"]


async def test_a_folder_that_is_gone_is_an_error_and_not_nothing_produced(workspace, root, opened):
    folder, base = await opened()
    shutil.rmtree(folder)

    with pytest.raises(GitFailed, match="gone"):
        await workspace.collect("t1", root, base)


async def test_a_task_that_was_never_opened_is_an_error(workspace, root, opened):
    _, base = await opened()

    with pytest.raises(GitFailed, match="no private copy"):
        await workspace.collect("other", root, base)


async def test_a_base_that_nobody_knows_is_an_error(workspace, root, opened):
    await opened()

    with pytest.raises(GitFailed, match="git checkout failed"):
        await workspace.open_folder("t2", root, "1" * 40)
    with pytest.raises(GitFailed, match="git ls-tree failed"):
        await workspace.read(root, "1" * 40, "b.txt")


async def test_a_repository_that_cannot_be_made_is_an_error(tmp_path):
    with pytest.raises(GitFailed, match="git init failed: unknown hash algorithm"):
        await Git(Processes(), os.environ).init(tmp_path / "x", "sha0")


async def test_links_and_folders_are_read_as_what_they_are(workspace, root):
    (root / "link").symlink_to("b.txt")
    base = (await workspace.snapshot(root, {})).base

    assert await workspace.read(root, base, "link") == b"b.txt"
    assert await workspace.read(root, base, "src") is None


async def test_what_a_worker_left_in_the_folder_is_ended_before_the_folder_goes(workspace, root, opened):
    """It would go on writing, and a folder that is being removed would come back."""
    folder, _ = await opened()
    write = "echo $$ > part; mv part pid; while :; do mkdir -p again; date >> again/written; done"
    start = f"setsid sh -c {shlex.quote(write)} > /dev/null 2>&1 &"
    environment = {"PATH": os.environ["PATH"], MARKER: "a worker's"}
    await Processes().run(["sh", "-c", start], cwd=folder, environment=environment)
    async with asyncio.timeout(20):
        while not (folder / "pid").exists():  # noqa: ASYNC110 - a file is the fact
            await asyncio.sleep(0.01)
    left = identify(int((folder / "pid").read_text()))
    await workspace.release("t1", root)
    assert not alive(left)
    assert not folder.exists()
