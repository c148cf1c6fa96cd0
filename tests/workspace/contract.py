"""What every workspace promises to core (`offload.core.ports.Workspace`); run on the fake and on the real one."""

import os

import pytest

from offload.core.ports import BufferChange
from offload.domain.change import FileStatus
from offload.domain.errors import ApplyRefused, InvalidRequest, NotAWorkspace
from offload.domain.task import TaskId
from tests.workspace.repositories import apply

TASK = TaskId("t1")


class WorkspaceContract:
    """A subclass gives the fixture `workspace`, and may make `root` of `files`, which holds two text files, one of them in a folder."""

    @pytest.fixture
    def files(self, tmp_path):
        root = tmp_path / "project"
        (root / "src").mkdir(parents=True)
        (root / "src" / "a.py").write_text("one\ntwo\nthree\n")
        (root / "b.txt").write_text("b\n")
        return root

    @pytest.fixture
    def root(self, files):
        return files

    @pytest.fixture
    async def opened(self, workspace, root):
        """A task folder, with the snapshot's id."""
        base = (await workspace.snapshot(root, {})).base
        return await workspace.open_folder(TASK, root, base), base

    async def test_the_folder_holds_the_files_as_they_were_at_the_snapshot(self, workspace, root):
        base = (await workspace.snapshot(root, {})).base
        (root / "b.txt").write_text("later\n")
        folder = await workspace.open_folder(TASK, root, base)

        assert (folder / "src" / "a.py").read_text() == "one\ntwo\nthree\n"
        assert (folder / "b.txt").read_text() == "b\n"
        assert folder != root

    async def test_unsaved_text_takes_the_place_of_the_file(self, workspace, root):
        base = (await workspace.snapshot(root, {"b.txt": "on the screen\n", "src/new.py": "new\n"})).base
        folder = await workspace.open_folder(TASK, root, base)

        assert (folder / "b.txt").read_text() == "on the screen\n"
        assert (folder / "src" / "new.py").read_text() == "new\n"
        assert (root / "b.txt").read_text() == "b\n"
        assert not (root / "src" / "new.py").exists()

    async def test_a_folder_that_is_opened_again_is_as_the_worker_left_it(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")

        assert await workspace.open_folder(TASK, root, base) == folder
        assert (folder / "b.txt").read_text() == "worker\n"

    async def test_nothing_changed_is_an_empty_change_set_of_the_base_itself(self, workspace, root, opened):
        _, base = opened
        changes = await workspace.collect(TASK, root, base)

        assert (changes.base, changes.result, changes.files) == (base, base, ())

    async def test_changed_added_and_deleted_files_are_collected_with_their_counts(self, workspace, root, opened):
        folder, base = opened
        (folder / "src" / "a.py").write_text("one\nTWO\nthree\nfour\n")
        (folder / "new.py").write_text("new\n")
        (folder / "b.txt").unlink()
        changes = await workspace.collect(TASK, root, base)

        found = [(one.path, one.status, one.added_lines, one.removed_lines) for one in changes.files]
        assert found == [
            ("b.txt", FileStatus.DELETED, 0, 1),
            ("new.py", FileStatus.ADDED, 1, 0),
            ("src/a.py", FileStatus.MODIFIED, 2, 1),
        ]
        assert [len(one.hunks) for one in changes.files] == [1, 1, 1]
        assert changes.result != base

    async def test_both_sides_of_a_change_can_be_read(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)

        assert await workspace.read(root, changes.base, "b.txt") == b"b\n"
        assert await workspace.read(root, changes.result, "b.txt") == b"worker\n"
        assert await workspace.read(root, changes.result, "none") is None

    async def test_the_patch_names_the_files_and_can_be_narrowed(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        (folder / "src" / "a.py").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)
        whole = await workspace.diff(root, changes)
        narrow = await workspace.diff(root, changes, ["b.txt"])

        assert "diff --git a/b.txt b/b.txt" in whole
        assert "diff --git a/src/a.py b/src/a.py" in whole
        assert "-b\n+worker\n" in narrow
        assert "src/a.py" not in narrow

    async def test_a_plan_writes_nothing_and_names_what_it_is_for(self, workspace, root, opened):
        folder, base = opened
        (folder / "src" / "a.py").write_text("worker\n")
        (folder / "b.txt").write_text("worker\n")
        (root / "b.txt").write_text("worker\n")
        plan = await workspace.plan(root, await workspace.collect(TASK, root, base), {})

        assert (sorted(plan.paths), plan.unchanged, plan.buffers) == (["b.txt", "src/a.py"], ("b.txt",), ())
        assert (root / "src" / "a.py").read_text() == "one\ntwo\nthree\n"

    async def test_applied_files_are_on_disk_and_named(self, workspace, root, opened):
        folder, base = opened
        (folder / "src" / "a.py").write_text("worker\n")
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "new.py").write_text("new\n")
        (folder / "b.txt").unlink()
        applied = await apply(workspace, root, await workspace.collect(TASK, root, base))

        assert sorted(applied.paths) == ["b.txt", "deep/er/new.py", "src/a.py"]
        assert (root / "src" / "a.py").read_text() == "worker\n"
        assert (root / "deep" / "er" / "new.py").read_text() == "new\n"
        assert not (root / "b.txt").exists()

    async def test_a_path_that_was_not_changed_has_no_patch(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)

        with pytest.raises(InvalidRequest, match="none"):
            await workspace.diff(root, changes, ["none"])

    async def test_a_conflict_refuses_everything_writes_nothing_and_shows_both_sides(self, workspace, root, opened):
        folder, base = opened
        (folder / "src" / "a.py").write_text("worker\n")
        (folder / "b.txt").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)
        (root / "b.txt").write_text("mine\n")

        with pytest.raises(ApplyRefused, match=r"b\.txt") as refused:
            await workspace.plan(root, changes, {})
        assert [path for path, _ in refused.value.reasons] == ["b.txt"]
        (conflict,) = refused.value.conflicts
        assert (conflict.path, conflict.first_line) == ("b.txt", 1)
        assert (conflict.yours, conflict.base, conflict.theirs) == ("mine\n", "b\n", "worker\n")
        (file,) = (file for file in changes.files if file.path == "b.txt")
        assert conflict.unit == file.units[0]
        assert (root / "b.txt").read_text() == "mine\n"
        assert (root / "src" / "a.py").read_text() == "one\ntwo\nthree\n"

    async def test_unsaved_text_that_clashes_is_a_conflict_and_the_file_stays_as_it_is(self, workspace, root, opened):
        """Public trouble report: an agent's result was written over unsaved edits (H18)."""
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)

        with pytest.raises(ApplyRefused) as refused:
            await workspace.plan(root, changes, {"b.txt": "typed\n"})
        assert [(conflict.path, conflict.yours) for conflict in refused.value.conflicts] == [("b.txt", "typed\n")]
        assert (root / "b.txt").read_text() == "b\n"

    async def test_an_open_file_is_for_its_editor_to_change(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        (folder / "src" / "a.py").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)
        plan = await apply(workspace, root, changes, {"b.txt": "b\n", "elsewhere.txt": "typed\n"})

        assert (sorted(plan.paths), plan.unchanged) == (["b.txt", "src/a.py"], ())
        assert plan.buffers == (BufferChange("b.txt", "b\n", "worker\n"),)
        assert (root / "b.txt").read_text() == "b\n"
        assert (root / "src" / "a.py").read_text() == "worker\n"

    @pytest.mark.parametrize(("made", "typed", "shall"), [("worker", "b\n", "worker\n"), ("worker\n", "b", "worker")])
    async def test_a_last_line_end_that_is_the_editors_own_stays_as_it_is(
        self, workspace, root, opened, made, typed, shall
    ):
        """Neovim keeps it as an option of the buffer, which no edit changes."""
        folder, base = opened
        (folder / "b.txt").write_text(made)
        (root / "b.txt").write_text(typed)
        changes = await workspace.collect(TASK, root, base)
        plan = await workspace.plan(root, changes, {"b.txt": typed}, keep_last_end=["b.txt"])
        await workspace.write(root, plan)
        assert plan.buffers == (BufferChange("b.txt", typed, shall),)
        assert await workspace.read(root, plan.after, "b.txt") == shall.encode()

    async def test_what_is_there_already_as_the_worker_made_it_is_unchanged(self, workspace, root, opened):
        folder, base = opened
        (folder / "new.py").write_text("new\n")
        (folder / "b.txt").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)
        (root / "new.py").write_text("new\n")
        plan = await apply(workspace, root, changes, {"b.txt": "worker\n"})

        assert plan.paths == plan.unchanged == ("b.txt", "new.py")
        assert (plan.buffers, plan.before, plan.after) == ((), "", "")

    async def test_a_file_that_changes_between_plan_and_write_is_not_overwritten(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        (folder / "src" / "a.py").write_text("worker\n")
        plan = await workspace.plan(root, await workspace.collect(TASK, root, base), {})
        (root / "src" / "a.py").write_text("typed just now\n")

        with pytest.raises(ApplyRefused) as refused:
            await workspace.write(root, plan)
        assert [path for path, _ in refused.value.reasons] == ["src/a.py"]
        assert (root / "src" / "a.py").read_text() == "typed just now\n"
        assert (root / "b.txt").read_text() == "b\n"

    async def test_before_and_after_hold_the_touched_files_and_lead_back(self, workspace, root, opened):
        folder, base = opened
        (folder / "src" / "a.py").write_text("worker\n")
        (folder / "b.txt").unlink()
        (folder / "new.py").write_text("new\n")
        landed = await apply(workspace, root, await workspace.collect(TASK, root, base))

        for commit, wanted in (
            (landed.before, (b"one\ntwo\nthree\n", b"b\n", None)),
            (landed.after, (b"worker\n", None, b"new\n")),
        ):
            assert (
                tuple([await workspace.read(root, commit, path) for path in ("src/a.py", "b.txt", "new.py")]) == wanted
            )
        back = await workspace.between(root, landed.after, landed.before)
        undone = await apply(workspace, root, back, exact=True)
        assert sorted(undone.paths) == ["b.txt", "new.py", "src/a.py"]
        assert (root / "src" / "a.py").read_text() == "one\ntwo\nthree\n"
        assert (root / "b.txt").read_text() == "b\n"
        assert not (root / "new.py").exists()

    async def test_what_went_to_an_editor_is_taken_back_there_or_on_disk_once_it_is_saved(
        self, workspace, root, opened
    ):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        landed = await apply(workspace, root, await workspace.collect(TASK, root, base), {"b.txt": "b\n"})
        back = await workspace.between(root, landed.after, landed.before)

        still_open = await workspace.plan(root, back, {"b.txt": "worker\n"}, exact=True)
        assert still_open.buffers == (BufferChange("b.txt", "worker\n", "b\n"),)
        (root / "b.txt").write_text("worker\n")
        saved = await apply(workspace, root, back, exact=True)
        assert (saved.paths, saved.buffers) == (("b.txt",), ())
        assert (root / "b.txt").read_text() == "b\n"

    async def test_what_was_edited_since_is_not_taken_back(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        landed = await apply(workspace, root, await workspace.collect(TASK, root, base))
        (root / "b.txt").write_text("worker and me\n")

        with pytest.raises(ApplyRefused) as refused:
            await workspace.plan(root, await workspace.between(root, landed.after, landed.before), {}, exact=True)
        (conflict,) = refused.value.conflicts
        assert (conflict.yours, conflict.base, conflict.theirs) == ("worker and me\n", "worker\n", "b\n")
        assert (root / "b.txt").read_text() == "worker and me\n"

    async def test_snapshot_and_result_stay_readable_when_the_folder_is_released(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)
        await workspace.release(TASK, root)

        assert not folder.exists()
        assert await workspace.read(root, changes.result, "b.txt") == b"worker\n"
        assert (await apply(workspace, root, changes)).paths == ("b.txt",)

    async def test_the_size_is_that_of_the_folder_while_there_is_one(self, workspace, root, opened):
        folder, _ = opened
        before = await workspace.size(TASK, root)
        (folder / "more").write_bytes(b"x" * 5000)
        assert await workspace.size(TASK, root) == before + 5000
        await workspace.release(TASK, root)
        assert await workspace.size(TASK, root) is None

    async def test_what_one_task_alone_named_is_forgotten_and_what_others_name_is_kept(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("first\n")
        first = await workspace.collect(TASK, root, base)
        (folder / "b.txt").write_text("second\n")
        second = await workspace.collect(TASK, root, base)
        await workspace.release(TASK, root)
        await workspace.forget(root, {first.result}, {base, second.result})

        assert (await apply(workspace, root, second)).paths == ("b.txt",)
        assert (root / "b.txt").read_text() == "second\n"
        again = (await workspace.snapshot(root, {})).base
        assert await workspace.read(root, again, "b.txt") == b"second\n"

    async def test_a_workspace_of_which_everything_was_forgotten_begins_anew(self, workspace, root, opened):
        _, base = opened
        await workspace.release(TASK, root)
        await workspace.forget(root, {base}, set())
        await workspace.forget(root, {base}, set())
        base = (await workspace.snapshot(root, {})).base
        assert (await workspace.open_folder(TASK, root, base) / "b.txt").read_text() == "b\n"

    async def test_the_live_text_is_that_of_the_users_file(self, workspace, root):
        assert await workspace.read_live(root, "src/a.py") == "one\ntwo\nthree\n"

    @pytest.mark.parametrize("path", ["none", "src", "../outside", "/etc/hostname", "binary"])
    async def test_a_live_path_that_is_missing_outside_or_not_text_is_the_callers_mistake(self, workspace, root, path):
        (root / "binary").write_bytes(b"\xff\xfe\xfa")
        (root.parent / "outside").write_text("x")

        with pytest.raises(InvalidRequest):
            await workspace.read_live(root, path)

    async def test_a_folder_that_does_not_exist_is_not_a_workspace(self, workspace, root):
        with pytest.raises(NotAWorkspace):
            await workspace.snapshot(root / "none", {})
        with pytest.raises(NotAWorkspace):
            await workspace.locate(root / "none")

    async def test_a_workspace_is_located_at_itself_or_at_the_top_of_its_repository(self, workspace, root):
        located = await workspace.locate(root)

        assert root.is_relative_to(located)
        assert await workspace.locate(located) == located

    async def test_what_differs_between_two_results_is_told(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("first\n")
        first = await workspace.collect(TASK, root, base)
        (folder / "new.txt").write_text("second\n")
        second = await workspace.collect(TASK, root, base)
        between = await workspace.between(root, first.result, second.result)
        assert [(file.path, file.status) for file in between.files] == [("new.txt", FileStatus.ADDED)]
        assert (between.base, between.result) == (first.result, second.result)
        nothing = await workspace.between(root, second.result, second.result)
        assert (nothing.base, nothing.result, nothing.files) == (second.result, second.result, ())

    @pytest.fixture
    async def three_hunks(self, workspace, root):
        """A change set of one file with three hunks and a new file, and the lines of the file."""
        lines = [f"{number}\n" for number in range(1, 41)]
        (root / "long.txt").write_text("".join(lines))
        base = (await workspace.snapshot(root, {})).base
        folder = await workspace.open_folder(TASK, root, base)
        (folder / "long.txt").write_text("".join(["first\n", *lines[:19], *lines[21:], "last\n"]))
        (folder / "new.txt").write_text("new\n")
        return await workspace.collect(TASK, root, base), lines

    async def test_a_hunk_has_the_same_id_whatever_else_of_the_file_changes(self, workspace, root, three_hunks):
        changes, lines = three_hunks
        folder = await workspace.open_folder(TASK, root, changes.base)
        (folder / "long.txt").write_text("".join([*lines[:19], *lines[21:]]))
        (file, _) = (await workspace.collect(TASK, root, changes.base)).files

        assert [hunk.id for hunk in file.hunks] == [changes.files[0].hunks[1].id]

    async def test_chosen_hunks_and_files_make_a_result_of_their_own(self, workspace, root, three_hunks):
        changes, lines = three_hunks
        first, _, last = changes.files[0].units
        some = await workspace.select(root, changes, [first, last])
        other = await workspace.select(root, changes, [changes.files[1].id])

        assert await workspace.read(root, some.result, "long.txt") == "".join(["first\n", *lines, "last\n"]).encode()
        assert await workspace.read(root, some.result, "new.txt") is None
        assert (some.base, some.units) == (changes.base, (first, last))
        assert [file.path for file in other.files] == ["new.txt"]

    async def test_a_files_own_id_means_all_of_it(self, workspace, root, three_hunks):
        changes, _ = three_hunks
        chosen = await workspace.select(root, changes, [changes.files[0].id])

        assert [file.path for file in chosen.files] == ["long.txt"]
        assert chosen.units == changes.files[0].units

    async def test_all_or_nothing_chosen_is_the_whole_or_an_empty_change_set(self, workspace, root, three_hunks):
        changes, _ = three_hunks

        assert await workspace.select(root, changes, changes.units) == changes
        nothing = await workspace.select(root, changes, ())
        assert (nothing.base, nothing.result, nothing.files) == (changes.base, changes.base, ())

    async def test_what_is_not_in_a_change_set_cannot_be_chosen(self, workspace, root, three_hunks):
        changes, _ = three_hunks

        with pytest.raises(InvalidRequest, match="h123"):
            await workspace.select(root, changes, [*changes.units, "h123"])

    async def test_a_result_is_merged_onto_newer_files(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        (folder / "new.txt").write_text("new\n")
        changes = await workspace.collect(TASK, root, base)
        (root / "src" / "a.py").write_text("newer\n")
        onto = (await workspace.snapshot(root, {})).base
        merged = await workspace.merge(root, onto, changes)

        assert merged.conflicts == ()
        assert await workspace.read(root, merged.commit, "src/a.py") == b"newer\n"
        assert [file.path for file in (await workspace.between(root, onto, merged.commit)).files] == [
            "b.txt",
            "new.txt",
        ]

    async def test_what_does_not_merge_is_marked_and_told_with_both_sides(self, workspace, root, opened):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)
        (root / "b.txt").write_text("mine\n")
        onto = (await workspace.snapshot(root, {})).base
        merged = await workspace.merge(root, onto, changes)
        (conflict,) = merged.conflicts

        assert (conflict.path, conflict.unit, conflict.first_line) == ("b.txt", changes.units[0], 1)
        assert (conflict.yours, conflict.base, conflict.theirs) == ("mine\n", "b\n", "worker\n")
        marked = (await workspace.read(root, merged.commit, "b.txt")).decode()
        assert marked.startswith("<<<<<<<")
        assert "mine\n" in marked
        assert "worker\n" in marked

    async def test_a_folder_that_is_reset_holds_the_commit_and_is_collected_against_the_base(
        self, workspace, root, opened
    ):
        folder, base = opened
        (folder / "b.txt").write_text("worker\n")
        changes = await workspace.collect(TASK, root, base)
        (folder / "left.txt").write_text("left by the checks\n")
        (folder / "src" / "a.py").unlink()
        await workspace.reset_folder(TASK, root, base, changes.result)

        assert (folder / "b.txt").read_text() == "worker\n"
        assert (folder / "src" / "a.py").read_text() == "one\ntwo\nthree\n"
        assert not (folder / "left.txt").exists()
        again = await workspace.collect(TASK, root, base)
        assert again.files == changes.files
        assert (await workspace.between(root, changes.result, again.result)).files == ()

    async def test_the_last_change_of_a_folder_stands_still_until_something_is_written(self, workspace, root, opened):
        assert await workspace.last_change(TaskId("none"), root) == 0.0
        folder, _ = opened
        before = await workspace.last_change(TASK, root)
        assert before > 0
        assert await workspace.last_change(TASK, root) == before
        (folder / "sub").mkdir()
        (folder / "sub" / "made.txt").write_text("x")
        os.utime(folder / "sub" / "made.txt", (before + 10, before + 10))
        assert await workspace.last_change(TASK, root) == before + 10
