"""What is said of a turn while it runs is what is known: signs of life, a server that wants to know who asks, the right folder."""

import base64

import pytest

from offload.core.worker import Alive, Doing, Failed, Finished, Seen
from offload.domain.errors import WorkerBroken
from offload.domain.turn import Activity, ActivityKind
from offload.processes import MARKER
from offload.workers.opencode.servers import Attach
from tests.workers.rig import PROMPT, SEND, environment_of, open_own_rig, open_rig


@pytest.fixture
async def rig(tmp_path):
    async with open_rig(tmp_path) as rig:
        yield rig


def tool(rig, output=""):
    state = {"status": "running", "input": {"command": "make test"}, "metadata": {"output": output}}
    part = {"id": "prt_t", "sessionID": rig.session, "messageID": "m", "type": "tool", "tool": "bash", "callID": "c"}
    rig.server.emit("message.part.updated", part={**part, "state": state})


def kinds(turn):
    return [doing.activity.kind for doing in turn.of(Doing)]


async def test_a_tool_that_prints_is_a_sign_of_life_now_and_then(rig):
    """Core counts the time without any; the activity is the same all the while, and is told once."""
    async with rig.turn() as turn:
        await rig.sent()
        tool(rig)
        await turn.event(Doing)
        for number in range(1, 3):
            await rig.pass_time(10)
            tool(rig, "a line\n" * number)
        assert not turn.of(Alive)
        await rig.pass_time(4)
        tool(rig, "a line\n" * 3)
        await turn.event(Alive)
    assert len(turn.of(Doing)) == len(turn.of(Alive)) == len(turn.of(Seen)) == 1


async def test_a_silent_tool_gives_no_sign_of_life_however_the_connection_does(rig):
    async with rig.turn() as turn:
        await rig.sent()
        tool(rig)
        await turn.event(Doing)
        for _ in range(10):
            await rig.pass_time(30)
            rig.server.emit("server.heartbeat")
    assert not turn.of(Alive)
    assert kinds(turn) == [ActivityKind.TOOL]


@pytest.mark.parametrize("before", [True, False])
async def test_a_worker_that_comes_back_does_again_what_it_did_before(rig, before):
    async with rig.turn() as turn:
        await rig.sent()
        if before:
            part = {"id": "p", "sessionID": rig.session, "messageID": "m", "type": "reasoning", "text": ""}
            rig.server.emit("message.part.updated", part=part)
            await turn.event(Doing)
        for _ in range(4):
            await rig.pass_time(20)
            rig.server.emit("server.heartbeat")
        assert turn.of(Doing)[-1].activity == Activity(ActivityKind.STALLED, since=1_000_000.0)
        rig.server.emit("message.updated", sessionID=rig.session, info=rig.server.assistant(rig.session, "another"))
        await turn.event(Doing, 3 if before else 2)
        await rig.pass_time(80)
        await turn.event(Doing, 4 if before else 3)
    thinking, stalled = ActivityKind.THINKING, ActivityKind.STALLED
    assert kinds(turn) == [thinking, stalled, thinking, stalled][0 if before else 1 :]


@pytest.mark.parametrize(
    ("sent", "gap"), [(b": heartbeat\n\n", 30), (b'data: {"type":"server.heartbeat","properties":{}}\n\n', 24)]
)
async def test_any_byte_is_life_of_the_connection_and_none_of_it_is_of_the_worker(rig, sent, gap):
    """Report H04: comment lines were not counted as life, so that healthy streams were cut every 45 s."""
    async with rig.turn() as turn:
        await rig.sent()
        for _ in range(180 // gap):
            await rig.pass_time(gap)
            rig.server.send(sent)
            await rig.pass_time(2)
        assert rig.server.opened_streams == 1
        assert kinds(turn) == [ActivityKind.STALLED]


async def test_a_stream_that_wants_to_know_who_asks_is_told_as_that(rig):
    """Report H07: 401 was taken for a server that is down."""
    rig.server.refusals["GET /event"] = 401
    async with rig.turn() as turn:
        for times in range(1, 17):
            await rig.server.called("GET /event", times)
            await rig.clock.sleepers(2)
            rig.clock.advance(2)
        assert "password" in (await turn.event(Failed)).failure.message
    assert rig.server.count(SEND) == 0


async def test_a_server_that_wants_to_know_who_asks_in_the_middle_of_a_turn_is_neither_dead_nor_replaced(tmp_path):
    async with open_own_rig(tmp_path) as rig:
        async with rig.turn() as turn:
            await rig.sent()
            before = rig.worker._servers.identities()
            rig.server.refusals["GET /session.*"] = 401
            await rig.pass_time(20)
            rig.server.refusals.clear()
            rig.server.assistant(rig.session, PROMPT, "done")
            rig.server.status.clear()
            await rig.pass_time(2)
            assert (await turn.event(Finished)).text == "done"
        assert rig.worker._servers.identities() == before


async def test_the_user_of_somebody_elses_server_is_the_one_that_was_set(tmp_path):
    password = tmp_path / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    async with open_rig(tmp_path, lambda url: Attach(url, password, "somebody")) as rig:
        await rig.worker.describe({})
        assert rig.server.authorizations == {"Basic " + base64.b64encode(b"somebody:secret").decode()}


@pytest.mark.parametrize("exported", [{}, {"OPENCODE_SERVER_PASSWORD": ""}, {"OPENCODE_SERVER_PASSWORD": "theirs"}])
async def test_a_server_of_ours_has_a_password_of_its_own_whatever_the_users_shell_exports(tmp_path, exported):
    """Report H07: with the variable unset or empty newer servers make up one."""
    async with open_own_rig(tmp_path) as rig:
        async with rig.turn(environment={**exported, "OPENCODE_SERVER_USERNAME": "somebody"}):
            await rig.sent()
            (server,) = rig.worker._servers._servers.values()
            environment = environment_of(server.identity.pid)
        sent = base64.b64encode(f"opencode:{environment['OPENCODE_SERVER_PASSWORD']}".encode()).decode()
        assert rig.server.authorizations == {f"Basic {sent}"}
        assert len(environment["OPENCODE_SERVER_PASSWORD"]) >= 32
        assert "OPENCODE_SERVER_USERNAME" not in environment
        assert environment[MARKER] == server.marker


async def test_a_server_that_would_work_in_another_folder_is_given_no_prompt(rig):
    """Public trouble report: a session was made in another folder than the one that was named (H05)."""
    rig.server.directory = "/somewhere/else"
    with pytest.raises(WorkerBroken, match=f"would work in /somewhere/else in place of {rig.folder}"):
        async with rig.worker.turn(rig.order()):
            raise AssertionError
    assert rig.server.count("DELETE /session/ses_.*") == 1


async def test_a_folder_by_another_name_is_the_same(rig):
    (rig.folder / "real").mkdir()
    (rig.folder / "link").symlink_to(rig.folder / "real")
    rig.server.directory = str(rig.folder / "real")
    rig.folder = rig.folder / "link"
    async with rig.turn():
        await rig.sent()


@pytest.mark.parametrize(
    ("model", "goes"),
    [("opencode/big-pickle", "tasks would go to opencode/big-pickle at OpenCode"), ("", "it knows no model")],
)
async def test_without_a_sign_in_it_is_told_where_code_would_go_and_how_to_change_that(tmp_path, model, goes):
    """OpenCode offers models that it hosts itself to everybody, so that there are models proves nothing."""
    async with open_own_rig(tmp_path) as own, open_rig(tmp_path) as attached:
        for rig, how in ((own, f"; sign in with `{tmp_path}"), (attached, "")):
            assert (await rig.worker.describe({})).note == ""
            models = {"big-pickle": rig.server.providers[0]["models"]["worker"]} if model else {}
            rig.server.providers[:] = [{"id": "opencode", "source": "custom", "models": models}]
            rig.server.config["model"] = model
            note = (await rig.worker.describe({})).note
            assert note.startswith(f"no sign-in found: {goes}{how}")
            assert note.endswith("auth login`" if how else goes)
