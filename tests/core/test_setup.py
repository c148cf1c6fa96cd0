"""A project's set-up command readies a task's folder once, and what it leaves is no change of the worker."""

import asyncio

import pytest

from offload.domain.check import CheckResult
from offload.domain.events import Rebased
from offload.domain.project import ProjectSettings
from offload.domain.task import Phase
from tests.core.journals import HeldJournal
from tests.fakes.checks import FakeChecks
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects
from tests.fakes.workspace import FakeWorkspace

SETUP = "npm ci"
WRITE = "::write a.txt one\n::text done"


def project(**says):
    return FakeProjects(ProjectSettings(setup=SETUP, trusted=True, **says))


def install(folder):
    (folder / "lock.txt").write_text("made by the set-up")
    return True


def paths(changes):
    return [file.path for file in changes.files]


async def test_a_folder_is_set_up_before_the_first_prompt_and_never_again(tmp_path):
    checks = FakeChecks({SETUP: lambda folder: seen.append(dict(house.worker.prompts)) or install(folder)})
    seen = []
    async with open_house(tmp_path, projects=project(), checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert (seen, paths(task.turn.changes)) == ([{}], ["a.txt"])
        assert (house.worker.orders[0].folder / "lock.txt").exists()
        await house.delegation.continue_(house.caller, task.id, "::write b.txt two")
        task = await house.rested(task.id)
        assert (checks.ran, paths(task.turn.changes), paths(task.turn.own)) == ([SETUP], ["a.txt", "b.txt"], ["b.txt"])


async def test_a_set_up_that_leaves_nothing_is_done_once_as_well(tmp_path):
    checks = FakeChecks()
    async with open_house(tmp_path, projects=project(), checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        await house.delegation.continue_(house.caller, task.id, "::write b.txt two")
        assert paths((await house.rested(task.id)).turn.changes) == ["a.txt", "b.txt"]
        assert checks.ran == [SETUP]


@pytest.mark.parametrize("tail", ["no such package", ""])
async def test_a_set_up_that_fails_ends_the_turn_before_the_worker_and_is_tried_again_by_the_next_one(tmp_path, tail):
    class Failing(FakeChecks):
        async def run(self, folder, check, environment):
            install(folder)
            self.ran.append(environment)
            return CheckResult(check.name, passed=len(self.ran) > 1, seconds=1.0, tail=tail, exit_code=1)

    checks = Failing()
    async with open_house(tmp_path, projects=project(), checks=checks) as house:
        task = await house.rested((await house.start(WRITE)).id)
        assert (task.phase, task.turn.failure.code, task.turn.changes) == (Phase.FAILED, "setup_failed", None)
        why = "(npm ci; one that is mended counts for new tasks)"  # a task keeps what it began with
        words = f"the project's set-up command failed {why}: setup: failed with status 1"
        assert task.turn.failure.message == (f"{words}:\n{tail}" if tail else words)
        assert (house.worker.orders, checks.ran) == ([], [house.caller.environment])
        await house.delegation.resume(house.caller, task.id)
        task = await house.rested(task.id)
        assert (task.phase, paths(task.turn.changes), len(checks.ran)) == (Phase.READY, ["a.txt"], 2)


async def test_a_stop_ends_the_set_up_and_no_worker_is_begun(tmp_path):
    checks = FakeChecks({SETUP: install})
    checks.gates[SETUP] = asyncio.Event()
    async with open_house(tmp_path, projects=project(), checks=checks) as house:
        task = await house.start(WRITE)
        await checks.waiting.wait()
        begun = house.delegation.get(task.id)
        assert (begun.phase, begun.activity.label) == (Phase.STARTING, "running the set-up")
        await house.delegation.cancel(house.caller, task.id)
        task = await house.rested(task.id)
        assert (task.phase, house.worker.orders, house.defects) == (Phase.CANCELLED, [], [])
        checks.gates.clear()
        await house.delegation.resume(house.caller, task.id)
        assert paths((await house.rested(task.id)).turn.changes) == ["a.txt"]


async def test_a_hub_that_ends_in_the_middle_of_a_set_up_is_followed_by_one_that_does_it_anew(tmp_path):
    checks = FakeChecks()
    checks.gates[SETUP] = asyncio.Event()
    async with open_house(tmp_path, projects=project(), checks=checks) as house:
        task = await house.start(WRITE)
        await checks.waiting.wait()
    kept = {"journal": house.journal, "workspace": house.workspace, "clock": house.clock}
    checks = FakeChecks({SETUP: install})
    async with open_house(tmp_path, checks=checks, **kept) as house:
        task = await house.rested(task.id)
        assert (task.phase, paths(task.turn.changes), checks.ran) == (Phase.READY, ["a.txt"], [SETUP])


async def test_a_hub_that_ends_after_the_set_up_is_followed_by_one_that_goes_on(tmp_path):
    async with open_house(tmp_path, projects=project(), checks=FakeChecks({SETUP: install})) as house:
        task = await house.rested((await house.start(WRITE)).id)
        events = list((await house.journal.read())[task.id])
    cut = 1 + next(number for number, event in enumerate(events) if isinstance(event, Rebased))
    journal, checks = HeldJournal(), FakeChecks()
    await journal.append(task.id, events[:cut], expect=0)
    (house.worker.orders[0].folder / "a.txt").unlink()
    kept = {"workspace": house.workspace, "clock": house.clock}
    async with open_house(tmp_path, checks=checks, journal=journal, **kept) as house:
        task = await house.rested(task.id)
        assert (task.phase, paths(task.turn.changes), checks.ran) == (Phase.READY, ["a.txt"], [])


async def test_what_a_folder_needs_and_what_is_never_sent_is_told_to_the_workspace(tmp_path):
    class Told(FakeWorkspace):
        async def snapshot(self, root, buffers, never_send=()):
            told.append(("snapshot", never_send))
            return await super().snapshot(root, buffers, never_send)

        async def open_folder(self, task, root, base, carry=(), never_send=()):
            told.append(("open_folder", carry, never_send))
            return await super().open_folder(task, root, base, carry, never_send)

    told = []
    projects = FakeProjects(ProjectSettings(carry=(".env",), never_send=("*.pem",), trusted=True))
    async with open_house(tmp_path, projects=projects, workspace=Told(tmp_path / "state")) as house:
        await house.rested((await house.start(WRITE)).id)
        assert told == [("snapshot", ("*.pem",)), ("open_folder", (".env",), ("*.pem",))]


async def test_a_set_up_has_no_place_in_the_time_that_a_task_may_work(tmp_path):
    checks = FakeChecks()
    checks.gates[SETUP] = asyncio.Event()
    async with open_house(tmp_path, projects=project(), checks=checks) as house:
        task = await house.start(WRITE)
        await checks.waiting.wait()
        house.clock.advance(3600)
        checks.gates[SETUP].set()
        assert (await house.rested(task.id)).turn.worked_s == 0.0
