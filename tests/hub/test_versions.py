"""Case H24: a front and a hub of different versions, in both directions, as processes. The other version is a copy of this one."""

import json
import subprocess

import pytest

from offload import __version__
from offload.hub import forward, run
from offload.hub.greeting import PROTOCOL
from tests.hub.conftest import ask
from tests.hub.front import ECHO_HUB
from tests.support import other_version

PATIENCE = 30
NEWER = ("99.0", PROTOCOL + 1)


@pytest.fixture
def newer(place, tmp_path):
    """Starts a front of a newer version, which starts a hub of that version."""
    copy = other_version.make(tmp_path, *NEWER)
    hub = other_version.command(copy, "run", ECHO_HUB[-1])
    fronts = []

    def start(kind="lsp"):
        front = subprocess.Popen(
            other_version.command(copy, "front", kind, *hub),
            env={**place.environ, "PYTHONPATH": ""},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        fronts.append(front)
        return front

    yield start
    for front in fronts:
        front.communicate(timeout=PATIENCE)


def test_an_older_hub_makes_room_for_a_newer_front(place, newer):
    """It drains and hands over: its fronts learn of the end, the next hub is of the new version."""
    old_front, old = place.connected()
    new = ask(newer())["pid"]
    assert old_front.wait(timeout=PATIENCE) == forward.LOST
    assert place.hubs() == [old, new]
    found = run.status(place.environ)
    assert (found["pid"], found["version"], found["protocol"]) == (new, *NEWER)
    log = (place.state / "hub.log").read_text()
    assert "wants a hub of version 99.0" in log


def test_a_newer_hub_is_left_alone_by_an_older_front_which_is_told_the_way_out(place, newer):
    """Else two versions that are both in use would end each other's hubs for ever."""
    front = newer()
    new = ask(front)["pid"]
    older = place.front()
    _, errors = older.communicate(timeout=PATIENCE)
    assert older.returncode == 69
    for part in (f"offload {__version__} (protocol 1)", "99.0 (protocol 2)", "restart the editor or host", "hub stop"):
        assert part in errors.decode()
    assert ask(front)["pid"] == new
    assert run.stop(place.environ), "the older command line can end it"


def test_a_host_whose_front_is_older_than_the_next_hub_is_told_so_by_each_call(place, newer):
    host, old = place.connected("mcp")
    new = ask(newer())["pid"]
    assert new != old
    for number in (1, 2):
        host.stdin.write(b'{"jsonrpc": "2.0", "id": %d, "method": "tools/list"}\n' % number)
        host.stdin.flush()
        answer = json.loads(host.stdout.readline())
        assert answer["id"] == number
        assert f"this front is offload {__version__}" in answer["error"]["message"]
        assert "99.0 (protocol 2)" in answer["error"]["message"]
