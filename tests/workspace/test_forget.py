"""What is removed for good, and what must not be removed with it."""

import os
import shutil
import time

import pytest

from offload.processes import Processes
from offload.workspace import GitWorkspaces
from offload.workspace.forget import _size, forget, size_of
from offload.workspace.git import Git
from tests.workspace.repositories import apply, git


@pytest.fixture
def pinned(root, tmp_path):
    """Snapshots of `root` with these texts in b.txt, each pinned by a workspace of its own that is left."""

    async def take(*texts):
        bases = []
        for text in texts:
            (root / "b.txt").write_text(text)
            async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace:
                bases.append((await workspace.snapshot(root, {})).base)
        return bases

    return take


@pytest.fixture
def private(tmp_path):
    return lambda: next((tmp_path / "state" / "repositories").iterdir())


def packs(private):
    return list((private / "objects" / "pack").glob("*.pack"))


def holds(private, text):
    """Whether the directory itself, without what it borrows, has a blob with this text."""
    shutil.rmtree(private / "objects" / "info", ignore_errors=True)
    listed = git(private, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype) %(objectname)")
    blobs = [line.split()[1] for line in listed.splitlines() if line.startswith("blob")]
    return any(git(private, "cat-file", "blob", blob) == text for blob in blobs)


async def test_the_packs_go_with_what_only_the_forgotten_needed(workspace, root, pinned, private):
    first, second = await pinned("the first text\n" * 50, "second\n")
    await workspace.forget(root, {first}, {second})
    directory = private()
    assert git(directory, "for-each-ref", "--format=%(objectname)") == second
    assert len(packs(directory)) == 1
    assert await workspace.read(root, second, "src/a.py") == b"one\ntwo\nthree\n"
    shutil.rmtree(root / ".git" / "objects")
    assert await workspace.read(root, second, "b.txt") == b"second\n"
    assert git(directory, "count-objects").startswith("1 objects")  # the commit
    assert holds(directory, "second")
    assert not holds(directory, "the first text\n" * 49 + "the first text")


async def test_what_another_task_names_stays(workspace, root, pinned, private):
    """Tasks that began at the same time share their snapshot."""
    first, second = await pinned("one\n", "two\n")
    await workspace.forget(root, {first, second}, {second})
    assert git(private(), "for-each-ref", "--format=%(objectname)") == second


async def test_what_nobody_has_named_for_a_day_goes_too(workspace, root, pinned, private):
    """A part of a result that was only looked at is a commit, too."""
    first, second = await pinned("one\n", "two\n")
    made = {
        days: git(
            private(),
            "commit-tree",
            f"{second}^{{tree}}",
            "-m",
            "part",
            GIT_COMMITTER_DATE=f"@{int(time.time() - days * 86400)}",
        )
        for days in (0.9, 1.1)
    }
    for commit in made.values():
        git(private(), "update-ref", f"refs/offload/{commit}", commit)
    await workspace.forget(root, {first}, {second})
    assert set(git(private(), "for-each-ref", "--format=%(objectname)").split()) == {second, made[0.9]}


async def test_everything_goes_with_the_last(workspace, root, pinned, private):
    (base,) = await pinned("b\n")
    directory = private()
    await workspace.forget(root, {base}, set())
    assert not directory.exists()


async def test_a_workspace_that_nothing_was_ever_kept_of_is_no_error(workspace, root):
    await workspace.forget(root, {"0" * 40}, set())


async def test_packs_stay_as_they_are_while_a_task_has_a_folder(workspace, root, pinned, private):
    """The worker's own git borrows objects, and does not write again what it sees there."""
    first, second = await pinned("one\n", "two\n")
    folder = await workspace.open_folder("t1", root, second)
    before = packs(private())
    await workspace.forget(root, {first}, {second})
    assert packs(private()) == before
    await workspace.forget(root, {second}, set())
    assert private().exists()
    (folder / "b.txt").write_text("worker\n")
    assert [file.path for file in (await workspace.collect("t1", root, second)).files] == ["b.txt"]


async def test_nothing_goes_while_a_result_is_still_to_be_packed(workspace, root, opened, private):
    """No ref holds it yet, so nobody could say that it is needed."""
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)
    (private() / "tasks" / "t1.index").unlink()  # as a release does, but without a pause in which it could be packed
    await workspace.forget(root, set(), set())
    assert (await apply(workspace, root, changes)).paths == ("b.txt",)


async def test_old_packs_stay_when_something_began_while_the_new_one_was_written(workspace, root, pinned, private):
    first, second = await pinned("one\n", "two\n")
    before = packs(private())
    calm = iter([False])
    git_of_ours = Git(Processes(), os.environ)
    await forget(git_of_ours, private(), {first}, {second}, lambda: next(calm))
    assert len(before) == 2
    assert packs(private()) == before


async def test_one_that_was_never_packed_is_packed_before_others_go(workspace, root, pinned, private):
    """Packing had failed when it was taken, so no ref holds it."""
    first, second = await pinned("one\n", "two\n")
    git(private(), "update-ref", "-d", f"refs/offload/{second}")
    await workspace.forget(root, {first}, {second, "0" * 40})
    assert git(private(), "for-each-ref", "--format=%(objectname)") == second
    shutil.rmtree(root / ".git" / "objects")
    assert await workspace.read(root, second, "b.txt") == b"two\n"


async def test_a_snapshot_of_the_same_files_is_kept_anew(root, tmp_path, private):
    """The last snapshot serves for the next, too, while the files are the same; but not once it was forgotten."""
    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace:
        base = (await workspace.snapshot(root, {})).base
        await workspace.forget(root, {base}, {base})
        again = (await workspace.snapshot(root, {})).base
    assert again in git(private(), "for-each-ref", "--format=%(objectname)").split()


def test_what_goes_away_while_it_is_measured_counts_for_nothing(tmp_path):
    assert _size(tmp_path / "gone") == 0


def test_a_size_counts_links_as_themselves(tmp_path):
    (tmp_path / "file").write_bytes(b"x" * 100)
    (tmp_path / "link").symlink_to("/usr")
    assert size_of(tmp_path) == 104
