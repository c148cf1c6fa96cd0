"""A turn that is stopped, and what its tools leave behind: nothing may write after the end is told."""

import asyncio
import os
import signal
from functools import partial

import pytest

from offload.core.worker import AskOpened, Failed, Finished, Halted, Lost, Unstopped
from offload.domain.route import Route
from offload.domain.turn import Failure, Survivor
from offload.domain.usage import Usage
from offload.processes import Ended, Identity, Stray, alive, end_strays, identify
from offload.workers.left import told
from tests.workers.rig import NAMED, PROMPT, SEND, away, open_own_rig, open_rig, request

SLEEP = f"{NAMED}; exec sleep 600"
OTHER = "turn_228aa1023002lhd6PV9O6bZmG4"


@pytest.fixture
async def rig(tmp_path):
    async with open_own_rig(tmp_path) as rig:
        yield rig


def server_of(rig):
    (identity,) = rig.worker._servers.identities()
    return identity


async def test_a_stop_ends_what_left_its_shell_its_group_and_its_session(rig):
    """Report H06: the cancel ended the turn, and a detached grandchild went on writing."""
    async with rig.turn() as turn:
        await rig.sent()
        pid = identify(await rig.tool(away("while :; do date >> written; sleep 0.02; done")))
        await turn.turn.stop()
        assert await turn.event(Halted) == Halted("")
        assert not alive(pid)
        assert alive(server_of(rig))


async def test_what_the_tools_left_is_ended_before_a_good_end_is_told_and_a_person_should_look(rig):
    """It would change files after the result was read."""
    async with rig.turn() as turn:
        await rig.sent()
        pid = identify(await rig.tool(away("exec sleep 600")))
        rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.status.clear()
        rig.server.emit("session.idle", sessionID=rig.session)
        end = await turn.event(Finished)
    assert end.doubt == f"ended 1 process that the worker had left running: {pid.pid} (sleep 600)"
    assert not alive(pid)


async def test_a_stopped_turn_keeps_what_was_said_before_the_abort(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, "half", error={"name": "MessageAbortedError", "data": {}})
        await turn.turn.stop()
        assert await turn.event(Halted) == Halted("half")


async def test_what_works_outside_of_the_folder_is_ended_when_the_turn_ran_alone(rig):
    async with rig.turn() as turn:
        await rig.sent()
        pid = identify(await rig.tool(f"cd / && setsid sh -c 'echo $$ > {rig.folder}/pid; exec sleep 600' &"))
        await turn.turn.stop()
        await turn.event(Halted)
    assert not alive(pid)


async def test_what_works_outside_of_the_folder_is_left_when_another_turn_may_have_started_it(rig):
    other = rig.order(turn=OTHER, folder=rig.folder.parent)
    async with rig.worker.turn(other), rig.turn() as turn:
        await rig.sent()
        await asyncio.to_thread(
            rig.pipe.write_text,
            f"cd / && setsid sh -c 'echo $$ > {rig.folder}/new; mv {rig.folder}/new {rig.folder}/pid; exec sleep 600' &\n",
        )
        pid = identify(await rig.tool("true"))
        await turn.turn.stop()
        await turn.event(Halted)
        assert alive(pid)
    await rig.worker.aclose()
    assert not alive(pid), "with its server it is nobody's any more"


async def test_what_cannot_be_ended_is_named_and_the_turn_is_not_called_stopped(tmp_path):
    end = partial(end_strays, grace_s=0.01, send=lambda pid, number: None, wait_s=0.01)
    async with open_own_rig(tmp_path, end=end) as rig, rig.turn() as turn:
        await rig.sent()
        pid = await rig.tool(away("exec sleep 600"))
        await turn.turn.stop()
        assert await turn.event(Unstopped) == Unstopped((Survivor(pid, "sleep 600"),))
        os.kill(pid, signal.SIGKILL)


def stray(pid, command="sh  -c\n" + "x" * 80, *, root=True):
    return Stray(Identity(pid, 1.0), command, root)


STILL = "left processes that could not be ended and may still write: 1 (sleep 600)"


def test_what_is_left_is_said_of_every_kind_of_end():
    ended = Ended(survivors=(stray(1, "sleep 600"),))
    finished = told(Finished("text", Route("w"), Usage(), "odd"), ended)
    assert finished.doubt == f"odd; the worker {STILL}"
    failed = told(Failed(Failure("code", "It broke."), "text"), ended)
    assert failed == Failed(Failure("code", f"It broke. The worker {STILL}."), "text")
    assert told(Lost("It went."), ended) == Lost(f"It went. The worker {STILL}.")
    for end in (failed, Lost("It went."), Halted("text")):
        assert told(end, Ended(gone=(stray(1),))) == end


def test_of_many_processes_a_few_are_named_in_one_line():
    ended = Ended(gone=(*map(stray, range(1, 6)), stray(9, root=False)))
    doubt = told(Finished("text", Route("w"), Usage()), ended).doubt
    short = "sh -c " + "x" * 53 + "…"
    assert doubt == (
        f"ended 5 processes that the worker had left running: 1 ({short}), 2 ({short}), 3 ({short}) and 2 more"
    )


async def test_a_sub_agent_that_is_made_during_the_stop_is_stopped_as_well(rig):
    rig.server.idle_on_abort = False
    async with rig.turn() as turn:
        await rig.sent()
        await turn.turn.stop()
        await rig.server.called(f"POST /session/{rig.session}/abort")
        rig.server.children[rig.session] = ["ses_late"]
        rig.server.messages["ses_late"] = []
        rig.server.status = {"ses_late": {"type": "busy"}}
        rig.server.idle_on_abort = True
        await rig.pass_time(8)
        await turn.event(Halted)
    assert rig.server.count("POST /session/ses_late/abort") == 1


async def test_a_sub_agent_that_is_gone_by_the_time_of_the_stop_does_not_keep_it(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.emit("session.created", sessionID="ses_gone", info={"id": "ses_gone", "parentID": rig.session})
        rig.server.emit("permission.asked", **request("per_1", "ses_gone"))
        await turn.event(AskOpened)
        await turn.turn.stop()
        await turn.event(Halted)
    assert rig.server.count("POST /session/ses_gone/abort") == 1


async def test_a_server_that_does_not_stop_is_ended_when_it_works_for_nobody_else(rig):
    """Reported of OpenCode: busy for ever, whatever is aborted."""
    rig.server.idle_on_abort = False
    async with rig.turn() as turn:
        await rig.sent()
        server = server_of(rig)
        await turn.turn.stop()
        await rig.pass_time(16)
        assert await turn.event(Halted) == Halted("")
    assert not alive(server)
    assert rig.server.count(f"POST /session/{rig.session}/abort") == 2


async def test_a_server_that_says_nothing_is_ended_in_a_bounded_time_after_a_stop(rig):
    async with rig.turn() as turn:
        await rig.sent()
        server = server_of(rig)
        rig.server.refusals |= {"POST /global/dispose": 500, ".*": "silence"}
        looks = rig.server.count("GET /permission")
        await rig.clock.sleepers(1)
        rig.clock.advance(2)
        await rig.server.called("GET /permission", looks + 1)
        await turn.turn.stop()
        await rig.clock.sleepers(3)  # the tick, the idle server's, and the limit of the stop
        rig.clock.advance(20)
        assert await turn.event(Halted) == Halted("")
    assert not alive(server)


async def test_a_server_that_works_for_others_is_not_ended_and_the_stop_is_called_incomplete(rig):
    rig.server.idle_on_abort = False
    other = rig.order(turn=OTHER, folder=rig.folder.parent)
    async with rig.worker.turn(other), rig.turn() as turn:
        await rig.sent()
        await turn.turn.stop()
        await rig.pass_time(16)
        failure = (await turn.event(Failed)).failure
        assert alive(server_of(rig))
    assert failure.code == "stop_incomplete"
    assert rig.session in failure.message


async def test_a_turn_whose_server_is_killed_is_lost_at_once_and_a_stop_of_it_is_done_at_once(rig):
    """Report H26: the worker died, and its caller waited for hours. Here no time passes at all."""
    async with rig.turn() as turn:
        await rig.sent()
        pid = identify(await rig.tool(away("exec sleep 600")))
        os.kill(server_of(rig).pid, signal.SIGKILL)
        assert "SIGKILL" in (await turn.event(Lost)).reason
    assert not alive(pid)
    rig.server.idle_on_abort = False
    rig.server.status.clear()
    (rig.folder / "pid").unlink()
    async with rig.turn(turn=OTHER) as turn:
        await rig.server.called(SEND, 2)
        await turn.turn.stop()
        await rig.server.called(f"POST /session/{rig.session}/abort")
        os.kill(server_of(rig).pid, signal.SIGKILL)
        assert await turn.event(Halted) == Halted("")


async def test_of_somebody_elses_server_nothing_is_ended(tmp_path):
    async with open_rig(tmp_path) as rig:
        rig.server.idle_on_abort = False
        async with rig.turn() as turn:
            await rig.sent()
            await turn.turn.stop()
            await rig.pass_time(16)
            assert (await turn.event(Failed)).failure.code == "stop_incomplete"
        assert rig.server.count("POST /global/dispose") == 0
