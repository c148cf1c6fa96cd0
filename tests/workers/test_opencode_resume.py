"""Turns that were begun by an earlier hub: where they are met again, and what is made of those that nobody works on."""

import pytest

from offload.core.worker import Finished, Halted, Lost, Seen
from offload.processes import Identity
from offload.workers.opencode import marks
from tests.workers.rig import PROMPT, SEND, open_own_rig, open_rig

SESSION = "ses_old"
ENDED = Identity(1, 1.0)


@pytest.fixture
async def rig(tmp_path):
    async with open_rig(tmp_path) as rig:
        rig.server.messages[SESSION] = []
        yield rig


@pytest.fixture
async def own(tmp_path):
    """With a server that offload has started after an earlier one, which kept the session, had ended."""
    async with open_own_rig(tmp_path) as rig:
        async with rig.worker._servers.use({}) as server:
            marks.keep(server.folder, SESSION, ENDED, PROMPT)
        rig.server.messages[SESSION] = []
        yield rig


def attached_mark(rig, prompt=PROMPT):
    marks.keep(rig.folder / "worker/servers/attached", SESSION, Identity(0, 0.0), prompt)


def test_a_mark_says_which_process_kept_a_session_and_what_was_sent(tmp_path):
    folder = tmp_path / "servers/key"
    assert (marks.read(folder, SESSION), marks.find(tmp_path / "servers", SESSION)) == (None, "")
    marks.keep(folder, SESSION, ENDED, PROMPT)
    mark = marks.read(folder, SESSION)
    assert (mark.server, mark.prompt) == (ENDED, PROMPT)
    assert marks.find(tmp_path / "servers", SESSION) == "key"
    marks.forget(folder, SESSION)
    assert marks.find(tmp_path / "servers", SESSION) == ""


@pytest.mark.parametrize("text", ["", "[]", '{"pid": 1}'])
def test_a_mark_that_makes_no_sense_is_none(tmp_path, text):
    marks.keep(tmp_path, SESSION, ENDED)
    (tmp_path / "sessions" / SESSION).write_text(text)
    assert marks.read(tmp_path, SESSION) is None


async def test_a_turn_that_runs_is_followed(rig):
    rig.server.user(SESSION, PROMPT)
    rig.server.status[SESSION] = {"type": "busy"}
    async with rig.turn(session=SESSION, resume=True) as turn:
        await turn.event(Seen)
        rig.server.assistant(SESSION, PROMPT, "done")
        rig.server.status.clear()
        rig.server.emit("session.idle", sessionID=SESSION)
        assert (await turn.event(Finished)).text == "done"
    assert rig.server.count(SEND) == 0


async def test_a_prompt_that_was_never_sent_is_sent_at_once(rig):
    attached_mark(rig, prompt="")
    async with rig.turn(session=SESSION, resume=True):
        await rig.sent()
    assert rig.server.count(SEND) == 1


async def test_a_prompt_that_may_have_come_through_is_waited_for_before_it_is_sent_again(rig):
    """Reported of OpenCode (#38092): it may answer before it has stored the prompt."""
    attached_mark(rig)
    async with rig.turn(session=SESSION, resume=True) as turn:
        await rig.pass_time(2)
        rig.server.user(SESSION, PROMPT)
        rig.server.assistant(SESSION, PROMPT, "done")
        await rig.pass_time(4)
        assert (await turn.event(Finished)).text == "done"
    assert rig.server.count(SEND) == 0


async def test_what_a_server_had_finished_before_it_ended_is_collected(own):
    own.server.user(SESSION, PROMPT)
    own.server.assistant(SESSION, PROMPT, "done")
    async with own.turn(session=SESSION, resume=True) as turn:
        assert (await turn.event(Finished)).text == "done"
    assert own.server.count(SEND) == 0


@pytest.mark.parametrize("error", [None, {"name": "MessageAbortedError", "data": {}}])
async def test_what_a_server_left_in_the_middle_is_lost_at_once(own, error):
    own.server.user(SESSION, PROMPT)
    own.server.assistant(SESSION, PROMPT, "half", completed=error is not None, error=error)
    async with own.turn(session=SESSION, resume=True) as turn:
        lost = await turn.event(Lost)
    assert lost.sure
    assert own.server.count(SEND) == 0


async def test_a_stop_of_what_a_server_left_in_the_middle_is_a_stop(own):
    own.server.user(SESSION, PROMPT)
    async with own.worker.turn(own.order(session=SESSION, resume=True)) as turn:
        await turn.stop()
        ends = [event async for event in turn.events()]
    assert isinstance(ends[-1], Halted)


async def test_a_session_that_is_gone_cannot_be_met_again(rig):
    async with rig.turn(session="ses_gone", resume=True) as turn:
        assert (await turn.event(Lost)).sure


async def test_the_server_of_a_session_is_found_whatever_the_environment_is(own):
    own.server.user(SESSION, PROMPT)
    own.server.assistant(SESSION, PROMPT, "done")
    async with own.turn(session=SESSION, resume=True, environment={"OTHER": "1"}) as turn:
        await turn.event(Finished)
    assert len([*(own.folder.parent / "worker/servers").iterdir()]) == 1
