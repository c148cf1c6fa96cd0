"""How a result lands on disk: three-way, all or nothing, and nowhere that it must not."""

import shutil
import stat
from dataclasses import replace

import pytest

from offload.domain.change import ChangeSet
from offload.domain.errors import ApplyRefused, GitFailed, NotAWorkspace
from offload.workspace.landing import disk
from offload.workspace.landing.unfinished import RECORD
from tests.workspace.repositories import apply, crafted, fingerprint, git, private_of

TEN = "".join(f"{number}\n" for number in range(1, 11))


async def test_changes_in_different_places_are_merged(workspace, root, opened):
    folder, base = await opened()
    (folder / "src" / "a.py").write_text("ONE\ntwo\nthree\n")
    changes = await workspace.collect("t1", root, base)
    (root / "src" / "a.py").write_text("one\ntwo\nthree\nfour\n")
    await apply(workspace, root, changes, {})

    assert (root / "src" / "a.py").read_text() == "ONE\ntwo\nthree\nfour\n"


async def test_a_second_result_at_the_same_place_is_a_conflict(workspace, root, opened):
    """Public trouble report: a second result was merged over the first, whose text went without a word (H22)."""
    first, base = await opened("t1")
    second, _ = await opened("t2")
    (first / "b.txt").write_text("b\nfirst\n")
    (second / "b.txt").write_text("b\nsecond\n")
    results = [await workspace.collect(task, root, base) for task in ("t1", "t2")]
    await apply(workspace, root, results[0], {})

    with pytest.raises(ApplyRefused, match="in the same place"):
        await apply(workspace, root, results[1], {})
    assert (root / "b.txt").read_text() == "b\nfirst\n"
    assert await workspace.read(root, results[1].result, "b.txt") == b"b\nsecond\n"


async def test_applying_twice_changes_nothing_more(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").unlink()
    (folder / "src" / "a.py").write_text("worker\n")
    (folder / "link").symlink_to("src")
    changes = await workspace.collect("t1", root, base)
    first = await apply(workspace, root, changes, {})
    before = fingerprint(root)

    assert first.unchanged == ()
    second = await apply(workspace, root, changes)
    assert (second.paths, second.unchanged, second.before, second.after) == (first.paths, first.paths, "", "")
    assert fingerprint(root) == before


MINE_AND_THEIRS = {
    "deleted by the task, changed by me": (None, b"mine\n", "changed by you and deleted"),
    "changed by the task, deleted by me": (b"worker\n", None, "deleted by you and changed"),
    "binary on both sides": (b"\0worker", b"\0mine", "is no text"),
}


@pytest.mark.parametrize("case", MINE_AND_THEIRS)
async def test_what_cannot_be_merged_is_refused(workspace, root, opened, case):
    worker, mine, reason = MINE_AND_THEIRS[case]
    folder, base = await opened()
    for target, content in ((folder / "b.txt", worker), (root / "b.txt", mine)):
        target.unlink()
        if content is not None:
            target.write_bytes(content)
        if target.is_relative_to(folder):
            changes = await workspace.collect("t1", root, base)

    with pytest.raises(ApplyRefused, match=reason):
        await apply(workspace, root, changes, {})
    assert (root / "b.txt").exists() == (mine is not None)


async def test_a_new_file_that_is_there_with_other_contents_is_refused(workspace, root, opened):
    folder, base = await opened()
    (folder / "new").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)
    (root / "new").write_text("mine\n")

    with pytest.raises(ApplyRefused, match="made by you as well"):
        await apply(workspace, root, changes, {})


async def test_a_link_in_place_of_a_file_that_both_touched_is_refused(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)
    (root / "b.txt").unlink()
    (root / "b.txt").symlink_to("src/a.py")

    with pytest.raises(ApplyRefused, match="is a link on one side"):
        await apply(workspace, root, changes, {})


async def test_a_link_changed_by_both_is_refused(workspace, root, opened):
    (root / "link").symlink_to("b.txt")
    folder, base = await opened()
    (folder / "link").unlink()
    (folder / "link").symlink_to("src")
    changes = await workspace.collect("t1", root, base)
    (root / "link").unlink()
    (root / "link").symlink_to("src/a.py")

    with pytest.raises(ApplyRefused, match="is a link on one side"):
        await apply(workspace, root, changes, {})
    (root / "link").unlink()
    (root / "link").symlink_to("b.txt")
    await apply(workspace, root, changes, {})
    assert str((root / "link").readlink()) == "src"


async def test_a_link_that_was_deleted_by_the_task_and_moved_by_me_is_refused(workspace, root, opened):
    (root / "link").symlink_to("b.txt")
    folder, base = await opened()
    (folder / "link").unlink()
    changes = await workspace.collect("t1", root, base)
    (root / "link").unlink()
    (root / "link").symlink_to("src")

    with pytest.raises(ApplyRefused, match="changed by you and deleted"):
        await apply(workspace, root, changes, {})


async def test_modes_are_kept_and_only_the_executable_bit_is_set(workspace, root, opened):
    (root / "b.txt").chmod(0o640)
    (root / "src" / "a.py").chmod(0o600)
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    (folder / "src" / "a.py").chmod(0o755)
    changes = await workspace.collect("t1", root, base)
    await apply(workspace, root, changes, {})

    assert stat.S_IMODE((root / "b.txt").stat().st_mode) == 0o640
    assert stat.S_IMODE((root / "src" / "a.py").stat().st_mode) == 0o700
    before = fingerprint(root)
    await apply(workspace, root, changes, {})
    assert fingerprint(root) == before


async def test_a_file_that_became_a_link_and_back_is_applied(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").unlink()
    (folder / "b.txt").symlink_to("src")
    await apply(workspace, root, await workspace.collect("t1", root, base), {})
    assert (root / "b.txt").is_symlink()
    folder, base = await opened("t2")
    (folder / "b.txt").unlink()
    (folder / "b.txt").write_text("a file again\n")
    await apply(workspace, root, await workspace.collect("t2", root, base), {})

    assert not (root / "b.txt").is_symlink()
    assert (root / "b.txt").read_text() == "a file again\n"


async def test_a_deleted_file_with_the_users_line_ends_is_deleted(workspace, root, opened):
    git(root, "config", "core.autocrlf", "true")
    (root / "crlf.txt").write_bytes(b"one\r\n")
    folder, base = await opened()
    (folder / "crlf.txt").unlink()
    await apply(workspace, root, await workspace.collect("t1", root, base), {})

    assert not (root / "crlf.txt").exists()


async def test_a_write_that_fails_midway_leaves_everything_as_it_was(workspace, root, opened, tmp_path):
    """A link to nowhere at all can be recorded but not be made: the only fault that a disk gives on demand."""
    _, base = await opened()
    changes = crafted(private_of(tmp_path / "state"), base, ("120000", b"src/link", b""))
    before = {path: line for path, line in fingerprint(root).items() if ".git" not in path}

    with pytest.raises(ApplyRefused, match=r"src/link: could not be written: No such file or directory"):
        await apply(workspace, root, changes, {})
    assert {path: line for path, line in fingerprint(root).items() if ".git" not in path} == before


@pytest.mark.parametrize("fault", ["cannot be made", "was changed meanwhile"])
def test_every_kind_of_edit_is_undone_when_a_later_one_fails(tmp_path, fault):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "only").write_text("only\n")
    (tmp_path / "old" / "only").chmod(0o750)
    (tmp_path / "changed").write_text("before\n")
    (tmp_path / "link").symlink_to("changed")
    before = fingerprint(tmp_path)

    def edit(path, content, **options):
        return disk.Edit(path, disk.look(tmp_path, path), content, **options)

    edits = [
        edit("old/only", None),
        edit("changed", b"after\n", mode=0o700),
        edit("link", b"old", link=True),
        edit("a new/folder/file", b"new\n"),
        edit("last", b"", link=True) if fault == "cannot be made" else edit("last", b"x"),
    ]
    if fault == "was changed meanwhile":
        (tmp_path / "last").write_text("typed just now\n")
        before = fingerprint(tmp_path)
    with pytest.raises(disk.WriteFailed) as failed:
        disk.write(tmp_path, edits, tmp_path / RECORD)
    assert failed.value.path == "last"
    assert fingerprint(tmp_path) == before
    disk.write(tmp_path, [replace(one, before=disk.look(tmp_path, one.path)) for one in edits[:-1]], tmp_path / RECORD)
    assert not (tmp_path / "old").exists()
    assert (tmp_path / "a new" / "folder" / "file").read_text() == "new\n"


def test_a_file_that_changes_between_check_and_write_is_not_overwritten(tmp_path):
    target = tmp_path / "a"
    target.write_text("checked\n")
    edit = disk.Edit("a", disk.look(tmp_path, "a"), b"worker\n")
    target.write_text("typed just now\n")

    with pytest.raises(disk.WriteFailed, match="changed while"):
        disk.write(tmp_path, [edit], tmp_path / RECORD)
    assert target.read_text() == "typed just now\n"


def test_files_below_a_folder_that_is_left_empty_are_deleted_in_any_order(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    for path in ("a/b/x", "a/y"):
        (tmp_path / path).write_text("x")
    (tmp_path / "kept").write_text("x")
    disk.write(
        tmp_path, [disk.Edit(path, disk.look(tmp_path, path), None) for path in ("a/y", "a/b/x")], tmp_path / RECORD
    )

    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_path_that_cannot_be_read_is_a_problem_of_that_path(tmp_path):
    assert disk.look(tmp_path, "x" * 300).problem == "cannot be read (File name too long)"


async def test_a_result_that_is_gone_is_an_error(workspace, root, opened, tmp_path):
    _, base = await opened()
    private = private_of(tmp_path / "state")
    missing = b"100644 b.txt\0" + b"\1" * 20
    tree = git(private, "hash-object", "-t", "tree", "--literally", "-w", "--stdin", stdin=missing)
    changes = ChangeSet(base, git(private, "commit-tree", tree, "-m", "incomplete"))

    with pytest.raises(GitFailed, match="lacks an object"):
        await apply(workspace, root, changes, {})


async def test_a_workspace_that_went_away_is_named(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").write_text("new\n")
    changes = await workspace.collect("t1", root, base)
    shutil.rmtree(root)
    with pytest.raises(NotAWorkspace, match=f"{root} is not there any more"):
        await apply(workspace, root, changes, {})


@pytest.fixture
async def renamed(root, opened, workspace):
    """A result that renames a file of ten lines, changes its last one and lets it run: `changes`."""
    (root / "old.txt").write_text(TEN)
    (root / "old.txt").chmod(0o640)
    folder, base = await opened()
    (folder / "old.txt").unlink()
    (folder / "deep").mkdir()
    (folder / "deep" / "new.txt").write_text(TEN.replace("10\n", "ten\n"))
    (folder / "deep" / "new.txt").chmod(0o755)
    return await workspace.collect("t1", root, base)


async def test_your_edits_of_a_file_go_along_when_the_task_renamed_it(workspace, root, renamed):
    (root / "old.txt").write_text(TEN.replace("1\n2\n", "one\n2\n"))
    plan = await apply(workspace, root, renamed)

    assert plan.paths == ("deep/new.txt",)
    assert not (root / "old.txt").exists()
    assert (root / "deep" / "new.txt").read_text() == TEN.replace("1\n2\n", "one\n2\n").replace("10\n", "ten\n")
    assert stat.S_IMODE((root / "deep" / "new.txt").stat().st_mode) == 0o750
    again = await apply(workspace, root, renamed)
    assert again.unchanged == again.paths
    await apply(workspace, root, await workspace.between(root, plan.after, plan.before), exact=True)
    assert (root / "old.txt").read_text() == TEN.replace("1\n2\n", "one\n2\n")
    assert stat.S_IMODE((root / "old.txt").stat().st_mode) == 0o640
    assert not (root / "deep").exists()


async def test_a_renamed_file_that_you_changed_in_the_same_place_is_a_conflict(workspace, root, renamed):
    (root / "old.txt").write_text(TEN.replace("10\n", "10, mine\n"))
    with pytest.raises(ApplyRefused) as refused:
        await apply(workspace, root, renamed)
    (conflict,) = refused.value.conflicts
    assert (conflict.path, conflict.first_line, conflict.yours) == ("deep/new.txt", 10, "10, mine\n")
    assert conflict.unit == renamed.files[0].hunks[0].id


async def test_a_renamed_file_that_is_gone_under_its_old_name_is_refused(workspace, root, renamed):
    (root / "old.txt").unlink()
    with pytest.raises(ApplyRefused, match=r"deep/new\.txt: was old\.txt, which you have deleted or renamed"):
        await apply(workspace, root, renamed)
    assert not (root / "deep").exists()


async def test_a_file_that_both_renamed_alike_is_merged_under_its_new_name(workspace, root, renamed):
    (root / "deep").mkdir()
    (root / "old.txt").rename(root / "deep" / "new.txt")
    (root / "deep" / "new.txt").write_text("zero\n" + TEN)
    await apply(workspace, root, renamed)
    assert (root / "deep" / "new.txt").read_text() == "zero\n" + TEN.replace("10\n", "ten\n")
    assert stat.S_IMODE((root / "deep" / "new.txt").stat().st_mode) == 0o750


@pytest.mark.parametrize("same", [True, False])
async def test_a_new_name_that_is_taken_is_refused_unless_it_is_the_same_file(workspace, root, renamed, same):
    (root / "deep").mkdir()
    (root / "deep" / "new.txt").write_text(TEN.replace("10\n", "ten\n") if same else "mine\n")
    before = fingerprint(root)
    if same:
        await apply(workspace, root, renamed)
        assert not (root / "old.txt").exists()
    else:
        with pytest.raises(ApplyRefused, match=r"is the new name of old\.txt, and you have made a file of this name"):
            await apply(workspace, root, renamed)
        assert fingerprint(root) == before


@pytest.mark.parametrize(("goes", "comes"), [("b.txt", "b.txt/inner"), ("src/a.py", "src")])
async def test_what_comes_in_the_place_of_what_goes_is_applied_after_it(workspace, root, opened, goes, comes):
    folder, base = await opened()
    if comes == "src":
        shutil.rmtree(folder / "src")
    else:
        (folder / goes).unlink()
        (folder / goes).mkdir()
    (folder / comes).write_text("new\n")
    changes = await workspace.collect("t1", root, base)
    with pytest.raises(ApplyRefused, match=f": apply what becomes of {goes} by itself first"):
        await apply(workspace, root, changes)
    first = await workspace.select(root, changes, next(file.units for file in changes.files if file.path == goes))
    await apply(workspace, root, first)
    await apply(workspace, root, await workspace.between(root, first.result, changes.result))
    assert (root / comes).read_text() == "new\n"


async def test_a_renamed_link_is_moved(workspace, root, opened):
    (root / "link").symlink_to("b.txt")
    folder, base = await opened()
    (folder / "link").rename(folder / "moved")
    await apply(workspace, root, await workspace.collect("t1", root, base))
    assert str((root / "moved").readlink()) == "b.txt"
    assert not (root / "link").is_symlink()


def test_a_name_that_changes_its_case_alone_is_written_after_the_old_one_is_gone(tmp_path):
    """A disk that is blind to case has one place for both: the later of the two edits says what is there."""
    (tmp_path / "readme").write_text("x\n")
    came = disk.Edit("README", disk.Live(), b"x\n")
    disk.write(tmp_path, [came, disk.Edit("readme", disk.look(tmp_path, "readme"), None)], tmp_path / RECORD)
    assert [path.name for path in tmp_path.iterdir()] == ["README"]


async def test_every_place_of_a_conflict_is_told_with_its_hunk_and_both_sides(workspace, root, opened):
    lines = [f"{number}\n" for number in range(40)]
    (root / "long").write_text("".join(lines))
    folder, base = await opened()
    (folder / "long").write_text("".join(lines).replace("\n5\n", "\nfive\n").replace("\n30\n31\n", "\n"))
    changes = await workspace.collect("t1", root, base)
    (root / "long").write_text("top\n" + "".join(lines).replace("\n5\n", "\nFIVE\nsix\n").replace("\n31\n", "\nmine\n"))

    with pytest.raises(ApplyRefused, match="long: was changed by you in the same place") as refused:
        await apply(workspace, root, changes)
    assert refused.value.reasons == (("long", "was changed by you in the same place"),)
    one, two = refused.value.conflicts
    assert (one.first_line, one.yours, one.base, one.theirs) == (7, "FIVE\nsix\n", "5\n", "five\n")
    assert (two.first_line, two.yours, two.base, two.theirs) == (33, "30\nmine\n", "30\n31\n", "")
    assert [one.unit, two.unit] == [hunk.id for hunk in changes.files[0].hunks]


async def test_a_conflict_is_told_even_where_the_text_looks_like_conflict_markers(workspace, root, opened):
    marked = "<<<<<<< yours\na\n||||||| base\nb\n=======\nc\n>>>>>>> theirs\n"
    (root / "marked").write_text(marked)
    folder, base = await opened()
    (folder / "marked").write_text(marked.replace("b\n", "=======\n"))
    changes = await workspace.collect("t1", root, base)
    (root / "marked").write_text(marked.replace("b\n", ">>>>>>> theirs\n"))
    with pytest.raises(ApplyRefused) as refused:
        await apply(workspace, root, changes)
    (conflict,) = refused.value.conflicts
    assert (conflict.yours, conflict.base, conflict.theirs) == (">>>>>>> theirs\n", "b\n", "=======\n")


@pytest.mark.parametrize("user", [None, "mine\n"])
async def test_a_file_that_one_side_deleted_is_told_as_a_whole(workspace, root, opened, user):
    folder, base = await opened()
    if user is None:
        (folder / "b.txt").write_text("worker\n")
    else:
        (folder / "b.txt").unlink()
    changes = await workspace.collect("t1", root, base)
    (root / "b.txt").unlink() if user is None else (root / "b.txt").write_text(user)
    with pytest.raises(ApplyRefused) as refused:
        await apply(workspace, root, changes)
    (conflict,) = refused.value.conflicts
    wanted = (0, "", "b\n", "worker\n") if user is None else (1, "mine\n", "b\n", "")
    assert (conflict.first_line, conflict.yours, conflict.base, conflict.theirs) == wanted
    assert conflict.unit == changes.files[0].units[0]


async def test_a_long_conflict_shows_the_beginning_of_each_side(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").write_text("é\n" * 5000)
    changes = await workspace.collect("t1", root, base)
    (root / "b.txt").write_text("ü\n" * 5000)
    with pytest.raises(ApplyRefused) as refused:
        await apply(workspace, root, changes)
    (conflict,) = refused.value.conflicts
    assert (conflict.yours, conflict.theirs) == ("ü\n" * 2000, "é\n" * 2000)


async def test_a_conflict_in_a_file_without_hunks_names_the_file(workspace, root, opened):
    (root / "wide").write_bytes("\ufeffone\n".encode("utf-16-le"))
    folder, base = await opened()
    (folder / "wide").write_bytes("\ufeffzwei\n".encode("utf-16-le"))
    changes = await workspace.collect("t1", root, base)
    (root / "wide").write_bytes("\ufeffdrei\n".encode("utf-16-le"))
    with pytest.raises(ApplyRefused) as refused:
        await apply(workspace, root, changes)
    (conflict,) = refused.value.conflicts
    assert (conflict.unit, conflict.yours, conflict.theirs) == (changes.files[0].id, "drei\n", "zwei\n")


async def test_characters_that_the_files_encoding_lacks_are_refused(workspace, root, opened):
    (root / "text").write_text("1\n2\n3\n4\n")
    folder, base = await opened()
    (folder / "text").write_text("1\n2\n3\n→\n")
    changes = await workspace.collect("t1", root, base)
    (root / "text").write_bytes(b"\xe9\n2\n3\n4\n")
    with pytest.raises(ApplyRefused, match="characters that its encoding lacks"):
        await apply(workspace, root, changes)
    assert (root / "text").read_bytes() == b"\xe9\n2\n3\n4\n"


async def test_a_file_that_git_checks_out_with_other_line_ends_is_merged_in_yours(workspace, root, opened):
    git(root, "config", "core.autocrlf", "true")
    (root / "crlf.txt").write_bytes(b"1\r\n2\r\n3\r\n4\r\n")
    folder, base = await opened()
    (folder / "crlf.txt").write_bytes(b"1\r\n2\r\n3\r\nfour\r\n")
    (folder / "new.txt").write_bytes(b"new\r\n")
    changes = await workspace.collect("t1", root, base)
    (root / "crlf.txt").write_bytes(b"one\r\n2\r\n3\r\n4\r\n")
    plan = await apply(workspace, root, changes)
    assert (root / "crlf.txt").read_bytes() == b"one\r\n2\r\n3\r\nfour\r\n"
    assert (root / "new.txt").read_bytes() == b"new\r\n"
    await apply(workspace, root, await workspace.between(root, plan.after, plan.before), exact=True)
    assert (root / "crlf.txt").read_bytes() == b"one\r\n2\r\n3\r\n4\r\n"


async def test_a_file_with_your_line_ends_alone_changed_is_deleted_all_the_same(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").unlink()
    changes = await workspace.collect("t1", root, base)
    (root / "b.txt").write_bytes(b"b\r\n")
    await apply(workspace, root, changes)
    assert not (root / "b.txt").exists()


async def test_an_empty_file_of_yours_takes_what_the_task_made_of_that_name(workspace, root, opened):
    folder, base = await opened()
    (folder / "new").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)
    (root / "new").touch()
    await apply(workspace, root, changes)
    assert (root / "new").read_text() == "worker\n"


async def test_a_last_line_without_an_end_is_told_as_it_is(workspace, root, opened):
    (root / "open").write_text("1\n2\n3")
    folder, base = await opened()
    (folder / "open").write_text("1\n2\n3\n4")
    changes = await workspace.collect("t1", root, base)
    (root / "open").write_text("1\n2\nthree")
    with pytest.raises(ApplyRefused) as refused:
        await apply(workspace, root, changes)
    (conflict,) = refused.value.conflicts
    assert (conflict.yours, conflict.base, conflict.theirs) == ("three", "3", "3\n4")
    (root / "open").write_text("one\n2\n3")
    await apply(workspace, root, changes)
    assert (root / "open").read_text() == "one\n2\n3\n4"
