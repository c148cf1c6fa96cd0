"""A host's front and its way back: on pipes and sockets of this test, with hubs that say what the test writes for them."""

import json
import os
import socket
import threading

import pytest

from offload.hub import forward, reconnect
from offload.hub.reach import Link, Unreachable

PATIENCE = 20
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
GREETED = {"jsonrpc": "2.0", "id": 0, "result": {"serverInfo": {"name": "offload"}}}


def call(number, **params):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def result(number, **content):
    return {"jsonrpc": "2.0", "id": number, "result": content}


class Hub:
    """The hub's end of one connection; `theirs` is the front's."""

    def __init__(self):
        self.end, self.theirs = socket.socketpair()
        self.end.settimeout(PATIENCE)
        self.lines = self.end.makefile("rb")

    def read(self):
        line = self.lines.readline()
        return json.loads(line) if line else None

    def say(self, *messages):
        self.end.sendall(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def close(self):
        self.lines.close()
        self.end.close()


class Host:
    """A host with its front, which runs in a thread. `hubs` are those that it meets, an exception is met in their place."""

    def __init__(self):
        self.stdin, self.write_end = os.pipe()
        self.read_end, self.stdout = os.pipe()
        self.output = os.fdopen(self.read_end, "rb")
        self.hub = Hub()
        self.hubs = []
        self.links = 0
        self.linking = threading.Semaphore(0)
        self.crashed = True
        self.parents = 1
        self.front = reconnect.HostFront(self.stdin, self.stdout, lambda: self.parents, self.link, lambda: self.crashed)
        self.thread = threading.Thread(target=self.carry)
        self.status = None

    def carry(self):
        self.status = self.front.carry(self.hub.theirs)

    def link(self):
        self.links += 1
        self.linking.release()
        following = self.hubs.pop(0) if self.hubs else Unreachable("the test is over")
        if isinstance(following, Exception):
            raise following
        self.hub, rest = following if isinstance(following, tuple) else (following, b"")
        return Link(self.hub.theirs, "1", 1, rest)

    def say(self, *messages):
        for message in messages:
            os.write(self.write_end, json.dumps(message).encode() + b"\n")

    def read(self):
        return json.loads(self.output.readline())

    def greet(self):
        """The start of the connection, with the hub that there is."""
        self.thread.start()
        self.say(INITIALIZE)
        assert self.hub.read() == INITIALIZE
        self.hub.say(GREETED)
        assert self.read() == GREETED
        self.say(INITIALIZED)
        assert self.hub.read() == INITIALIZED

    def leave(self):
        """The host ends its side; gives the front's status."""
        os.close(self.write_end)
        self.write_end = None
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        return self.status

    def close(self, hubs):
        if self.write_end is not None:
            os.close(self.write_end)
        for hub in hubs:
            hub.close()
        if self.thread.ident:
            self.thread.join(PATIENCE)
        os.close(self.stdin)
        os.close(self.stdout)
        self.output.close()
        for hub in hubs:
            hub.theirs.close()


@pytest.fixture
def host():
    host = Host()
    first = host.hub
    made = [first]

    def following():
        made.append(Hub())
        return made[-1]

    host.next_hub = following
    yield host
    host.close(made)


def failed(number, text=reconnect.LOST_TEXT):
    error = {"code": reconnect.SERVER_ERROR, "message": text, "data": {"code": "hub_unavailable"}}
    return {"jsonrpc": "2.0", "id": number, "error": error}


def welcome_back(hub):
    """What the next hub is told of the host, and says to it."""
    assert hub.read() == INITIALIZE
    hub.say(GREETED)
    assert hub.read() == INITIALIZED


def test_the_host_goes_on_with_the_next_hub_which_knows_it(host):
    """Issue 3, item 1: `offload mcp` replays `initialize` and answers the calls that were open."""
    second = host.next_hub()
    host.hubs = [second]
    host.greet()
    host.say(call(1), call("two"))
    assert [host.hub.read()["id"] for _ in range(2)] == [1, "two"]
    host.hub.say(result(1))
    assert host.read() == result(1)
    host.hub.close()
    assert host.read() == failed("two")
    welcome_back(second)
    host.say(call(3))
    assert second.read() == call(3)
    second.say(result(3))
    assert host.read() == result(3), "the second answer to `initialize` is kept from the host"
    assert host.leave() == forward.ENDED


def test_a_host_of_the_era_without_initialize_needs_no_introduction(host):
    second = host.next_hub()
    host.hubs = [(second, json.dumps(result(1)).encode() + b"\n")]
    host.thread.start()
    host.say(call(1))
    host.hub.read()
    host.hub.close()
    assert host.read() == failed(1)
    assert host.read() == result(1), "what the hub says at once is passed on"
    host.say(call(2))
    assert second.read() == call(2)


def test_an_initialize_that_was_not_answered_is_asked_again_and_answered_once(host):
    second = host.next_hub()
    host.hubs = [second]
    host.thread.start()
    host.say(INITIALIZE)
    assert host.hub.read() == INITIALIZE
    host.hub.close()
    assert second.read() == INITIALIZE
    second.say(GREETED)
    assert host.read() == GREETED


def test_an_initialize_that_was_refused_is_forgotten(host):
    second = host.next_hub()
    host.hubs = [second]
    host.thread.start()
    host.say(INITIALIZE)
    host.hub.read()
    refused = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32602, "message": "no"}}
    host.hub.say(refused)
    assert host.read() == refused
    host.hub.close()
    host.say(call(1))
    assert second.read() == call(1)


def test_half_a_line_of_a_hub_that_went_away_never_reaches_the_host(host):
    second = host.next_hub()
    host.hubs = [second]
    host.greet()
    host.say(call(1))
    host.hub.read()
    host.hub.end.sendall(b'{"jsonrpc": "2.0", "id": 1, "res')
    host.hub.close()
    assert host.read() == failed(1)
    welcome_back(second)


def test_a_line_of_which_a_hub_had_half_is_not_given_to_the_next_one(host):
    """A message of 8 MiB, cut off in the middle: its rest means nothing to the next hub. Its call is answered."""
    second = host.next_hub()
    host.hubs = [second]
    host.greet()
    message = json.dumps(call(7, brief="x" * 8 * 1024 * 1024)).encode() + b"\n"
    writing = threading.Thread(target=os.write, args=(host.write_end, message))
    writing.start()
    host.hub.end.recv(65536)
    host.hub.close()
    welcome_back(second)
    writing.join(PATIENCE)
    assert host.read() == failed(7)
    host.say(call(8))
    assert second.read() == call(8)


def test_a_line_that_is_never_ended_is_no_call(host):
    second = host.next_hub()
    host.hubs = [second]
    host.greet()
    os.write(host.write_end, b'{"id": 7, "method": "tools/')
    host.hub.end.recv(100)
    host.hub.close()
    welcome_back(second)
    os.write(host.write_end, b'call", "params": {')
    assert host.leave() == forward.ENDED
    second.end.shutdown(socket.SHUT_RD)
    assert second.read() is None


def test_large_messages_pass_whole_and_their_calls_are_known(host):
    host.greet()
    host.hubs = [host.next_hub()]
    sent = call(7, brief="x" * 1024 * 1024)
    writing = threading.Thread(target=host.say, args=(sent,))
    writing.start()
    assert host.hub.read() == sent
    writing.join(PATIENCE)
    host.hub.close()
    assert host.read() == failed(7)


PADDING = "x" * 2 * reconnect.LONGEST


@pytest.mark.parametrize(
    ("line", "number"),
    [
        (f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"a":"{PADDING}"}}}}', 7),
        (f'{{"method":"tools/call","id":"x","params":{{"a":"{PADDING}"}}}}', "x"),
        (f'{{"method":"tools/call","params":{{"id":5,"a":"{PADDING}"}},"jsonrpc":"2.0","id":8}}', 8),
        (f'{{"method":"tools/call","params":{{"id":5,"a":"{PADDING}"}},"id":9,"jsonrpc":"2.0"}}', 9),
        (f'{{"jsonrpc":"2.0","id":7,"result":{{"a":"{PADDING}"}}}}', None),
        (f'{{"method":"notifications/x","params":{{"a":"{PADDING}"}}}}', None),
        ('{"jsonrpc": "2.0", "id": 3, "method": "ping"}', 3),
        ('{"jsonrpc": "2.0", "id": 3, "result": {}}', None),
        ('{"id": true, "method": "ping"}', None),
        ('[{"id": 1, "method": "ping"}]', None),
        ("[" * 50_000, None),
        ("", None),
        ("what?", None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_id_of_a_call_is_found(host, line, number):
    pieces = [line[at : at + 30_000] for at in range(0, len(line), 30_000)] or [""]
    for piece in pieces:
        assert host.front._follow(piece.encode()) == []
    assert host.front._follow(b"\n") == ([] if number is None else [number])
    assert list(host.front._open) == ([] if number is None else [number])


def test_a_call_that_the_host_has_cancelled_is_not_answered(host):
    for params in ({"requestId": 1}, {"requestId": 3}, {}, None):
        cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        host.front._follow(json.dumps(call(1)).encode() + b"\n" + json.dumps(cancelled).encode() + b"\n")
        assert list(host.front._open) == ([] if params == {"requestId": 1} else [1])


def test_what_the_hub_asks_itself_answers_no_call(host):
    """Its ids are its own, and may be the host's as well."""
    host.greet()
    host.say(call(1))
    host.hub.read()
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    told = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}}
    host.hub.say(asked, told)
    assert [host.read(), host.read()] == [asked, told]
    host.hubs = [host.next_hub()]
    host.hub.close()
    assert host.read() == failed(1)


def test_a_hub_that_was_stopped_comes_back_with_the_next_message_only(host):
    """Else `offload hub stop` would end nothing while a host is open."""
    host.crashed = False
    second = host.next_hub()
    host.hubs = [second]
    host.greet()
    host.say(call(1))
    host.hub.read()
    host.hub.close()
    assert host.read() == failed(1)
    assert host.links == 0
    host.say(call(2))
    welcome_back(second)
    assert second.read() == call(2)


def test_a_host_that_leaves_while_there_is_no_hub_ends_the_front(host):
    host.crashed = False
    host.greet()
    host.hub.close()
    assert host.leave() == forward.ENDED
    assert host.links == 0


def test_a_host_that_is_gone_with_the_hub_ends_the_front(host):
    host.greet()
    host.parents = 2
    host.hub.close()
    assert host.leave() == forward.UNREAD


def test_a_hub_that_crashes_again_and_again_is_not_started_for_ever(host):
    host.hubs = [host.next_hub(), host.next_hub()]
    second, third = host.hubs
    host.greet()
    host.hub.close()
    welcome_back(second)
    host.say(call(1))
    assert second.read() == call(1)
    second.close()
    assert host.read() == failed(1)
    assert host.links == 1
    host.say(call(2))
    welcome_back(third)
    assert third.read() == call(2)


def test_calls_are_refused_with_the_reason_while_there_is_no_hub_and_each_one_tries_again(host, capfd):
    second = host.next_hub()
    host.hubs = [Unreachable("mend it"), Unreachable("mend that"), second]
    host.greet()
    host.hub.close()
    assert host.linking.acquire(timeout=PATIENCE)
    host.say(call(1))
    assert host.read() == failed(1, "mend that")
    host.say(call(2))
    welcome_back(second)
    assert second.read() == call(2)
    assert capfd.readouterr().err == "offload: mend it\noffload: mend that\n"


def test_a_line_that_is_half_there_when_it_is_refused_is_refused_whole(host):
    second = host.next_hub()
    host.crashed = False
    host.hubs = [Unreachable("mend it"), second]
    host.greet()
    host.hub.close()
    line = json.dumps(call(1)).encode() + b"\n"
    os.write(host.write_end, json.dumps(call(0)).encode() + b"\n" + line[:20])
    assert host.read() == failed(0, "mend it")
    os.write(host.write_end, line[20:])
    assert host.read()["id"] == 1
    host.say(call(2))
    welcome_back(second)
    assert second.read() == call(2)


def test_a_hub_that_goes_away_while_it_is_told_of_the_host_is_as_none(host):
    second, third = host.next_hub(), host.next_hub()
    host.hubs = [second, third]
    host.greet()
    host.hub.close()
    assert second.read() == INITIALIZE
    second.close()
    host.say(call(1))
    welcome_back(third)
    assert third.read() == call(1)


def test_a_hub_that_does_not_take_the_host_is_as_none(host, capfd):
    second, third = host.next_hub(), host.next_hub()
    host.hubs = [second, third]
    host.greet()
    host.hub.close()
    assert second.read() == INITIALIZE
    second.say({"jsonrpc": "2.0", "id": 0, "error": {"message": "too old"}})
    assert second.read() is None
    host.say(call(1))
    welcome_back(third)
    assert third.read() == call(1)
    assert "does not take this host" in capfd.readouterr().err


def test_what_a_hub_says_before_it_answers_is_passed_on(host):
    second = host.next_hub()
    noted = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}
    host.hubs = [(second, json.dumps(noted).encode()[:10])]
    host.greet()
    host.hub.close()
    assert second.read() == INITIALIZE
    second.end.sendall(json.dumps(noted).encode()[10:] + b"\n")
    second.say(GREETED)
    assert host.read() == noted
    assert second.read() == INITIALIZED


def test_a_hub_that_does_not_answer_is_given_up(host, monkeypatch):
    """The host's leaving would be seen meanwhile: what it says is waited for between two looks."""
    monkeypatch.setattr(reconnect, "ANSWER_S", 0.05)
    monkeypatch.setattr(reconnect, "GLANCE_S", 0.04)
    second, third = host.next_hub(), host.next_hub()
    host.hubs = [second, third]
    host.greet()
    host.hub.close()
    assert second.read() == INITIALIZE
    assert second.read() is None
    monkeypatch.undo()
    host.say(call(1))
    welcome_back(third)
    assert third.read() == call(1)


def test_a_hub_that_takes_no_more_is_gone(host):
    second = host.next_hub()
    host.hubs = [second]
    host.greet()
    host.hub.end.shutdown(socket.SHUT_RD)
    host.say(call(1))
    welcome_back(second)
    assert second.read() == call(1), "none of it had been taken"
