"""A model applies what it may, with a person's word where that is set."""

import asyncio
from dataclasses import replace

import pytest

from offload.core.caller import Caller
from offload.domain.ask import Answer, AskKind, AskOutcome, ModelApply
from offload.domain.check import Check, CheckPlan
from offload.domain.errors import ApplyForbidden, ApplyRefused, InvalidRequest, KeyReused, UnknownAsk, WrongPhase
from offload.domain.project import ProjectSettings
from offload.domain.task import Front
from tests.core.results import MODEL, PERSON, TEXT, apply, changed, follow_up, on_disk, reject, result
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects

APART = changed(2, 30)
FILES = {"a.txt": TEXT, "b.txt": TEXT}


@pytest.fixture
async def house(tmp_path):
    async with open_house(tmp_path, files=FILES) as house:
        yield house


async def asked(house, task, *hunks, caller=MODEL, **selection):
    """The task after a model wanted to apply it and was told to wait."""
    with pytest.raises(ApplyForbidden, match=r"the user is asked whether .* wait_for_tasks tells what comes of it"):
        await apply(house, task, *hunks, caller=caller, **selection)
    return house.delegation.get(task.id)


async def answer(house, task, choice, caller=PERSON, ask="", message="", key=""):
    return await house.delegation.answer(caller, task.id, ask, Answer(choice, message), key)


async def test_where_it_is_allowed_a_model_applies_what_it_started(tmp_path):
    async with open_house(tmp_path, files=FILES, mcp_apply=ModelApply.ALLOW) as house:
        task = await result(house, {"a.txt": APART}, MODEL)
        _, landing = await apply(house, task, caller=replace(MODEL, id="mcp-2"))
        assert (on_disk(house), landing.by) == (APART, "claude-code")
        _, again = await apply(house, task, caller=MODEL)
        assert (again.unchanged, again.id != landing.id) == (("a.txt",), True)


@pytest.mark.parametrize("setting", ModelApply)
async def test_a_model_never_applies_what_another_started(tmp_path, setting):
    async with open_house(tmp_path, files=FILES, mcp_apply=setting) as house:
        for owner in (None, replace(MODEL, name="another")):
            task = await result(house, {"a.txt": APART}, owner)
            with pytest.raises(ApplyForbidden, match="was not started by claude-code: only the user can apply it"):
                await apply(house, task, caller=MODEL)
            assert not house.delegation.get(task.id).asks
        assert on_disk(house) == TEXT


async def test_where_it_is_never_allowed_nobody_is_asked(tmp_path):
    async with open_house(tmp_path, files=FILES, mcp_apply=ModelApply.NEVER) as house:
        task = await result(house, {"a.txt": APART}, MODEL)
        with pytest.raises(ApplyForbidden, match=f"mcp_apply is never.*`offload apply {task.id}`"):
            await apply(house, task, caller=MODEL)
        assert house.delegation.get(task.id) == task
        await apply(house, task)
        assert on_disk(house) == APART


async def test_a_person_is_asked_in_words_and_once(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3), "c.txt": "new\n"}, MODEL)
    task = await asked(house, task)
    task = await asked(house, task, key="another")
    (ask,) = task.asks.values()
    assert (ask.kind, ask.subject, ask.detail, ask.choices) == (
        AskKind.PERMISSION,
        "apply",
        "3 files, +4 -3",
        ("allow", "deny"),
    )
    assert (task.asking, on_disk(house)) == (True, TEXT)
    task = await asked(house, task, paths=("b.txt",))
    assert [ask.detail for ask in task.asks.values()] == ["3 files, +4 -3", "1 file, +1 -1"]


async def test_an_allowed_apply_is_the_one_that_was_asked_for(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)}, MODEL)
    task = await asked(house, task, paths=("a.txt",), key="k")
    (ask,) = task.asks
    task = await answer(house, task, "allow", key="yes")
    (landing,) = task.landings
    assert (on_disk(house), on_disk(house, "b.txt")) == (APART, TEXT)
    assert (landing.by, landing.wanted, landing.key) == ("claude-code via Neovim", ("a.txt",), "k")
    assert (task.asks, task.closings[0].ask.id, task.closings[0].by) == ({}, ask, "Neovim")
    assert (await apply(house, task, caller=MODEL, paths=("a.txt",), key="k"))[1] == landing
    assert (await apply(house, task, caller=MODEL, paths=("a.txt",)))[1] == landing
    assert (await answer(house, task, "allow", key="yes")).landings == (landing,)
    with pytest.raises(KeyReused):
        await answer(house, task, "deny", key="yes")
    with pytest.raises(UnknownAsk, match="Neovim answered 'allow'"):
        await answer(house, task, "deny", ask=ask)


async def test_a_consent_survives_a_restart(tmp_path):
    async with open_house(tmp_path, files=FILES) as house:
        task = await result(house, {"a.txt": APART}, MODEL)
        hunk = task.turn.changes.units[1]
        await asked(house, task, hunk)
    parts = {name: getattr(house, name) for name in ("journal", "workspace", "worker", "clock")}
    async with open_house(tmp_path, **parts) as house:
        task = await answer(house, task, "allow", house.caller)
        assert (on_disk(house), task.landings[0].units) == (changed(30), (hunk,))
        assert task.landings[0].by == "claude-code via test"


async def test_a_denied_apply_is_not_done_and_not_asked_for_again(house):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)}, MODEL)
    task = await asked(house, task)
    task = await answer(house, task, "deny", message="not yet")
    assert (task.asks, task.landings, on_disk(house)) == ({}, (), TEXT)
    assert (task.closings[0].outcome, task.closings[0].message) == (AskOutcome.ANSWERED, "not yet")
    with pytest.raises(
        ApplyForbidden, match=f"Neovim does not want this part of task {task.id} to be applied: not yet; only"
    ):
        await apply(house, task, caller=MODEL)
    task = await asked(house, task, paths=("a.txt",))
    task = await answer(house, task, "deny")
    with pytest.raises(ApplyForbidden, match="to be applied; only the user can apply it now"):
        await apply(house, task, caller=MODEL, paths=("a.txt",))


async def test_no_model_answers_for_a_person_and_no_other_word_counts(house):
    task = await result(house, {"a.txt": APART}, MODEL)
    task = await asked(house, task)
    for model in (MODEL, Caller(Front.MODEL, "mcp-2", house.root, "another")):
        with pytest.raises(ApplyForbidden, match="is asked of the user"):
            await answer(house, task, "allow", model)
    with pytest.raises(InvalidRequest, match="choice must be one of allow, deny, not 'always'"):
        await answer(house, task, "always")
    assert house.delegation.get(task.id) == task


async def test_a_conflict_that_is_met_with_the_word_leaves_the_ask_open(house):
    task = await result(house, {"a.txt": APART}, MODEL)
    task = await asked(house, task)
    (house.root / "a.txt").write_text("mine\n")
    with pytest.raises(ApplyRefused):
        await answer(house, task, "allow")
    assert house.delegation.get(task.id) == task
    (house.root / "a.txt").write_text(TEXT)
    task = await answer(house, task, "allow")
    assert (on_disk(house), task.asks) == (APART, {})


async def test_a_wait_goes_on_until_the_user_has_answered(house):
    task = await result(house, {"a.txt": APART}, MODEL)
    assert (await house.wait(task.id)).done
    task = await asked(house, task)
    waited = await house.wait(task.id)
    assert (waited.done, waited.tasks) == (False, (task,))
    waiting = asyncio.create_task(house.wait(task.id, after_revision={task.id: task.revision}))
    await answer(house, task, "allow")
    waited = await waiting
    assert (waited.done, len(waited.tasks[0].landings)) == (True, 1)


@pytest.mark.parametrize("what", ["continue", "close", "reject"])
async def test_a_consent_is_over_when_the_result_moves_on(house, what):
    task = await result(house, {"a.txt": APART, "b.txt": changed(3)}, MODEL)
    task = await asked(house, task, paths=("a.txt",))
    (ask,) = task.asks
    if what == "continue":
        task = await follow_up(house, task, {"b.txt": TEXT})
    elif what == "close":
        task = await house.delegation.close(house.caller, task.id)
    else:
        await reject(house, task, paths=("b.txt",))
        assert house.delegation.get(task.id).asks
        task = await reject(house, task)
    assert (task.asks, task.closings[0].outcome) == ({}, AskOutcome.WITHDRAWN)
    with pytest.raises(UnknownAsk, match="the result has moved on since"):
        await answer(house, task, "allow", ask=ask)
    assert on_disk(house) == TEXT


async def test_a_consent_is_over_when_the_result_is_checked_again(tmp_path):
    """A formatter may change it."""
    projects = FakeProjects(ProjectSettings(plan=CheckPlan(checks=(Check("tests", "make test"),)), trusted=True))
    async with open_house(tmp_path, files=FILES, projects=projects) as house:
        task = await asked(house, await result(house, {"a.txt": APART}, MODEL))
        await house.delegation.run_checks(house.caller, task.id)
        task = await house.rested(task.id)
        assert (task.asks, task.closings[0].outcome) == ({}, AskOutcome.WITHDRAWN)


async def test_the_consent_for_a_closed_task_can_still_be_asked_and_given(house):
    task = await result(house, {"a.txt": APART}, MODEL)
    await house.delegation.close(house.caller, task.id)
    await asked(house, task)
    await answer(house, task, "allow")
    assert on_disk(house) == APART


async def test_a_model_is_told_what_is_wrong_before_anybody_is_asked(house):
    task = await result(house, {"a.txt": APART}, MODEL)
    with pytest.raises(InvalidRequest):
        await apply(house, task, "none", caller=MODEL)
    house.worker.script = held = Held()
    await house.delegation.continue_(house.caller, task.id, "more")
    with pytest.raises(WrongPhase):
        await apply(house, task, caller=MODEL)
    held.open.set()
    assert not (await house.rested(task.id)).asks


class Held:
    """A script that waits."""

    def __init__(self):
        self.open = asyncio.Event()

    async def __call__(self, stage):
        await stage.seen()
        await self.open.wait()


async def test_a_model_without_a_name_is_any_model_without_one(house):
    nobody = replace(MODEL, name="")
    task = await result(house, {"a.txt": APART}, nobody)
    task = await asked(house, task, caller=nobody)
    task = await answer(house, task, "allow", replace(PERSON, name=""))
    assert task.landings[0].by == "a model via an editor"
