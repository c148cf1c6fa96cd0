"""A full disk is told apart from other trouble, because it is worth another try; nothing is lost by it."""

import errno
import os
import stat
from pathlib import Path

import pytest

from offload.domain.errors import GitFailed, StorageFailed
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from offload.workspace.git import Git, full_disk_told


@pytest.fixture
def failing(tmp_path):
    """A workspace whose git is a script before the real one: `fail(command, words)` lets that command say these words and
    fail, `fail("", "")` none."""
    real = next(Path(folder, "git") for folder in os.environ["PATH"].split(os.pathsep) if Path(folder, "git").exists())
    words, program = tmp_path / "words", tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        f"""#!/bin/sh
if [ -s '{words}' ] && printf '%s\\n' "$@" | grep -qx "$(head -n 1 '{words}')"; then
    tail -n +2 '{words}' >&2
    exit 128
fi
exec '{real}' "$@"
"""
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def fail(command, said):
        words.write_text(f"{command}\n{said}\n" if command else "")

    environment = {**os.environ, "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}"}
    return fail, environment


@pytest.mark.parametrize("said", ["fatal: write error: No space left on device", "fatal: x: Disk quota exceeded"])
async def test_what_git_could_not_write_is_collected_when_there_is_room(failing, root, tmp_path, said):
    fail, environment = failing
    async with GitWorkspaces(tmp_path / "state", Processes(), environment) as workspace:
        base = (await workspace.snapshot(root, {})).base
        folder = await workspace.open_folder("t1", root, base)
        (folder / "b.txt").write_text("worker\n")
        for command in ("update-index", "write-tree"):
            fail(command, said)
            with pytest.raises(StorageFailed, match=f"The disk is full, so git {command} failed: free some space"):
                await workspace.collect("t1", root, base)
        fail("write-tree", "fatal: something else")
        with pytest.raises(GitFailed, match="something else"):
            await workspace.collect("t1", root, base)
        fail("", "")
        assert [file.path for file in (await workspace.collect("t1", root, base)).files] == ["b.txt"]


async def test_a_pin_for_which_there_is_no_room_is_logged_and_the_snapshot_is_good(failing, root, tmp_path, caplog):
    fail, environment = failing
    fail("pack-objects", "fatal: No space left on device")
    async with GitWorkspaces(tmp_path / "state", Processes(), environment) as workspace:
        base = (await workspace.snapshot(root, {})).base
        assert await workspace.read(root, base, "b.txt") == b"b\n"
    assert "was not packed" in caplog.text


async def test_a_repository_that_cannot_be_made_for_want_of_room_is_told(failing, tmp_path):
    fail, environment = failing
    fail("init", "fatal: cannot mkdir: No space left on device")
    with pytest.raises(StorageFailed, match="git init failed"):
        await Git(Processes(), environment).init(tmp_path / "new", "sha1")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize(("about", "said"), [(("a/b",), "a/b"), ((), "a file")])
def test_what_is_written_without_git_is_told_the_same_way(number, about, said):
    with pytest.raises(StorageFailed, match=f"The disk is full, so {said} was not written"), full_disk_told():
        raise OSError(number, os.strerror(number), *about)


def test_other_trouble_stays_what_it_is():
    with pytest.raises(PermissionError), full_disk_told():
        raise PermissionError(errno.EACCES, "no", "a/b")
