"""Results are merged into the user's files: what is chosen, what was given before, buffers of editors, refusals."""

import asyncio
from dataclasses import replace

import pytest

from offload.core.documents import Document
from offload.domain.errors import ApplyRefused, GitFailed, InvalidRequest, StorageFailed, WrongPhase
from offload.domain.review import ReviewState, Selection, review
from offload.domain.task import Phase, Place
from tests.core.results import TEXT, apply, changed, editor, follow_up, on_disk, reject, result, undo, writes
from tests.fakes.house import open_house
from tests.fakes.workspace import FakeWorkspace

APART = changed(2, 30)  # two hunks


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path, files={"a.txt": TEXT, "b.txt": TEXT}) as house:
        yield house


def units(task, path="a.txt"):
    return next(file.units for file in task.turn.changes.files if file.path == path)


async def refused(house, task, *hunks, match, **how):
    with pytest.raises(ApplyRefused, match=match) as error:
        await apply(house, task, *hunks, **how)
    assert house.delegation.get(task.id).landings == task.landings
    return error.value


async def test_hunks_are_applied_one_by_one_and_the_rest_stays_pending(house):
    task = await result(house, {"a.txt": APART})
    first, second = units(task)
    task, landing = await apply(house, task, second)
    assert on_disk(house) == changed(30)
    assert (landing.units, landing.wanted_hunks, landing.paths) == ((second,), (second,), ("a.txt",))
    assert review(task) == {second: ReviewState.APPLIED}
    task, landing = await apply(house, task)
    assert on_disk(house) == APART
    assert landing.units == (first,)
    assert landing.result == task.turn.changes.result


async def test_a_file_is_named_by_its_id_or_its_path(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(5), "c.txt": "new\n"})
    _, _, new = task.turn.changes.files
    _, landing = await apply(house, task, new.id, paths=(str(house.root / "a.txt"),))
    assert landing.paths == ("a.txt", "c.txt")
    assert (on_disk(house), on_disk(house, "b.txt"), on_disk(house, "c.txt")) == (APART, TEXT, "new\n")


async def test_an_id_that_the_result_does_not_have_is_refused(house):
    task = await result(house, {"a.txt": APART})
    for wrong in ("other", ""):
        with pytest.raises(InvalidRequest, match=f"not in this result: {wrong}; get_changes gives the ids that are"):
            await apply(house, task, wrong, units(task)[0])
    assert on_disk(house) == TEXT


async def test_a_unique_beginning_of_an_id_is_enough(house):
    task = await result(house, {"a.txt": APART})
    first, second = units(task)
    with pytest.raises(InvalidRequest, match="2 hunks or files of this result begin with 'h': give more of the id"):
        await apply(house, task, "h")
    task, landing = await apply(house, task, second[:9])
    assert landing.units == (second,)
    assert first[:9] != second[:9], "else the test tries nothing"


async def test_what_is_applied_already_is_applied_again_where_it_has_gone(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    await apply(house, task)
    task, again = await apply(house, task)
    assert (again.paths, again.unchanged, again.before, again.units) == (("a.txt", "b.txt"),) * 2 + ("", ())
    (house.root / "a.txt").write_text(TEXT)
    task, again = await apply(house, task)
    assert on_disk(house) == APART
    assert (again.unchanged, again.units) == (("b.txt",), ())
    (house.root / "a.txt").write_text(TEXT)
    await apply(house, task, paths=("a.txt",))
    assert on_disk(house) == APART


async def test_files_out_of_scope_are_left_out_unless_they_are_asked_for(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3), "c.txt": "new\n"}, allowed_paths=("a.txt",))
    _, landing = await apply(house, task)
    assert landing.paths == ("a.txt",)
    await apply(house, task, paths=("b.txt",))
    assert on_disk(house, "b.txt") == changed(3)
    _, landing = await apply(house, task, include_outside=True)
    assert (landing.paths, landing.wanted_outside) == (("c.txt",), True)


async def test_a_result_that_is_all_out_of_scope_says_how_to_apply_it(house):
    task = await result(house, {"a.txt": APART}, allowed_paths=("docs",))
    error = await refused(house, task, match="Say include_outside, or name it, to apply it too")
    assert error.reasons == (("a.txt", "is outside of the paths that the task may change"),)
    assert on_disk(house) == TEXT


async def test_what_was_rejected_is_left_out_unless_it_is_named(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    await reject(house, task, paths=("a.txt",))
    _, landing = await apply(house, task)
    assert landing.paths == ("b.txt",)
    task, _ = await apply(house, task, units(task)[0])
    assert on_disk(house) == changed(2)
    assert [review(task)[unit] for unit in units(task)] == [ReviewState.APPLIED, ReviewState.REJECTED]


async def test_a_result_that_is_all_rejected_says_how_to_apply_it(house):
    task = await result(house, {"a.txt": APART})
    task = await reject(house, task)
    await refused(house, task, match="was rejected; name files or hunks to apply them all the same")


async def test_a_follow_up_that_changes_what_was_applied_is_merged_with_it(house):
    """What was given before is the base of the merge, so that it is no conflict."""
    task = await result(house, {"a.txt": changed(2)})
    await apply(house, task)
    task = await follow_up(house, task, {"a.txt": changed(2, word="better"), "b.txt": changed(9)})
    _, landing = await apply(house, task)
    assert on_disk(house) == changed(2, word="better")
    assert landing.unchanged == ()
    assert len(landing.units) == 2


async def test_a_follow_up_that_takes_back_what_was_applied_takes_it_from_the_files(house):
    task = await result(house, {"a.txt": changed(2)})
    await apply(house, task)
    task = await follow_up(house, task, {"a.txt": TEXT})
    assert task.turn.changes.files == ()
    _, landing = await apply(house, task)
    assert on_disk(house) == TEXT
    assert landing.units == ()
    await undo(house, task)
    assert on_disk(house) == changed(2)


async def test_a_hunk_of_a_follow_up_leaves_what_was_applied_of_other_files(house):
    """The follow-up has changed the part of a.txt that was accepted; it was not asked to go."""
    task = await result(house, {"a.txt": changed(2)})
    await apply(house, task)
    task = await follow_up(house, task, {"a.txt": changed(2, word="better"), "b.txt": changed(9)})
    _, landing = await apply(house, task, *units(task, "b.txt"))
    assert (on_disk(house), on_disk(house, "b.txt")) == (changed(2), changed(9))
    assert landing.paths == ("b.txt",)
    await apply(house, task)
    assert on_disk(house) == changed(2, word="better")


async def test_a_file_of_a_follow_up_leaves_what_was_applied_of_other_files_where_the_parts_cannot_be_merged(house):
    task = await result(house, {"a.txt": changed(2), "b.txt": changed(4)})
    await apply(house, task)
    task = await follow_up(house, task, {"a.txt": changed(2, word="better"), "b.txt": changed(4, word="better")})
    _, landing = await apply(house, task, paths=("b.txt",))
    assert (on_disk(house), on_disk(house, "b.txt")) == (changed(2), changed(4, word="better"))
    assert landing.paths == ("b.txt",)


async def test_what_stands_is_given_once_more_beside_what_a_follow_up_replaced(house):
    """Both are named; b.txt has lost what was applied, a.txt holds a part that is no part of the result any more."""
    task = await result(house, {"a.txt": changed(2), "b.txt": changed(4)})
    await apply(house, task)
    task = await follow_up(house, task, {"a.txt": changed(2, word="better")})
    (house.root / "b.txt").write_text(TEXT)
    await apply(house, task, paths=("b.txt",))
    assert (on_disk(house), on_disk(house, "b.txt")) == (changed(2), changed(4))
    (house.root / "b.txt").write_text(TEXT)
    await apply(house, task, paths=("a.txt", "b.txt"))
    assert (on_disk(house), on_disk(house, "b.txt")) == (changed(2, word="better"), changed(4))


async def test_what_stands_is_given_once_more_where_it_is_too_close_to_what_was_replaced(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(9)})
    await apply(house, task)
    better = changed(2).replace("line 30\n", "better 30\n")
    task = await follow_up(house, task, {"a.txt": better})
    (house.root / "a.txt").write_text(TEXT.replace("line 30\n", "changed 30\n"))
    await refused(house, task, units(task)[0], match="a.txt")
    (house.root / "a.txt").write_text(APART)
    _, landing = await apply(house, task)
    assert (on_disk(house), landing.paths) == (better, ("a.txt",))


async def test_a_result_that_was_brought_onto_newer_files_is_applied_to_them(house):
    """What was applied is in those files, so nothing of it counts as given."""
    task = await result(house, {"a.txt": changed(2)})
    _, one = await apply(house, task)
    (house.root / "b.txt").write_text(changed(20, word="mine"))
    house.worker.script = writes({"c.txt": "new\n"})
    await house.delegation.continue_(house.caller, task.id, "more", onto="files")
    task = await house.rested(task.id)
    assert ([file.path for file in task.turn.changes.files], task.given) == (["c.txt"], "")
    task, two = await apply(house, task)
    assert (two.paths, task.given) == (("c.txt",), two.result)
    task, _ = await undo(house, task, one.id)
    assert (on_disk(house), on_disk(house, "c.txt"), task.given) == (TEXT, "new\n", two.result)


async def test_a_task_that_could_not_be_brought_onto_newer_files_keeps_its_result_and_what_was_given(tmp_path):
    class Unreadable(FakeWorkspace):
        base = ""

        async def collect(self, task, root, base):
            if base != (self.base or base):
                raise GitFailed("the index is damaged")
            return await super().collect(task, root, base)

    workspace = Unreadable(tmp_path / "state")
    async with open_house(tmp_path, files={"a.txt": TEXT, "b.txt": TEXT}, workspace=workspace) as house:
        task = await result(house, {"a.txt": changed(2), "b.txt": changed(4)})
        _, one = await apply(house, task, paths=("a.txt",))
        workspace.base = task.base
        await house.delegation.continue_(house.caller, task.id, "more", onto="files")
        task = await house.rested(task.id)
        assert (task.phase, task.turn.changes, task.base != task.turns[0].changes.base) == (Phase.FAILED, None, True)
        _, two = await apply(house, task)
        assert (two.paths, two.earlier, on_disk(house, "b.txt")) == (("b.txt",), one.result, changed(4))


async def test_what_was_undone_does_not_count_as_given(house):
    task = await result(house, {"a.txt": APART})
    first, second = units(task)
    _, one = await apply(house, task, first)
    await apply(house, task, second)
    task, _ = await undo(house, task, "")
    assert on_disk(house) == changed(2)
    task, _ = await apply(house, task, second)
    task, _ = await undo(house, task, "")
    task, _ = await undo(house, task, one.id)
    assert on_disk(house) == TEXT
    await apply(house, task)
    assert on_disk(house) == APART


async def test_a_turn_that_failed_has_a_result_that_can_be_applied(house):
    async def script(stage):
        await stage.seen()
        stage.write("a.txt", APART)
        await stage.fail("scripted", "no")

    task = await result(house, {})
    house.worker.script = script
    await house.delegation.continue_(house.caller, task.id, "more")
    task = await house.rested(task.id)
    assert task.phase is Phase.FAILED
    await apply(house, task)
    assert on_disk(house) == APART


async def test_two_results_for_the_same_place_do_not_pass_for_applied(house):
    """H22: the second is refused with both sides, and both stay to be read."""
    one = await result(house, {"a.txt": changed(2, word="one")})
    two = await result(house, {"a.txt": changed(2, word="two")})
    await apply(house, one)
    error = await refused(house, two, match="a.txt")
    assert [(each.path, each.yours, each.theirs) for each in error.conflicts] == [
        ("a.txt", changed(2, word="one"), changed(2, word="two"))
    ]
    assert error.conflicts[0].unit in units(two)
    assert on_disk(house) == changed(2, word="one")
    assert "+two 2" in (await house.delegation.diff(two.id))[3]


async def test_a_landing_says_what_came_before_and_after(house):
    task = await result(house, {"a.txt": APART, "c.txt": "new\n"})
    _, landing = await apply(house, task)
    read = [
        await house.workspace.read(house.root, commit, path)
        for commit in (landing.before, landing.after)
        for path in ("a.txt", "c.txt")
    ]
    assert read == [TEXT.encode(), None, APART.encode(), b"new\n"]


async def test_an_open_document_is_changed_in_its_editor_and_not_on_disk(house):
    """H18: a dirty buffer is never overwritten on disk."""
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    _, landing = await apply(house, task)
    assert (vim.text(house.root / "a.txt"), on_disk(house), on_disk(house, "b.txt")) == (APART, TEXT, changed(3))
    assert [landing.place(path) for path in landing.paths] == [Place.BUFFER, Place.DISK]
    assert vim.labels == ["Apply: do it"]
    assert await house.workspace.read(house.root, landing.after, "a.txt") == APART.encode()


async def test_an_editor_that_knows_the_project_by_a_link_is_asked_as_well(house):
    """A task that a model started is of the folder itself; VS Code keeps the name by which it was opened."""
    (house.root.parent / "link").symlink_to(house.root)
    task = await result(house, {"a.txt": APART})
    code = editor(house, name="Code")
    code.open(house.root.parent / "link" / "a.txt", TEXT)
    _, landing = await apply(house, task)
    assert (code.text(house.root.parent / "link" / "a.txt"), on_disk(house)) == (APART, TEXT)
    assert landing.buffers == ("a.txt",)


async def test_a_document_that_is_open_elsewhere_or_not_in_the_result_is_nothing_to_an_apply(house):
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    for path in (house.root / "b.txt", house.root.parent / "a.txt"):
        vim.open(path, "typed")
    await apply(house, task)
    assert (vim.labels, on_disk(house)) == ([], APART)


async def test_a_document_that_holds_the_result_already_is_left_alone(house):
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    vim.open(house.root / "a.txt", APART)
    _, landing = await apply(house, task)
    assert (vim.labels, landing.unchanged, landing.buffers, on_disk(house)) == ([], ("a.txt",), ("a.txt",), TEXT)


async def test_all_documents_of_an_editor_are_changed_at_once(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    vim, code = editor(house), editor(house, "lsp-2", "Code")
    vim.open(house.root / "a.txt", TEXT)
    vim.open(house.root / "b.txt", TEXT)
    code.open(house.root.parent / "else.txt", "")
    await apply(house, task)
    assert (len(vim.labels), code.labels) == (1, [])


@pytest.mark.parametrize(("caller", "asked"), [("lsp-1", "Neovim"), ("lsp-2", "Code"), ("rpc-1", "Code")])
async def test_of_several_editors_the_callers_own_is_asked_else_the_last_one_told(house, caller, asked):
    task = await result(house, {"a.txt": APART})
    editors = [editor(house), editor(house, "lsp-2", "Code")]
    for each in editors:
        each.open(house.root / "a.txt", TEXT)
    await apply(house, task, caller=replace(house.caller, id=caller))
    assert [each.name for each in editors if each.labels] == [asked]


async def test_different_texts_in_two_editors_are_refused_naming_both(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    for number, name in enumerate(["Neovim", "Code"]):
        each = editor(house, f"lsp-{number}", name)
        each.open(house.root / "a.txt", f"typed in {name}")
        each.open(house.root / "b.txt", TEXT)
    error = await refused(house, task, match="Nothing was written")
    why = "is open in Neovim and in Code with different texts; save it in one and load it again in the other"
    assert error.reasons == (("a.txt", why),)
    assert (on_disk(house), on_disk(house, "b.txt")) == (TEXT, TEXT)


@pytest.mark.parametrize("there", [True, False])
async def test_unsaved_text_in_an_editor_that_takes_no_edits_is_refused_and_saved_text_goes_to_disk(house, there):
    task = await result(house, {"a.txt": APART, "new.txt": "x"})
    if there:
        nano = editor(house, name="nano", can_edit=False)
        nano.open(house.root / "a.txt", "typed")
    else:
        house.delegation.documents.put(Document("lsp-1", house.root / "a.txt", "typed", 1))
    error = await refused(house, task, match="Nothing was written")
    name = "nano" if there else "an editor"
    assert error.reasons == (("a.txt", f"has unsaved text in {name}; save it first"),)
    house.delegation.documents.put(Document("lsp-1", house.root / "a.txt", TEXT, 2))
    house.delegation.documents.put(Document("lsp-1", house.root / "new.txt", "not on disk", 1))
    error = await refused(house, task, match="Nothing was written")
    assert [path for path, _ in error.reasons] == ["new.txt"]
    house.delegation.documents.drop("lsp-1", house.root / "new.txt")
    _, landing = await apply(house, task)
    assert (on_disk(house), landing.buffers) == (APART, ())


async def test_an_editor_that_refuses_leaves_everything_as_it_was(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3), "c.txt": "new\n"})
    vim, code = editor(house), editor(house, "lsp-2", "Code")
    vim.open(house.root / "a.txt", TEXT)
    code.open(house.root / "b.txt", TEXT)
    code.refuses = True
    error = await refused(house, task, match="Nothing was written. b.txt: Code did not take the change of it")
    assert error.reasons == (("b.txt", "Code did not take the change of it"),)
    assert (vim.text(house.root / "a.txt"), vim.labels) == (TEXT, ["Apply: do it", "Apply: do it: taken back"])
    assert not (house.root / "c.txt").exists()


async def test_what_cannot_be_put_back_is_named_and_nobody_says_that_nothing_was_written(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    vim, code = editor(house), editor(house, "lsp-2", "Code")
    vim.open(house.root / "a.txt", TEXT)
    code.open(house.root / "b.txt", TEXT)
    code.refuses = True
    code.before.append(lambda: setattr(vim, "refuses", True))
    error = await refused(house, task, match="^It could not be done: b.txt: Code did not take")
    assert error.reasons == (("a.txt", "holds the change in Neovim already; undo it there"),)
    assert vim.text(house.root / "a.txt") == APART


async def test_typing_in_between_is_merged_with(house):
    """H18 (b): other lines than the worker's; here the result comes to hold what was typed."""
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    vim.open(house.root / "b.txt", TEXT)
    vim.before.append(lambda: vim.type(house.root / "a.txt", APART))
    _, landing = await apply(house, task)
    assert [vim.text(house.root / path) for path in ("a.txt", "b.txt")] == [APART, changed(3)]
    assert (landing.unchanged, len(vim.labels)) == (("a.txt",), 2)


async def test_a_text_that_never_stands_still_is_given_up_after_three_tries(house):
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    path = house.root / "a.txt"
    vim.open(path, TEXT)
    vim.before.extend([lambda: vim.type(path, TEXT)] * 5)
    error = await refused(house, task, match="Nothing was written. a.txt: is being changed in Neovim; try again")
    assert (len(vim.labels), vim.text(path), len(error.reasons)) == (3, TEXT, 1)


async def test_typing_while_the_merge_is_worked_out_is_seen(tmp_path):
    class Slow(FakeWorkspace):
        then = None

        async def plan(self, root, changes, buffers, **options):
            plan = await super().plan(root, changes, buffers, **options)
            if self.then is not None:
                then, self.then = self.then, None
                then()
            return plan

    workspace = Slow(tmp_path / "state")
    async with open_house(tmp_path, files={"a.txt": TEXT}, workspace=workspace) as house:
        task = await result(house, {"a.txt": APART})
        vim = editor(house)
        vim.open(house.root / "a.txt", TEXT)
        workspace.then = lambda: vim.type(house.root / "a.txt", "typed")
        await refused(house, task, match="changed by you")
        assert (vim.text(house.root / "a.txt"), vim.labels) == ("typed", [])
        vim.type(house.root / "a.txt", TEXT)
        workspace.then = vim.leave
        await apply(house, task)
        assert on_disk(house) == APART


async def test_a_file_that_is_opened_and_typed_in_while_an_editor_is_slow_is_not_overwritten(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    vim, code, nano = editor(house), editor(house, "lsp-2", "Code"), editor(house, "lsp-3", "nano", can_edit=False)
    vim.open(house.root / "a.txt", TEXT)
    nano.open(house.root / "b.txt", TEXT)
    vim.before.append(lambda: nano.type(house.root / "b.txt", "typed"))
    error = await refused(house, task, match="Nothing was written")
    assert error.reasons == (("b.txt", "has unsaved text in nano; save it first"),)
    nano.leave()
    vim.before.append(lambda: code.open(house.root / "b.txt", TEXT))
    _, landing = await apply(house, task)
    assert (code.text(house.root / "b.txt"), on_disk(house, "b.txt")) == (changed(3), TEXT)
    assert landing.buffers == ("a.txt", "b.txt")


async def test_an_editor_that_lies_is_found_out(house):
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    vim.lies = True
    await refused(house, task, match="a.txt: is being changed in Neovim; try again")
    assert on_disk(house) == TEXT


async def test_a_document_that_is_closed_right_after_its_edit_is_written_to_disk(house):
    """Its editor held the change unsaved, and that is gone."""
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    vim.after.append(vim.leave)
    _, landing = await apply(house, task)
    assert (on_disk(house), landing.buffers) == (APART, ())


async def test_typing_right_after_an_edit_that_makes_it_unclear_is_told(house):
    """The same lines: whether the change is still there cannot be known."""
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    vim.after.append(lambda: vim.type(house.root / "a.txt", APART + "typed"))
    error = await refused(house, task, match="Not all was put back")
    assert error.reasons == (("a.txt", "holds the change in Neovim already; undo it there"),)


class Failing(FakeWorkspace):
    """`trouble` is what `write` raises."""

    trouble = None

    async def write(self, root, plan):
        if self.trouble:
            raise self.trouble
        await super().write(root, plan)


@pytest.mark.parametrize("trouble", [ApplyRefused("Nothing was written. b.txt changed."), GitFailed("no room")])
async def test_a_disk_that_fails_puts_the_buffers_back(tmp_path, trouble):
    workspace = Failing(tmp_path / "state")
    async with open_house(tmp_path, files={"a.txt": TEXT, "b.txt": TEXT}, workspace=workspace) as house:
        task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
        vim = editor(house)
        vim.open(house.root / "a.txt", TEXT)
        workspace.trouble = trouble
        with pytest.raises(type(trouble), match=str(trouble)):
            await apply(house, task)
        assert vim.text(house.root / "a.txt") == TEXT
        vim.after.append(lambda: setattr(vim, "refuses", True))
        with pytest.raises(
            ApplyRefused, match=r"^It could not be done: (b.txt changed|no room)\. Not all was put"
        ) as error:
            await apply(house, task)
        assert "Nothing was written" not in str(error.value)
        assert [path for path, _ in error.value.reasons] == ["a.txt"]
        assert house.delegation.get(task.id).landings == ()


async def test_a_hub_that_ends_between_the_writing_and_its_record_finds_the_result_there(tmp_path):
    async with open_house(tmp_path, files={"a.txt": TEXT}) as house:
        task = await result(house, {"a.txt": APART})
        house.journal.fail_with = "The disk is full."
        with pytest.raises(StorageFailed):
            await apply(house, task)
        house.journal.fail_with = ""
        assert (on_disk(house), house.delegation.get(task.id).landings) == (APART, ())
    parts = {name: getattr(house, name) for name in ("journal", "workspace", "worker", "clock")}
    async with open_house(tmp_path, **parts) as house:
        task, landing = await apply(house, task)
        assert (landing.unchanged, landing.units) == (("a.txt",), task.turn.changes.units)
        assert on_disk(house) == APART


async def test_a_caller_that_goes_away_while_an_editor_is_slow_does_not_end_the_apply(house):
    task = await result(house, {"a.txt": APART})
    vim = editor(house)
    vim.open(house.root / "a.txt", TEXT)
    vim.gate = asyncio.Event()
    applying = asyncio.create_task(apply(house, task))
    async with asyncio.timeout(20):
        await vim.asked.wait()
    applying.cancel()
    await asyncio.wait([applying])
    vim.gate.set()
    await house.until(task.id, lambda task: task.landings)
    assert vim.text(house.root / "a.txt") == APART


async def test_a_task_that_runs_or_never_had_a_result_has_nothing_to_apply(house):
    task = await house.start("::gate door")
    with pytest.raises(WrongPhase):
        await apply(house, task)
    house.worker.gate("door").open()
    await house.rested(task.id)


async def test_a_patch_of_some_hunks_holds_them_alone(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)})
    hunk = units(task)[1]
    *_, changes, patch = await house.delegation.diff(task.id, Selection(hunks=(hunk,)))
    assert changes == task.turn.changes
    assert ("+changed 30" in patch, "+changed 2\n" in patch, "b.txt" in patch) == (True, False, False)
    with pytest.raises(InvalidRequest):
        await house.delegation.diff(task.id, Selection(hunks=("none",)))
