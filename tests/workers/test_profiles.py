"""Profiles on the real OpenCode: what is tried is really refused; and on one that takes rules and forgets them."""

import json

import pytest

from offload.core.worker import AskOpened, Finished
from offload.domain.ask import Answer
from offload.domain.errors import UnknownModel, WorkerBroken
from offload.domain.profile import Profile
from offload.domain.route import Route
from tests.workers.conftest import play
from tests.workers.rig import open_own_rig

opencode = [pytest.mark.opencode, pytest.mark.asyncio(loop_scope="session")]


def marked(test):
    for mark in opencode:
        test = mark(test)
    return test


def tool(name, **arguments):
    return f"::tool {name} {json.dumps(arguments)}"


WRITE = tool("write", filePath="made.txt", content="x")
EDIT = tool("edit", filePath="there.txt", oldString="words", newString="others")
SHELL = tool("bash", command="touch made.txt", description="scripted")
READ = tool("read", filePath="there.txt")


async def refuse(turn, event):
    if isinstance(event, AskOpened):
        await turn.answer(event.ask.id, Answer("deny", "no"))


@marked
async def test_a_reader_reads_and_nothing_that_it_tries_changes_a_file(bench):
    sub = tool("task", description="sub", prompt=f"{WRITE}\n::text c", subagent_type="general")
    order = bench.order(
        "\n".join((WRITE, EDIT, SHELL, sub, READ, "::echo")), profile=Profile.READ_ONLY, commands=("touch made.txt",)
    )
    (order.folder / "there.txt").write_text("words\n")
    events = await play(bench.worker, order, refuse)
    assert [event for event in events if isinstance(event, AskOpened)] == []
    assert isinstance(events[-1], Finished)
    assert "words" in events[-1].text
    assert (order.folder / "there.txt").read_text() == "words\n"
    assert not (order.folder / "made.txt").exists()
    offered = {name for made in bench.model.requests if made["prompt"] == order.prompt for name in made["tools"]}
    assert "read" in offered
    assert offered.isdisjoint({"write", "edit", "bash", "task", "webfetch"})


@marked
async def test_with_all_rights_commands_run_without_asking(bench):
    order = bench.order(f"{SHELL}\n{WRITE}\n::text on", profile=Profile.FULL)
    events = await play(bench.worker, order, refuse)
    assert [event for event in events if isinstance(event, AskOpened)] == []
    assert (order.folder / "made.txt").exists()


@marked
async def test_the_worker_says_which_profiles_it_can_enforce_and_checks_a_route_beforehand(bench):
    info = await bench.worker.describe(bench.environment)
    assert info.profiles == (Profile.READ_ONLY, Profile.WORKSPACE_WRITE, Profile.FULL)
    assert bench.worker.profiles == frozenset(info.profiles)
    await bench.worker.check(Route("opencode", "build", "fake/worker"), bench.environment)
    with pytest.raises(UnknownModel, match="did you mean fake/worker"):
        await bench.worker.check(Route("opencode", model="fake/worke"), bench.environment)


@pytest.fixture
async def rig(tmp_path):
    async with open_own_rig(tmp_path) as rig:
        yield rig


@pytest.mark.parametrize("gives", [[], [{"permission": "*", "pattern": "*", "action": "allow"}]])
async def test_a_session_that_may_more_than_was_asked_for_gets_no_prompt(rig, gives):
    rig.server.gives = gives
    words = "OpenCode gives the session more than the profile workspace-write asks for: .*; nothing was sent"
    with pytest.raises(WorkerBroken, match=words):
        async with rig.turn():
            pass
    assert rig.server.count("POST /session/.*/prompt_async") == 0
    assert rig.server.count("DELETE /session/.*") == 1


async def test_a_session_that_may_more_by_now_is_kept_but_gets_no_prompt(rig):
    rig.server.messages["ses_old"] = []
    rig.server.rules["ses_old"] = []
    with pytest.raises(WorkerBroken, match="nothing was sent"):
        async with rig.turn(session="ses_old"):
            pass
    assert rig.server.count("POST /session/.*/prompt_async") == 0
    assert "ses_old" in rig.server.messages
