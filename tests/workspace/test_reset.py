"""A task's folder put back to a commit, whatever its worker left there."""

import os
import shutil

import pytest

from offload.domain.change import FileStatus
from offload.domain.errors import GitFailed
from tests.workspace.repositories import commit_all, fingerprint, git
from tests.workspace.test_tasks import plant


def files_below(folder):
    """What a person sees there, git's own folders aside."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if ".git" not in name.parts and (path.is_symlink() or not path.is_dir()):
            found[name.as_posix()] = str(path.readlink()) if path.is_symlink() else path.read_bytes()
    return found


@pytest.fixture
def result(workspace, root, opened):
    """A folder in which a worker has finished some work: `folder, changes = await result()`."""

    async def finish(where=root):
        folder, base = await opened(where=where)
        (folder / "new.py").write_text("new\n")
        (folder / "run.sh").write_text("x\n")
        (folder / "run.sh").chmod(0o755)
        (folder / "link").symlink_to("b.txt")
        changes = await workspace.collect("t1", where, base)
        return folder, changes

    return finish


async def back(workspace, root, changes, base=""):
    """Reset to the result, and see that it is what is collected then."""
    await workspace.reset_folder("t1", root, base or changes.base, changes.result)
    again = await workspace.collect("t1", root, changes.base)
    assert again.files == changes.files
    assert (await workspace.between(root, changes.result, again.result)).files == ()


async def test_the_folder_holds_the_commit_again_and_ignored_files_stay(workspace, root, result):
    (root / ".gitignore").write_text("*.log\n")
    folder, changes = await result()
    before = files_below(folder)
    (folder / "b.txt").write_text("after the checks\n")
    (folder / "new.py").unlink()
    (folder / "run.sh").chmod(0o644)
    (folder / "src" / "a.py").rename(folder / "moved.py")
    (folder / "left" / "deep").mkdir(parents=True)
    (folder / "left" / "deep" / "report.xml").write_text("x\n")
    (folder / os.fsdecode(b"a\nb\xff")).write_text("x\n")
    (folder / "link").unlink()
    (folder / "link").mkdir()
    (folder / "link" / "in").write_text("x\n")
    (folder / "test.log").write_text("kept\n")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_text("kept\n")
    await back(workspace, root, changes)

    kept = {"test.log": b"kept\n", "__pycache__/x.pyc": b"kept\n"}
    assert files_below(folder) == before | kept
    assert not (folder / "left").exists()
    assert os.access(folder / "run.sh", os.X_OK)


async def test_files_that_hold_what_they_shall_are_not_written_again(workspace, root, result):
    """A worker's tools refuse to edit a file that is newer than what they have read of it."""
    folder, changes = await result()
    (folder / "src" / "a.py").write_text("worker\n")
    changes = await workspace.collect("t1", root, changes.base)
    names = ("b.txt", "new.py", "run.sh", "src/a.py")
    before = {name: (folder / name).stat().st_mtime_ns for name in names}
    (folder / "run.sh").write_text("changed by a check\n")
    (folder / "left.txt").write_text("x\n")
    await back(workspace, root, changes)

    after = {name: (folder / name).stat().st_mtime_ns for name in names}
    assert [name for name in names if after[name] != before[name]] == ["run.sh"]


async def test_a_pipe_in_the_place_of_a_file_is_a_file_again(workspace, root, result):
    folder, changes = await result()
    for name in ("b.txt", "new.py"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
    await back(workspace, root, changes)

    assert (folder / "b.txt").read_text() == "b\n"
    assert (folder / "new.py").read_text() == "new\n"


async def test_the_workers_git_stands_on_the_base_and_shows_what_differs_from_it(workspace, root, result):
    folder, changes = await result()
    (folder / "src" / "a.py").unlink()
    changes = await workspace.collect("t1", root, changes.base)
    commit_all(folder)
    git(folder, "switch", "-q", "-c", "mine")
    await back(workspace, root, changes)

    assert git(folder, "rev-parse", "HEAD") == changes.base
    assert git(folder, "branch", "--show-current") == ""
    assert git(folder, "status", "--porcelain") == "D src/a.py\n?? link\n?? new.py\n?? run.sh"
    assert git(folder, "log", "-1", "--format=%s", "mine") == "commit"


@pytest.mark.parametrize(
    ("state", "sign"),
    [
        ("merge", "still merging"),
        ("rebase", "editing a commit"),
        ("bisect", "bisecting"),
        ("locked", "On branch two"),
        ("staged", "Changes to be committed"),
    ],
)
async def test_what_the_worker_had_in_progress_is_over(workspace, root, result, state, sign):
    folder, changes = await result()
    base = git(folder, "rev-parse", "HEAD")
    for branch in ("one", "two"):
        git(folder, "switch", "-q", "-c", branch, base)
        (folder / "b.txt").write_text(f"{branch}\n")
        commit_all(folder)
    git_dir = folder / ".git"
    if state == "merge":
        git(folder, "merge", "-q", "-s", "ours", "--no-commit", "one")
    elif state == "rebase":
        git(folder, "-c", "sequence.editor=sed -i s/^pick/edit/", "rebase", "-q", "-i", base)
    elif state == "bisect":
        git(folder, "bisect", "start", "HEAD", base)
    elif state == "locked":
        (git_dir / "index.lock").write_text("")
        (git_dir / "HEAD.lock").write_text("")
    else:
        (folder / "staged").write_text("x\n")
        git(folder, "add", "-A")
    assert sign in git(folder, "status")
    await back(workspace, root, changes)

    status = git(folder, "status")
    assert status.startswith(f"HEAD detached at {base[:7]}")
    assert not [word for word in ("merging", "rebas", "editing", "bisect", "to be committed") if word in status]
    git(folder, "commit", "-q", "--allow-empty", "-m", "goes on")


async def test_a_new_base_and_its_files_are_what_the_worker_goes_on_from(workspace, root, result):
    folder, changes = await result()
    (root / "b.txt").write_text("newer\n")
    (root / "later.txt").write_text("later\n")
    onto = (await workspace.snapshot(root, {})).base
    merged = await workspace.merge(root, onto, changes)
    await workspace.reset_folder("t1", root, onto, merged.commit)
    (folder / "later.txt").write_text("worker\n")
    again = await workspace.collect("t1", root, onto)

    assert [file.path for file in again.files] == ["later.txt", "link", "new.py", "run.sh"]
    assert git(folder, "rev-parse", "HEAD") == onto
    assert (folder / "b.txt").read_text() == "newer\n"


async def test_files_that_are_tracked_and_ignored_count_as_soon_as_a_base_holds_them(workspace, root, result):
    (root / ".gitignore").write_text("*.log\n")
    folder, _ = await result()
    (folder / "kept.log").write_text("of the worker\n")
    (folder / "gone.log").write_text("of the worker\n")
    for name in ("kept.log", "gone.log"):
        (root / name).write_text("of the user\n")
        git(root, "add", "-f", name)
    onto = (await workspace.snapshot(root, {})).base
    (root / "gone.log").unlink()
    commit = (await workspace.snapshot(root, {})).base
    await workspace.reset_folder("t1", root, onto, commit)

    assert (folder / "kept.log").read_text() == "of the user\n"
    assert not (folder / "gone.log").exists()
    found = [(file.path, file.status) for file in (await workspace.collect("t1", root, onto)).files]
    assert found == [("gone.log", FileStatus.DELETED)]
    (folder / "kept.log").write_text("changed\n")
    (folder / "gone.log").write_text("made again\n")
    found = [(file.path, file.status) for file in (await workspace.collect("t1", root, onto)).files]
    assert found == [("gone.log", FileStatus.MODIFIED), ("kept.log", FileStatus.MODIFIED)]


@pytest.mark.parametrize(("before", "after"), [("thing", "thing/in"), ("thing/in", "thing")])
async def test_a_folder_in_the_place_of_a_file_is_no_trouble(workspace, root, opened, before, after):
    (root / before).parent.mkdir(exist_ok=True)
    (root / before).write_text("before\n")
    folder, base = await opened()
    if before == "thing":
        (folder / "thing").unlink()
        (folder / "thing").mkdir()
    else:
        shutil.rmtree(folder / "thing")
    (folder / after).write_text("after\n")
    changes = await workspace.collect("t1", root, base)
    for _ in range(2):
        await back(workspace, root, changes)
    await workspace.reset_folder("t1", root, base, base)
    assert files_below(folder) == files_below(root)
    await back(workspace, root, changes)

    assert (folder / after).read_text() == "after\n"


async def test_a_folder_that_became_a_link_is_a_folder_again_and_what_it_led_to_untouched(
    workspace, root, result, tmp_path
):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("of somebody else\n")
    folder, changes = await result()
    before, kept = fingerprint(outside), files_below(folder)
    shutil.rmtree(folder / "src")
    (folder / "src").symlink_to(outside)
    await back(workspace, root, changes)

    assert files_below(folder) == kept
    assert fingerprint(outside) == before


async def test_nothing_that_a_worker_configures_is_run(workspace, root, result, tmp_path):
    canary = tmp_path / "canary"
    folder, changes = await result()
    plant(folder, canary)
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (folder / "b.txt").write_text("later\n")
    await back(workspace, root, changes)

    assert not canary.exists()
    assert not (folder / ".gitattributes").exists()


@pytest.mark.parametrize("kind", ["gone", "file", "link", "empty"])
async def test_a_git_directory_that_the_worker_took_away_is_made_anew(workspace, root, result, tmp_path, kind):
    folder, changes = await result()
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    commit_all(other)
    before = fingerprint(other)
    shutil.rmtree(folder / ".git")
    if kind == "file":
        (folder / ".git").write_text(f"gitdir: {other / '.git'}\n")
    elif kind == "link":
        (folder / ".git").symlink_to(other / ".git")
    elif kind == "empty":
        (folder / ".git").mkdir()
    await back(workspace, root, changes)

    assert git(folder, "rev-parse", "HEAD") == changes.base
    assert git(folder, "status", "--porcelain") == "?? link\n?? new.py\n?? run.sh"
    assert fingerprint(other) == before


async def test_folders_that_the_worker_locked_are_opened(workspace, root, result):
    folder, changes = await result()
    (folder / "src" / "more").write_text("x\n")
    (folder / "locked").mkdir()
    (folder / "locked" / "in").write_text("x\n")
    for locked in (folder / "src", folder / "locked", folder):
        locked.chmod(0o555)
    await back(workspace, root, changes)

    assert [*(folder / "src").iterdir()] == [folder / "src" / "a.py"]
    assert not (folder / "locked").exists()
    assert os.access(folder, os.W_OK)
    assert {folder.stat().st_mode & 0o777, (folder / "src").stat().st_mode & 0o777} == {0o755}


async def test_what_cannot_be_removed_is_named(workspace, root, opened, tmp_path):
    """A base may come from a machine whose file system takes longer names."""
    _, base = await opened()
    (private,) = (tmp_path / "state" / "repositories").glob("*.git")
    blob = git(private, "hash-object", "-w", "--stdin", stdin=b"x\n")
    tree = git(private, "mktree", stdin=f"100644 blob {blob}\t{'x' * 300}\n".encode())
    longer = git(private, "commit-tree", tree, "-m", "long name")

    with pytest.raises(GitFailed, match=f"{'x' * 300} cannot be removed: File name too long"):
        await workspace.reset_folder("t1", root, longer, base)
    with pytest.raises(GitFailed, match="git read-tree failed"):
        await workspace.reset_folder("t1", root, base, longer)


async def test_a_workspace_that_is_a_sub_folder_is_reset_with_all_around_it(workspace, root, result):
    folder, changes = await result(root / "src")
    (folder.parent / "b.txt").write_text("elsewhere\n")
    (folder.parent / "elsewhere.txt").write_text("elsewhere\n")
    shutil.rmtree(folder)
    await back(workspace, root / "src", changes)

    assert (folder / "new.py").read_text() == "new\n"
    assert (folder.parent / "b.txt").read_text() == "b\n"
    assert not (folder.parent / "elsewhere.txt").exists()


async def test_an_empty_workspace_folder_is_still_there(workspace, root, opened):
    (root / "empty").mkdir()
    folder, base = await opened(where=root / "empty")
    (folder / "made").write_text("x\n")
    await workspace.reset_folder("t1", root / "empty", base, base)

    assert [*folder.iterdir()] == []


async def test_files_of_a_folder_that_the_worker_made_a_repository_are_put_back(workspace, root, opened):
    folder, base = await opened()
    inner = folder / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "kept.py").write_text("x\n")
    commit_all(inner)
    changes = await workspace.collect("t1", root, base)
    (inner / "later.py").write_text("x\n")
    (inner / "kept.py").unlink()
    await back(workspace, root, changes)
    assert [file.path for file in changes.files] == ["inner/kept.py"]

    await workspace.reset_folder("t1", root, base, base)
    assert (await workspace.collect("t1", root, base)).files == ()
    assert git(inner, "log", "--format=%s") == "commit"


async def test_a_base_whose_history_ends_elsewhere_is_one_that_the_workers_git_can_read(
    workspace, root, opened, tmp_path
):
    for number in range(3):
        commit_all(root, f"commit {number}")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", root.as_uri(), str(shallow))
    folder, _ = await opened(where=shallow)
    (root / "b.txt").write_text("newer\n")
    commit_all(root, "newest")
    git(shallow, "fetch", "-q", "--depth=1", "--update-shallow")
    git(shallow, "reset", "-q", "--hard", "FETCH_HEAD")
    git(shallow, "reflog", "expire", "--expire=now", "--all")
    git(shallow, "gc", "-q", "--prune=now")
    onto = (await workspace.snapshot(shallow, {})).base
    await workspace.reset_folder("t1", shallow, onto, onto)

    assert git(folder, "log", "--format=%s") == "Your files as they were\nnewest"
    assert (folder / "b.txt").read_text() == "newer\n"


async def test_a_folder_that_is_gone_cannot_be_reset(workspace, root, opened):
    folder, base = await opened()
    shutil.rmtree(folder)

    with pytest.raises(GitFailed, match="gone"):
        await workspace.reset_folder("t1", root, base, base)


async def test_the_users_repository_is_untouched_by_all_of_it(workspace, root, result):
    folder, changes = await result()
    before = fingerprint(root)
    (folder / "b.txt").write_text("later\n")
    await back(workspace, root, changes)
    await workspace.select(root, changes, [changes.files[0].id])
    await workspace.merge(root, changes.base, changes)

    assert fingerprint(root) == before


@pytest.mark.parametrize("part", ["folder", "what holds it"])
async def test_a_folder_that_was_made_a_link_is_neither_read_nor_put_back(workspace, root, result, tmp_path, part):
    """A worker could have its result read from, and its folder cleared in, any place that the user can write to."""
    folder, changes = await result()
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(folder if part == "folder" else folder.parent, elsewhere)
    (elsewhere / "precious").write_text("x\n")
    (elsewhere / folder.name).mkdir(exist_ok=True)
    (elsewhere / folder.name / "precious").write_text("x\n")
    place = folder if part == "folder" else folder.parent
    shutil.rmtree(place)
    place.symlink_to(elsewhere)
    before = fingerprint(elsewhere)
    with pytest.raises(GitFailed, match="is not what was made for the task"):
        await workspace.collect("t1", root, changes.base)
    with pytest.raises(GitFailed, match="is not what was made for the task"):
        await workspace.reset_folder("t1", root, changes.base, changes.result)
    assert fingerprint(elsewhere) == before


async def test_what_ignore_rules_of_a_check_have_hidden_goes_with_them(workspace, root, result):
    (root / ".gitignore").write_text("*.log\n")
    folder, changes = await result()
    (folder / ".gitignore").write_text("*.log\nreport.xml\n")
    (folder / "report.xml").write_text("x\n")
    (folder / "kept.log").write_text("x\n")
    await back(workspace, root, changes)
    assert not (folder / "report.xml").exists()
    assert (folder / "kept.log").exists()
