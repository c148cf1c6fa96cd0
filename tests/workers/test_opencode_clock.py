"""The clock of the machine is set while a session lives: its messages sort by the time that their ids were made of."""

import pytest

from offload.core.ids import new_turn_id
from offload.core.worker import Finished, Opened
from offload.hub.clock import SystemClock
from tests.workers.conftest import play

pytestmark = [pytest.mark.opencode, pytest.mark.asyncio(loop_scope="session")]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_follow_up_is_done_once_though_its_id_is_older_or_much_younger_than_what_was_said_last(bench, hours):
    first = bench.order("::text one")
    (session,) = [event.session for event in await play(bench.worker, first) if isinstance(event, Opened)]
    asked = len(bench.model.requests)
    turn = new_turn_id(SystemClock().now() + hours * 3600)
    *_, end = await play(bench.worker, bench.order("::text two", session=session, folder=first.folder, turn=turn))
    assert isinstance(end, Finished)
    assert (end.text, end.doubt, len(bench.model.requests) - asked) == ("two", "", 1)
