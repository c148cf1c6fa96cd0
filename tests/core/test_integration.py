"""Several results made one: what goes in, what is left out, and which of them break the checks of the union."""

import asyncio
from dataclasses import replace

import pytest

from offload.core.briefing import StartRequest
from offload.core.caller import Caller
from offload.core.integration.overlaps import WARNINGS
from offload.core.limits import Limits
from offload.domain.ask import ModelApply
from offload.domain.check import Check, Checked, CheckPlan
from offload.domain.errors import ApplyForbidden, GitFailed, InvalidRequest, KeyReused, UnknownTask, WrongPhase
from offload.domain.events import ActivityChanged, Integrated
from offload.domain.integration import Overlap
from offload.domain.project import ProjectSettings
from offload.domain.review import Selection
from offload.domain.task import Front, Phase
from offload.recipes import RecipeFiles
from tests.fakes.checks import FakeChecks
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects
from tests.fakes.worker import FakeWorker
from tests.fakes.workspace import FakeWorkspace

FILES = {"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n"}
TESTS = CheckPlan(checks=(Check("tests", "run tests"),))


@pytest.fixture
def checks():
    return FakeChecks()


@pytest.fixture
def projects():
    return FakeProjects()


@pytest.fixture
async def house(tmp_path, checks, projects):
    async with open_house(tmp_path, files=FILES, checks=checks, projects=projects) as house:
        yield house


async def made(house, *briefs, **request):
    """A result of each brief, all begun before the first one is over."""
    tasks = [await house.start(brief, **request) for brief in briefs]
    return [await house.rested(task.id) for task in tasks]


async def integrate(house, tasks, key=""):
    return await house.delegation.integrate(house.caller, [task.id for task in tasks], key)


async def integrated(house, tasks, key=""):
    return await house.rested((await integrate(house, tasks, key)).id)


def changed(task):
    return [file.path for file in task.turn.changes.files]


def folder_of(house, task):
    folder = house.workspace._folder / task.id / house.root.name
    return {path.name: path.read_text() for path in folder.iterdir()}


async def test_results_of_different_files_become_one_change_set(house):
    tasks = await made(house, "::write a A", "::write b B\n::write new N")
    task = await integrated(house, tasks)
    assert task.phase is Phase.READY
    assert changed(task) == ["a", "b", "new"]
    assert task.integration.order == (tasks[0].id, tasks[1].id)
    assert task.integration.overlaps == task.integration.left_out == ()
    assert folder_of(house, task) == {"a": "A", "b": "B", "new": "N", "c": "c\n", "d": "d\n"}
    assert (house.root / "a").read_text() == "a\n"
    assert task.turn.checked is Checked.NOT_CHECKED
    assert task.turn.doubts == ""
    assert "Merged 2 of 2 results" in task.turn.text
    assert house.worker.prompts.keys() == {each.turn.id for each in tasks}


async def test_it_is_applied_and_undone_as_one_step(house):
    task = await integrated(house, await made(house, "::write a A", "::write b B"))
    await house.delegation.apply(house.caller, task.id)
    assert [(house.root / name).read_text() for name in "ab"] == ["A", "B"]
    await house.delegation.undo(house.caller, task.id)
    assert [(house.root / name).read_text() for name in "ab"] == ["a\n", "b\n"]


async def test_the_files_that_it_is_merged_onto_are_those_of_now(house):
    tasks = await made(house, "::write a A")
    (house.root / "b").write_text("typed since\n")
    task = await integrated(house, tasks)
    assert changed(task) == ["a"]
    assert folder_of(house, task)["b"] == "typed since\n"


async def test_one_that_conflicts_with_another_is_left_out_and_the_rest_goes_in(house):
    """A result that is quietly merged over another one was reported of several tools (overstory 84, opencrabs 954)."""
    one, two, three = await made(house, "::write a one", "::write a two\n::write d D", "::write c C")
    task = await integrated(house, [one, two, three])
    assert task.integration.order == (three.id, one.id)
    assert task.integration.overlaps == (Overlap(one.id, two.id, ("a",), hunks=True),)
    (left,) = task.integration.left_out
    assert (left.task, left.with_tasks) == (two.id, (one.id,))
    assert [(each.path, each.yours, each.theirs) for each in left.conflicts] == [("a", "one", "two")]
    assert folder_of(house, task) == {"a": "one", "b": "b\n", "c": "C", "d": "d\n"}
    assert task.turn.doubts == f"{two.id} was left out: it conflicts with {one.id} in a"
    assert f"continue_task {two.id} onto={task.id}" in task.turn.text
    assert "“one”, in this result “two”" in task.turn.text


async def test_one_that_conflicts_with_the_users_own_files_says_so(house):
    one, two = await made(house, "::write a A", "::write b B")
    (house.root / "a").write_text("mine\n")
    task = await integrated(house, [one, two])
    assert task.integration.order == (two.id,)
    assert [(left.task, left.with_tasks) for left in task.integration.left_out] == [(one.id, ())]
    assert task.turn.doubts == f"{one.id} was left out: it conflicts with your own files in a"
    assert f"continue_task {one.id} onto=files" in task.turn.text
    assert folder_of(house, task)["a"] == "mine\n"


async def test_a_conflict_at_a_path_that_nobody_touched_is_with_all_that_was_merged(tmp_path):
    """Git names another path when a file stands where a folder is to be."""

    class OddlyNamed(FakeWorkspace):
        async def merge(self, root, onto, changes):
            merged = await super().merge(root, onto, changes)
            conflicts = tuple(type(each)("elsewhere", each.reason) for each in merged.conflicts)
            return type(merged)(merged.commit, conflicts)

    async with open_house(tmp_path, files=FILES, workspace=OddlyNamed(tmp_path / "state")) as house:
        one, two = await made(house, "::write a one", "::write a two")
        task = await integrated(house, [one, two])
        assert [left.with_tasks for left in task.integration.left_out] == [(one.id,)]


async def test_the_same_change_made_twice_overlaps_and_goes_together(house):
    one, two = await made(house, "::write a same", "::write a same\n::write b B")
    task = await integrated(house, [one, two])
    assert task.integration.order == (one.id, two.id)
    assert f"* {one.id} and {two.id}: a, in lines close to each other" in task.turn.text
    assert task.turn.doubts == ""


async def test_parts_that_were_rejected_stay_out(house):
    (task,) = await made(house, "::write a A\n::write b B\n::write c C")
    await house.delegation.reject(house.caller, task.id, Selection(paths=("b",)), "not that", send_back=False)
    union = await integrated(house, [task])
    assert changed(union) == ["a", "c"]
    assert "1 part rejected or out of its scope stayed out" in union.turn.text


async def test_files_out_of_a_tasks_scope_stay_out(house):
    (task,) = await made(house, "::write a A\n::write b B\n::write c C", allowed_paths=("a",))
    union = await integrated(house, [task])
    assert changed(union) == ["a"]
    assert "2 parts rejected or out of its scope stayed out" in union.turn.text


async def test_what_the_files_have_already_is_named_and_not_merged(house):
    one, two = await made(house, "::write a A", "::write b B")
    (house.root / "a").write_text("A")
    task = await integrated(house, [one, two])
    assert task.integration.order == (two.id,)
    assert f"Nothing of these is wanted that your files do not have:\n* {one.id}" in task.turn.text


async def test_what_was_applied_and_went_on_by_hand_is_the_users_now(house):
    one, two = await made(house, "::write a A\n::write b B", "::write c C")
    await house.delegation.apply(house.caller, one.id, Selection(paths=("a",)))
    (house.root / "a").write_text("A, and mine")
    task = await integrated(house, [one, two])
    assert task.integration.left_out == ()
    assert changed(task) == ["b", "c"]
    assert folder_of(house, task)["a"] == "A, and mine"


async def test_what_was_applied_and_has_gone_from_the_files_comes_again(house):
    (one,) = await made(house, "::write a A")
    await house.delegation.apply(house.caller, one.id)
    (house.root / "a").write_text("a\n")
    assert changed(await integrated(house, [one])) == ["a"]


async def test_nothing_that_goes_in_is_a_failure_that_says_why(house):
    tasks = await made(house, "::write a A", "::text no change")
    (house.root / "a").write_text("mine\n")
    task = await integrated(house, tasks)
    assert task.phase is Phase.FAILED
    assert task.turn.failure.code == "nothing_to_integrate"
    assert "Merged" not in task.turn.failure.message
    assert "conflicts with your own files" in task.turn.failure.message
    assert [left.task for left in task.integration.left_out] == [tasks[0].id]


async def test_a_result_of_a_task_that_did_not_end_well_is_taken_and_told(house):
    one, two = await made(house, "::write a A\n::fail out of words", "::write b B")
    task = await integrated(house, [one, two])
    assert changed(task) == ["a", "b"]
    assert task.turn.doubts == f"{one.id} is failed, so what was taken of it may not be finished"


async def test_the_doubts_about_a_result_are_doubts_about_the_union(tmp_path):
    async def doubtful(stage):
        await stage.seen()
        stage.write("a", "A")
        await stage.finish("done", doubt="it said it was not sure")

    async with open_house(tmp_path, worker=FakeWorker(doubtful), files=FILES) as house:
        (one,) = await made(house, "do it")
        task = await integrated(house, [one])
        assert task.turn.doubts == f"{one.id}: it said it was not sure"


async def test_ids_are_taken_by_their_beginnings_and_each_task_once(house):
    (task,) = await made(house, "::write a A")
    integration = await house.delegation.integrate(house.caller, [task.id[:-1]])
    assert integration.spec.integrates == (task.id,)
    with pytest.raises(InvalidRequest, match=f"named twice: {task.id}"):
        await house.delegation.integrate(house.caller, [task.id, task.id[:-1]])
    with pytest.raises(InvalidRequest, match="none was named"):
        await house.delegation.integrate(house.caller, [])
    with pytest.raises(UnknownTask):
        await house.delegation.integrate(house.caller, ["nobody"])


async def test_every_task_that_is_not_over_or_has_no_result_is_named(house):
    (ready,) = await made(house, "::write a A")
    busy = await house.start("::write b B\n::gate door")
    await house.worker.gate("door").reached.wait()
    lost = await house.start("::text hello", workspace=str(house.root))
    await house.rested(lost.id)
    with pytest.raises(WrongPhase) as refused:
        await integrate(house, [ready, busy])
    assert f"task {busy.id} is working" in str(refused.value)
    assert ready.id not in str(refused.value)


async def test_a_task_that_never_had_a_result_cannot_be_integrated(tmp_path):
    async with open_house(tmp_path, limits=Limits(tasks_per_workspace=1)) as house:
        await house.start("::gate door")
        await house.worker.gate("door").reached.wait()
        queued = await house.start("::write a A")
        await house.delegation.cancel(house.caller, queued.id)
        with pytest.raises(WrongPhase, match=f"task {queued.id} has no changes yet; it is cancelled"):
            await integrate(house, [queued])


async def test_tasks_of_two_workspaces_cannot_be_made_one(house, tmp_path):
    (tmp_path / "other").mkdir()
    (one,) = await made(house, "::write a A")
    (two,) = await made(house, "::write a A", workspace=str(tmp_path / "other"))
    with pytest.raises(InvalidRequest, match="name tasks of one workspace"):
        await integrate(house, [one, two])


async def test_the_same_key_gives_the_same_integration(house):
    one, two = await made(house, "::write a A", "::write b B")
    first = await integrate(house, [one, two], key="k")
    assert (await integrate(house, [one, two], key="k")).id == first.id
    assert (await integrate(house, [one, two])).id != first.id
    with pytest.raises(KeyReused):
        await integrate(house, [two], key="k")
    with pytest.raises(KeyReused):
        await house.start("::text hello", key="k")


async def test_a_key_that_a_start_came_with_is_used(house):
    (one,) = await made(house, "::write a A", key="k")
    with pytest.raises(KeyReused):
        await integrate(house, [one], key="k")


async def test_nobody_can_be_told_to_go_on_with_an_integration(house):
    (one,) = await made(house, "::write a A")
    task = await integrated(house, [one])
    for refused in (
        house.delegation.continue_(house.caller, task.id, "and more"),
        house.delegation.resume(house.caller, task.id),
    ):
        with pytest.raises(WrongPhase, match=rf"made of \({one.id}\), then call integrate_tasks with them again"):
            await refused


async def test_it_takes_a_place_in_the_line_and_asks_no_worker(tmp_path):
    """Its checks load the machine like those of any other task."""
    async with open_house(tmp_path, files=FILES, limits=Limits(tasks_per_workspace=1)) as house:
        (one,) = await made(house, "::write a A")
        await house.start("::gate door")
        await house.worker.gate("door").reached.wait()
        task = await integrate(house, [one])
        await house.until(task.id, lambda _: house.delegation.live(task.id).place == 1)
        house.worker.gate("door").open()
        assert (await house.rested(task.id)).phase is Phase.READY


async def test_one_that_was_begun_from_another_comes_after_it(house):
    (one,) = await made(house, "::write a longer than the other\n::write b B")
    (two,) = await made(house, "::write a A", after=(one.id,))
    task = await integrated(house, [two, one])
    assert task.integration.order == (one.id, two.id)
    assert folder_of(house, task)["a"] == "A"


async def test_one_without_what_it_was_begun_from_is_told_so(house):
    (one,) = await made(house, "::write a one")
    (two,) = await made(house, "::write a two", after=(one.id,))
    (three,) = await made(house, "::write b B")
    task = await integrated(house, [two, three])
    assert [left.task for left in task.integration.left_out] == [two.id]
    assert f"It was begun from the results of {one.id}, which are not in here." in task.turn.text


async def test_one_that_was_begun_from_one_that_is_left_out_is_left_out_with_it(house):
    (one,) = await made(house, "::write a one")
    (two,) = await made(house, "::write a two", after=(one.id,))
    (three,) = await made(house, "::write b B")
    (house.root / "a").write_text("mine\n")
    task = await integrated(house, [one, two, three])
    assert [(left.task, left.with_tasks) for left in task.integration.left_out] == [(one.id, ()), (two.id, (one.id,))]


async def test_what_was_left_out_goes_back_to_its_worker_and_then_in(house):
    one, two, three = await made(house, "::write a one", "::write a two\n::write b B", "::write c C")
    first = await integrated(house, [one, two, three])
    assert first.integration.order == (three.id, one.id)
    await house.delegation.continue_(house.caller, two.id, "::write a one and two", onto=first.id)
    again = await house.rested(two.id)
    assert changed(again) == ["a", "b"]
    assert (await house.delegation.integrate(house.caller, [first.id, two.id])).spec.title.startswith("Integrate 2")
    task = await integrated(house, [one, two, three])
    assert task.integration.left_out == ()
    assert folder_of(house, task) == {"a": "one and two", "b": "B", "c": "C", "d": "d\n"}
    both = await integrated(house, [two, first])
    assert both.integration.order == (first.id, two.id)
    assert folder_of(house, both) == folder_of(house, task)


def broken_by(*names):
    """A check that fails when these files all hold what no user wrote."""
    return lambda folder: not all((folder / name).read_text() == name.upper() for name in names)


ALL = ("::write a A", "::write b B", "::write c C", "::write d D")


async def test_the_union_is_checked_by_what_the_project_asks_for_now(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=TESTS)
    task = await integrated(house, tasks)
    assert task.turn.checked is Checked.PASSED
    assert task.integration.probes == 0
    assert checks.ran == ["run tests"]


async def test_what_is_not_trusted_any_more_is_not_run_though_the_tasks_were_checked_by_it(house, projects, checks):
    """The plan of the tasks' start counted, and its commands were run."""
    projects.now = ProjectSettings(plan=TESTS)
    tasks = await made(house, *ALL)
    ran = len(checks.ran)
    projects.now = ProjectSettings()
    assert (await integrated(house, tasks)).turn.checked is Checked.NOT_CHECKED
    assert len(checks.ran) == ran


async def test_the_checks_of_the_tasks_recipes_are_run_once_each_before_the_projects(tmp_path, projects, checks):
    own = tmp_path / "recipes" / "own.toml"
    own.parent.mkdir()
    own.write_text('title = "Own"\nbrief = "$brief"\n[checks]\n"" = ["lint"]\n[format]\n"" = ["tidy"]\n')
    async with open_house(tmp_path, projects=projects, checks=checks, recipes=RecipeFiles(own.parent)) as house:
        tasks = await made(house, "::write a A", "::write b B", recipe="own")
        (other,) = await made(house, "::write c C")
        checks.ran.clear()
        task = await integrated(house, [*tasks, other])
        assert checks.ran == ["tidy", "lint"]
        projects.now = ProjectSettings(plan=TESTS)
        checks.ran.clear()
        await house.delegation.run_checks(house.caller, task.id)
        await house.rested(task.id)
        assert checks.ran == ["tidy", "lint", "run tests"]


async def test_a_project_that_nobody_trusts_is_told_of_and_not_checked(house, projects):
    tasks = await made(house, "::write a A")
    projects.now = ProjectSettings(note="offload.toml is not trusted")
    task = await integrated(house, tasks)
    assert task.spec.warnings == ("offload.toml is not trusted",)
    assert task.turn.checked is Checked.NOT_CHECKED


async def test_the_set_up_command_runs_before_and_counts_for_nothing(house, projects, checks):
    tasks = await made(house, "::write a A")
    projects.now = ProjectSettings(setup="set up", plan=TESTS)

    def set_up(folder):
        (folder / "installed").write_text("x")
        return True

    checks.commands["set up"] = set_up
    checks.commands["run tests"] = lambda folder: (folder / "installed").exists()
    task = await integrated(house, tasks)
    assert task.turn.checked is Checked.PASSED
    assert changed(task) == ["a"]


async def test_one_that_breaks_the_checks_by_itself_is_named(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=TESTS)
    checks.commands["run tests"] = broken_by("c")
    task = await integrated(house, tasks)
    assert task.phase is Phase.READY
    assert task.turn.checked is Checked.FAILED
    assert task.integration.culprits == (tasks[2].id,)
    assert not task.integration.before
    assert task.integration.probes == len(checks.ran) - 1
    assert f"tests: fails with {tasks[2].id} (::write c C) alone" in task.turn.doubts
    assert folder_of(house, task) == {"a": "A", "b": "B", "c": "C", "d": "D"}


async def test_two_that_pass_alone_and_fail_together_are_both_named(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=TESTS)
    checks.commands["run tests"] = broken_by("b", "d")
    task = await integrated(house, tasks)
    assert task.integration.culprits == (tasks[1].id, tasks[3].id)
    assert f"fails with {tasks[1].id} (::write b B) and {tasks[3].id} (::write d D) together" in task.turn.doubts


async def test_only_the_checks_that_fail_are_run_again(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(
        plan=CheckPlan(Check("format", "format"), (Check("tests", "run tests"), Check("lint", "run lint")))
    )
    checks.commands["run tests"] = broken_by("c")
    await integrated(house, tasks)
    assert checks.ran[:3] == ["format", "run tests", "run lint"]
    assert set(checks.ran[3:]) == {"run tests"}


async def test_a_formatter_that_fails_is_looked_into_like_a_check(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=CheckPlan(Check("format", "format")))
    checks.commands["format"] = broken_by("b")
    assert (await integrated(house, tasks)).integration.culprits == (tasks[1].id,)


async def test_what_the_formatter_changed_stays_in_the_folder_after_the_search(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=CheckPlan(Check("format", "format"), (Check("tests", "run tests"),)))

    def format_(folder):
        (folder / "a").write_text("formatted")
        return True

    checks.commands |= {"format": format_, "run tests": broken_by("c")}
    task = await integrated(house, tasks)
    assert task.integration.culprits == (tasks[2].id,)
    assert folder_of(house, task) == {"a": "formatted", "b": "B", "c": "C", "d": "D"}


async def test_checks_that_fail_without_the_results_blame_none_of_them(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=TESTS)
    checks.commands["run tests"] = lambda folder: False
    task = await integrated(house, tasks)
    assert task.integration.before
    assert task.integration.culprits == ()
    assert task.integration.probes == 1
    assert "tests: fails with your files alone" in task.turn.doubts


async def test_a_check_that_does_not_always_fail_blames_nobody(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=TESTS)
    checks.commands["run tests"] = lambda folder: len(checks.ran) > 1
    task = await integrated(house, tasks)
    assert task.integration.culprits == ()
    assert "does not always give the same" in task.turn.doubts


async def test_a_result_is_tried_with_what_it_was_begun_from(house, projects, checks):
    (one,) = await made(house, "::write a one")
    (two,) = await made(house, "::write a A", after=(one.id,))
    projects.now = ProjectSettings(plan=TESTS)
    checks.commands["run tests"] = broken_by("a")
    assert (await integrated(house, [one, two])).integration.culprits == (two.id,)


async def test_git_that_fails_in_the_search_leaves_the_checks_as_they_were(tmp_path, projects, checks):
    class Troubled(FakeWorkspace):
        async def reset_folder(self, task, root, base, commit):
            if commit == base:
                raise GitFailed("git does not want to")
            await super().reset_folder(task, root, base, commit)

    async with open_house(
        tmp_path, files=FILES, checks=checks, projects=projects, workspace=Troubled(tmp_path / "state")
    ) as house:
        tasks = await made(house, *ALL)
        projects.now = ProjectSettings(plan=TESTS)
        checks.commands["run tests"] = broken_by("c")
        task = await integrated(house, tasks)
        assert task.phase is Phase.READY
        assert task.turn.checked is Checked.FAILED
        assert "was not found out: git does not want to" in task.turn.doubts


async def test_results_that_do_not_merge_without_others_blame_nobody(tmp_path, projects, checks):
    class Sticky(FakeWorkspace):
        """What is not merged onto a is a conflict, once the union is made."""

        sticks = False

        async def merge(self, root, onto, changes):
            merged = await super().merge(root, onto, changes)
            alone = self.sticks and self._commits[onto]["a"] != b"A" and "a" not in [f.path for f in changes.files]
            conflicts = (type(merged).__mro__ and changes.files[0].path,) if alone else ()
            return type(merged)(merged.commit, conflicts)

    workspace = Sticky(tmp_path / "state")
    async with open_house(tmp_path, files=FILES, checks=checks, projects=projects, workspace=workspace) as house:
        tasks = await made(house, *ALL)
        projects.now = ProjectSettings(plan=TESTS)

        def fails(folder):
            workspace.sticks = True
            return (folder / "a").read_text() != "A" or (folder / "b").read_text() != "B"

        checks.commands["run tests"] = fails
        task = await integrated(house, tasks)
        assert task.integration.culprits == ()
        assert "cannot be merged without others" in task.turn.doubts


async def test_checks_that_are_asked_for_again_look_for_culprits_again(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=TESTS)
    task = await integrated(house, tasks)
    assert task.turn.checked is Checked.PASSED
    checks.commands["run tests"] = broken_by("c")
    await house.delegation.run_checks(house.caller, task.id)
    task = await house.rested(task.id)
    assert task.integration.culprits == (tasks[2].id,)
    checks.commands["run tests"] = lambda folder: True
    await house.delegation.run_checks(house.caller, task.id)
    task = await house.rested(task.id)
    assert task.turn.doubts == ""
    assert task.integration.culprits == ()


async def test_a_stop_while_results_are_merged_cancels_it(tmp_path):
    class Slow(FakeWorkspace):
        def __init__(self, folder):
            super().__init__(folder)
            self.reached, self.go_on = asyncio.Event(), asyncio.Event()

        async def merge(self, root, onto, changes):
            self.reached.set()
            await self.go_on.wait()
            return await super().merge(root, onto, changes)

    workspace = Slow(tmp_path / "state")
    async with open_house(tmp_path, files=FILES, workspace=workspace) as house:
        tasks = await made(house, "::write a A", "::write b B")
        task = await integrate(house, tasks)
        await workspace.reached.wait()
        assert (await house.delegation.cancel(house.caller, task.id)).phase is Phase.CANCELLING
        workspace.go_on.set()
        task = await house.rested(task.id)
        assert task.phase is Phase.CANCELLED
        assert await house.workspace.size(task.id, house.root) is not None


async def test_a_stop_in_the_search_ends_the_check_and_keeps_the_union(house, projects, checks):
    tasks = await made(house, *ALL)
    projects.now = ProjectSettings(plan=TESTS)
    checks.gates["run tests"] = gate = asyncio.Event()
    gate.set()

    def fails_and_holds_the_next(folder):
        gate.clear()
        return False

    checks.commands["run tests"] = fails_and_holds_the_next
    task = await integrate(house, tasks)
    await house.until(task.id, lambda _: not gate.is_set())
    await house.delegation.cancel(house.caller, task.id)
    task = await house.rested(task.id)
    assert task.phase is Phase.CANCELLED
    assert changed(task) == ["a", "b", "c", "d"]
    assert folder_of(house, task) == {"a": "A", "b": "B", "c": "C", "d": "D"}


async def test_an_integration_that_a_hub_left_is_made_by_the_next_one(tmp_path):
    class Stuck(FakeWorkspace):
        reached = None

        async def merge(self, root, onto, changes):
            if self.reached is not None:
                self.reached.set()
                await asyncio.Event().wait()
            return await super().merge(root, onto, changes)

    workspace = Stuck(tmp_path / "state")
    async with open_house(tmp_path, files=FILES, workspace=workspace) as house:
        tasks = await made(house, "::write a A", "::write b B")
        workspace.reached = asyncio.Event()
        task = await integrate(house, tasks)
        await workspace.reached.wait()
    workspace.reached = None
    async with open_house(tmp_path, journal=house.journal, workspace=workspace) as house:
        task = await house.rested(task.id)
        assert task.phase is Phase.READY
        assert changed(task) == ["a", "b"]


async def test_a_search_that_a_hub_left_is_made_by_the_next_one(tmp_path, projects, checks):
    parts = {"files": FILES, "checks": checks, "projects": projects}
    async with open_house(tmp_path, **parts) as house:
        tasks = await made(house, *ALL)
        projects.now = ProjectSettings(plan=TESTS)
        checks.commands["run tests"] = broken_by("b", "d")
        checks.gates["run tests"] = asyncio.Event()
        task = await integrate(house, tasks)
        await house.until(task.id, lambda task: task.phase is Phase.CHECKING)
    checks.gates.clear()
    async with open_house(tmp_path, journal=house.journal, workspace=house.workspace, **parts) as house:
        task = await house.rested(task.id)
        assert task.integration.culprits == (tasks[1].id, tasks[3].id)
        assert folder_of(house, task) == {"a": "A", "b": "B", "c": "C", "d": "D"}


async def unaccepted(house, *tasks):
    """Those of which work would be lost, by a cleaning of these."""
    cleaned = await house.delegation.clean(house.caller, tasks=[each.id for each in tasks], dry_run=True)
    return [looked.task.id for looked in cleaned.kept]


async def test_results_that_were_applied_as_one_need_not_be_applied_again_before_they_go(house):
    one, two = await made(house, "::write a A", "::write b B\n::write out O", allowed_paths=("a", "b"))
    task = await integrated(house, [one])
    assert await unaccepted(house, one, task) == [one.id, task.id]
    await house.delegation.apply(house.caller, task.id)
    assert await unaccepted(house, one, two, task) == [two.id]
    both = await integrated(house, [one, two])
    await house.delegation.apply(house.caller, both.id)
    assert await unaccepted(house, two) == [two.id]  # What is out of its scope is in no integration.
    await house.delegation.undo(house.caller, task.id)
    assert await unaccepted(house, one) == [one.id]


async def test_what_a_task_did_after_it_was_integrated_is_not_decided(house):
    (one,) = await made(house, "::write a A")
    task = await integrated(house, [one])
    await house.delegation.apply(house.caller, task.id)
    house.clock.advance(1)
    await house.delegation.continue_(house.caller, one.id, "::write b B")
    await house.rested(one.id)
    assert await unaccepted(house, one) == [one.id]


async def test_the_steps_of_an_integration_are_kept_as_long_as_it_is(house, projects, checks):
    """They are what a later search for culprits is made of."""
    tasks = await made(house, *ALL)
    task = await integrated(house, tasks)
    await house.delegation.clean(house.caller, tasks=[each.id for each in tasks], include_unaccepted=True)
    projects.now = ProjectSettings(plan=TESTS)
    checks.commands["run tests"] = broken_by("c")
    await house.delegation.run_checks(house.caller, task.id)
    task = await house.rested(task.id)
    assert task.integration.culprits == (tasks[2].id,)
    assert f"fails with {tasks[2].id} alone" in task.turn.doubts


async def test_results_of_others_do_not_become_a_models_own_by_being_integrated(tmp_path):
    model = Caller(Front.MODEL, "mcp-1", tmp_path / "project", "claude-code", {})
    other = replace(model, name="another")
    async with open_house(tmp_path, files=FILES, mcp_apply=ModelApply.ALLOW) as house:
        tasks = []
        for owner, brief in ((model, "::write a A"), (other, "::write b B")):
            task = await house.delegation.start(owner, StartRequest(brief=brief))
            tasks.append((await house.rested(task.id)).id)
        whole = await house.rested((await house.delegation.integrate(model, tasks)).id)
        around = await house.rested((await house.delegation.integrate(model, [whole.id])).id)
        for task in (whole, around):
            with pytest.raises(ApplyForbidden, match="holds results of tasks that were not started by claude-code"):
                await house.delegation.apply(model, task.id)
        own = await house.rested((await house.delegation.integrate(model, tasks[:1])).id)
        await house.delegation.apply(model, own.id)
        assert [(house.root / name).read_text() for name in "ab"] == ["A", "b\n"]


async def test_it_says_what_it_is_doing(house):
    tasks = await made(house, "::write a A", "::write b B")
    task = await integrated(house, tasks)
    events = (await house.journal.read())[task.id]
    labels = [event.activity.label for event in events if isinstance(event, ActivityChanged)]
    assert labels == ["reading 2 results", *(f"merging the result of {each.id}" for each in tasks)]
    assert [type(event) for event in events].count(Integrated) == 1


async def test_a_start_says_who_else_works_on_its_file_or_its_paths(house):
    """A late conflict of two parallel tasks costs both; their overlap is known when the second begins."""
    one = await house.start("::gate door", file="a")
    two = await house.start("::gate door", allowed_paths=("b",))
    assert one.spec.warnings == two.spec.warnings == ()
    three = await house.start("::gate door", file="a", allowed_paths=("/b",))
    assert three.spec.warnings == (
        f"task {one.id} (::gate door) works on a too",
        f"task {two.id} (::gate door) may change b too",
    )


async def test_a_start_names_no_more_of_them_than_somebody_reads(house):
    for _ in range(WARNINGS + 1):
        await house.start("::gate door", file="a")
    last = await house.start("::gate door", file="a")
    assert len(last.spec.warnings) == WARNINGS
