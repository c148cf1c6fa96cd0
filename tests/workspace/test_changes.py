"""What a change set says of each file: ids that last, renames, modes, sizes, and names of any bytes."""

import os
import random

import pytest

from offload.domain.change import FileStatus
from tests.workspace.repositories import commit_all, git

LONG = [f"line {number}\n" for number in range(1, 201)]
ODD_NAMES = [
    b"a\nb",
    b"100%",
    b"tab\there",
    b"\xff\xfe.bin",
    b'"quoted"',
    b"back\\slash",
    b" leading",
    b"@@ -1 +1 @@\ndiff --git ",
]


@pytest.fixture
def collected(workspace, root, opened):
    """Opens a task's folder, lets the test write in it, and collects: `changes = await collected(write)`."""

    async def collect(write, where=root):
        folder, base = await opened(where=where)
        write(folder)
        return await workspace.collect("t1", where, base)

    return collect


def with_lines(changed):
    lines = list(LONG)
    for number, text in changed.items():
        lines[number - 1] = text
    return "".join(lines)


async def ids_after(workspace, root, folder, base, text):
    (folder / "long.txt").write_text(text)
    (file,) = (await workspace.collect("t1", root, base)).files
    return [hunk.id for hunk in file.hunks]


async def test_a_hunk_keeps_its_id_while_other_parts_of_the_file_change_and_lines_move(workspace, root, opened):
    (root / "long.txt").write_text("".join(LONG))
    folder, base = await opened()
    (alone,) = await ids_after(workspace, root, folder, base, with_lines({100: "changed\n"}))
    later = await ids_after(workspace, root, folder, base, with_lines({5: "a\nb\nc\n", 100: "changed\n", 180: ""}))
    nearer = await ids_after(workspace, root, folder, base, with_lines({92: "beside\n", 100: "changed\n"}))
    other = await ids_after(workspace, root, folder, base, with_lines({100: "changed otherwise\n"}))

    assert alone.startswith("h")
    assert later[1] == alone
    assert nearer[1] == alone
    assert alone not in other
    assert len({*later}) == 3


async def test_a_hunk_keeps_its_id_when_the_worker_has_committed_it(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    written = await workspace.collect("t1", root, base)
    commit_all(folder)
    committed = await workspace.collect("t1", root, base)

    assert written.files == committed.files


async def test_equal_hunks_of_a_file_are_told_apart_and_so_are_those_of_two_files(workspace, root, opened):
    for name in ("one.txt", "two.txt"):
        (root / name).write_text("same\n" * 3 + "".join(LONG) + "same\n" * 3)
    folder, base = await opened()
    for name in ("one.txt", "two.txt"):
        (folder / name).write_text("new\n" + "same\n" * 3 + "".join(LONG) + "new\n" + "same\n" * 3)
    changes = await workspace.collect("t1", root, base)

    assert len({*changes.units}) == 4


async def test_a_line_end_that_comes_or_goes_makes_another_hunk(workspace, root, opened):
    (root / "long.txt").write_text("x")
    folder, base = await opened()
    ids = [*await ids_after(workspace, root, folder, base, "y\n"), *await ids_after(workspace, root, folder, base, "y")]

    assert len({*ids}) == 2


async def test_a_moved_file_is_a_rename_with_only_what_changed_in_it(workspace, root, collected):
    (root / "long.txt").write_text("".join(LONG))

    def write(folder):
        (folder / "long.txt").unlink()
        (folder / "deep").mkdir()
        (folder / "deep" / "moved.txt").write_text(with_lines({100: "changed\n"}))
        (folder / "deep" / "moved.txt").chmod(0o755)

    (file,) = (await collected(write)).files
    assert (file.path, file.old_path, file.status) == ("deep/moved.txt", "long.txt", FileStatus.RENAMED)
    assert (file.old_mode, file.new_mode) == ("100644", "100755")
    assert (file.added_lines, file.removed_lines, len(file.hunks)) == (1, 1, 1)
    assert file.size == len(with_lines({100: "changed\n"}))


async def test_a_file_that_was_only_moved_is_one_unit(root, collected):
    def write(folder):
        (folder / "b.txt").rename(folder / "c.txt")

    changes = await collected(write)
    (file,) = changes.files
    assert (file.path, file.old_path, file.hunks) == ("c.txt", "b.txt", ())
    assert changes.units == (file.id,)


async def test_empty_files_are_never_taken_for_moved_ones(root, collected):
    (root / "empty").write_text("")

    def write(folder):
        (folder / "empty").unlink()
        (folder / "__init__.py").write_text("")

    found = [(file.path, file.status, file.size) for file in (await collected(write)).files]
    assert found == [("__init__.py", FileStatus.ADDED, 0), ("empty", FileStatus.DELETED, None)]


async def test_a_move_across_the_edge_of_the_workspace_is_a_file_that_came_or_went(workspace, root, collected):
    (root / "long.txt").write_text("".join(LONG))

    def write(folder):
        (folder.parent / "long.txt").rename(folder / "came.txt")
        (folder / "a.py").rename(folder.parent / "went.py")

    changes = await collected(write, root / "src")
    assert [(file.path, file.old_path, file.status) for file in changes.files] == [
        ("a.py", "", FileStatus.DELETED),
        ("came.txt", "", FileStatus.ADDED),
    ]
    assert git(root, "ls-files") == "b.txt\nsrc/a.py"


async def test_a_move_inside_a_workspace_that_is_a_sub_folder_is_named_as_seen_from_there(workspace, root, collected):
    def write(folder):
        (folder / "a.py").rename(folder / "z.py")

    changes = await collected(write, root / "src")
    (file,) = changes.files
    assert (file.path, file.old_path) == ("z.py", "a.py")
    patch = await workspace.diff(root / "src", changes, ["z.py"])
    assert "rename from a.py\nrename to z.py\n" in patch


async def test_what_is_outside_of_the_workspace_is_not_in_the_result_either(workspace, root, opened):
    folder, base = await opened(where=root / "src")
    (folder / "a.py").write_text("worker\n")
    (folder.parent / "b.txt").write_text("elsewhere\n")
    (folder.parent / "new.txt").write_text("elsewhere\n")
    changes = await workspace.collect("t1", root / "src", base)
    whole = await workspace.between(root / "src", base, changes.result)

    assert [file.path for file in whole.files] == ["a.py"]
    (private,) = (folder.parent.parent.parent.parent / "repositories").glob("*.git")
    assert git(private, "diff", "--name-only", base, changes.result) == "src/a.py"


async def test_names_of_any_bytes_are_told_as_they_are(workspace, root, collected):
    for name in ODD_NAMES:
        (root / os.fsdecode(b"old " + name)).write_text("".join(LONG) + repr(name))

    def write(folder):
        for name in ODD_NAMES:
            (folder / os.fsdecode(name)).write_text("one\ntwo\n")
            (folder / os.fsdecode(b"old " + name)).rename(folder / os.fsdecode(b"new " + name))

    changes = await collected(write)
    added = {file.path for file in changes.files if file.status is FileStatus.ADDED}
    moved = {file.path: file.old_path for file in changes.files if file.status is FileStatus.RENAMED}
    assert added == {os.fsdecode(name) for name in ODD_NAMES}
    assert moved == {os.fsdecode(b"new " + name): os.fsdecode(b"old " + name) for name in ODD_NAMES}
    assert all(len(file.hunks) == 1 for file in changes.files if file.status is FileStatus.ADDED)
    assert len({*changes.units}) == 2 * len(ODD_NAMES)


async def test_text_of_any_encoding_has_hunks_with_ids(root, collected):
    (root / "latin.txt").write_bytes(b"caf\xe9\n")

    def write(folder):
        (folder / "latin.txt").write_bytes(b"caf\xe8\n")

    (file,) = (await collected(write)).files
    assert (file.added_lines, file.removed_lines, len(file.hunks)) == (1, 1, 1)
    assert file.size == 5


async def test_modes_binary_empty_and_turned_into_a_link_are_one_unit_each(root, collected):
    (root / "binary").write_bytes(b"\0" * 10)
    (root / "run.sh").write_text("x\n")
    (root / "turned").write_text("one\n" * 10)

    def write(folder):
        (folder / "binary").write_bytes(b"\0" * 20)
        (folder / "run.sh").chmod(0o755)
        (folder / "empty").write_text("")
        (folder / "turned").unlink()
        (folder / "turned").symlink_to("b.txt")

    changes = await collected(write)
    binary, empty, run, turned = changes.files
    assert changes.units == tuple(file.id for file in changes.files)
    assert (binary.binary, binary.size) == (True, 20)
    assert (empty.status, empty.size) == (FileStatus.ADDED, 0)
    assert (run.old_mode, run.new_mode, run.size) == ("100644", "100755", 2)
    assert (turned.status, turned.added_lines, turned.removed_lines) == (FileStatus.TYPE_CHANGED, 1, 10)


async def test_a_file_of_more_lines_than_anybody_reads_counts_as_binary(root, collected):
    text = b"0123456789abcde\n" * (1 << 20)

    def write(folder):
        (folder / "long.log").write_bytes(text)
        (folder / "longer.log").write_bytes(text + b"x")

    long, longer = (await collected(write)).files
    assert (long.binary, long.added_lines, len(long.hunks)) == (False, 1 << 20, 1)
    assert (longer.binary, longer.added_lines, longer.units) == (True, 0, (longer.id,))
    assert longer.size == len(text) + 1


@pytest.mark.parametrize(
    "ending", ["dirty", "untracked only", "committed", "detached", "branch", "stash", "locked", "amended"]
)
async def test_work_is_collected_and_kept_however_the_worker_left_its_git(workspace, root, opened, tmp_path, ending):
    """Public trouble reports: work was lost with the folder when it was not committed, or committed on no branch (H20), and
    new files that were never staged were missing (H21)."""
    folder, base = await opened()
    if ending == "branch":
        git(folder, "switch", "-q", "-c", "ahead")
    (folder / "new.txt").write_bytes(b"new\r\n\xff")
    (folder / "binary").write_bytes(bytes(range(256)))
    (folder / "empty").write_text("")
    if ending == "dirty":
        git(folder, "add", "binary")
    elif ending in ("committed", "branch", "amended"):
        commit_all(folder)
        git(folder, "commit", "-q", "--amend", "--allow-empty", "-m", ending)
    elif ending == "detached":
        git(folder, "switch", "-q", "-c", "left")
        commit_all(folder)
        git(folder, "checkout", "-q", "--detach")
        git(folder, "branch", "-q", "-D", "left")
    elif ending == "stash":
        git(folder, "stash", "-q", "-u")
        git(folder, "stash", "apply", "-q")
    elif ending == "locked":
        (folder / ".git" / "index.lock").write_text("")
    changes = await workspace.collect("t1", root, base)
    await workspace.release("t1", root)
    await workspace.forget(root, [], [base, changes.result])

    assert [(file.path, file.size) for file in changes.files] == [("binary", 256), ("empty", 0), ("new.txt", 6)]
    assert await workspace.read(root, changes.result, "new.txt") == b"new\r\n\xff"
    assert await workspace.read(root, changes.result, "binary") == bytes(range(256))
    (private,) = (tmp_path / "state" / "repositories").glob("*.git")
    assert changes.result in git(private, "for-each-ref")


async def test_sizes_are_right_for_contents_of_any_kind_that_are_loose_or_packed(workspace, root, collected):
    chance = random.Random(7)
    kinds = (b"a", bytes(range(256)), b"0123456789abcdef\n", b" \xe9\xff\n", "the quick brown fox äöü".encode())
    contents = {
        f"{number} {length}": bytes(chance.choices(kind, k=length))
        for number, kind in enumerate(kinds)
        for length in (0, 1, 30, 300, 5000, 200_000)
    }

    def write(folder):
        for name, content in contents.items():
            (folder / name).write_bytes(content)

    changes = await collected(write)
    assert {file.path: file.size for file in changes.files} == {name: len(each) for name, each in contents.items()}
    await workspace.release("t1", root)
    await workspace.forget(root, [], [changes.base, changes.result])
    assert (await workspace.between(root, changes.base, changes.result)).files == changes.files


async def test_a_submodule_whose_pointer_moved_has_no_size(workspace, root):
    first = (await workspace.snapshot(root, {})).base
    (root / "sub").mkdir()
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{git(root, 'rev-parse', 'HEAD')},sub")
    second = (await workspace.snapshot(root, {})).base

    (file,) = (await workspace.between(root, first, second)).files
    assert (file.path, file.new_mode, file.size) == ("sub", "160000", None)
