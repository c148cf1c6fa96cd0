"""Apply, undo and reject by the real git, in real repositories, with what editors hold."""

import os

import pytest

from offload.domain.errors import ApplyRefused
from offload.domain.review import review
from offload.domain.task import Place
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.core.results import TEXT, apply, changed, editor, follow_up, on_disk, reject, result, undo
from tests.fakes.house import open_house
from tests.workspace.repositories import commit_all, fingerprint, git

APART = changed(2, 30)
README = "# Shop\n\n## Use\n\nRun it.\n"


@pytest.fixture
async def house(tmp_path):
    root = tmp_path / "project"
    (root / "sub").mkdir(parents=True)
    for name, text in {
        "a.txt": TEXT,
        "sub/b.txt": TEXT,
        "README": README,
        "win.txt": TEXT.replace("\n", "\r\n"),
    }.items():
        (root / name).write_bytes(text.encode())
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    git(root, "init", "-q", "-b", "main")
    commit_all(root)
    async with (
        GitWorkspaces(tmp_path / "state", Processes(), os.environ | {"HOME": str(tmp_path)}) as workspace,
        open_house(tmp_path, files={}, workspace=workspace) as house,
    ):
        yield house


def units(task, path="a.txt"):
    return next(file.units for file in task.turn.changes.files if file.path == path)


def typed(text):
    """What a user has typed at the end, and not saved."""
    return text + "typed\n"


async def test_hunks_go_one_by_one_into_files_that_move_on_and_back_out_of_them(house):
    task = await result(house, {"a.txt": APART, "sub/b.txt": changed(3)})
    before = fingerprint(house.root / ".git")
    first, second = units(task)
    (house.root / "a.txt").write_text(typed(TEXT))
    _, one = await apply(house, task, second)
    assert on_disk(house) == typed(changed(30))
    _, two = await apply(house, task)
    assert (on_disk(house), two.units) == (typed(APART), (first, *units(task, "sub/b.txt")))
    await undo(house, task, one.id)
    assert (on_disk(house), on_disk(house, "sub/b.txt")) == (typed(changed(2)), changed(3))
    task, again = await apply(house, task)
    assert (on_disk(house), again.units) == (typed(APART), (second,))
    await undo(house, task)
    await undo(house, task)
    assert (on_disk(house), on_disk(house, "sub/b.txt")) == (typed(TEXT), TEXT)
    assert fingerprint(house.root / ".git") == before


async def test_a_follow_up_is_merged_into_what_was_applied_and_has_moved_on(house):
    task = await result(house, {"a.txt": changed(2)})
    await apply(house, task)
    (house.root / "a.txt").write_text(typed(changed(2)))
    task = await follow_up(house, task, {"a.txt": changed(2, 30, word="better"), "sub/b.txt": changed(3)})
    await apply(house, task, units(task)[1])
    assert on_disk(house) == typed(changed(2).replace("line 30\n", "better 30\n"))
    await apply(house, task)
    assert (on_disk(house), on_disk(house, "sub/b.txt")) == (typed(changed(2, 30, word="better")), changed(3))
    for _ in range(3):
        await undo(house, task)
    assert (on_disk(house), on_disk(house, "sub/b.txt")) == (typed(TEXT), TEXT)


async def test_a_part_that_a_follow_up_replaced_stays_when_another_file_is_applied(house):
    task = await result(house, {"a.txt": changed(2), "sub/b.txt": changed(4)})
    await apply(house, task)
    task = await follow_up(house, task, {"a.txt": changed(2, word="better"), "sub/b.txt": changed(4, word="better")})
    _, landing = await apply(house, task, paths=("sub/b.txt",))
    assert (on_disk(house), on_disk(house, "sub/b.txt")) == (changed(2), changed(4, word="better"))
    assert landing.paths == ("sub/b.txt",)


async def test_a_dirty_buffer_keeps_what_was_typed_and_the_disk_is_left_alone(house):
    """H18 (b): the user types in other lines than the worker, before and while it is applied."""
    task = await result(house, {"a.txt": APART, "sub/b.txt": changed(3)})
    vim = editor(house)
    path = house.root / "a.txt"
    vim.open(path, typed(TEXT))
    vim.before.append(lambda: vim.type(path, typed(typed(TEXT))))
    _, landing = await apply(house, task)
    assert (vim.text(path), on_disk(house)) == (typed(typed(APART)), TEXT)
    assert [landing.place(each) for each in landing.paths] == [Place.BUFFER, Place.DISK]
    vim.type(path, typed(vim.text(path)))
    await undo(house, task)
    assert (vim.text(path), on_disk(house), on_disk(house, "sub/b.txt")) == (typed(typed(typed(TEXT))), TEXT, TEXT)


async def test_the_same_lines_in_a_dirty_buffer_are_a_conflict_with_both_sides(house):
    """H18 (a)."""
    task = await result(house, {"a.txt": APART, "sub/b.txt": changed(3)})
    vim = editor(house)
    vim.open(house.root / "a.txt", changed(30, word="mine"))
    with pytest.raises(ApplyRefused) as error:
        await apply(house, task)
    (conflict,) = error.value.conflicts
    assert (conflict.path, conflict.unit, conflict.yours, conflict.theirs) == (
        "a.txt",
        units(task)[1],
        "mine 30\n",
        "changed 30\n",
    )
    assert (vim.labels, on_disk(house, "sub/b.txt")) == ([], TEXT)
    await apply(house, task, units(task)[0], paths=("sub/b.txt",))
    assert vim.text(house.root / "a.txt") == changed(2).replace("line 30\n", "mine 30\n")


async def test_a_conflict_of_a_follow_up_is_told_by_the_hunk_that_the_task_has_there_now(house):
    """What is applied then is the step from one result to the next, whose hunks nobody but us knows."""
    task = await result(house, {"a.txt": APART})
    await apply(house, task)
    mine = on_disk(house).replace("changed 30\n", "mine 30\n")
    (house.root / "a.txt").write_text(mine)
    again = APART.replace("changed 30\n", "again 30\n")
    for text, unit in ((again, 1), (changed(2), None), (TEXT, None)):
        task = await follow_up(house, task, {"a.txt": text})
        with pytest.raises(ApplyRefused) as error:
            await apply(house, task)
        told = [conflict.unit for conflict in error.value.conflicts if conflict.yours == "mine 30\n"]
        assert told == ["" if unit is None else units(task)[unit]], "what the task takes back is no hunk of it"
        assert on_disk(house) == mine


async def test_typing_right_after_an_edit_is_no_obstacle(house):
    """The next change notification comes before core has looked at the last one."""
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    path = house.root / "a.txt"
    vim.open(path, TEXT)
    vim.after.append(lambda: vim.type(path, typed(vim.text(path))))
    _, landing = await apply(house, task)
    assert (vim.text(path), landing.unchanged) == (typed(APART), ())
    await undo(house, task)
    assert vim.text(path) == typed(TEXT)


async def test_two_sections_at_the_same_place_are_not_lost_silently(house):
    """H22: the second of two results is refused with both sides; nothing says applied that is not in the file."""
    one = await result(house, {"README": README + "\n## One\n\nFirst.\n"})
    two = await result(house, {"README": README + "\n## Two\n\nSecond.\n"})
    await apply(house, one)
    with pytest.raises(ApplyRefused) as error:
        await apply(house, two)
    assert [path for path, _ in error.value.reasons] == ["README"]
    (conflict,) = error.value.conflicts
    assert ("## One" in conflict.yours, "## Two" in conflict.theirs) == (True, True)
    assert on_disk(house, "README") == README + "\n## One\n\nFirst.\n"
    assert house.delegation.get(two.id).landings == ()
    assert "+## Two" in (await house.delegation.diff(two.id))[3]


async def test_all_kinds_of_changes_are_undone_to_the_byte(house):
    async def script(stage):
        await stage.seen()
        folder = stage.order.folder
        (folder / "a.txt").rename(folder / "moved.txt")
        (folder / "run.sh").chmod(0o644)
        (folder / "sub" / "b.txt").unlink()
        (folder / "link").symlink_to("README")
        (folder / "data.bin").write_bytes(b"\0\1\2")
        (folder / "new" / "deep").mkdir(parents=True)
        (folder / "new" / "deep" / "f.txt").write_text("new\n")
        text = (folder / "win.txt").read_bytes()
        (folder / "win.txt").write_bytes(text.replace(b"line 7\r\n", b"seven\r\n"))
        await stage.say("done")

    house.worker.script = script
    task = await house.rested((await house.start("do it")).id)
    before = fingerprint(house.root)
    _, landing = await apply(house, task)
    assert fingerprint(house.root) != before
    assert b"seven\r\n" in (house.root / "win.txt").read_bytes()
    assert len(landing.paths) == 7
    await undo(house, task)
    assert {
        path: what for path, what in fingerprint(house.root).items() if not path.endswith(("/new", "/deep"))
    } == before


async def test_a_file_that_goes_while_it_is_open_and_saved_goes_on_disk(house):
    task = await result(house, {"a.txt": None, "sub/b.txt": changed(3)})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    vim.open(house.root / "sub" / "b.txt", TEXT)
    _, landing = await apply(house, task)
    assert not (house.root / "a.txt").exists()
    assert [landing.place(each) for each in landing.paths] == [Place.DISK, Place.BUFFER]


def switched(*on):
    """Three places that can be changed in the same way."""
    return "".join(
        f"{'# ' + str(place) * 9}\n" * 5 + ("on\n" if place in on else "off\n") + "\n" * 5 for place in range(3)
    )


async def test_of_hunks_that_change_the_same_only_that_one_stays_rejected_which_was(house):
    """The worker takes back the first, and the others are still what the user has not said anything of."""
    (house.root / "a.txt").write_text(switched())
    task = await result(house, {"a.txt": switched(0, 1, 2)})
    first, second, third = units(task)
    await reject(house, task, first)
    task = await follow_up(house, task, {"a.txt": switched(1, 2)})
    assert units(task) == (second, third)
    assert not set(review(task)).intersection(units(task))
    await reject(house, task, third)
    task = await follow_up(house, task, {"a.txt": switched(2)})
    with pytest.raises(ApplyRefused, match="was rejected"):
        await apply(house, task)
    assert on_disk(house) == switched()


async def test_rejected_hunks_go_back_as_a_patch_of_their_own(house):
    task = await result(house, {"a.txt": APART})
    await reject(house, task, units(task)[1], reason="keep it", send_back=True)
    task = await house.rested(task.id)
    assert ("+changed 30" in task.turn.brief, "+changed 2\n" in task.turn.brief) == (True, False)


async def test_a_cleaned_task_leaves_nothing_of_its_applies(house):
    """Every commit that applies made goes, as long as other tasks keep the private repository alive."""
    other = await result(house, {"README": "other\n"})
    task = await result(house, {"a.txt": APART})
    _, landing = await apply(house, task)
    await house.delegation.clean(house.caller, tasks=[task.id])
    (private,) = (house.root.parent / "state" / "repositories").glob("*.git")
    kept = set(git(private, "for-each-ref", "--format=%(objectname)").split())
    assert not kept & {landing.before, landing.after, landing.result}
    assert {other.base, other.turn.changes.result} <= kept
