"""Parts of a result as commits of their own, byte by byte."""

import os
import random

import pytest

from offload.domain.change import FileStatus
from offload.domain.errors import GitFailed, InvalidRequest
from tests.workspace.repositories import git

GAP = 9  # so many unchanged lines between two edits make them two hunks


class Written:
    """A text of numbered edits, far enough from each other that each is a hunk."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.end = self.chance.choice([b"\n", b"\r\n"])
        self.parts = []
        for number in range(self.chance.randint(2, 6)):
            old = self._lines(b"old", self.chance.randint(0, 3))
            new = self._lines(b"new", self.chance.randint(0 if old else 1, 3))
            self.parts.append((self._lines(b"kept %d" % number, GAP), old, new))
        self.tail = self._lines(b"tail", GAP)[: -len(self.end) if self.chance.random() < 0.5 else None]

    def _lines(self, word, count):
        noise = (bytes(self.chance.choices(b"abc\t\r\x0b\x0c\x85\xe9\xff %", k=6)) for _ in range(count))
        return b"".join(b"%s %d %s" % (word, self.chance.randrange(10**9), each) + self.end for each in noise)

    def text(self, wanted):
        chosen = (kept + (new if number in wanted else old) for number, (kept, old, new) in enumerate(self.parts))
        return b"".join(chosen) + self.tail


@pytest.fixture
def collected(workspace, root, opened):
    async def collect(write, where=root):
        folder, base = await opened(where=where)
        write(folder)
        return await workspace.collect("t1", where, base)

    return collect


@pytest.mark.parametrize("seed", range(12))
async def test_a_file_holds_exactly_the_chosen_hunks_whatever_its_bytes(workspace, root, collected, seed):
    text = Written(seed)
    (root / "text").write_bytes(text.text(()))
    numbers = range(len(text.parts))
    changes = await collected(lambda folder: (folder / "text").write_bytes(text.text(numbers)))
    hunks = changes.files[0].hunks
    assert len(hunks) == len(text.parts)
    wanted = sorted(text.chance.sample(numbers, text.chance.randint(1, len(numbers))))
    chosen = await workspace.select(root, changes, [hunks[number].id for number in wanted])

    assert await workspace.read(root, chosen.result, "text") == text.text(wanted)
    assert chosen.base == changes.base
    assert [hunk.id for hunk in chosen.files[0].hunks] == [hunks[number].id for number in wanted]


async def test_a_line_end_that_went_at_the_end_is_a_part_of_the_last_hunk(workspace, root, collected):
    lines = [f"{number}\n" for number in range(30)]
    (root / "long.txt").write_text("".join(lines))
    changes = await collected(lambda folder: (folder / "long.txt").write_text("first\n" + "".join(lines)[:-1]))
    first, last = changes.units

    assert await workspace.read(root, (await workspace.select(root, changes, [first])).result, "long.txt") == (
        b"first\n" + "".join(lines).encode()
    )
    assert await workspace.read(root, (await workspace.select(root, changes, [last])).result, "long.txt") == (
        "".join(lines)[:-1].encode()
    )


async def test_equal_hunks_keep_their_ids_when_only_a_later_one_is_chosen(workspace, root, collected):
    lines = [f"{number}\n" for number in range(30)]
    (root / "long.txt").write_text("".join(lines))
    changes = await collected(lambda folder: (folder / "long.txt").write_text("".join(["new\n", *lines, "new\n"])))
    chosen = await workspace.select(root, changes, [changes.units[1]])

    assert chosen.units == (changes.units[1],)
    assert (await workspace.select(root, chosen, chosen.units)).result == chosen.result


async def test_everything_chosen_is_the_result_itself_and_nothing_chosen_the_base(workspace, root, collected):
    def write(folder):
        (folder / "b.txt").write_text("worker\n")
        (folder / "new.txt").write_text("new\n")

    changes = await collected(write)
    assert await workspace.select(root, changes, changes.units) == changes
    assert await workspace.select(root, changes, [file.id for file in changes.files]) == changes
    nothing = await workspace.select(root, changes, [])
    assert (nothing.base, nothing.result, nothing.files) == (changes.base, changes.base, ())


async def test_files_that_came_went_turned_or_are_binary_go_whole(workspace, root, collected):
    (root / "gone.txt").write_text("gone\n")
    (root / "turned").write_text("text\n")
    (root / "run.sh").write_text("x\n")

    def write(folder):
        (folder / "gone.txt").unlink()
        (folder / "turned").unlink()
        (folder / "turned").symlink_to("b.txt")
        (folder / "run.sh").chmod(0o755)
        (folder / "binary").write_bytes(b"\0\1")
        (folder / "empty").write_text("")
        (folder / "b.txt").write_text("not chosen\n")
        (folder / os.fsdecode(b"a\nb\xff")).write_text("odd\n")

    changes = await collected(write)
    files = [file for file in changes.files if file.path != "b.txt"]
    chosen = await workspace.select(root, changes, [file.units[0] for file in files])

    assert chosen.files == tuple(files)
    assert (await workspace.between(root, chosen.result, changes.result)).files[0].path == "b.txt"


async def test_a_moved_file_goes_along_with_any_of_its_hunks(workspace, root, collected):
    lines = [f"line {number}\n" for number in range(60)]
    (root / "old.txt").write_text("".join(lines))

    def write(folder):
        (folder / "old.txt").unlink()
        (folder / "new.txt").write_text("".join(["first\n", *lines, "last\n"]))
        (folder / "new.txt").chmod(0o755)

    changes = await collected(write)
    chosen = await workspace.select(root, changes, [changes.units[1]])
    (file,) = chosen.files

    assert (file.status, file.old_path, file.path) == (FileStatus.RENAMED, "old.txt", "new.txt")
    assert (file.new_mode, file.added_lines, file.removed_lines) == ("100755", 1, 0)
    assert await workspace.read(root, chosen.result, "old.txt") is None
    assert await workspace.read(root, chosen.result, "new.txt") == "".join([*lines, "last\n"]).encode()


async def test_parts_are_chosen_in_a_workspace_that_is_a_sub_folder(workspace, root, collected):
    def write(folder):
        (folder / "a.py").write_text("worker\n")
        (folder / "new.py").write_text("new\n")

    changes = await collected(write, root / "src")
    chosen = await workspace.select(root / "src", changes, [changes.files[0].id])

    assert [file.path for file in chosen.files] == ["a.py"]
    assert await workspace.read(root / "src", chosen.result, "a.py") == b"worker\n"
    assert await workspace.read(root / "src", chosen.result, "new.py") is None


async def test_an_unknown_part_is_the_callers_mistake_and_is_named(workspace, root, collected):
    changes = await collected(lambda folder: (folder / "b.txt").write_text("worker\n"))

    with pytest.raises(InvalidRequest, match=r"h0123456789ab: not in this result"):
        await workspace.select(root, changes, ["h0123456789ab", *changes.units])


@pytest.mark.parametrize(("before", "after"), [("thing", "thing/in"), ("thing/in", "thing")])
async def test_a_file_in_the_place_of_a_folder_needs_the_folder_to_go(workspace, root, collected, before, after):
    (root / before).parent.mkdir(exist_ok=True)
    (root / before).write_text("before\n")

    def write(folder):
        (folder / before).unlink()
        if before != "thing":
            (folder / "thing").rmdir()
        (folder / after).parent.mkdir(exist_ok=True)
        (folder / after).write_text("something else\nof two lines\n")
        (folder / "b.txt").write_text("worker\n")

    changes = await collected(write)
    files = {file.path: file for file in changes.files}
    with pytest.raises(InvalidRequest, match=f"{after} takes the place of {before}"):
        await workspace.select(root, changes, [files[after].id])
    beside = await workspace.select(root, changes, [files["b.txt"].id])
    assert [file.path for file in beside.files] == ["b.txt"]
    chosen = await workspace.select(root, changes, [files[after].id, files[before].id])

    assert await workspace.read(root, chosen.result, after) == b"something else\nof two lines\n"
    assert await workspace.read(root, chosen.result, before) is None
    assert await workspace.read(root, chosen.result, "b.txt") == b"b\n"


async def test_contents_that_the_private_copy_lacks_are_an_error(workspace, root, collected, tmp_path):
    lines = [f"{number}\n" for number in range(30)]
    (root / "long.txt").write_text("".join(lines))
    changes = await collected(lambda folder: (folder / "long.txt").write_text("".join(["new\n", *lines, "new\n"])))
    await workspace.release("t1", root)
    await workspace.forget(root, [], [changes.base, changes.result])
    (private,) = (tmp_path / "state" / "repositories").glob("*.git")
    blob = git(private, "rev-parse", f"{changes.result}:long.txt")
    (pack,) = (private / "objects" / "pack").glob("*.pack")
    pack.rename(private / "away.pack")
    pack.with_suffix(".idx").unlink()
    listed = git(root, "rev-list", "--objects", "HEAD")
    git(private, "unpack-objects", "-q", stdin=(private / "away.pack").read_bytes())
    (private / "objects" / blob[:2] / blob[2:]).unlink()
    assert blob not in listed

    with pytest.raises(GitFailed, match=f"lacks the object {blob}"):
        await workspace.select(root, changes, [changes.units[0]])


async def test_a_chosen_part_outlives_the_users_tidying_and_can_be_forgotten(workspace, root, collected, tmp_path):
    git(root, "commit", "-q", "--amend", "-m", "unreachable soon")

    def write(folder):
        (folder / "b.txt").write_text("worker\n")
        (folder / "new.txt").write_text("new\n")

    changes = await collected(write)
    chosen = await workspace.select(root, changes, [changes.files[0].id])
    await workspace.release("t1", root)
    await workspace.forget(root, [], [changes.base, chosen.result])
    git(root, "update-ref", "-d", "HEAD")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")
    assert await workspace.read(root, chosen.result, "src/a.py") == b"one\ntwo\nthree\n"

    (private,) = (tmp_path / "state" / "repositories").glob("*.git")
    assert chosen.result in git(private, "for-each-ref")
    await workspace.forget(root, [chosen.result], [changes.base])
    assert chosen.result not in git(private, "for-each-ref")
