"""A result meets open documents: their text is what counts, and only their editors change it."""

import os
import stat

import pytest

from offload.core.ports import BufferChange
from offload.domain.errors import ApplyRefused
from tests.workspace.repositories import apply, fingerprint, git

TEN = "".join(f"{number}\n" for number in range(1, 11))


@pytest.fixture
async def ten(root, opened):
    """A task that was given a file of ten lines: `folder`."""
    (root / "ten.txt").write_text(TEN)
    folder, base = await opened()
    return folder, base


async def test_what_was_typed_elsewhere_in_the_file_is_kept_and_nothing_is_written(workspace, root, ten):
    """Public trouble report: a whole file as it was at the start won over what was typed since (H18)."""
    folder, base = ten
    (folder / "ten.txt").write_text(TEN.replace("9\n", "nine\n"))
    changes = await workspace.collect("t1", root, base)
    before = fingerprint(root)
    typed = TEN.replace("2\n", "two, unsaved\n")
    plan = await apply(workspace, root, changes, {"ten.txt": typed})

    assert plan.buffers == (BufferChange("ten.txt", typed, typed.replace("9\n", "nine\n")),)
    assert (plan.paths, plan.unchanged) == (("ten.txt",), ())
    assert fingerprint(root) == before


async def test_what_was_typed_at_the_same_place_is_a_conflict_with_both_sides(workspace, root, ten):
    """Public trouble report: what an agent made won over what was typed on the same lines (H18)."""
    folder, base = ten
    (folder / "ten.txt").write_text(TEN.replace("9\n", "nine\n").replace("2\n", "two\n"))
    changes = await workspace.collect("t1", root, base)
    before = fingerprint(root)
    typed = "new\n" + TEN.replace("9\n", "9, unsaved\n")
    with pytest.raises(ApplyRefused, match="continue_task with onto=files") as refused:
        await apply(workspace, root, changes, {"ten.txt": typed})

    (conflict,) = refused.value.conflicts
    assert (conflict.path, conflict.first_line) == ("ten.txt", 10)
    assert (conflict.yours, conflict.base, conflict.theirs) == ("9, unsaved\n", "9\n", "nine\n")
    (file,) = changes.files
    assert [hunk.old_start for hunk in file.hunks if hunk.id == conflict.unit] == [file.hunks[-1].old_start]
    assert fingerprint(root) == before


async def test_an_open_file_that_was_formatted_on_save_meanwhile_is_merged_with_what_it_holds_now(workspace, root, ten):
    """Public trouble report: format on save was active (H18)."""
    folder, base = ten
    (folder / "ten.txt").write_text(TEN.replace("9\n", "nine\n"))
    changes = await workspace.collect("t1", root, base)
    formatted = TEN.replace("1\n2\n", "1, 2\n")
    (root / "ten.txt").write_text(formatted)
    plan = await apply(workspace, root, changes, {"ten.txt": formatted})

    assert plan.buffers[0].after == formatted.replace("9\n", "nine\n")
    assert (root / "ten.txt").read_text() == formatted


async def test_a_document_that_holds_the_result_already_is_unchanged(workspace, root, ten):
    folder, base = ten
    (folder / "ten.txt").write_text(TEN + "eleven\n")
    changes = await workspace.collect("t1", root, base)
    plan = await apply(workspace, root, changes, {"ten.txt": TEN + "eleven\n"})

    assert (plan.paths, plan.unchanged, plan.buffers) == (("ten.txt",), ("ten.txt",), ())
    assert (root / "ten.txt").read_text() == TEN


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", ""), ("utf-8", "\ufeff"), ("latin-1", ""), ("utf-16-le", "\ufeff"), ("utf-16-be", "\ufeff")],
)
async def test_the_editors_text_has_its_own_line_ends_and_no_mark_in_whichever_encoding_the_file_is(
    workspace, root, opened, encoding, mark, end
):
    text = "é1\n2\n3\n4\n5\n".replace("\n", end)
    (root / "text").write_bytes((mark + text).encode(encoding))
    folder, base = await opened()
    made = text.replace("5", "fünf")
    (folder / "text").write_bytes((mark + made).encode(encoding))
    changes = await workspace.collect("t1", root, base)
    typed = text.replace("2", "zwei")
    plan = await apply(workspace, root, changes, {"text": typed})
    assert plan.buffers == (BufferChange("text", typed, typed.replace("5", "fünf")),)

    back = await workspace.between(root, plan.after, plan.before)
    (root / "text").write_bytes((mark + plan.buffers[0].after).encode(encoding))
    await apply(workspace, root, back, exact=True)
    assert (root / "text").read_bytes() == (mark + typed).encode(encoding)


async def test_an_editor_that_shows_the_mark_keeps_it(workspace, root, opened):
    (root / "text").write_bytes("\ufeffone\n".encode())
    folder, base = await opened()
    (folder / "text").write_bytes("\ufeffone\ntwo\n".encode())
    changes = await workspace.collect("t1", root, base)
    plan = await apply(workspace, root, changes, {"text": "\ufeffone\n"})
    assert plan.buffers == (BufferChange("text", "\ufeffone\n", "\ufeffone\ntwo\n"),)
    assert await workspace.read(root, plan.after, "text") == "\ufeffone\ntwo\n".encode()


async def test_line_ends_of_the_document_are_kept_where_the_files_are_others(workspace, root, ten):
    folder, base = ten
    (folder / "ten.txt").write_text(TEN + "eleven\n")
    changes = await workspace.collect("t1", root, base)
    plan = await workspace.plan(root, changes, {"ten.txt": TEN.replace("\n", "\r\n")})
    assert plan.buffers[0].after == (TEN + "eleven\n").replace("\n", "\r\n")


async def test_half_a_character_in_a_document_stays_as_it_is(workspace, root, ten):
    """Public trouble report: a lone surrogate killed the writer (H13)."""
    folder, base = ten
    (folder / "ten.txt").write_text(TEN + "eleven\n")
    changes = await workspace.collect("t1", root, base)
    typed = TEN.replace("2\n", "\ud83d\n")
    plan = await apply(workspace, root, changes, {"ten.txt": typed})
    assert plan.buffers == (BufferChange("ten.txt", typed, typed + "eleven\n"),)
    back = await workspace.between(root, plan.after, plan.before)
    undone = await apply(workspace, root, back, {"ten.txt": typed + "eleven\n"}, exact=True)
    assert undone.buffers == (BufferChange("ten.txt", typed + "eleven\n", typed),)


async def test_text_that_the_files_encoding_lacks_is_kept_as_utf_8_for_an_undo(workspace, root, opened):
    (root / "text").write_bytes(b"\xe9\n")
    folder, base = await opened()
    (folder / "text").write_bytes(b"\xe9\ntwo\n")
    changes = await workspace.collect("t1", root, base)
    plan = await apply(workspace, root, changes, {"text": "→\né\n"})
    assert plan.buffers == (BufferChange("text", "→\né\n", "→\né\ntwo\n"),)
    assert await workspace.read(root, plan.before, "text") == "→\né\n".encode()


async def test_a_result_that_is_no_utf_8_any_more_is_not_put_into_an_open_document(workspace, root, ten):
    folder, base = ten
    (folder / "ten.txt").write_bytes(TEN.encode() + b"\xff\n")
    changes = await workspace.collect("t1", root, base)
    with pytest.raises(ApplyRefused, match="not valid UTF-8"):
        await apply(workspace, root, changes, {"ten.txt": TEN})
    await apply(workspace, root, changes)
    assert (root / "ten.txt").read_bytes() == TEN.encode() + b"\xff\n"


async def test_a_new_file_is_merged_with_the_document_that_is_open_for_it(workspace, root, opened):
    folder, base = await opened()
    (folder / "new.py").write_text("new\n")
    changes = await workspace.collect("t1", root, base)

    plan = await workspace.plan(root, changes, {"new.py": ""})
    assert plan.buffers == (BufferChange("new.py", "", "new\n"),)
    with pytest.raises(ApplyRefused, match="was made by you as well") as refused:
        await workspace.plan(root, changes, {"new.py": "mine\n"})
    (conflict,) = refused.value.conflicts
    assert (conflict.yours, conflict.base, conflict.theirs) == ("mine\n", "", "new\n")
    assert not (root / "new.py").exists()
    same = await apply(workspace, root, changes, {"new.py": "new\n"})
    assert (same.buffers, same.unchanged) == ((), ())
    assert (root / "new.py").read_text() == "new\n"


DONE_BY_THE_TASK = {
    "deleted": lambda file: file.unlink(),
    "renamed": lambda file: file.rename(file.with_name("renamed.txt")),
    "made a link or a binary file": lambda file: file.write_bytes(b"\0\1\2"),
}


@pytest.mark.parametrize("what", DONE_BY_THE_TASK)
async def test_what_is_no_change_of_text_is_refused_for_unsaved_text_and_done_on_disk_for_saved(
    workspace, root, ten, what
):
    folder, base = ten
    DONE_BY_THE_TASK[what](folder / "ten.txt")
    changes = await workspace.collect("t1", root, base)
    before = fingerprint(root)
    with pytest.raises(ApplyRefused, match=f"has unsaved text in an editor and is to be {what}; save it"):
        await apply(workspace, root, changes, {"ten.txt": TEN + "unsaved\n"})
    assert fingerprint(root) == before

    plan = await apply(workspace, root, changes, {"ten.txt": TEN})
    assert plan.buffers == ()
    made = {file.name: file.read_bytes() for file in root.iterdir() if file.is_file()}
    assert made == {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


async def test_an_open_file_that_becomes_a_link_is_refused_while_it_is_unsaved(workspace, root, ten):
    folder, base = ten
    (folder / "ten.txt").unlink()
    (folder / "ten.txt").symlink_to("b.txt")
    changes = await workspace.collect("t1", root, base)
    with pytest.raises(ApplyRefused, match="made a link"):
        await apply(workspace, root, changes, {"ten.txt": TEN + "unsaved\n"})
    await apply(workspace, root, changes, {"ten.txt": TEN})
    assert (root / "ten.txt").is_symlink()


async def test_a_binary_file_that_is_open_and_saved_is_changed_on_disk(workspace, root, opened):
    (root / "image").write_bytes(b"\0\1")
    folder, base = await opened()
    (folder / "image").write_bytes(b"text\n")
    changes = await workspace.collect("t1", root, base)
    plan = await apply(workspace, root, changes, {"image": "\0\1"})
    assert (plan.buffers, (root / "image").read_bytes()) == ((), b"text\n")


async def test_the_mode_of_an_open_file_is_changed_on_disk_beside_its_text(workspace, root, ten):
    folder, base = ten
    (root / "ten.txt").chmod(0o640)
    (folder / "ten.txt").write_text(TEN + "eleven\n")
    (folder / "ten.txt").chmod(0o755)
    (folder / "b.txt").chmod(0o755)
    changes = await workspace.collect("t1", root, base)
    typed = "zero\n" + TEN
    plan = await apply(workspace, root, changes, {"ten.txt": typed, "b.txt": "b, unsaved\n"})

    assert plan.buffers == (BufferChange("ten.txt", typed, typed + "eleven\n"),)
    assert (root / "ten.txt").read_text() == TEN
    assert (root / "b.txt").read_text() == "b\n"
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in ("ten.txt", "b.txt")] == [0o750, 0o755]
    back = await workspace.between(root, plan.after, plan.before)
    undone = await apply(workspace, root, back, {"ten.txt": typed + "eleven\n"}, exact=True)
    assert undone.buffers == (BufferChange("ten.txt", typed + "eleven\n", typed),)
    assert [stat.S_IMODE((root / name).stat().st_mode) for name in ("ten.txt", "b.txt")] == [0o640, 0o644]


async def test_a_document_whose_file_was_deleted_meanwhile_still_gets_the_result(workspace, root, ten):
    folder, base = ten
    (folder / "ten.txt").write_text(TEN + "eleven\n")
    changes = await workspace.collect("t1", root, base)
    (root / "ten.txt").unlink()
    plan = await apply(workspace, root, changes, {"ten.txt": TEN})
    assert plan.buffers == (BufferChange("ten.txt", TEN, TEN + "eleven\n"),)
    assert not (root / "ten.txt").exists()


async def test_the_same_file_is_merged_with_a_document_here_and_on_disk_there(workspace, root, ten):
    """One apply may have both; the disk is written only by `write`, and all of it or nothing."""
    folder, base = ten
    (folder / "ten.txt").write_text(TEN + "eleven\n")
    (folder / "b.txt").write_text("b\nworker\n")
    changes = await workspace.collect("t1", root, base)
    plan = await workspace.plan(root, changes, {"ten.txt": TEN})
    assert (root / "b.txt").read_text() == "b\n"
    (root / "b.txt").write_text("typed in another program\n")
    with pytest.raises(ApplyRefused, match=r"b\.txt: could not be written: it was changed"):
        await workspace.write(root, plan)
    assert (root / "b.txt").read_text() == "typed in another program\n"


@pytest.mark.parametrize("moved", [["checkout", "-q", "-b", "other"], ["commit", "-q", "--allow-empty", "-m", "x"]])
async def test_a_branch_or_commit_that_came_meanwhile_does_not_matter(workspace, root, ten, moved):
    folder, base = ten
    (folder / "ten.txt").write_text(TEN + "eleven\n")
    (folder / "b.txt").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)
    git(root, *moved)
    plan = await apply(workspace, root, changes, {"ten.txt": TEN})
    assert plan.buffers == (BufferChange("ten.txt", TEN, TEN + "eleven\n"),)
    assert (root / "b.txt").read_text() == "worker\n"


async def test_names_that_are_not_text_are_merged_like_others(workspace, root, opened):
    name = os.fsdecode(b"caf\xe9 \xff")
    (root / name).write_text(TEN)
    folder, base = await opened()
    (folder / name).write_text(TEN + "eleven\n")
    changes = await workspace.collect("t1", root, base)
    plan = await apply(workspace, root, changes, {name: "zero\n" + TEN})
    assert plan.buffers == (BufferChange(name, "zero\n" + TEN, "zero\n" + TEN + "eleven\n"),)
    back = await workspace.between(root, plan.after, plan.before)
    assert [file.path for file in back.files] == [name]
