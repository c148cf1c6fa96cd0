"""What one apply changed is taken back, and nothing else."""

import os
from dataclasses import replace

import pytest

from offload.core.caller import Caller
from offload.domain.ask import ModelApply
from offload.domain.errors import ApplyForbidden, ApplyRefused, NothingToUndo, StorageFailed, WrongPhase
from offload.domain.events import Landed
from offload.domain.review import ReviewState, review
from offload.domain.task import Front, Landing
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.core.results import MODEL, TEXT, apply, changed, editor, follow_up, on_disk, result, undo
from tests.fakes.house import open_house

APART = changed(2, 30)


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path, files={"a.txt": TEXT, "b.txt": TEXT}) as house:
        yield house


async def test_an_undo_leaves_the_files_as_they_were(house):
    task = await result(house, {"a.txt": APART, "b.txt": None, "sub/c.txt": "new\n"})
    _, landing = await apply(house, task)
    assert not (house.root / "b.txt").exists()
    house.clock.advance(5)
    task, back = await undo(house, task)
    assert (on_disk(house), on_disk(house, "b.txt")) == (TEXT, TEXT)
    assert not (house.root / "sub" / "c.txt").exists()
    assert (back.id, back.paths, back.unchanged) == (landing.id, ("a.txt", "b.txt", "sub/c.txt"), ())
    assert task.landings == (replace(landing, undone_at=house.clock.now()),)
    assert review(task) == {}


async def test_the_last_apply_that_stands_is_undone_first_and_none_twice(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    _, one = await apply(house, task, paths=("a.txt",))
    _, two = await apply(house, task)
    assert (await undo(house, task))[1].id == two.id
    assert (on_disk(house), on_disk(house, "b.txt")) == (APART, TEXT)
    with pytest.raises(NothingToUndo, match=f"{two.id} of task {task.id} was undone before"):
        await undo(house, task, two.id)
    assert (await undo(house, task))[1].id == one.id
    assert on_disk(house) == TEXT
    with pytest.raises(NothingToUndo, match=f"no apply of task {task.id} stands"):
        await undo(house, task)


async def test_an_earlier_apply_is_undone_while_later_ones_stand(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    _, one = await apply(house, task, paths=("a.txt",))
    await apply(house, task)
    task, _ = await undo(house, task, one.id)
    assert (on_disk(house), on_disk(house, "b.txt")) == (TEXT, changed(3))
    assert set(review(task)) == set(task.turn.changes.files[1].units)


async def test_what_was_undone_is_pending_and_can_be_applied_again(house):
    task = await result(house, {"a.txt": APART})
    for _ in range(2):
        await apply(house, task)
        assert on_disk(house) == APART
        task, _ = await undo(house, task)
        assert on_disk(house) == TEXT
    task, landing = await apply(house, task)
    assert landing.unchanged == ()
    assert set(review(task).values()) == {ReviewState.APPLIED}


async def test_an_apply_that_a_follow_up_has_replaced_is_undone_last(house):
    task = await result(house, {"a.txt": changed(2)})
    _, one = await apply(house, task)
    task = await follow_up(house, task, {"a.txt": changed(2, word="better")})
    _, two = await apply(house, task)
    with pytest.raises(ApplyRefused) as error:
        await undo(house, task, one.id)
    (why,) = [f"{path}: {reason}" for path, reason in error.value.reasons]
    assert why == "a.txt: was changed since it was applied"
    conflict = error.value.conflicts[0]
    assert (conflict.reason, conflict.unit) == ("was changed since it was applied", "")
    assert str(error.value) == (
        f"Nothing was taken back. {why}. Undo first what was applied to it later: {two.id} of task {task.id}."
    )
    assert on_disk(house) == changed(2, word="better")
    await undo(house, task)
    assert on_disk(house) == changed(2)
    await undo(house, task)
    assert on_disk(house) == TEXT


async def test_a_conflict_on_the_way_back_is_refused_and_the_apply_stands(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    await apply(house, task)
    (house.root / "a.txt").write_text("mine\n")
    with pytest.raises(ApplyRefused) as error:
        await undo(house, task)
    assert [path for path, _ in error.value.reasons] == ["a.txt"]
    assert (on_disk(house), on_disk(house, "b.txt")) == ("mine\n", changed(3))
    assert house.delegation.get(task.id).landings[0].undone_at is None


async def test_an_undo_that_what_the_user_did_stands_in_the_way_of_says_nothing_of_the_worker(house):
    task = await result(house, {"new.txt": TEXT})
    await apply(house, task)
    (house.root / "new.txt").write_text("mine\n")
    with pytest.raises(ApplyRefused) as error:
        await undo(house, task)
    assert str(error.value) == (
        "Nothing was taken back. new.txt: was changed since it was applied. Put it as it was then, and undo again."
    )


async def test_the_applies_of_other_tasks_that_stand_in_the_way_of_an_undo_are_named_the_last_first(tmp_path):
    """One has renamed the file, and so it is not there under its name any more."""
    async with (
        GitWorkspaces(tmp_path / "state", Processes(), os.environ | {"HOME": str(tmp_path)}) as workspace,
        open_house(tmp_path, files={"a.txt": TEXT, "b.txt": TEXT + "b\n"}, workspace=workspace) as house,
    ):
        first = await result(house, {"a.txt": changed(2)})
        second = await result(house, {"a.txt": changed(9)})
        beside = await result(house, {"b.txt": TEXT})
        moved = await result(house, {"a.txt": None, "moved.txt": TEXT})
        await apply(house, moved)
        await undo(house, moved)
        await apply(house, first)
        landings = []
        for task in (second, beside, moved):
            house.clock.advance(1)
            landings.append((await apply(house, task))[1])
        with pytest.raises(ApplyRefused) as error:
            await undo(house, first)
        assert str(error.value) == (
            "Nothing was taken back. a.txt: was changed, deleted or renamed since it was applied. Undo first what was "
            f"applied to it later: {landings[2].id} of task {moved.id}, {landings[0].id} of task {second.id}."
        )
        await undo(house, moved)
        await undo(house, first)
        assert on_disk(house) == changed(9)


async def test_an_apply_that_the_user_took_back_by_hand_is_undone_when_the_result_was_brought_onto_the_files(tmp_path):
    """The files are the first ones again, and so is the base; what was given counts from there."""
    async with (
        GitWorkspaces(tmp_path / "state", Processes(), os.environ | {"HOME": str(tmp_path)}) as workspace,
        open_house(tmp_path, files={"a.txt": TEXT}, workspace=workspace) as house,
    ):
        task = await result(house, {"a.txt": APART})
        base = task.base
        await apply(house, task)
        (house.root / "a.txt").write_text(TEXT)
        task = await follow_up(house, task, {"b.txt": TEXT}, onto="files")
        assert (task.base, task.given) == (base, "")
        task, _ = await undo(house, task)
        assert (on_disk(house), review(task)) == (TEXT, {})
        await apply(house, task)
        assert (on_disk(house), on_disk(house, "b.txt")) == (APART, TEXT)


async def test_what_went_into_a_buffer_comes_back_out_of_it(house):
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    await apply(house, task)
    _, back = await undo(house, task)
    assert (vim.text(house.root / "a.txt"), vim.labels) == (TEXT, ["Apply: do it", "Undo: do it"])
    assert (back.buffers, on_disk(house)) == (("a.txt",), TEXT)


async def test_an_editor_that_says_no_to_the_way_back_leaves_the_apply_as_it_stands(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    await apply(house, task)
    vim.refuses = True
    with pytest.raises(ApplyRefused, match=r"a\.txt: Neovim did not take the change of it"):
        await undo(house, task)
    assert (vim.text(house.root / "a.txt"), on_disk(house, "b.txt")) == (APART, changed(3))
    assert house.delegation.get(task.id).landings[0].undone_at is None


async def test_a_buffer_that_was_saved_and_closed_is_undone_on_disk(house):
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    await apply(house, task)
    (house.root / "a.txt").write_text(vim.text(house.root / "a.txt"))
    vim.close(house.root / "a.txt")
    _, back = await undo(house, task)
    assert (back.buffers, on_disk(house)) == ((), TEXT)


async def test_an_apply_that_wrote_nothing_is_undone_without_writing(house):
    task = await result(house, {"a.txt": APART})
    (house.root / "a.txt").write_text(APART)
    await apply(house, task)
    task, back = await undo(house, task)
    assert (back.paths, back.unchanged, on_disk(house)) == (("a.txt",), ("a.txt",), APART)
    assert review(task) == {}


async def test_an_apply_of_what_was_applied_already_does_not_stand_before_the_one_that_wrote_it(house):
    task = await result(house, {"a.txt": APART})
    _, first = await apply(house, task)
    _, again = await apply(house, task)
    assert again.id != first.id
    _, back = await undo(house, task)
    assert (back.id, on_disk(house)) == (first.id, TEXT)


async def test_an_apply_that_is_not_known_is_told_with_those_that_are(house):
    task = await result(house, {"a.txt": APART})
    with pytest.raises(NothingToUndo, match=f"task {task.id} has no apply 'x'; those that can be undone: none"):
        await undo(house, task, "x")
    _, landing = await apply(house, task)
    with pytest.raises(NothingToUndo, match=f"those that can be undone: {landing.id}"):
        await undo(house, task, "x")


async def test_an_apply_of_an_earlier_version_cannot_be_undone(house):
    """Its record has no ids and no commits; what it brought counts as pending."""
    task = await result(house, {"a.txt": APART})
    old = Landing(task.turn.id, task.turn.changes.result, ("a.txt",), 1.0)
    task = await house.delegation._ledger.record(task.id, Landed(at=1.0, landing=old))
    with pytest.raises(NothingToUndo, match="by an earlier version of offload, which kept nothing to undo it with"):
        await undo(house, task)
    await apply(house, task)
    assert on_disk(house) == APART


async def test_an_undo_that_could_not_be_recorded_is_recorded_by_the_next_one(house):
    """A hub that ends between the writing and its record leaves the files as they were before the apply."""
    task = await result(house, {"a.txt": APART})
    await apply(house, task)
    house.journal.fail_with = "The disk is full."
    with pytest.raises(StorageFailed):
        await undo(house, task)
    house.journal.fail_with = ""
    assert on_disk(house) == TEXT
    task, back = await undo(house, task)
    assert (back.unchanged, task.landings[0].undone_at) == (("a.txt",), house.clock.now())


async def test_nothing_is_undone_while_a_turn_runs(house):
    task = await result(house, {"a.txt": APART})
    await apply(house, task)

    async def hold(stage):
        await stage.seen()
        await stage.worker.gate("door").opened.wait()

    house.worker.script = hold
    await house.delegation.continue_(house.caller, task.id, "more")
    with pytest.raises(WrongPhase, match="it can be undone when it is over"):
        await undo(house, task)
    house.worker.gate("door").open()
    await house.rested(task.id)


async def test_a_closed_task_can_be_undone(house):
    task = await result(house, {"a.txt": APART})
    await apply(house, task)
    await house.delegation.close(house.caller, task.id)
    await undo(house, task)
    assert on_disk(house) == TEXT


async def test_a_model_undoes_what_it_applied_where_it_may_apply(tmp_path):
    async with open_house(tmp_path, files={"a.txt": TEXT}, mcp_apply=ModelApply.ALLOW) as house:
        task = await result(house, {"a.txt": APART}, MODEL)
        await apply(house, task, caller=MODEL)
        await undo(house, task, caller=MODEL)
        assert on_disk(house) == TEXT
        _, landing = await apply(house, task)
        for caller in (MODEL, Caller(Front.MODEL, "mcp-2", house.root, "another")):
            with pytest.raises(ApplyForbidden):
                await undo(house, task, caller=caller)
        with pytest.raises(ApplyForbidden, match=f"`offload undo {task.id} --apply {landing.id}`"):
            await undo(house, task, caller=MODEL)
    parts = {name: getattr(house, name) for name in ("journal", "workspace", "worker", "clock")}
    async with open_house(tmp_path, **parts) as house:
        with pytest.raises(ApplyForbidden):
            await undo(house, task, caller=MODEL)
        assert on_disk(house) == APART
