"""A follow-up that brings the task's folder onto newer files first: the user's own, or another task's result."""

import pytest

from offload.core.continuing import BROUGHT_ONTO
from offload.core.documents import Document
from offload.core.limits import Limits
from offload.core.turns.preparing import MARKED
from offload.domain.check import Check, Checked, CheckPlan
from offload.domain.errors import ApplyRefused, GitFailed, InvalidRequest, KeyReused, UnknownTask, WrongPhase
from offload.domain.project import ProjectSettings
from offload.domain.review import Selection
from offload.domain.task import Phase
from tests.fakes.checks import FakeChecks
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects
from tests.fakes.workspace import FakeWorkspace


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path) as house:
        yield house


async def done(house, brief, **request):
    return await house.rested((await house.start(brief, **request)).id)


async def onto(house, task, target, brief="", **request):
    await house.delegation.continue_(house.caller, task.id, brief, onto=target, **request)
    return await house.rested(task.id)


def paths(changes):
    return [file.path for file in changes.files]


async def test_a_follow_up_finds_its_own_changes_on_top_of_the_users_files_of_now(house):
    task = await done(house, "::write a.txt one")
    base = task.base
    (house.root / "shop.py").write_text("new")
    task = await onto(house, task, "files", "::write b.txt two")
    folder = house.worker.orders[1].folder
    assert ((folder / "shop.py").read_text(), (folder / "a.txt").read_text()) == ("new", "one")
    assert (task.phase, task.base == base, task.turn.onto) == (Phase.READY, False, "files")
    assert (paths(task.turn.changes), paths(task.turn.own)) == (["a.txt", "b.txt"], ["b.txt"])
    assert task.turns[0].changes.base == base
    assert (task.turn.marked, task.turn.prompt) == ((), "::write b.txt two")


async def test_what_comes_after_is_measured_from_there_too(house):
    task = await done(house, "::write a.txt one")
    (house.root / "shop.py").write_text("new")
    task = await onto(house, task, "files", "::write b.txt two")
    await house.delegation.continue_(house.caller, task.id, "::write c.txt three")
    task = await house.rested(task.id)
    assert (paths(task.turn.changes), paths(task.turn.own)) == (["a.txt", "b.txt", "c.txt"], ["c.txt"])


async def test_without_words_the_worker_is_told_what_has_happened(house):
    task = await done(house, "::write a.txt one")
    task = await onto(house, task, "files")
    assert (task.turn.brief, house.worker.orders[1].prompt) == (BROUGHT_ONTO, BROUGHT_ONTO)
    with pytest.raises(InvalidRequest, match="brief is empty"):
        await house.delegation.continue_(house.caller, task.id, " ")


async def test_a_result_on_newer_files_is_checked_even_if_the_worker_changed_nothing(tmp_path):
    projects = FakeProjects(ProjectSettings(plan=CheckPlan(checks=(Check("tests", "make test"),)), trusted=True))
    checks = FakeChecks()
    async with open_house(tmp_path, projects=projects, checks=checks) as house:
        task = await done(house, "::write a.txt one")
        (house.root / "shop.py").write_text("new")
        task = await onto(house, task, "files", "::text it still fits")
        assert (task.turn.own.files, task.turn.checked, checks.ran) == ((), Checked.PASSED, ["make test"] * 2)


async def test_texts_that_editors_have_not_saved_are_the_users_files(house):
    task = await done(house, "::write a.txt one")
    house.delegation.documents.put(Document("lsp-1", house.root / "shop.py", "typed", 1))
    await onto(house, task, "files", "::text look")
    assert (house.worker.orders[1].folder / "shop.py").read_text() == "typed"


async def test_conflicts_are_marked_for_the_worker_and_said(house):
    task = await done(house, "::write shop.py worker's\n::write a.txt one")
    (house.root / "shop.py").write_text("user's")
    task = await onto(house, task, "files", "::write shop.py both")
    assert task.turn.marked == ("shop.py",)
    prompt = house.worker.orders[1].prompt
    assert prompt == f"{MARKED}shop.py\n\n::write shop.py both"
    assert task.notes == ("conflicts were marked for the worker in shop.py",)
    assert (paths(task.turn.changes), paths(task.turn.own)) == (["a.txt", "shop.py"], ["shop.py"])
    await house.delegation.apply(house.caller, task.id)
    assert (house.root / "shop.py").read_text() == "both"


async def test_marks_that_the_worker_left_are_a_reason_to_look(house):
    task = await done(house, "::write shop.py worker's\n::write a.txt one")
    (house.root / "shop.py").write_text("user's")
    task = await onto(house, task, "files", "::text done")
    assert task.turn.needs_review == "conflicts are still marked in shop.py"
    for brief, doubt in (("::write b.txt two", "conflicts are still marked in shop.py"), ("::write shop.py both", "")):
        await house.delegation.continue_(house.caller, task.id, brief)
        assert (await house.rested(task.id)).turn.needs_review == doubt, "a turn that leaves them there does not end it"


async def test_marks_that_the_worker_left_are_applied_only_by_name_and_never_built_upon(house):
    """They came into the user's file without a word."""
    task = await done(house, "::write shop.py worker's\n::write a.txt one")
    (house.root / "shop.py").write_text("user's")
    task = await onto(house, task, "files", "::text done")
    with pytest.raises(ApplyRefused, match=r"Nothing was written. shop\.py holds marks of a conflict that its worker"):
        await house.delegation.apply(house.caller, task.id)
    assert (house.root / "shop.py").read_text() == "user's"
    assert not (house.root / "a.txt").exists()
    await onto(house, await done(house, "::write b.txt two"), task.id, "::text look")
    folder = house.worker.orders[-1].folder
    assert ((folder / "a.txt").read_text(), (folder / "shop.py").read_text()) == ("one", "user's")
    await house.delegation.apply(house.caller, task.id, Selection(paths=("shop.py",)))
    assert (house.root / "shop.py").read_text().startswith("<<<<<<<")


async def test_a_follow_up_can_be_brought_onto_another_tasks_result(house):
    first = await done(house, "::write a.txt one")
    second = await done(house, "::write b.txt two")
    second = await onto(house, second, first.id[:12], "::text look")
    folder = house.worker.orders[2].folder
    assert ((folder / "a.txt").read_text(), (folder / "b.txt").read_text()) == ("one", "two")
    assert (paths(second.turn.changes), second.turn.onto) == (["b.txt"], first.id)


async def test_what_was_rejected_of_another_task_is_not_built_upon(house):
    first = await done(house, "::write a.txt one\n::write c.txt no")
    await house.delegation.reject(house.caller, first.id, Selection(paths=("c.txt",)), "not so", send_back=False)
    second = await onto(house, await done(house, "::write b.txt two"), first.id, "::text look")
    folder = house.worker.orders[2].folder
    assert (sorted(path.name for path in folder.iterdir())) == ["a.txt", "b.txt", "shop.py"]
    assert paths(second.turn.changes) == ["b.txt"]


async def test_what_another_task_was_not_allowed_to_change_is_not_built_upon(house):
    first = await done(house, "::write a.txt one\n::write c.md yes", allowed_paths=("*.md",))
    await onto(house, await done(house, "::write b.txt two"), first.id, "::text look")
    folder = house.worker.orders[2].folder
    assert (sorted(path.name for path in folder.iterdir())) == ["b.txt", "c.md", "shop.py"]


async def test_what_cannot_be_built_upon_is_refused(house, tmp_path):
    task = await done(house, "::write a.txt one")
    with pytest.raises(UnknownTask):
        await house.delegation.continue_(house.caller, task.id, "", onto="nothing")
    with pytest.raises(InvalidRequest, match="cannot be brought onto its own result"):
        await house.delegation.continue_(house.caller, task.id, "", onto=task.id)
    live = await house.start("::gate door")
    await house.worker.gate("door").reached.wait()
    with pytest.raises(WrongPhase, match="can be built upon when it is over"):
        await house.delegation.continue_(house.caller, task.id, "", onto=live.id)
    (tmp_path / "other").mkdir()
    other = await done(house, "::write a.txt x", workspace=str(tmp_path / "other"))
    with pytest.raises(InvalidRequest, match="is of another workspace"):
        await house.delegation.continue_(house.caller, task.id, "", onto=other.id)
    waiting = await house.start("::text x", after=(live.id,))
    await house.delegation.cancel(house.caller, waiting.id)
    with pytest.raises(WrongPhase, match="has no changes yet"):
        await house.delegation.continue_(house.caller, task.id, "", onto=waiting.id)
    house.worker.gate("door").open()
    assert house.delegation.get(task.id) == task


async def test_a_key_belongs_to_what_it_is_brought_onto_as_well(house):
    task = await done(house, "::write a.txt one")
    task = await onto(house, task, "files", "::text more", key="k")
    again = await house.delegation.continue_(house.caller, task.id, "::text more", key="k", onto="files")
    assert len(again.turns) == 2
    with pytest.raises(KeyReused):
        await house.delegation.continue_(house.caller, task.id, "::text more", key="k")


async def test_a_result_that_went_away_meanwhile_fails_the_turn(tmp_path):
    async with open_house(tmp_path, limits=Limits(tasks_per_workspace=1)) as house:
        first, second = await done(house, "::write a.txt one"), await done(house, "::write b.txt two")
        await house.start("::gate door")
        await house.worker.gate("door").reached.wait()
        await house.delegation.continue_(house.caller, second.id, "", onto=first.id)
        await house.delegation.clean(house.caller, None, [first.id], include_unaccepted=True)
        house.worker.gate("door").open()
        second = await house.rested(second.id)
        assert (second.phase, second.turn.failure.code) == (Phase.FAILED, "unknown_task")


async def test_a_turn_that_was_not_brought_there_is_resumed_with_it(tmp_path):
    class Troubled(FakeWorkspace):
        trouble = None

        async def merge(self, root, onto, changes):
            if self.trouble:
                raise self.trouble
            return await super().merge(root, onto, changes)

    workspace = Troubled(tmp_path / "state")
    async with open_house(tmp_path, workspace=workspace) as house:
        task = await done(house, "::write a.txt one")
        (house.root / "shop.py").write_text("new")
        workspace.trouble = GitFailed("git is not well")
        task = await onto(house, task, "files", "::write b.txt two")
        assert (task.phase, task.turn.changes, paths(house.delegation.get(task.id).turns[0].changes)) == (
            Phase.FAILED,
            None,
            ["a.txt"],
        )
        workspace.trouble = None
        await house.delegation.resume(house.caller, task.id)
        task = await house.rested(task.id)
        assert (task.turn.onto, paths(task.turn.changes), paths(task.turn.own)) == (
            "files",
            ["a.txt", "b.txt"],
            ["b.txt"],
        )
        assert (house.worker.orders[-1].folder / "shop.py").read_text() == "new"
        await house.delegation.continue_(house.caller, task.id, "::fail no")
        task = await house.rested(task.id)
        await house.delegation.resume(house.caller, task.id)
        assert (await house.rested(task.id)).turn.onto == ""
