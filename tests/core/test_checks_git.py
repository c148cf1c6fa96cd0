"""Set-up, checks, newer files and other tasks' results with the real git in a real repository, and with real commands."""

import os

import pytest

from offload.checks import ShellChecks
from offload.domain.check import Check, Checked, CheckPlan
from offload.domain.project import ProjectSettings
from offload.domain.task import Phase
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects
from tests.workspace.repositories import commit_all, fingerprint, git

SHOP = "def price():\n    return 1\n\n\ndef total():\n    return 2\n"


@pytest.fixture
async def house(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "shop.py").write_text(SHOP)
    (root / ".gitignore").write_text("modules/\n")
    git(root, "init", "-q", "-b", "main")
    commit_all(root)
    processes, projects = Processes(), FakeProjects()
    async with (
        GitWorkspaces(tmp_path / "state", processes, os.environ | {"HOME": str(tmp_path)}) as workspace,
        open_house(tmp_path, files={}, workspace=workspace, projects=projects, checks=ShellChecks(processes)) as house,
    ):
        house.caller.environment.update({"PATH": os.environ["PATH"]})
        house.projects = projects
        before = fingerprint(root / ".git")
        yield house
        assert fingerprint(root / ".git") == before


def asks(house, *checks, **says):
    plan = CheckPlan(
        says.pop("formatter", None), tuple(Check(command, command) for command in checks), says.pop("rounds", 0)
    )
    house.projects.now = ProjectSettings(plan=plan, trusted=True, **says)


def paths(changes):
    return sorted(file.path for file in changes.files)


def folder(house):
    return house.worker.orders[-1].folder


async def done(house, brief, **request):
    return await house.rested((await house.start(brief, **request)).id)


async def onto(house, task, target, brief):
    await house.delegation.continue_(house.caller, task.id, brief, onto=target)
    return await house.rested(task.id)


async def test_what_set_up_formatter_and_checks_leave_is_told_apart(house):
    formatter = Check("format", "tr a-z A-Z <a.txt >new && mv new a.txt")
    setup = "mkdir modules && echo 1 >modules/one && echo made >made.txt"
    asks(house, "test -f modules/one && echo junk >junk.txt && rm a.txt", setup=setup, formatter=formatter)
    task = await done(house, "::write a.txt one")
    assert (task.phase, task.turn.checked, paths(task.turn.changes)) == (Phase.READY, Checked.PASSED, ["a.txt"])
    assert (await house.workspace.read(house.root, task.turn.changes.result, "a.txt")) == b"ONE"
    assert (folder(house) / "modules" / "one").exists()
    assert sorted(path.name for path in folder(house).iterdir() if path.name != ".git") == [
        ".gitignore",
        "a.txt",
        "made.txt",
        "modules",
        "shop.py",
    ]
    assert git(folder(house), "status", "--porcelain", "--", "junk.txt") == ""
    await house.delegation.continue_(house.caller, task.id, "::write b.txt two")
    task = await house.rested(task.id)
    assert (paths(task.turn.changes), paths(task.turn.own)) == (["a.txt", "b.txt"], ["b.txt"])


async def test_a_check_that_takes_too_long_fails_and_the_result_is_there(house):
    house.projects.now = ProjectSettings(
        plan=CheckPlan(checks=(Check("slow", "sleep 600", timeout_s=0.2),), rounds=0), trusted=True
    )
    task = await done(house, "::write a.txt one")
    assert (task.phase, task.turn.doubts) == (Phase.READY, "slow: timed out after 0.2 s")


async def test_a_stop_ends_a_real_check(house):
    asks(house, "touch began; exec sleep 600")
    task = await house.start("::write a.txt one")
    task = await house.until(task.id, lambda task: task.phase is Phase.CHECKING and task.activity)
    await house.delegation.cancel(house.caller, task.id)
    task = await house.rested(task.id)
    assert (task.phase, paths(task.turn.changes)) == (Phase.CANCELLED, ["a.txt"])


async def test_a_conflict_is_marked_for_the_worker_resolved_and_applied(house):
    task = await done(house, f"::write shop.py {SHOP.splitlines()[0]} # by the worker")
    (house.root / "shop.py").write_text(SHOP.replace("def price():", "def price(): # by the user"))
    task = await onto(house, task, "files", "::text look first")
    assert "<<<<<<<" in (folder(house) / "shop.py").read_text()
    assert (task.turn.marked, task.turn.needs_review) == (("shop.py",), "conflicts are still marked in shop.py")
    await house.delegation.continue_(house.caller, task.id, "::write shop.py def price(): # by both")
    task = await house.rested(task.id)
    assert (task.turn.needs_review, paths(task.turn.own)) == ("", ["shop.py"])
    await house.delegation.apply(house.caller, task.id)
    assert (house.root / "shop.py").read_text() == "def price(): # by both"


async def test_a_commit_of_the_worker_is_no_obstacle_to_newer_files(house):
    task = await done(house, "::write a.txt one")
    git(folder(house), "add", "-A")
    git(folder(house), "commit", "-qm", "mine")
    (house.root / "shop.py").write_text("new\n")
    (house.root / "other.txt").write_text("of the user")
    task = await onto(house, task, "files", "::write b.txt two")
    assert (paths(task.turn.changes), paths(task.turn.own)) == (["a.txt", "b.txt"], ["b.txt"])
    assert ((folder(house) / "shop.py").read_text(), (folder(house) / "other.txt").read_text()) == (
        "new\n",
        "of the user",
    )
    assert "other.txt" not in git(folder(house), "status", "--porcelain")


async def test_a_task_begins_from_the_merged_results_of_two_others_and_lands_alone(house):
    first = await done(house, f"::write shop.py {SHOP.splitlines()[0]}")
    second = await done(house, "::write b.txt two")
    asks(house, "test -f b.txt")
    task = await done(house, "::write c.txt three", after=(first.id, second.id))
    assert (task.phase, task.turn.checked, paths(task.turn.changes)) == (Phase.READY, Checked.PASSED, ["c.txt"])
    assert (folder(house) / "shop.py").read_text() == "def price():"
    await house.delegation.apply(house.caller, task.id)
    assert ((house.root / "c.txt").read_text(), (house.root / "b.txt").exists()) == ("three", False)


async def test_one_task_is_brought_onto_anothers_result(house):
    first = await done(house, "::write a.txt one")
    task = await done(house, "::write b.txt two")
    task = await onto(house, task, first.id, "::text look")
    assert ((folder(house) / "a.txt").read_text(), paths(task.turn.changes)) == ("one", ["b.txt"])
