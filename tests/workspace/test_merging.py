"""Results brought onto other commits: what merges, what does not, and what is said of it."""

import os
import random
import re
import shutil

import pytest

from offload.domain.change import FileStatus
from offload.processes import Processes
from offload.workspace.results.conflicts import LONGEST
from tests.workspace.repositories import commit_all, git
from tests.workspace.test_tasks import plant

LINES = [f"line {number}\n" for number in range(1, 61)]


def text(changed=None):
    lines = list(LINES)
    for number, line in (changed or {}).items():
        lines[number - 1] = line
    return "".join(lines)


@pytest.fixture
def sides(workspace, root, opened):
    """Takes what the user and the task write, each into a function of a folder, and merges the task's onto the user's:
    `merged, changes, onto = await sides(yours, theirs)`."""

    async def merge(yours, theirs, where=root):
        folder, base = await opened(where=where)
        theirs(folder)
        changes = await workspace.collect("t1", where, base)
        yours(where)
        onto = (await workspace.snapshot(where, {})).base
        return await workspace.merge(where, onto, changes), changes, onto

    return merge


async def changed(workspace, root, onto, merged):
    return {file.path: file for file in (await workspace.between(root, onto, merged.commit)).files}


async def test_a_result_is_brought_onto_later_files_line_by_line(workspace, root, sides):
    (root / "long.txt").write_text(text())
    merged, _, onto = await sides(
        lambda folder: (folder / "long.txt").write_text(text({3: "yours\n"})),
        lambda folder: (folder / "long.txt").write_text(text({50: "theirs\n"})),
    )

    assert merged.conflicts == ()
    assert await workspace.read(root, merged.commit, "long.txt") == text({3: "yours\n", 50: "theirs\n"}).encode()
    assert [*await changed(workspace, root, onto, merged)] == ["long.txt"]


async def test_the_merged_commit_has_the_one_that_was_merged_onto_as_its_parent(workspace, root, sides, tmp_path):
    merged, changes, onto = await sides(
        lambda folder: (folder / "b.txt").write_text("yours\n"),
        lambda folder: (folder / "src" / "a.py").write_text("theirs\n"),
    )
    (private,) = (tmp_path / "state" / "repositories").glob("*.git")

    assert git(private, "rev-parse", f"{merged.commit}^@") == onto
    assert merged.commit not in (onto, changes.result)


async def test_a_change_of_a_file_that_the_user_renamed_goes_to_its_new_place(workspace, root, sides):
    (root / "long.txt").write_text(text())

    def rename(folder):
        (folder / "deep").mkdir()
        (folder / "long.txt").rename(folder / "deep" / "moved.txt")

    merged, _, _ = await sides(rename, lambda folder: (folder / "long.txt").write_text(text({50: "theirs\n"})))

    assert merged.conflicts == ()
    assert await workspace.read(root, merged.commit, "deep/moved.txt") == text({50: "theirs\n"}).encode()
    assert await workspace.read(root, merged.commit, "long.txt") is None


async def test_a_rename_and_new_mode_by_the_task_take_the_users_change_along(workspace, root, sides):
    (root / "long.txt").write_text(text())

    def rename(folder):
        (folder / "long.txt").rename(folder / "moved.txt")
        (folder / "moved.txt").chmod(0o755)

    merged, _, onto = await sides(lambda folder: (folder / "long.txt").write_text(text({5: "yours\n"})), rename)
    file = (await changed(workspace, root, onto, merged))["moved.txt"]

    assert merged.conflicts == ()
    assert (file.status, file.old_path, file.new_mode) == (FileStatus.RENAMED, "long.txt", "100755")
    assert await workspace.read(root, merged.commit, "moved.txt") == text({5: "yours\n"}).encode()


async def test_the_same_lines_changed_by_both_are_marked_and_told_with_all_three_texts(workspace, root, sides):
    (root / "long.txt").write_text(text())

    def yours(folder):
        changed = {1: "a line\nand two\nmore\n", 30: "yours\nof two lines\n"}
        (folder / "long.txt").write_text(text(changed))

    merged, changes, _ = await sides(
        yours,
        lambda folder: (folder / "long.txt").write_text(text({10: "new\nlines\n", 30: "theirs\n", 50: "last\n"})),
    )
    (conflict,) = merged.conflicts
    marked = (await workspace.read(root, merged.commit, "long.txt")).decode()

    assert (conflict.path, conflict.reason) == ("long.txt", "both sides changed the same lines")
    assert (conflict.yours, conflict.base, conflict.theirs) == ("yours\nof two lines\n", "line 30\n", "theirs\n")
    assert conflict.first_line == 32
    assert (root / "long.txt").read_text().splitlines()[conflict.first_line - 1] == "yours"
    assert conflict.unit == changes.files[0].hunks[1].id
    assert "<<<<<<< yours\nyours\nof two lines\n||||||| " in marked
    assert "\nline 30\n=======\ntheirs\n>>>>>>> the-task\n" in marked
    assert "new\nlines\n" in marked
    assert marked.endswith("line 60\n")


async def test_each_place_of_a_file_names_the_hunk_that_it_is_of(workspace, root, sides):
    (root / "long.txt").write_text(text())
    places = (5, 25, 45)
    merged, changes, _ = await sides(
        lambda folder: (folder / "long.txt").write_text(text(dict.fromkeys(places, ""))),
        lambda folder: (folder / "long.txt").write_text(text({line: f"theirs {line}\n" for line in places})),
    )

    assert [one.unit for one in merged.conflicts] == [*changes.units]
    assert [one.first_line for one in merged.conflicts] == [5, 24, 43]
    assert [(one.yours, one.theirs) for one in merged.conflicts] == [("", f"theirs {line}\n") for line in places]


async def test_what_the_task_took_away_at_the_end_is_of_its_last_hunk(workspace, root, sides):
    (root / "long.txt").write_text(text())
    merged, changes, _ = await sides(
        lambda folder: (folder / "long.txt").write_text(text({60: "yours\n"})),
        lambda folder: (folder / "long.txt").write_text(text({3: "theirs\n", 60: ""})),
    )
    (conflict,) = merged.conflicts

    assert (conflict.yours, conflict.base, conflict.theirs) == ("yours\n", "line 60\n", "")
    assert (conflict.first_line, conflict.unit) == (60, changes.units[1])


async def test_different_sections_added_at_one_place_conflict_and_both_stay_readable(workspace, root, opened):
    """Public trouble report: a second result was merged over the first, whose text was gone, and both were told as done (H22)."""
    (root / "README").write_text("# Name\n\nWhat it is.\n")
    first, base = await opened("t1")
    second, _ = await opened("t2")
    (first / "README").write_text("# Name\n\nWhat it is.\n\n## Setup\n\nFirst.\n")
    (second / "README").write_text("# Name\n\nWhat it is.\n\n## Use\n\nSecond.\n")
    one = await workspace.collect("t1", root, base)
    other = await workspace.collect("t2", root, base)
    merged = await workspace.merge(root, (await workspace.merge(root, base, one)).commit, other)
    (conflict,) = merged.conflicts

    assert conflict.unit == other.units[0]
    assert "## Setup" in conflict.yours
    assert "## Use" in conflict.theirs
    marked = await workspace.read(root, merged.commit, "README")
    assert b"## Setup" in marked
    assert b"## Use" in marked
    assert (await workspace.merge(root, base, other)).conflicts == ()


async def test_a_file_made_by_both_is_told_with_nothing_in_between(workspace, root, sides):
    merged, changes, _ = await sides(
        lambda folder: (folder / "new.txt").write_text("yours\n"),
        lambda folder: (folder / "new.txt").write_text("theirs\n"),
    )
    (conflict,) = merged.conflicts

    assert conflict.reason == "both sides made it, with other contents"
    assert (conflict.yours, conflict.base, conflict.theirs) == ("yours\n", "", "theirs\n")
    assert (conflict.first_line, conflict.unit) == (1, changes.units[0])


async def test_the_same_file_made_by_both_with_other_modes_is_a_conflict(workspace, root, sides):
    def executable(folder):
        (folder / "new.sh").write_text("x\n")
        (folder / "new.sh").chmod(0o755)

    merged, _, _ = await sides(executable, lambda folder: (folder / "new.sh").write_text("x\n"))

    assert [(one.path, one.reason) for one in merged.conflicts] == [("new.sh", "both sides made it, with other modes")]


async def test_changed_by_one_and_deleted_by_the_other_leaves_the_changed_text(workspace, root, sides):
    (root / "c.txt").write_text("c\n")

    def yours(folder):
        (folder / "b.txt").unlink()
        (folder / "c.txt").write_text("yours\n")

    def theirs(folder):
        (folder / "b.txt").write_text("theirs\n")
        (folder / "c.txt").unlink()

    merged, changes, _ = await sides(yours, theirs)
    b, c = merged.conflicts

    assert (b.path, b.reason, b.first_line) == ("b.txt", "was deleted by you and changed by the task", 0)
    assert (b.yours, b.base, b.theirs, b.unit) == ("", "b\n", "theirs\n", changes.units[0])
    assert (c.path, c.reason, c.first_line) == ("c.txt", "was changed by you and deleted by the task", 1)
    assert (c.yours, c.base, c.theirs, c.unit) == ("yours\n", "c\n", "", changes.units[1])
    assert await workspace.read(root, merged.commit, "b.txt") == b"theirs\n"
    assert await workspace.read(root, merged.commit, "c.txt") == b"yours\n"


async def test_a_binary_file_changed_by_both_has_no_lines_to_show(workspace, root, sides):
    (root / "binary").write_bytes(b"\0base")
    merged, changes, _ = await sides(
        lambda folder: (folder / "binary").write_bytes(b"\0yours"),
        lambda folder: (folder / "binary").write_bytes(b"\0theirs"),
    )
    (conflict,) = merged.conflicts

    assert conflict.reason == "both sides changed it, and it is not text"
    assert (conflict.yours, conflict.base, conflict.theirs, conflict.first_line) == ("", "", "", 0)
    assert conflict.unit == changes.files[0].id
    assert await workspace.read(root, merged.commit, "binary") == b"\0yours"


async def test_links_that_both_sides_turned_elsewhere_are_told_with_their_targets(workspace, root, sides):
    (root / "link").symlink_to("base")

    def to(target):
        def write(folder):
            (folder / "link").unlink()
            (folder / "link").symlink_to(target)

        return write

    merged, _, _ = await sides(to("yours"), to("theirs"))
    (conflict,) = merged.conflicts

    assert conflict.reason == "both sides changed it, and it has no lines"
    assert (conflict.yours, conflict.base, conflict.theirs) == ("yours", "base", "theirs")


async def test_a_submodule_whose_pointer_both_sides_moved_keeps_the_users(workspace, root, sides):
    ids = [git(root, "commit-tree", "-m", message, "HEAD^{tree}") for message in ("base", "yours")]
    (root / "sub").mkdir()

    def pointing(folder, target):
        git(folder, "update-index", "--add", "--cacheinfo", f"160000,{target},sub")

    def theirs(folder):
        (folder / "sub").mkdir(exist_ok=True)
        git(folder / "sub", "init", "-q")
        commit_all(folder / "sub")

    pointing(root, ids[0])
    merged, changes, onto = await sides(lambda folder: pointing(folder, ids[1]), theirs)
    (conflict,) = merged.conflicts

    assert (conflict.path, conflict.unit) == ("sub", changes.units[0])
    assert conflict.reason == "Failed to merge submodule sub (not checked out)"
    assert (conflict.yours, conflict.theirs, conflict.first_line) == ("", "", 0)
    assert await changed(workspace, root, onto, merged) == {}


async def test_renames_of_one_file_to_two_places_keep_both(workspace, root, sides):
    (root / "long.txt").write_text(text())
    merged, changes, _ = await sides(
        lambda folder: (folder / "long.txt").rename(folder / "yours.txt"),
        lambda folder: (folder / "long.txt").rename(folder / "theirs.txt"),
    )
    (conflict,) = merged.conflicts

    assert conflict.reason == "long.txt renamed to yours.txt in yours and to theirs.txt in the-task."
    assert conflict.unit == changes.units[0]
    assert await workspace.read(root, merged.commit, "yours.txt") == text().encode()
    assert await workspace.read(root, merged.commit, "theirs.txt") == text().encode()


async def test_renamed_by_one_and_deleted_by_the_other_is_told_once(workspace, root, sides):
    (root / "long.txt").write_text(text())
    merged, _, _ = await sides(
        lambda folder: (folder / "long.txt").unlink(),
        lambda folder: (folder / "long.txt").rename(folder / "moved.txt"),
    )
    (conflict,) = merged.conflicts

    assert conflict.reason == "long.txt renamed to moved.txt in the-task, but deleted in yours."
    assert await workspace.read(root, merged.commit, "moved.txt") == text().encode()


async def test_a_folder_in_the_place_of_a_file_keeps_both(workspace, root, sides):
    def folder_there(folder):
        (folder / "thing").mkdir()
        (folder / "thing" / "in.txt").write_text("theirs\n")

    merged, _, _ = await sides(lambda folder: (folder / "thing").write_text("yours\n"), folder_there)
    (conflict,) = merged.conflicts

    assert "directory in the way of thing" in conflict.reason
    assert (conflict.path, conflict.unit) == ("thing~yours", "")
    assert await workspace.read(root, merged.commit, "thing/in.txt") == b"theirs\n"
    assert await workspace.read(root, merged.commit, "thing~yours") == b"yours\n"


async def test_a_conflict_in_a_file_that_the_user_renamed_is_still_of_the_tasks_hunk(workspace, root, sides):
    (root / "long.txt").write_text(text())

    def yours(folder):
        (folder / "long.txt").rename(folder / "moved.txt")
        (folder / "moved.txt").write_text(text({30: "yours\n"}))

    merged, changes, _ = await sides(
        yours, lambda folder: (folder / "long.txt").write_text(text({5: "theirs\n", 30: "theirs\n"}))
    )
    (conflict,) = merged.conflicts

    assert (conflict.path, conflict.first_line) == ("moved.txt", 30)
    assert conflict.unit == changes.units[1]


async def test_a_deleted_file_that_the_user_renamed_is_known_by_what_it_held(workspace, root, sides):
    (root / "long.txt").write_text(text())

    def yours(folder):
        (folder / "long.txt").rename(folder / "moved.txt")
        (folder / "moved.txt").write_text(text({30: "yours\n"}))

    merged, changes, _ = await sides(yours, lambda folder: (folder / "long.txt").unlink())

    assert [one.unit for one in merged.conflicts] == [changes.units[0]]
    assert await workspace.read(root, merged.commit, "moved.txt") == text({30: "yours\n"}).encode()


async def test_only_the_workspace_takes_part_when_it_is_a_sub_folder(workspace, root, sides, tmp_path):
    (root / "src" / "long.txt").write_text(text())

    def theirs(folder):
        (folder / "a.py").write_text("theirs\n")
        (folder / "long.txt").write_text(text({50: "theirs\n"}))
        (folder.parent / "b.txt").write_text("elsewhere\n")

    def yours(folder):
        (folder / "a.py").write_text("yours\n")

    merged, changes, onto = await sides(yours, theirs, root / "src")
    (conflict,) = merged.conflicts

    assert (conflict.path, conflict.unit) == ("a.py", changes.units[0])
    (private,) = (tmp_path / "state" / "repositories").glob("*.git")
    assert git(private, "diff", "--name-only", onto, merged.commit) == "src/a.py\nsrc/long.txt"


async def test_conflicts_in_files_of_any_name_encoding_and_line_ends_are_told(workspace, root, sides):
    name = os.fsdecode(b"a\n\xff %\t")
    (root / name).write_bytes(b"one\r\nbase \xe9\r\nthree\r\n")
    merged, changes, _ = await sides(
        lambda folder: (folder / name).write_bytes(b"one\r\nyours \xe8\r\nthree\r\n"),
        lambda folder: (folder / name).write_bytes(b"one\r\ntheirs \xe7\r\nthree\r\n"),
    )
    (conflict,) = merged.conflicts

    assert (conflict.path, conflict.unit, conflict.first_line) == (name, changes.units[0], 2)
    assert (conflict.yours, conflict.theirs) == ("yours \ufffd\r\n", "theirs \ufffd\r\n")
    marked = await workspace.read(root, merged.commit, name)
    assert b"yours \xe8\r\n" in marked
    assert b"theirs \xe7\r\n" in marked


async def test_excerpts_of_long_conflicts_end_between_characters(workspace, root, sides):
    merged, _, _ = await sides(
        lambda folder: (folder / "b.txt").write_text("ü€😀" * LONGEST),
        lambda folder: (folder / "b.txt").write_text("x" * 3 * LONGEST),
    )
    (conflict,) = merged.conflicts

    assert conflict.yours == ("ü€😀" * LONGEST)[:LONGEST]
    assert conflict.theirs == "x" * LONGEST


async def test_marks_that_a_file_held_before_do_not_break_the_telling(workspace, root, sides):
    """They may be left of an earlier merge that its worker did not finish."""
    old = "<<<<<<< yours\nmine\n||||||| 123\n=======\ntheirs\n>>>>>>> the-task\n"
    around = (f"top\n=======\n{old}middle\n", f"end\n{old}")
    (root / "notes.txt").write_text("base\n".join(around))
    merged, _, _ = await sides(
        lambda folder: (folder / "notes.txt").write_text("yours\n".join(around)),
        lambda folder: (folder / "notes.txt").write_text("theirs\n".join(around)),
    )

    assert [(one.path, one.yours, one.first_line) for one in merged.conflicts] == [
        ("notes.txt", "mine\n", 3),
        ("notes.txt", "yours\n", 10),
        ("notes.txt", "mine\n", 12),
    ]


async def test_no_driver_or_attribute_of_a_repository_takes_part_in_a_merge(workspace, root, sides, tmp_path):
    canary = tmp_path / "canary"
    (root / ".gitattributes").write_text("* merge=x diff=x filter=x\nb.txt merge=union\n")
    (root / ".git" / "info").mkdir(exist_ok=True)
    (root / ".git" / "info" / "attributes").write_text("* merge=union\n")
    commit_all(root)
    plant(root, canary)
    merged, _, _ = await sides(
        lambda folder: (folder / "b.txt").write_text("yours\n"),
        lambda folder: (folder / "b.txt").write_text("theirs\n"),
    )

    assert [one.path for one in merged.conflicts] == ["b.txt"]
    assert not canary.exists()


async def test_nothing_of_the_users_history_is_needed(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").write_text("theirs\n")
    changes = await workspace.collect("t1", root, base)
    await workspace.release("t1", root)
    await workspace.forget(
        root, [], [base, changes.result]
    )  # all that is named is whole in the private directory after it
    shutil.rmtree(root / ".git" / "objects")

    merged = await workspace.merge(root, base, changes)
    assert await workspace.read(root, merged.commit, "b.txt") == b"theirs\n"


class Both:
    """A text that both sides edit at random, in places that may be the same."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.end = self.chance.choice(["\n", "\r\n"])
        self.base = [self._line() for _ in range(self.chance.randint(20, 60))]
        self.yours, self.theirs = self._edited(), self._edited()
        for side in (self.base, self.yours, self.theirs):
            if self.chance.random() < 0.3:
                side[-1] = side[-1].rstrip("\r\n")

    def _line(self):
        return f"{self.chance.randrange(10**9)}{self.end}"

    def _edited(self):
        lines = list(self.base)
        for _ in range(self.chance.randint(1, 4)):
            at = self.chance.randrange(len(lines))
            lines[at : at + self.chance.randint(0, 2)] = [self._line() for _ in range(self.chance.randint(0, 3))]
        return [*lines, self._line()] if self.chance.random() < 0.2 else lines


@pytest.mark.parametrize("seed", range(25))
async def test_random_edits_merge_as_git_merges_files_and_conflicts_are_where_they_are_said_to_be(
    workspace, root, sides, tmp_path, seed
):
    both = Both(seed)
    names = ("base", "yours", "theirs")
    texts = {name: "".join(getattr(both, name)).encode() for name in names}
    for name in names:
        (tmp_path / name).write_bytes(texts[name])
    (root / "text").write_bytes(texts["base"])
    merged, changes, _ = await sides(
        lambda folder: (folder / "text").write_bytes(texts["yours"]),
        lambda folder: (folder / "text").write_bytes(texts["theirs"]),
    )
    labels = ("-L", "yours", "-L", "base", "-L", "the-task")
    command = ["git", "merge-file", "-p", "--zdiff3", *labels, "yours", "base", "theirs"]
    expected = await Processes().run(command, cwd=tmp_path, environment=os.environ)

    got = await workspace.read(root, merged.commit, "text")
    assert re.sub(rb"(?m)^\|{7} .*?(\r?)$", rb"||||||| base\1", got) == expected.stdout
    assert len(merged.conflicts) == expected.returncode
    hunks = {hunk.id: hunk for file in changes.files for hunk in file.hunks}
    for conflict in merged.conflicts:
        start = conflict.first_line - 1
        yours = conflict.yours.splitlines(keepends=True)
        assert [line.rstrip() for line in both.yours[start : start + len(yours)]] == [line.rstrip() for line in yours]
        hunk = hunks[conflict.unit]
        changed = both.theirs[max(0, hunk.new_start - 1) : hunk.new_start - 1 + hunk.new_lines]
        theirs = {line.rstrip() for line in conflict.theirs.splitlines()}
        assert not theirs or theirs.intersection(line.rstrip() for line in changed)
