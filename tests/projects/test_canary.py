"""A repository that somebody cloned runs nothing of its own before a person trusts it: the whole core with the real settings
files and real checks, on fakes for the worker and git (report H27)."""

import pytest

from offload.checks import ShellChecks
from offload.core.caller import Caller
from offload.core.delegation import StartRequest
from offload.domain.check import CheckPlan
from offload.domain.task import Front, Phase
from offload.processes import Processes
from offload.projects import ProjectFiles
from tests.fakes.house import open_house

WORK = "::write new.txt done\n::text done"


@pytest.fixture
async def house(tmp_path):
    projects = ProjectFiles(tmp_path / "state")
    async with open_house(tmp_path, projects=projects, checks=ShellChecks(Processes())) as house:
        house.canaries = tmp_path / "canaries"
        house.canaries.mkdir()
        house.file = house.root / "offload.toml"
        write(house)
        yield house


def write(house, more=""):
    """The file asks for a command in every way there is; each leaves a canary."""
    lines = {key: f'touch "{house.canaries}/{key}"' for key in ("setup", "format", "check")}
    house.file.write_text(
        f"setup = '{lines['setup']}'\nformat = '{lines['format']}'\nchecks = ['{lines['check']}']\n{more}\n"
    )


def sung(house):
    return sorted(path.name for path in house.canaries.iterdir())


async def worked(house, front=Front.TERMINAL):
    caller = Caller(front, f"{front}-9", house.root, "test", {"PATH": "/usr/bin:/bin"})
    task = await house.rested((await house.delegation.start(caller, StartRequest(brief=WORK))).id)
    assert task.phase is Phase.READY
    return task


@pytest.mark.parametrize("front", list(Front))
async def test_nothing_of_an_untrusted_file_runs_whoever_starts_a_task(house, front):
    """Nobody is asked: without a person who trusts it, a file is not trusted."""
    task = await worked(house, front)
    assert (task.spec.setup, task.spec.plan) == ("", CheckPlan())
    assert "offload.toml asks for commands (setup, format, checks) and is not trusted" in task.spec.warnings[0]
    assert sung(house) == []


async def test_listing_and_looking_run_nothing(house):
    await house.delegation.list_agents(house.caller)
    house.delegation.tasks()
    await ProjectFiles(house.root.parent / "state").settings(house.root)
    assert sung(house) == []


async def test_all_of_a_trusted_file_runs_in_the_task_folder(house):
    _, settings = await house.delegation.trust(house.caller, "", trusted=True)
    assert settings.trusted
    assert sung(house) == []
    task = await worked(house)
    assert task.spec.warnings == ()
    assert sung(house) == ["check", "format", "setup"]


@pytest.mark.parametrize("more", ["# only a word", "check_rounds = 3", "carry = ['.env']"])
async def test_a_file_that_changes_after_it_was_trusted_runs_nothing_until_it_is_trusted_again(house, more):
    await house.delegation.trust(house.caller, "", trusted=True)
    write(house, more)
    task = await worked(house)
    assert "has changed since it was trusted: run `offload trust` to allow it again" in task.spec.warnings[0]
    assert sung(house) == []
    await house.delegation.trust(house.caller, "", trusted=True)
    await worked(house)
    assert sung(house) == ["check", "format", "setup"]


async def test_a_worker_that_writes_the_file_in_its_own_folder_runs_nothing(house):
    """The file of the user is what counts, never a worker's copy."""
    house.file.unlink()
    canary = house.canaries / "worker"
    task = await house.start(f"::write offload.toml checks = ['touch {canary}']\n::text done")
    task = await house.rested(task.id)
    assert (task.phase, task.spec.warnings, sung(house)) == (Phase.READY, (), [])


async def test_trust_that_is_taken_back_holds_for_the_next_task(house):
    await house.delegation.trust(house.caller, "", trusted=True)
    await house.delegation.trust(house.caller, "", trusted=False)
    await worked(house)
    assert sung(house) == []
