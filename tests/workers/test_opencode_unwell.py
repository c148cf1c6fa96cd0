"""A server that stumbles for a while, or for longer than one waits; time is moved by hand."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from offload.core.worker import Failed, Finished
from offload.domain.errors import TurnLost, UnknownAgent
from offload.domain.route import Route
from offload.processes import alive
from tests.workers.rig import PROMPT, SEND, open_own_rig, open_rig

SESSION = "ses_old"
AGENTS = "GET /agent"
ASKS = "GET /permission"
MESSAGES = f"GET /session/{SESSION}/message"


@pytest.fixture
async def rig(tmp_path):
    async with open_rig(tmp_path) as rig:
        rig.server.messages[SESSION] = []
        yield rig


@pytest.fixture
async def own(tmp_path):
    """With a server that offload started, and that works already."""
    async with open_own_rig(tmp_path) as rig:
        rig.server.messages[SESSION] = []
        async with rig.worker._servers.use({}) as rig.used:
            pass
        yield rig


async def refused(rig, call, times):
    """Time passes in steps of two seconds, in each of which a call fails."""
    for _ in range(times):
        made = rig.server.count(call)
        await rig.clock.naps(2)
        rig.clock.advance(2)
        await rig.server.called(call, made + 1)


async def refused_to_the_end(rig, call):
    """As above, until the turn that is watched is over."""
    while not rig.watched.over:
        made = rig.server.count(call)
        await rig.clock.naps(2)
        rig.clock.advance(2)
        await rig.server.until(lambda: rig.server.count(call) > made or rig.watched.over)  # noqa: B023


@asynccontextmanager
async def entering(rig, **changes):
    """Enter a turn meanwhile; the task gives its events."""

    async def enter():
        async with rig.worker.turn(rig.order(**changes)) as turn:
            return [event async for event in turn.events()]

    task = asyncio.create_task(enter())
    yield task
    task.cancel()
    await asyncio.wait([task])


async def test_a_turn_is_met_again_once_its_server_says_what_it_offers(rig):
    rig.server.user(SESSION, PROMPT)
    rig.server.assistant(SESSION, PROMPT, "done")
    rig.server.refusals[AGENTS] = 500
    async with asyncio.timeout(20), entering(rig, session=SESSION, resume=True) as meeting:
        await rig.server.called(AGENTS)
        await refused(rig, AGENTS, 3)
        del rig.server.refusals[AGENTS]
        await rig.clock.naps(2)
        rig.clock.advance(2)
        assert (await meeting)[-1].text == "done"
    assert rig.server.count(SEND) == 0


async def test_two_turns_that_are_met_again_ask_only_until_one_of_them_has_the_answer(rig):
    rig.server.user(SESSION, PROMPT)
    rig.server.assistant(SESSION, PROMPT, "done")
    rig.server.refusals[AGENTS] = 500
    async with asyncio.timeout(20), entering(rig, session=SESSION, resume=True) as meeting:
        await rig.server.called(AGENTS)
        await rig.clock.naps(2)
        del rig.server.refusals[AGENTS]
        await rig.worker.describe({})
        asked = rig.server.count(AGENTS)
        rig.clock.advance(2)
        assert (await meeting)[-1].text == "done"
    assert rig.server.count(AGENTS) == asked


async def test_a_turn_cannot_be_met_again_on_a_server_that_stays_unwell_and_the_server_is_ended(own):
    own.server.refusals[AGENTS] = 500
    async with asyncio.timeout(20), entering(own, session=SESSION, resume=True) as meeting:
        await own.server.called(AGENTS)
        await refused(own, AGENTS, 16)
        with pytest.raises(TurnLost, match=r"could not be talked to any more: .* status 500"):
            await meeting
    assert not alive(own.used.identity)


async def test_a_turn_that_fails_is_aborted_and_its_server_stays(own):
    async with own.turn() as turn:
        await own.sent()
        own.server.refusals[ASKS] = 500
        await refused_to_the_end(own, ASKS)
        assert (await turn.event(Failed)).failure.code == "worker_broken"
    assert own.server.count(f"POST /session/{own.session}/abort") == 1
    assert alive(own.used.identity)


async def test_a_server_that_goes_on_with_a_turn_that_failed_is_ended(own):
    """Nobody would follow what it does."""
    own.server.idle_on_abort = False
    async with own.turn() as turn:
        await own.sent()
        own.server.refusals[ASKS] = 500
        await refused_to_the_end(own, ASKS)
        assert (await turn.event(Failed)).failure.code == "worker_broken"
    assert not alive(own.used.identity)


async def test_a_follow_up_waits_for_a_server_that_stumbles(rig):
    rig.server.refusals[MESSAGES] = 500
    async with rig.turn(session=SESSION) as turn:
        await rig.server.called(MESSAGES)
        await refused(rig, MESSAGES, 3)
        del rig.server.refusals[MESSAGES]
        await rig.clock.naps(2)
        rig.clock.advance(2)
        await rig.server.called(SEND)
        rig.server.assistant(SESSION, PROMPT, "done")
        rig.server.status.clear()
        await rig.pass_time(4)
        assert (await turn.event(Finished)).text == "done"


async def test_a_follow_up_whose_session_cannot_be_read_is_not_sent(rig):
    rig.server.refusals[MESSAGES] = 500
    async with rig.turn(session=SESSION) as turn:
        await rig.server.called(MESSAGES)
        await refused_to_the_end(rig, MESSAGES)
        assert (await turn.event(Failed)).failure.code == "worker_broken"
    assert rig.server.count(SEND) == 0


async def test_a_route_can_be_checked_before_there_is_a_turn(rig):
    await rig.worker.check(Route("opencode", "build"), {})
    with pytest.raises(UnknownAgent):
        await rig.worker.check(Route("opencode", "biuld"), {})


async def test_the_folders_of_servers_that_are_gone_are_counted_and_removed(own):
    assert await own.worker.clean(0.0, dry_run=False) == 0
    await own.worker.aclose()
    size = await own.worker.clean(2_000_000_000_000.0, dry_run=True)
    assert size > 0
    assert await own.worker.clean(2_000_000_000_000.0, dry_run=False) == size
    assert not own.used.folder.exists()
