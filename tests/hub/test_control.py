import asyncio

import pytest

from offload.hub import control, run
from offload.hub.hello import Hello, accepted
from tests.hub.test_reach import listener

HELLO = Hello("control", "/", 42)


async def exchange(*lines, ends="stop"):
    """What is answered, and the reasons with which it was asked to end in that way."""
    reader, written = asyncio.StreamReader(limit=2**20), []
    asked = {"stop": [], "drain": []}

    class Writer:
        def write(self, data):
            written.append(data)

        async def drain(self):
            pass

    for line in lines:
        reader.feed_data(line)
    reader.feed_eof()
    await control.serve(
        reader,
        Writer(),
        HELLO,
        status=lambda: {"pid": 7},
        stop=asked["stop"].append,
        drain=asked["drain"].append,
    )
    return b"".join(written), asked[ends]


async def test_status_is_answered_as_often_as_it_is_asked():
    assert await exchange(b'{"method": "status"}\n' * 2) == (b'{"result": {"pid": 7}}\n' * 2, [])


async def test_stop_is_answered_and_says_who_asked():
    assert await exchange(b'{"method": "stop"}\n') == (b'{"result": {}}\n', ["asked by process 42"])


async def test_drain_is_answered_and_says_who_comes_next():
    wanted = f"process 42 wants a hub of version {HELLO.version}"
    assert await exchange(b'{"method": "drain"}\n', ends="drain") == (b'{"result": {}}\n', [wanted])


@pytest.mark.parametrize("line", [b"\n", b"{\n", b"[]\n", b'{"method": 1}\n', b"{}\n", b"[" * 100_000 + b"\n"])
async def test_anything_else_is_told_what_there_is(line):
    answer, stops = await exchange(line)
    assert b'the methods are \\"status\\", \\"stop\\" and \\"drain\\"' in answer
    assert stops == []


def test_a_state_folder_that_is_none_is_told():
    with pytest.raises(run.HubUnavailable, match="must name an absolute folder"):
        run.status({"OFFLOAD_STATE_DIR": "here"})


def test_a_hub_that_answers_a_question_with_nonsense_is_told(place):
    with listener(place, accepted() + b"what?\n"), pytest.raises(run.HubUnavailable, match="the hub does not answer"):
        run.status(place.environ)
