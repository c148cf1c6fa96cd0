"""Core and the OpenCode worker together against a server that does exactly what a test says: what waits for a person never waits
for ever, and the end of a server is told to whoever delegated. Time is moved by hand."""

import asyncio
import os
import signal
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from offload.core.delegation import StartRequest
from offload.core.turns.asks import NOBODY_ANSWERED
from offload.domain.ask import Answer, AskOutcome
from offload.domain.errors import UnknownAsk
from offload.domain.route import Route
from offload.domain.task import Phase
from offload.processes import alive
from offload.workers.opencode.turn import POLL_S
from tests.fakes.house import open_house
from tests.fakes.opencode_server import BOUND_S
from tests.workers.rig import SEND, STATUS, open_own_rig, open_rig, request

ROUTE = Route("opencode")
LONG = "Rename it everywhere, in the tests and in the documentation as well"
QUESTION = {"question": "How far?", "header": "Rename", "options": [{"label": LONG}, {"label": "No"}]}
PERMISSION_REPLY, QUESTION_REPLY = "POST /permission/per_1/reply", "POST /question/que_1/reply"


@pytest.fixture
async def rig(tmp_path):
    async with open_rig(tmp_path) as rig:
        yield rig


@asynccontextmanager
async def housed(rig, folder):
    async with open_house(folder, worker=rig.worker, clock=rig.clock, route=ROUTE) as house:
        yield house


async def started(rig, house):
    """A task whose prompt is out. Gives its id and its session."""
    task = await house.start("do it")
    await rig.sent()
    (session,) = rig.server.messages
    return task.id, session


async def pass_deadline(rig, call):
    """In steps, after each of which the turn looks at its server, so that whoever denies goes to sleep before the next one."""
    async with asyncio.timeout(BOUND_S):
        while not rig.server.count(call):
            looks = rig.server.count(STATUS)
            await rig.clock.naps(POLL_S)
            rig.clock.advance(30)
            await rig.server.until(lambda: rig.server.count(STATUS) > looks or rig.server.count(call))  # noqa: B023


async def goes_on(rig, house, task, session):
    """The worker finishes, and so does the task."""
    prompt = rig.server.bodies[f"POST /session/{session}/prompt_async"]["messageID"]
    rig.server.assistant(session, prompt, "went on")
    rig.server.status.pop(session)
    rig.server.emit("session.idle", sessionID=session)
    task = await house.rested(task)
    assert (task.phase, task.turn.text, task.asks) == (Phase.READY, "went on", {})
    return [(closing.outcome, closing.choice) for closing in task.closings]


@pytest.mark.parametrize(
    ("permission", "pattern", "metadata"),
    [
        ("external_directory", "/etc/*", {"filepath": "/etc/hosts", "parentDir": "/etc"}),
        ("bash", "make test | tee log", {"command": "make test | tee log"}),
        ("doom_loop", "read", {"tool": "read", "input": {"filePath": "a.py"}}),
        ("read", ".env", {"filepath": ".env"}),
        ("one that comes with a later OpenCode", "*", {}),
    ],
)
async def test_a_permission_of_any_kind_is_open_at_once_and_denied_in_words_when_nobody_comes(
    rig, tmp_path, permission, pattern, metadata
):
    """Public trouble report: what asked with nobody there hung for ever and looked busy (H02)."""
    async with housed(rig, tmp_path) as house:
        task, session = await started(rig, house)
        asked = request("per_1", session, permission, patterns=[pattern], metadata=metadata)
        rig.server.permissions.append(asked)
        before = rig.clock.now()
        rig.server.emit("permission.asked", **asked)
        shown = await house.until(task, lambda task: task.asks)
        assert [each.subject for each in shown.asks.values()] == [permission]
        assert (shown.asking, rig.clock.now()) == (True, before)
        await pass_deadline(rig, PERMISSION_REPLY)
        assert rig.server.bodies[PERMISSION_REPLY] == {"reply": "reject", "message": NOBODY_ANSWERED}
        assert await goes_on(rig, house, task, session) == [(AskOutcome.TIMED_OUT, "deny")]
    assert rig.server.count(PERMISSION_REPLY) == 1


@pytest.mark.parametrize("fronts", [0, 1, 2])
async def test_a_question_is_answered_once_however_many_are_there(rig, tmp_path, fronts):
    """Public trouble report: a question in a session that nobody looked at was waited for without an end (H03)."""
    async with housed(rig, tmp_path) as house:
        task, session = await started(rig, house)
        question = {"id": "que_1", "sessionID": session, "questions": [QUESTION]}
        rig.server.questions.append(question)
        rig.server.emit("question.asked", **question)
        shown = await house.until(task, lambda task: task.asks)
        (ask,) = shown.asks.values()
        assert ask.choices == (LONG, "No")
        callers = [replace(house.caller, id=f"rpc-{number}") for number in range(fronts)]
        given = [house.delegation.answer(each, task, ask.id, Answer(LONG)) for each in callers]
        told = await asyncio.gather(*given, return_exceptions=True)
        assert [type(each) for each in told if isinstance(each, Exception)] == [UnknownAsk] * (fronts - 1)
        if not fronts:
            await pass_deadline(rig, QUESTION_REPLY)
        assert rig.server.bodies[QUESTION_REPLY] == {"answers": [[LONG if fronts else NOBODY_ANSWERED]]}
        outcome = (AskOutcome.ANSWERED, LONG) if fronts else (AskOutcome.TIMED_OUT, "deny")
        assert await goes_on(rig, house, task, session) == [outcome]
    assert rig.server.count(QUESTION_REPLY) == 1


async def test_three_servers_that_are_killed_at_once_end_three_tasks_and_the_next_ones_get_new_servers(tmp_path):
    """Public trouble report: the worker died, its caller waited for hours, and the dead connection was used again (H26).

    Each environment has a server of its own. Here no time passes at all."""
    async with open_own_rig(tmp_path) as rig, housed(rig, tmp_path) as house:
        before = rig.clock.now()

        async def three():
            """Tasks at work, each on another server: session by task."""
            tasks = {}
            for number in range(3):
                known = set(rig.server.messages)
                environment = {**house.caller.environment, "EACH": str(number)}
                caller = replace(house.caller, environment=environment)
                sent = rig.server.count(SEND)
                task = await house.delegation.start(caller, StartRequest(brief="do it"))
                await rig.server.called(SEND, sent + 1)
                (session,) = set(rig.server.messages) - known
                tasks[task.id] = session
            return tasks

        tasks, killed = await three(), set(rig.worker._servers.identities())
        assert len(killed) == 3
        rig.server.status.clear()  # as that of a server that has just started
        for each in killed:
            os.kill(each.pid, signal.SIGKILL)
        for task in tasks:
            ended = await house.rested(task)
            assert (ended.phase, "SIGKILL" in ended.turn.failure.message) == (Phase.INTERRUPTED, True)
        others, fresh = await three(), set(rig.worker._servers.identities())
        assert (len(fresh), fresh & killed, all(map(alive, fresh))) == (3, set(), True)
        for task, session in others.items():
            await goes_on(rig, house, task, session)
        assert (rig.clock.now(), rig.server.count(SEND), house.defects) == (before, 6, [])
