"""What is run over a result before it is called ready, and what follows from how it ends. docs/RELIABILITY.md, "Checks"."""

import asyncio

from offload.domain.check import Check, Checked, CheckPlan
from offload.domain.project import ProjectSettings
from offload.domain.task import Phase
from tests.fakes.checks import FakeChecks
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects

TESTS = Check("tests", "make test")
FORMAT = Check("format", "make format")


def project(*checks, formatter=None, rounds=0):
    return FakeProjects(ProjectSettings(plan=CheckPlan(formatter, checks, rounds), trusted=True))


def paths(changes):
    return [file.path for file in changes.files]


async def test_a_result_is_checked_in_the_tasks_folder_before_it_is_ready(tmp_path):
    seen = []

    def tests(folder):
        seen.append((folder / "a.txt").read_text())
        return True

    checks = FakeChecks({"make test": tests})
    async with open_house(tmp_path, projects=project(TESTS), checks=checks) as house:
        task = await house.rested((await house.start("::write a.txt one\n::text done")).id)
        assert (task.phase, task.turn.text, seen) == (Phase.READY, "done", ["one"])
        assert (task.turn.checked, [result.name for result in task.turn.checks]) == (Checked.PASSED, ["tests"])
        assert house.defects == []


async def test_while_checks_run_the_task_says_which_one_and_keeps_its_place(tmp_path):
    checks = FakeChecks()
    checks.gates["make test"] = asyncio.Event()
    async with open_house(tmp_path, projects=project(TESTS), checks=checks) as house:
        task = await house.start("::write a.txt one")
        task = await house.until(task.id, lambda task: task.phase is Phase.CHECKING and task.activity)
        assert task.activity.label == "running the check tests"
        assert (task.turn.changes.files[0].path, task.turn.ended_at) == ("a.txt", None)
        checks.gates["make test"].set()
        task = await house.rested(task.id)
        assert (task.phase, task.activity) == (Phase.READY, None)
