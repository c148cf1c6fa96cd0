"""Turns against a server that misbehaves as real ones were seen or reported to; time is moved by hand."""

import asyncio
import json
import re

import httpx
import pytest

from offload.core.worker import AskOpened, AskOver, Doing, Failed, Finished, Halted, Lost, Said, Seen, Used
from offload.domain.ask import Answer, AskKind, AskOutcome
from offload.domain.errors import UnknownAgent, UnknownAsk, UnknownModel, WorkerBroken
from offload.domain.route import Route
from offload.domain.turn import ActivityKind
from offload.workers.opencode.client import call
from tests.fakes.opencode_server import FakeOpenCode
from tests.workers.rig import PROMPT, SEND, STATUS, open_rig, request


@pytest.fixture
async def rig(tmp_path):
    async with open_rig(tmp_path) as rig:
        yield rig


async def test_a_turn_ends_with_the_text_of_the_finished_message(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.status.clear()
        rig.server.emit("session.idle", sessionID=rig.session)
        end = await turn.event(Finished)
    assert (end.text, end.doubt, end.usage.cost) == ("done", "", 0.5)
    assert end.ran == Route("opencode", "build", "fake/worker")
    assert isinstance(turn.events[1], Seen)


async def test_an_end_says_which_files_the_workers_tools_say_they_wrote(rig):
    """Those of sub-agents, too; what git shows is another matter."""
    patch = "*** Begin Patch\n*** Add File: new.py\n+x\n*** Update File: old.py\n*** Move to: moved.py\n@@\n-a\n+b\n"
    calls = [
        ("write", "completed", {"filePath": "/w/a.py", "content": "x"}),
        ("write", "error", {"filePath": "/w/refused.py"}),
        ("read", "completed", {"filePath": "/w/read.py"}),
        ("edit", "completed", {"filePath": "/w/b.py"}),
        ("edit", "completed", {"filePath": "/w/a.py"}),
        ("edit", "completed", {}),
        ("apply_patch", "completed", {"patchText": f"{patch}*** Delete File: gone.py\n*** End Patch"}),
        ("patch", "completed", {}),
    ]
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.children[rig.session] = ["ses_child"]
        rig.server.assistant("ses_child", "msg_other", "sub", tools=[("write", "completed", {"filePath": "sub.py"})])
        rig.server.assistant(rig.session, PROMPT, finish="tool-calls", tools=calls)
        rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.status.clear()
        rig.server.emit("session.idle", sessionID=rig.session)
        end = await turn.event(Finished)
    assert end.claims == ("/w/a.py", "/w/b.py", "new.py", "old.py", "moved.py", "gone.py", "sub.py")


@pytest.mark.parametrize("session", ["", "ses_old"])
async def test_a_prompt_that_nobody_works_on_fails_as_not_started_and_is_not_sent_again(rig, session):
    """Public trouble report: a stored prompt may start no turn on a session that has just become idle (H01)."""
    rig.server.assistant("ses_old", "msg_0001", "an earlier turn", identity="msg_0002")
    rig.server.busy_on_prompt = False
    async with rig.turn(session=session) as turn:
        await rig.sent()
        await rig.server.called(STATUS, 2 if session else 1)  # a session that was there is looked at before
        await rig.pass_time(30)
        assert not turn.of(Failed)
        await rig.pass_time(2)
        assert (await turn.event(Failed)).failure.code == "not_started"
    assert rig.server.count(SEND) == 1
    assert not turn.of(Seen)


async def test_a_refused_start_says_why(rig):
    """A bad agent or model is answered with 204; only `session.error` tells."""
    rig.server.busy_on_prompt = False
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.emit("session.error", sessionID=rig.session, error={"name": "X", "data": {"message": "no such key"}})
        await rig.pass_time(20)
        assert "no such key" in (await turn.event(Failed)).failure.message


async def test_idle_is_no_end_while_the_last_message_is_open(rig):
    """Seen once in 42 turns: the final message was not yet complete at the first idle."""
    async with rig.turn() as turn:
        await rig.sent()
        info = rig.server.assistant(rig.session, PROMPT, "half", completed=False)
        rig.server.status.clear()
        rig.server.emit("session.idle", sessionID=rig.session)
        await rig.server.called(STATUS, 2)
        await rig.pass_time(2)
        assert not turn.of(Finished | Failed)
        rig.server.assistant(rig.session, PROMPT, "whole", identity=info["id"])
        rig.server.emit("message.updated", sessionID=rig.session, info=info)
        assert (await turn.event(Finished)).text == "whole"


async def test_a_message_that_is_never_finished_is_a_lost_turn(rig):
    """After a crash of the server nothing is running, and the open message stays open for ever."""
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, "half", completed=False)
        rig.server.status.clear()
        await rig.pass_time(20)
        assert "never finished its last message" in (await turn.event(Lost)).reason


async def test_a_finished_message_is_taken_though_the_status_stays_busy(rig):
    """Reported of OpenCode (#35472)."""
    async with rig.turn() as turn:
        await rig.sent()
        info = rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.emit("message.updated", sessionID=rig.session, info=info)
        await turn.event(Used)
        await rig.pass_time(8)
        assert not turn.of(Finished)
        await rig.pass_time(10)
        end = await turn.event(Finished)
    assert end.text == "done"
    assert "busy" in end.doubt


async def test_what_a_dropped_stream_missed_is_read_from_the_server(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.drop_streams()
        rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.permissions.append(request("per_1", rig.session))
        await rig.clock.sleepers(2)
        rig.clock.advance(1)
        await rig.server.until(lambda: rig.server.opened_streams == 2)
        assert (await turn.event(AskOpened)).ask.detail == "rm x"
        rig.server.status.clear()
        rig.server.emit("session.idle", sessionID=rig.session)
        assert (await turn.event(Finished)).text == "done"


async def test_a_stream_that_falls_silent_is_opened_again(rig):
    """Reported of OpenCode (#47571, #13947): streams go half dead; the heartbeat is every 10 s."""
    async with rig.turn():
        await rig.sent()
        await rig.pass_time(34)
        assert rig.server.opened_streams == 1
        await rig.pass_time(2)
        await rig.clock.sleepers(2)
        rig.clock.advance(1)
        await rig.server.until(lambda: rig.server.opened_streams == 2)


async def test_a_heartbeat_is_a_sign_of_life(rig):
    async with rig.turn() as turn:
        await rig.sent()
        for _ in range(5):
            await rig.pass_time(10)
            rig.server.emit("server.heartbeat")
            rig.server.emit("session.status", sessionID=rig.session, status={"type": "retry", "message": str(_)})
            await turn.event(Doing, _ + 1)
        assert rig.server.opened_streams == 1


async def test_one_event_may_be_huge_and_others_may_make_no_sense(rig):
    """A shell that prints repeats its tail with each event; JSON may hold line separators that are no line ends."""
    async with rig.turn() as turn:
        await rig.sent()
        info = rig.server.assistant(rig.session, PROMPT, completed=False)
        rig.server.emit("message.updated", sessionID=rig.session, info=info)
        rig.server.emit("message.updated", sessionID=rig.session, info={"nothing": "fits"})
        part = {"id": "p", "messageID": info["id"], "sessionID": rig.session, "type": "text", "text": ""}
        rig.server.emit("message.part.updated", part=part)
        words = "x\u2028\x0b\x85" * 1_000_000
        event = {"type": "message.part.delta", "properties": {"partID": "p", "field": "text", "delta": words}}
        rig.server.send(f"data: {json.dumps(event, ensure_ascii=False)}\n\n".encode())
        assert (await turn.event(Said)).text == words
        rig.server.emit("message.part.updated", part={**part, "text": words + "!"})
        assert (await turn.event(Said, 2)).text == "!"
        assert [doing.activity.kind for doing in turn.of(Doing)] == [ActivityKind.WRITING]


async def test_a_stream_that_is_not_json_is_opened_again(rig):
    async with rig.turn():
        await rig.sent()
        rig.server.send(b"data: {broken\n\n")
        rig.server.streams = []
        await rig.clock.sleepers(2)
        rig.clock.advance(1)
        await rig.server.until(lambda: rig.server.opened_streams == 2)


async def test_a_refused_password_is_told_at_the_start(rig):
    rig.server.refusals["GET /global/health"] = 401
    with pytest.raises(WorkerBroken, match="password"):
        async with rig.worker.turn(rig.order()):
            raise AssertionError
    assert "password" in (await rig.worker.describe({})).problem


async def test_a_server_that_does_not_answer_is_told():
    async with FakeOpenCode() as server, httpx.AsyncClient(base_url=server.url, timeout=0.2) as http:
        server.refusals[STATUS] = "silence"
        with pytest.raises(WorkerBroken, match="did not answer GET /session/status in time"):
            await call(http, "GET", "/session/status", {})


async def test_something_else_at_the_url_is_told(rig):
    rig.server.health = b"<html>"
    assert "version 1" in (await rig.worker.describe({})).problem
    rig.server.refusals["GET /global/health"] = 404
    assert "not an OpenCode server" in (await rig.worker.describe({})).problem
    rig.server.refusals.clear()
    rig.server.health = {"healthy": True, "version": "2.0.1"}
    assert "not of a version that offload knows" in (await rig.worker.describe({})).problem
    rig.server.health = {"healthy": False}
    assert "not an OpenCode server" in (await rig.worker.describe({})).problem


async def test_a_server_that_stumbles_is_asked_again(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.refusals[STATUS] = 500
        await rig.pass_time(10)
        rig.server.refusals.clear()
        rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.status.clear()
        await rig.pass_time(2)
        assert (await turn.event(Finished)).text == "done"


async def test_a_server_that_only_stumbles_fails_the_turn_with_its_words(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.refusals[STATUS] = 500
        await rig.pass_time(34)
        failure = (await turn.event(Failed)).failure
    assert failure.code == "worker_broken"
    assert "Refused" in failure.message


async def test_nothing_is_sent_without_an_event_stream(rig):
    rig.server.refusals["GET /event"] = 500
    async with rig.turn() as turn:
        for times in range(1, 17):
            await rig.server.called("GET /event", times)
            await rig.clock.sleepers(2)
            rig.clock.advance(2)
        assert (await turn.event(Failed)).failure.code == "worker_broken"
    assert rig.server.count(SEND) == 0


async def test_a_lost_answer_to_the_prompt_is_no_reason_to_send_it_again(rig):
    rig.server.refusals[SEND] = None
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.status.clear()
        await rig.pass_time(2)
        assert (await turn.event(Finished)).text == "done"
    assert rig.server.count(SEND) == 1


async def test_a_turn_is_met_again_without_a_second_prompt(rig):
    rig.server.messages["ses_old"] = []
    rig.server.user("ses_old", PROMPT)
    rig.server.assistant("ses_old", PROMPT, "done meanwhile")
    async with rig.turn(session="ses_old") as turn:
        assert (await turn.event(Finished)).text == "done meanwhile"
    assert rig.server.count(SEND) == 0


async def test_a_busy_session_is_not_given_a_second_prompt(rig):
    """OpenCode would queue it, and never answer it when the current turn fails."""
    rig.server.messages["ses_old"] = []
    rig.server.status["ses_old"] = {"type": "busy"}
    async with rig.turn(session="ses_old") as turn:
        assert "still busy with an earlier turn" in (await turn.event(Failed)).failure.message
    assert rig.server.count(SEND) == 0
    assert rig.server.count("POST /session/ses_old/abort") == 0, "the earlier turn is none of ours"


async def test_a_session_that_is_gone_is_told(rig):
    async with rig.turn(session="ses_gone") as turn:
        assert "does not know the session" in (await turn.event(Failed)).failure.message


async def test_a_retry_shows_when_the_next_try_is(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.status[rig.session] = {"type": "retry", "attempt": 1, "message": "slow down", "next": 5_000}
        await rig.pass_time(2)
        activity = (await turn.event(Doing)).activity
    assert (activity.kind, activity.until) == (ActivityKind.RETRYING, 5.0)
    assert re.fullmatch(r"trying again at \d\d:\d\d:05: slow down", activity.label)


async def test_a_worker_without_a_sign_of_life_is_shown_as_stalled(rig):
    async with rig.turn() as turn:
        await rig.sent()
        for _ in range(6):
            await rig.pass_time(10)
            rig.server.emit("server.heartbeat")
        await rig.pass_time(2)
        activity = (await turn.event(Doing)).activity
    assert (activity.kind, activity.since) == (ActivityKind.STALLED, 1_000_000.0)


async def test_asks_of_sub_agents_at_any_depth_belong_to_the_turn(rig):
    """Reported of other clients (#13715, #41991): asks of depth 2 and 3 were lost."""
    async with rig.turn() as turn:
        await rig.sent()
        for parent, child in ((rig.session, "ses_child"), ("ses_child", "ses_grandchild")):
            rig.server.messages[child] = []
            rig.server.emit("session.created", sessionID=child, info={"id": child, "parentID": parent})
        rig.server.permissions.append(request("per_deep", "ses_grandchild"))
        rig.server.emit("permission.asked", **request("per_deep", "ses_grandchild"))
        rig.server.emit("permission.asked", **request("per_strange", "ses_of_another_turn"))
        rig.server.emit("message.part.updated", part={"sessionID": "ses_of_another_turn"})
        ask = (await turn.event(AskOpened)).ask
        assert (ask.id, ask.kind, ask.subject, ask.choices) == (
            "per_deep",
            AskKind.PERMISSION,
            "bash",
            ("allow", "deny"),
        )
        await turn.turn.answer(ask.id, Answer("allow"))
        assert rig.server.bodies["POST /permission/per_deep/reply"] == {"reply": "once"}
        rig.server.emit("permission.replied", sessionID="ses_grandchild", requestID="per_deep", reply="once")
        await rig.pass_time(2)
    assert len(turn.of(AskOpened)) == 1
    assert not turn.of(AskOver)


async def test_asks_and_usage_of_sub_agents_that_no_event_told_of_are_found(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.children[rig.session] = ["ses_child"]
        rig.server.assistant("ses_child", "msg_x", "child", cost=2.0)
        rig.server.assistant("ses_child", "msg_0", "of an earlier turn", cost=50.0, identity="msg_0000")
        rig.server.permissions.append(request("per_1", "ses_child"))
        await rig.pass_time(2)
        assert (await turn.event(AskOpened)).ask.id == "per_1"
        rig.server.permissions.clear()
        rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.status.clear()
        await rig.pass_time(2)
        end = await turn.event(Finished)
    assert end.usage.cost == 2.5
    assert turn.of(AskOver) == [AskOver("per_1", AskOutcome.WITHDRAWN)]


async def test_an_ask_that_is_answered_elsewhere_is_over(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.emit("permission.asked", **request("per_1", rig.session))
        await turn.event(AskOpened)
        rig.server.emit("permission.replied", sessionID=rig.session, requestID="per_1", reply="once")
        assert await turn.event(AskOver) == AskOver("per_1", AskOutcome.ANSWERED)
        with pytest.raises(UnknownAsk):
            await turn.turn.answer("per_1", Answer("allow"))


async def test_a_command_that_is_asked_for_is_not_said_to_run_until_it_is_allowed(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.permissions += [request("per_1", rig.session), request("per_2", rig.session)]
        for each in rig.server.permissions.copy():
            rig.server.emit("permission.asked", **each)
        await turn.event(AskOpened)
        await turn.event(AskOpened)
        await turn.turn.answer("per_1", Answer("allow"))
        await turn.turn.answer("per_2", Answer("deny"))
        rig.server.assistant(rig.session, PROMPT, "done")
        rig.server.status.clear()
        await rig.pass_time(2)
        await turn.event(Finished)
    assert [each.activity.label for each in turn.of(Doing)] == ["asks to run rm x", "was denied rm x"]


async def test_what_a_worker_did_before_it_asked_is_what_it_does_once_it_may(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.emit("permission.asked", **request("per_1", rig.session))
        await turn.event(AskOpened)
        rig.server.emit("permission.replied", sessionID=rig.session, requestID="per_1", reply="once")
        await turn.event(AskOver)
        await turn.event(Doing)
    assert [(each.activity.kind, each.activity.label) for each in turn.of(Doing)][-1] == (ActivityKind.THINKING, "")


async def test_an_answer_that_comes_too_late_for_the_server_is_told(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.emit("permission.asked", **request("per_1", rig.session))
        await turn.event(AskOpened)
        with pytest.raises(UnknownAsk):
            await turn.turn.answer("per_1", Answer("allow"))


@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        (Answer("Blue"), "Blue"),
        (Answer("something else"), "something else"),
        (Answer("deny", "nobody is here"), "nobody is here"),
    ],
)
async def test_a_question_is_answered_in_words_even_when_nobody_is_there(rig, answer, sent):
    asked = {"question": "Which?", "header": "Colour", "options": [{"label": "Red"}, {"label": "Blue"}]}
    async with rig.turn() as turn:
        await rig.sent()
        question = {"id": "que_1", "sessionID": rig.session, "questions": [asked, {"question": "Sure?"}]}
        rig.server.questions.append(question)
        rig.server.emit("question.asked", **question)
        ask = (await turn.event(AskOpened)).ask
        assert (ask.kind, ask.subject, ask.detail, ask.choices) == (
            AskKind.QUESTION,
            "Colour",
            "Which?\nSure?",
            ("Red", "Blue"),
        )
        await turn.turn.answer("que_1", answer)
    assert rig.server.bodies["POST /question/que_1/reply"] == {"answers": [[sent], [sent]]}


@pytest.mark.parametrize("gone", [False, True])
async def test_an_edit_outside_of_the_folder_is_refused_without_asking_anybody(rig, gone):
    async with rig.turn() as turn:
        await rig.sent()
        tool = {"messageID": "m", "callID": "call_1"}
        part = {
            "id": "p",
            "sessionID": rig.session,
            "messageID": "m",
            "type": "tool",
            "tool": "write",
            "callID": "call_1",
        }
        rig.server.emit("message.part.updated", part={**part, "state": {"status": "pending", "input": {}}})
        outside = request("per_1", rig.session, "external_directory", tool=tool)
        if not gone:
            rig.server.permissions.append(outside)
        rig.server.emit("permission.asked", **outside)
        await rig.server.called("POST /permission/per_1/reply")
        await rig.pass_time(2)
    assert rig.server.bodies["POST /permission/per_1/reply"]["reply"] == "reject"
    assert rig.server.bodies["POST /permission/per_1/reply"]["message"]
    assert not turn.of(AskOpened)


async def test_a_stop_refuses_asks_aborts_sub_agents_first_and_ends_when_all_are_idle(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.messages["ses_child"] = []
        rig.server.status["ses_child"] = {"type": "busy"}
        rig.server.emit("session.created", sessionID="ses_child", info={"id": "ses_child", "parentID": rig.session})
        for kept in (request("per_1", "ses_child"), request("per_2", rig.session)):
            rig.server.emit("permission.asked", **kept)
            await turn.event(AskOpened, len(rig.server.permissions) + 1)
            rig.server.permissions.append(kept)
        rig.server.questions.append({"id": "que_1", "sessionID": rig.session, "questions": []})
        await turn.turn.stop()
        assert await turn.event(Halted) == Halted("")
    aborts = [call for call in rig.server.calls if call.endswith("/abort")]
    assert aborts == ["POST /session/ses_child/abort", f"POST /session/{rig.session}/abort"]
    assert rig.server.permissions == rig.server.questions == []


async def test_an_ask_that_is_gone_by_the_time_of_a_stop_does_not_keep_it(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.permissions += [request("per_1", rig.session), request("per_2", "ses_of_another_turn")]
        await rig.pass_time(2)
        assert [event.ask.id for event in turn.of(AskOpened)] == ["per_1"]
        rig.server.refusals["POST /permission/per_1/reply"] = 404
        await turn.turn.stop()
        await turn.event(Halted)


async def test_what_makes_no_sense_fails_this_turn_as_a_defect_and_no_other(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.status[rig.session] = {"nothing": "fits"}
        await rig.pass_time(2)
        assert (await turn.event(Failed)).failure.code == "defect"


async def test_a_stop_is_tried_twice_and_its_failure_is_told(rig):
    rig.server.idle_on_abort = False
    async with rig.turn() as turn:
        await rig.sent()
        await turn.turn.stop()
        await rig.server.called(STATUS, 2)
        await rig.pass_time(20)
        failure = (await turn.event(Failed)).failure
    assert failure.code == "stop_incomplete"
    assert rig.session in failure.message
    assert rig.server.count("POST /session/ses_.*/abort") == 2


async def test_a_turn_that_finished_before_its_stop_is_finished(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, "done")
        await turn.turn.stop()
        assert (await turn.event(Finished)).text == "done"


async def test_a_turn_that_is_stopped_before_its_prompt_sends_none(rig):
    rig.server.greets = False
    async with rig.turn() as turn:
        await turn.turn.stop()
        await turn.event(Halted)
    assert rig.server.count(SEND) == 0


async def test_a_turn_that_somebody_else_aborted_has_failed(rig):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, "half", error={"name": "MessageAbortedError", "data": {}})
        rig.server.status.clear()
        await rig.pass_time(2)
        end = await turn.event(Failed)
    assert (end.failure.code, end.text) == ("aborted", "half")


@pytest.mark.parametrize(
    ("round_", "code", "words"),
    [
        (
            {"error": {"name": "APIError", "data": {"message": "no credit"}}},
            "APIError",
            "The provider failed: no credit",
        ),
        ({"error": {"name": "UnknownError", "data": {"message": "no"}}}, "UnknownError", "OpenCode ended the turn: no"),
        ({"finish": None}, "turn_lost", "without a word"),
    ],
)
async def test_a_turn_that_went_wrong_says_why(rig, round_, code, words):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, **round_)
        rig.server.status.clear()
        await rig.pass_time(2)
        failure = (await turn.event(Failed)).failure
    assert failure.code == code
    assert words in failure.message


@pytest.mark.parametrize(
    ("finish", "doubt"),
    [
        ("tool-calls", "refused"),
        ("length", "cut off"),
        ("odd", "'odd'"),
        (None, "no reason"),
    ],
)
async def test_an_end_that_is_not_clean_is_told_as_a_doubt(rig, finish, doubt):
    async with rig.turn() as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, "words", finish=finish)
        rig.server.status.clear()
        await rig.pass_time(2)
        assert doubt in (await turn.event(Finished)).doubt


async def test_another_model_than_asked_for_is_told_as_a_doubt(rig):
    async with rig.turn(route=Route("opencode", "build", "fake/worker", "high")) as turn:
        await rig.sent()
        rig.server.assistant(rig.session, PROMPT, "words", modelID="other", variant="default")
        rig.server.status.clear()
        await rig.pass_time(2)
        end = await turn.event(Finished)
    assert "asked for model fake/worker, ran fake/other" in end.doubt
    assert "variant" in end.doubt
    assert end.usage.cost is None
    body = rig.server.bodies[f"POST /session/{rig.session}/prompt_async"]
    assert (body["agent"], body["variant"]) == ("build", "high")
    assert body["model"] == {"providerID": "fake", "modelID": "worker"}


@pytest.mark.parametrize(
    ("route", "error", "words"),
    [
        (Route("opencode", agent="biuld"), UnknownAgent, "did you mean build"),
        (Route("opencode", agent="zzz"), UnknownAgent, "it has build"),
        (Route("opencode", model="fake/work"), UnknownModel, "did you mean fake/worker"),
        (Route("opencode", variant="huge"), UnknownModel, "it has high"),
    ],
)
async def test_a_route_that_does_not_exist_is_refused_with_near_names_before_anything_is_sent(rig, route, error, words):
    """OpenCode takes such a prompt with 204 and does nothing, or runs without the variant."""
    for _ in range(2):  # the second time from memory
        with pytest.raises(error, match=words):
            async with rig.worker.turn(rig.order(route=route)):
                raise AssertionError
    assert rig.server.count("POST /session") == 0


async def test_a_model_of_a_user_without_sign_ins_is_refused_with_what_to_do(rig):
    rig.server.providers = []
    with pytest.raises(UnknownModel, match="opencode auth login"):
        async with rig.worker.turn(rig.order(route=Route("opencode", model="fake/worker"))):
            raise AssertionError


@pytest.mark.parametrize("name", ["项目", "Masaüstü", "a b", "100%"])
async def test_every_call_of_a_turn_names_its_folder(rig, name):
    """Public trouble report: a header with a raw path made the server crash, or work in another folder (H05)."""
    rig.folder = rig.folder / name
    rig.folder.mkdir()
    async with rig.turn():
        await rig.sent()
    assert rig.server.directories == {str(rig.folder), str(rig.folder.parent / "worker")}


async def test_a_folder_that_opencode_would_take_for_another_is_refused(rig):
    """Measured: a session in "a%20b" is prompted in "a b" (H05)."""
    with pytest.raises(WorkerBroken, match="a%20b"):
        async with rig.worker.turn(rig.order(folder=rig.folder / "a%20b")):
            raise AssertionError
    assert rig.server.calls == []


async def test_what_is_done_with_a_turn_may_fail_and_is_not_wrapped(rig):
    with pytest.raises(KeyError):
        async with rig.worker.turn(rig.order()):
            raise KeyError


async def test_a_reader_that_is_cancelled_leaves_the_turn_at_work(rig):
    async def read():
        async with rig.worker.turn(rig.order()) as turn:
            async for _ in turn.events():
                pass

    reading = asyncio.create_task(read())
    await rig.sent()
    reading.cancel()
    await asyncio.wait([reading])
    assert reading.cancelled()
    assert rig.server.count("POST /session/ses_.*/abort") == 0


async def test_a_session_is_deleted_when_it_is_released_unless_it_is_busy(rig):
    await rig.worker.release("ses_any", {})  # no server runs: nothing is done
    assert rig.server.calls == []
    await rig.worker.describe({})
    await rig.worker.release("ses_gone", {})
    rig.server.messages |= {"ses_1": [], "ses_2": []}
    rig.server.status["ses_2"] = {"type": "busy"}
    await rig.worker.release("ses_1", {})
    with pytest.raises(WorkerBroken, match="busy"):
        await rig.worker.release("ses_2", {})
    assert set(rig.server.messages) == {"ses_2"}
