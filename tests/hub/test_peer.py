"""Issue 3, item 9: what comes from a worker is refused by a real hub, whatever it did to hide; and what cannot be seen."""

import json
import os
import socket
import subprocess
import sys

import psutil
import pytest

from offload.hub import peer, reach, run
from offload.hub.greeting import MARKER, NOT_A_PERSON, WORKER_REFUSED, Refusal
from offload.processes import MARKER as GIVEN_MARKER

# A tool of a worker: goes away from its parents as it is told, then says hello to the hub and prints its answer.
TOOL = """
import json, os, socket, sys
path, kind, *ways = sys.argv[1:]
if "setsid" in ways:
    os.setsid()
if "fork" in ways:
    first = os.getpid()
    if os.fork():
        os._exit(0)
    os.setsid()
    second = os.getpid()
    if os.fork():
        os._exit(0)
    # Whoever adopts orphans here is above the worker's server.
    while os.getppid() in (first, second):
        os.sched_yield()
hello = {"protocol": 1, "version": "x", "kind": kind, "cwd": "/", "pid": os.getpid(), "environment": {}}
with socket.socket(socket.AF_UNIX) as hub:
    hub.connect(path)
    hub.sendall(json.dumps(hello).encode() + b"\\n")
    print(hub.makefile().readline(), flush=True)
"""

# What a worker's server is here: it has the marker, runs a tool with another environment, and stays until it has ended.
SERVER = """
import os, subprocess, sys
environ = {} if sys.argv[1] == "emptied" else None
done = subprocess.run(sys.argv[2:], env=environ, stdout=subprocess.PIPE)
sys.stdout.buffer.write(done.stdout)
"""


def tool(place, kind, *ways, environment="kept"):
    """The hub's answer to a tool of a worker."""
    command = [sys.executable, "-I", "-S", "-c", TOOL, str(place.state / "hub.sock"), kind, *ways]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SERVER, environment, *command],
        env={**os.environ, MARKER: "a-server"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=30,
    )
    return json.loads(done.stdout)


def test_the_marker_is_the_one_that_workers_give():
    """Two rooms name it, because a front is too quick to import the other."""
    assert MARKER == GIVEN_MARKER


@pytest.mark.parametrize("kind", ["lsp", "mcp", "rpc", "control"])
def test_a_child_of_a_worker_is_refused_whatever_it_wants_to_be(place, kind):
    place.connected()
    refused = tool(place, kind)
    assert (refused["ok"], refused["code"], refused["message"]) == (False, WORKER_REFUSED, NOT_A_PERSON)


@pytest.mark.parametrize(
    ("ways", "environment"),
    [(["setsid"], "kept"), (["fork"], "kept"), ([], "emptied"), (["setsid"], "emptied")],
    ids=["setsid", "double fork", "env -i", "env -i and setsid"],
)
def test_what_went_away_from_its_worker_is_refused_too(place, ways, environment):
    """After a double fork the marker alone tells, with an emptied environment the ancestors."""
    place.connected()
    assert tool(place, "rpc", *ways, environment=environment)["code"] == WORKER_REFUSED


def test_what_has_neither_marker_nor_parents_cannot_be_told_from_a_person(place):
    """The limit that docs/RELIABILITY.md names: nothing that the system tells of this process is of the worker."""
    place.connected()
    assert tool(place, "rpc", "fork", environment="emptied")["ok"] is True


def test_a_front_of_a_worker_starts_no_hub(place):
    front = place.front(environ={MARKER: "a-server"})
    out, errors = front.communicate(timeout=30)
    assert (front.returncode, out, errors.decode()) == (69, b"", f"offload: {NOT_A_PERSON}\n")
    assert list(place.state.iterdir()) == []


def test_a_worker_cannot_stop_the_hub_and_is_told_why(place):
    """`hub stop` ends a hub that does not answer with a signal; this one does answer."""
    _, hub = place.connected()
    script = (
        "import os, sys; from offload.hub import run\ntry: run.stop()\nexcept Exception as error: print(error.code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**place.environ, MARKER: "a-server"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert done.stdout == f"{WORKER_REFUSED}\n"
    assert run.status(place.environ)["pid"] == hub


def test_who_has_left_the_connection_to_another_process_is_refused(place):
    """The kernel names who has connected; a child that goes on with the connection would hide behind a number that is free."""
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(Refusal, match=rf"number {child.pid}\) does not show who it is"):
        peer.refuse_descendant(child.pid)


def test_who_comes_from_another_container_is_refused():
    """Its number is 0 here."""
    with pytest.raises(Refusal, match="does not show who it is"):
        peer.refuse_descendant(0)


def test_the_kernel_says_who_has_connected():
    one, other = socket.socketpair()
    with one, other:
        assert peer.peer(one) == os.getpid()
        peer.refuse_worker(one)


class Process:
    """What psutil tells of a process that is another user's, or ends while it is looked at."""

    def environ(self):
        raise psutil.AccessDenied

    def parent(self):
        raise psutil.NoSuchProcess(1)


def test_ancestors_that_are_anothers_or_end_meanwhile_tell_nothing():
    assert not peer._is_marked(Process())
    assert list(peer._above(Process())) == []


def test_the_hub_answers_nobody_of_a_worker_and_everybody_else(place):
    """The same process, first with and then without the worker's marker."""
    place.connected()
    with pytest.raises(reach.Unreachable) as refused:
        reach.reach("rpc", {**place.environ, MARKER: "a-server"})
    assert refused.value.code == WORKER_REFUSED
    reach.reach("rpc", place.environ).connection.close()
