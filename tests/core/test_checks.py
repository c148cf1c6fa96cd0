"""What is run over a result before it is called ready, and what follows from how it ends. docs/CHECKS.md; docs/RELIABILITY.md,
"Checks, set-up and newer files"."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from offload.core.limits import Limits
from offload.core.turns.fixing import TAIL, WORDS
from offload.domain.budget import Budget
from offload.domain.check import Check, Checked, CheckPlan, CheckResult
from offload.domain.errors import GitFailed, InvalidRequest, StorageFailed, WrongPhase
from offload.domain.events import ChecksEnded, Continued, TurnEnded
from offload.domain.profile import Profile
from offload.domain.project import ProjectSettings
from offload.domain.task import Phase
from tests.core.journals import HeldJournal
from tests.fakes.checks import FakeChecks
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects
from tests.fakes.worker import FakeWorker
from tests.fakes.workspace import FakeWorkspace

TESTS, LINT, FORMAT = Check("tests", "make test"), Check("lint", "make lint"), Check("format", "make format")
WRITE = "::write a.txt one\n::text done"


def project(*checks, formatter=None, rounds=0):
    return FakeProjects(ProjectSettings(plan=CheckPlan(formatter, checks, rounds), trusted=True))


def fails(folder):
    return False


def good(folder):
    """A check that holds once the worker has written what it wants."""
    return (folder / "a.txt").read_text() == "good"


def writing(*texts):
    """A worker that writes the next text in each turn, and nothing when there is none left."""
    left = iter(texts)

    async def script(stage):
        await stage.seen()
        await stage.say(f"turn {len(stage.worker.orders)}")
        for text in left:
            stage.write("a.txt", text)
            return

    return FakeWorker(script)


def paths(changes):
    return [file.path for file in changes.files]


@asynccontextmanager
async def at_a_check(tmp_path, **parts):
    """A house with a task whose check stands at a gate, and that gate."""
    checks = parts.pop("checks", None) or FakeChecks()
    gate = checks.gates["make test"] = asyncio.Event()
    parts = {"projects": project(TESTS), **parts}
    async with open_house(tmp_path, checks=checks, **parts) as house:
        task = await house.start(WRITE)
        async with asyncio.timeout(20):
            await checks.waiting.wait()
        yield house, house.delegation.get(task.id), gate


class TroubledWorkspace(FakeWorkspace):
    """`trouble` is what every collect raises from the time on at which it is set; `resets` counts how often a folder was put
    back."""

    trouble = None
    resets = 0

    async def collect(self, task, root, base):
        if self.trouble is not None:
            raise self.trouble
        return await super().collect(task, root, base)

    async def reset_folder(self, task, root, base, commit):
        self.resets += 1
        await super().reset_folder(task, root, base, commit)


async def test_a_result_is_checked_in_the_tasks_folder_before_it_is_ready(tmp_path):
    seen = []

    def tests(folder):
        seen.append((folder / "a.txt").read_text())
        return True

    async with open_house(tmp_path, projects=project(TESTS), checks=FakeChecks({"make test": tests})) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert (task.phase, task.turn.text, seen) == (Phase.READY, "done", ["one"])
        assert (task.turn.checked, [result.name for result in task.turn.checks]) == (Checked.PASSED, ["tests"])
        assert house.defects == []


async def test_checks_run_in_the_order_of_the_plan_and_all_of_them(tmp_path):
    checks = FakeChecks({"make lint": fails})
    async with open_house(tmp_path, projects=project(LINT, TESTS, formatter=FORMAT), checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert checks.ran == ["make format", "make lint", "make test"]
        assert [(result.name, result.passed) for result in task.turn.checks] == [
            ("format", True),
            ("lint", False),
            ("tests", True),
        ]
        assert (task.phase, task.turn.checked) == (Phase.READY, Checked.FAILED)
        assert task.turn.doubts == "lint: failed with status 1"


async def test_checks_have_the_environment_of_who_started_the_task(tmp_path):
    class Environments(FakeChecks):
        async def run(self, folder, check, environment):
            self.ran.append(environment)
            return CheckResult(check.name, passed=True, seconds=0.1)

    checks = Environments()
    async with open_house(tmp_path, projects=project(TESTS), checks=checks) as house:
        await house.rested((await house.start(WRITE)).id)
        assert checks.ran == [house.caller.environment]


async def test_while_checks_run_the_task_says_which_one_and_keeps_its_place(tmp_path):
    async with at_a_check(tmp_path, limits=Limits(tasks_per_workspace=1)) as (house, begun, gate):
        assert begun.activity.label == "running the check tests"
        assert (paths(begun.turn.changes), begun.turn.ended_at) == (["a.txt"], None)
        other = await house.start("::text other")
        await house.until(other.id, lambda task: house.delegation.live(task.id).place == 1)
        gate.set()
        task = await house.rested(begun.id)
        assert (task.phase, task.activity) == (Phase.READY, None)
        assert (await house.rested(other.id)).phase is Phase.READY


@pytest.mark.parametrize("brief", ["::text nothing to do", "::fail no"])
async def test_a_turn_that_changed_nothing_or_went_wrong_is_not_checked(tmp_path, brief):
    checks = FakeChecks()
    async with open_house(tmp_path, projects=project(TESTS), checks=checks) as house:
        task = await house.rested((await house.start(brief)).id)
        assert (task.turn.checked, checks.ran) == (Checked.NOT_CHECKED, [])


async def test_a_project_that_asks_for_no_checks_has_results_that_are_not_checked(tmp_path):
    checks = FakeChecks()
    async with open_house(tmp_path, checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert (task.phase, task.turn.checked, checks.ran) == (Phase.READY, Checked.NOT_CHECKED, [])


async def test_what_the_formatter_changes_joins_the_result(tmp_path):
    def tidy(folder):
        (folder / "a.txt").write_text("ONE")
        return True

    checks = FakeChecks({"make format": tidy})
    async with open_house(tmp_path, projects=project(formatter=FORMAT), checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        _, _, _, patch = await house.delegation.diff(task.id)
        assert "+ONE" in patch
        assert (task.turn.checked, task.turn.own) == (Checked.NOT_CHECKED, None)
        await house.delegation.continue_(house.caller, task.id, "::write b.txt two")
        task = await house.rested(task.id)
        assert (paths(task.turn.changes), paths(task.turn.own)) == (["a.txt", "b.txt"], ["b.txt"])


async def test_what_checks_leave_in_the_folder_is_no_part_of_the_result(tmp_path):
    def tests(folder):
        (folder / "report.txt").write_text("junk")
        (folder / "a.txt").unlink()
        return True

    workspace = TroubledWorkspace(tmp_path / "state")
    checks = FakeChecks({"make test": tests})
    async with open_house(tmp_path, projects=project(TESTS), checks=checks, workspace=workspace) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert paths(task.turn.changes) == ["a.txt"]
        folder = house.worker.orders[0].folder
        assert (sorted(path.name for path in folder.iterdir()), workspace.resets) == (["a.txt", "shop.py"], 1)
        checks.commands.clear()
        await house.delegation.continue_(house.caller, task.id, "::write b.txt two")
        task = await house.rested(task.id)
        assert (paths(task.turn.changes), workspace.resets) == (["a.txt", "b.txt"], 1)


async def test_failing_checks_go_back_to_the_worker_until_they_pass(tmp_path):
    worker, checks = writing("bad", "good"), FakeChecks({"make test": good})
    async with open_house(tmp_path, worker=worker, projects=project(TESTS, rounds=2), checks=checks) as house:
        seen = []
        with house.delegation.watching() as watcher:
            task = await house.start("do it")
            while not seen or seen[-1].live:
                seen += await watcher.changes()
        task = house.delegation.get(task.id)
        assert [turn.checked for turn in task.turns] == [Checked.FAILED, Checked.PASSED]
        assert [turn.fix_round for turn in task.turns] == [0, 1]
        assert task.turn.brief == "The checks failed: tests: failed with status 1"
        assert [order.session for order in worker.orders] == ["", "session_1"]
        assert "The command is: make test" in worker.orders[1].prompt
        assert "make test ended with 1" in worker.orders[1].prompt
        assert worker.orders[1].environment == house.caller.environment
        assert [state.phase for state in seen].count(Phase.READY) == 1, "nobody sees it ready in between"


@pytest.mark.parametrize("rounds", [0, 1, 2])
async def test_after_so_many_rounds_it_is_ready_with_its_failing_checks(tmp_path, rounds):
    worker, checks = writing("bad", "worse", "worst", "more"), FakeChecks({"make test": fails})
    async with open_house(tmp_path, worker=worker, projects=project(TESTS, rounds=rounds), checks=checks) as house:
        task = await house.start("do it")
        task = await house.until(task.id, lambda task: not task.live)
        assert (task.phase, len(task.turns), task.turn.checked) == (Phase.READY, rounds + 1, Checked.FAILED)
        assert checks.ran == ["make test"] * (rounds + 1)


async def test_a_follow_up_of_a_person_has_all_rounds_again(tmp_path):
    worker, checks = writing("bad", "worse", "worst", "more"), FakeChecks({"make test": fails})
    async with open_house(tmp_path, worker=worker, projects=project(TESTS, rounds=1), checks=checks) as house:
        task = await house.rested((await house.start("do it")).id)
        await house.delegation.continue_(house.caller, task.id, "once more")
        task = await house.rested(task.id)
        assert [turn.fix_round for turn in task.turns] == [0, 1, 0, 1]


async def test_a_round_that_changes_nothing_is_the_last_one_and_the_checks_are_still_shown(tmp_path):
    worker, checks = writing("bad"), FakeChecks({"make test": fails})
    async with open_house(tmp_path, worker=worker, projects=project(TESTS, rounds=5), checks=checks) as house:
        task = await house.rested((await house.start("do it")).id)
        assert (task.phase, len(task.turns), task.turn.checked) == (Phase.READY, 2, Checked.FAILED)
        assert checks.ran == ["make test"]


async def test_a_follow_up_that_changes_nothing_leaves_the_result_as_it_was_checked(tmp_path):
    checks = FakeChecks()
    async with open_house(tmp_path, projects=project(TESTS), checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        await house.delegation.continue_(house.caller, task.id, "::text it is like this")
        task = await house.rested(task.id)
        assert (task.turn.checked, task.turn.checks, checks.ran) == (
            Checked.PASSED,
            task.turns[0].checks,
            ["make test"],
        )


async def test_a_follow_up_that_changes_nothing_of_an_unchecked_result_has_it_checked(tmp_path):
    checks = FakeChecks()
    async with open_house(tmp_path, projects=project(TESTS), checks=checks) as house:
        task = await house.rested((await house.start("::write a.txt one\n::fail no")).id)
        await house.delegation.continue_(house.caller, task.id, "::text it is done after all")
        assert (await house.rested(task.id)).turn.checked is Checked.PASSED


async def test_no_round_follows_when_nothing_is_left_of_the_budget(tmp_path):
    worker, checks = writing("bad", "good"), FakeChecks({"make test": good})
    async with open_house(tmp_path, worker=worker, projects=project(TESTS, rounds=2), checks=checks) as house:
        task = await house.rested((await house.start("do it", budget=Budget(turns=1))).id)
        assert (task.phase, len(task.turns), task.turn.checked) == (Phase.READY, 1, Checked.FAILED)


async def test_no_round_follows_when_the_workspace_has_used_up_its_day(tmp_path):
    async def script(stage):
        await stage.seen()
        stage.write("a.txt", "bad")

    checks = FakeChecks({"make test": fails})
    worker, limits = FakeWorker(script), Limits(daily_cost=0.00007)
    async with open_house(
        tmp_path, worker=worker, projects=project(TESTS, rounds=2), checks=checks, limits=limits
    ) as house:
        task = await house.rested((await house.start("do it")).id)
        assert (task.phase, len(task.turns), task.turn.checked) == (Phase.READY, 1, Checked.FAILED)


async def test_a_worker_that_may_only_read_is_told_of_no_failing_check(tmp_path):
    worker, checks = writing("bad", "good"), FakeChecks({"make test": good})
    async with open_house(tmp_path, worker=worker, projects=project(TESTS, rounds=2), checks=checks) as house:
        task = await house.rested((await house.start("do it", profile=Profile.READ_ONLY)).id)
        assert (task.phase, len(task.turns)) == (Phase.READY, 1)


async def test_a_worker_is_told_the_end_of_what_a_few_failing_checks_printed(tmp_path):
    class Chatty(FakeChecks):
        async def run(self, folder, check, environment):
            self.ran.append(check.command)
            tail = "" if check.name == "silent" else "x" * 3 * TAIL + f"END OF {check.name}"
            problem = "y" * 3 * WORDS if check.name == "c" else ""
            return CheckResult(check.name, passed=False, seconds=0.1, tail=tail, exit_code=1, problem=problem)

    names = ["silent", "b", "c", "d", "e"]
    checks = Chatty()
    plan = project(*(Check(name, f"make {name}") for name in names), rounds=1)
    worker = writing("bad", "worse")
    async with open_house(tmp_path, worker=worker, projects=plan, checks=checks) as house:
        await house.rested((await house.start("do it")).id)
        prompt = worker.orders[1].prompt
        assert ("END OF b" in prompt, "END OF d" in prompt) == (True, False)
        assert "These failed as well: d: failed with status 1; e: failed with status 1" in prompt
        assert len(prompt) < 3 * (TAIL + WORDS) + 1000


@pytest.mark.parametrize("formatter", [None, FORMAT])
async def test_a_stop_ends_the_check_that_runs_and_keeps_the_result(tmp_path, formatter):
    ended = []

    class Ending(FakeChecks):
        async def run(self, folder, check, environment):
            try:
                return await super().run(folder, check, environment)
            except asyncio.CancelledError:
                (folder / "junk.txt").write_text("half")
                ended.append(check.command)
                raise

    checks, plan = Ending(), project(TESTS, LINT, formatter=formatter, rounds=2)
    async with at_a_check(tmp_path, checks=checks, projects=plan) as (house, begun, _):
        task = await house.delegation.cancel(house.caller, begun.id)
        assert task.phase is Phase.CANCELLING
        task = await house.rested(task.id)
        assert (task.phase, task.turn.text, paths(task.turn.changes)) == (Phase.CANCELLED, "done", ["a.txt"])
        assert (ended, checks.ran[-1]) == (["make test"], "make test")
        assert not (house.worker.orders[0].folder / "junk.txt").exists()
        assert house.defects == []


async def test_a_second_stop_of_a_check_changes_nothing(tmp_path):
    class Slow(FakeChecks):
        async def run(self, folder, check, environment):
            try:
                return await super().run(folder, check, environment)
            except asyncio.CancelledError:
                ending.set()
                await end.wait()
                raise

    ending, end = asyncio.Event(), asyncio.Event()
    async with at_a_check(tmp_path, checks=Slow()) as (house, begun, _):
        await house.delegation.cancel(house.caller, begun.id)
        await ending.wait()
        assert (await house.delegation.cancel(house.caller, begun.id)).phase is Phase.CANCELLING
        end.set()
        assert (await house.rested(begun.id)).phase is Phase.CANCELLED


async def test_checks_that_are_first_win_against_a_stop_and_no_round_follows(tmp_path):
    """The stop is asked for between the last check and the record of it."""

    class Stopping(FakeWorkspace):
        async def collect(self, task, root, base):
            if checks.ran:
                await house.delegation.cancel(house.caller, task)
            return await super().collect(task, root, base)

    checks, workspace = FakeChecks({"make test": fails}), Stopping(tmp_path / "state")
    plan = project(TESTS, rounds=2)
    async with open_house(tmp_path, projects=plan, checks=checks, workspace=workspace) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert (task.phase, task.turn.checked, len(task.turns)) == (Phase.READY, Checked.FAILED, 1)


async def test_no_checks_follow_when_a_stop_comes_while_the_result_is_read(tmp_path):
    class Stopping(FakeWorkspace):
        async def collect(self, task, root, base):
            await house.delegation.cancel(house.caller, task)
            return await super().collect(task, root, base)

    checks, workspace = FakeChecks(), Stopping(tmp_path / "state")
    async with open_house(tmp_path, projects=project(TESTS), checks=checks, workspace=workspace) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert (task.phase, task.turn.text, checks.ran) == (Phase.READY, "done", [])


async def test_a_folder_that_cannot_be_read_after_the_checks_fails_the_turn_with_its_result_kept(tmp_path):
    workspace = TroubledWorkspace(tmp_path / "state")
    async with at_a_check(tmp_path, workspace=workspace) as (house, begun, gate):
        workspace.trouble = GitFailed("git is not well")
        gate.set()
        task = await house.rested(begun.id)
        assert (task.phase, task.turn.failure.code) == (Phase.FAILED, "git_failed")
        assert (task.turn.text, paths(task.turn.changes)) == ("done", ["a.txt"])
        assert house.defects == []


async def test_a_full_disk_after_the_checks_is_waited_out(tmp_path):
    workspace = TroubledWorkspace(tmp_path / "state")
    async with at_a_check(tmp_path, workspace=workspace) as (house, begun, gate):
        workspace.trouble = StorageFailed("the disk is full")
        gate.set()
        await house.clock.naps(1)
        assert house.delegation.get(begun.id).phase is Phase.CHECKING
        workspace.trouble = None
        house.clock.advance(1)
        assert (await house.rested(begun.id)).turn.checked is Checked.PASSED


@pytest.mark.parametrize("error", [KeyError("oops"), TimeoutError("not ours")])
async def test_a_mistake_of_ours_while_checks_run_keeps_the_result(tmp_path, error):
    class Broken(FakeChecks):
        async def run(self, folder, check, environment):
            raise error

    async with open_house(tmp_path, projects=project(TESTS), checks=Broken()) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert (task.phase, task.turn.failure.code, paths(task.turn.changes)) == (Phase.FAILED, "defect", ["a.txt"])
        assert house.defects == [(f"task {task.id}", error)]


async def test_time_in_checks_is_no_work_of_the_task(tmp_path):
    async with at_a_check(tmp_path) as (house, begun, gate):
        house.clock.advance(3600)
        gate.set()
        task = await house.rested(begun.id)
        assert (task.phase, task.turn.worked_s) == (Phase.READY, 0.0)


# After a restart of the hub.


async def restarted(house, tmp_path, checks, **parts):
    kept = {"journal": house.journal, "workspace": house.workspace, "clock": house.clock, "worker": house.worker}
    return open_house(tmp_path, checks=checks, **{**kept, **parts})


async def test_what_was_being_checked_is_checked_again_and_nothing_else(tmp_path):
    async with at_a_check(tmp_path) as (house, begun, _):
        (house.worker.orders[0].folder / "junk.txt").write_text("of a check that was killed")
    checks = FakeChecks()
    async with await restarted(house, tmp_path, checks) as again:
        assert again.delegation.get(begun.id).phase is Phase.CHECKING
        task = await again.rested(begun.id)
        assert (task.phase, task.turn.text, task.turn.checked) == (Phase.READY, "done", Checked.PASSED)
        assert (paths(task.turn.changes), checks.ran, len(again.worker.orders)) == (["a.txt"], ["make test"], 1)


async def test_a_stop_of_checks_is_carried_out_by_the_next_hub(tmp_path):
    class Held(FakeChecks):
        async def run(self, folder, check, environment):
            try:
                return await super().run(folder, check, environment)
            except asyncio.CancelledError:
                await asyncio.Event().wait()  # it does not end, until the house is left

    async with at_a_check(tmp_path, checks=Held()) as (house, begun, _):
        await house.delegation.cancel(house.caller, begun.id)
    checks = FakeChecks()
    async with await restarted(house, tmp_path, checks) as again:
        task = await again.rested(begun.id)
        assert (task.phase, task.turn.text, checks.ran) == (Phase.CANCELLED, "done", [])


async def test_a_round_that_was_recorded_when_the_hub_ended_is_begun_by_the_next_one(tmp_path):
    worker, checks = writing("bad", "good"), FakeChecks({"make test": good})
    plan = project(TESTS, rounds=2)
    async with open_house(tmp_path, worker=worker, projects=plan, checks=checks) as house:
        task = await house.rested((await house.start("do it")).id)
        events = list((await house.journal.read())[task.id])
    cut = 1 + next(number for number, event in enumerate(events) if isinstance(event, Continued))
    assert [type(event) for event in events[cut - 2 : cut]] == [ChecksEnded, Continued]
    journal = HeldJournal()
    await journal.append(task.id, events[:cut], expect=0)
    async with await restarted(house, tmp_path, checks, journal=journal) as again:
        assert (await again.rested(task.id)).turn.checked is Checked.PASSED


# Asked for by a person.


async def test_checks_can_be_asked_for_again_by_what_the_project_says_now(tmp_path):
    projects, checks = project(), FakeChecks({"make lint": fails})
    async with open_house(tmp_path, projects=projects, checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        ended_at = task.turn.ended_at
        projects.now = ProjectSettings(plan=CheckPlan(None, (LINT,), 2), trusted=True)
        house.clock.advance(10)
        task = await house.delegation.run_checks(house.caller, task.id[:8])
        assert task.phase is Phase.CHECKING
        task = await house.rested(task.id)
        assert (task.turn.checked, task.turn.doubts) == (Checked.FAILED, "lint: failed with status 1")
        assert (len(task.turns), task.turn.ended_at) == (1, ended_at), "no round follows what a person asked for"
        checks.commands.clear()
        await house.delegation.run_checks(house.caller, task.id)
        assert (await house.rested(task.id)).turn.checked is Checked.PASSED


async def test_the_checks_of_the_recipe_are_asked_for_as_well(tmp_path):
    projects, checks = project(TESTS), FakeChecks()
    async with open_house(tmp_path, projects=projects, checks=checks) as house:
        task = await house.rested((await house.start(WRITE, file="shop.py")).id)
        recipe = house.delegation.recipes.get(task.spec.recipe)
        await house.delegation.run_checks(house.caller, task.id)
        await house.rested(task.id)
        assert checks.ran == [*(check.command for check in task.spec.plan.checks)] * 2
        assert recipe.name == "instruction"


async def test_checks_that_are_asked_for_do_not_wait_for_a_place(tmp_path):
    checks = FakeChecks()
    async with open_house(
        tmp_path, projects=project(TESTS), checks=checks, limits=Limits(tasks_per_workspace=1)
    ) as house:
        task = await house.rested((await house.start(WRITE)).id)
        await house.start("::gate door")
        await house.worker.gate("door").reached.wait()
        await house.delegation.run_checks(house.caller, task.id)
        assert (await house.rested(task.id)).turn.checked is Checked.PASSED


async def test_what_somebody_left_in_the_folder_since_is_not_checked(tmp_path):
    seen = []
    checks = FakeChecks({"make test": lambda folder: seen.append((folder / "a.txt").read_text()) or True})
    async with open_house(tmp_path, projects=project(TESTS), checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        (house.worker.orders[0].folder / "a.txt").write_text("somebody's")
        await house.delegation.run_checks(house.caller, task.id)
        await house.rested(task.id)
        assert seen == ["one", "one"]


@pytest.mark.parametrize(
    ("note", "why"),
    [
        ("", "offload.toml of the project names no checks, and neither does the task's recipe"),
        (
            "offload.toml asks for checks: run `offload trust` to allow it",
            "asks for checks: run `offload trust` to allow it",
        ),
    ],
)
async def test_nothing_to_check_by_is_told_with_what_to_do(tmp_path, note, why):
    async with open_house(tmp_path, projects=FakeProjects(ProjectSettings(note=note))) as house:
        task = await house.rested((await house.start(WRITE)).id)
        with pytest.raises(InvalidRequest, match=f"there is nothing to check task {task.id} by: .*{why}"):
            await house.delegation.run_checks(house.caller, task.id)
        assert house.delegation.get(task.id) == task


async def test_only_a_ready_result_with_changes_can_be_checked(tmp_path):
    async with open_house(tmp_path, projects=project(TESTS)) as house:
        empty = await house.rested((await house.start("::text nothing")).id)
        with pytest.raises(InvalidRequest, match=f"task {empty.id} changed no file"):
            await house.delegation.run_checks(house.caller, empty.id)
        failed = await house.rested((await house.start("::write a.txt x\n::fail no")).id)
        with pytest.raises(WrongPhase, match="is failed; only a result that is ready"):
            await house.delegation.run_checks(house.caller, failed.id)
        closed = await house.rested((await house.start(WRITE)).id)
        await house.delegation.close(house.caller, closed.id)
        with pytest.raises(WrongPhase, match="is closed and cannot be checked"):
            await house.delegation.run_checks(house.caller, closed.id)
        live = await house.start("::gate door")
        await house.worker.gate("door").reached.wait()
        with pytest.raises(WrongPhase, match="can be checked when it is over"):
            await house.delegation.run_checks(house.caller, live.id)


async def test_the_end_of_the_workers_part_is_recorded_once(tmp_path):
    async with open_house(tmp_path, projects=project(TESTS)) as house:
        task = await house.rested((await house.start(WRITE)).id)
        kinds = [type(event) for event in (await house.journal.read())[task.id]]
        assert (kinds.count(TurnEnded), kinds.count(ChecksEnded)) == (1, 1)
