"""The command line's connection, against a hub that is made up here."""

import json
import select
import socket
import threading
from contextlib import contextmanager

import pytest

from offload.domain import errors
from offload.hub import client
from offload.hub.greeting import Refusal
from offload.hub.hello import accepted, refused
from tests.hub.front import ECHO_HUB


@contextmanager
def hub(place, *exchanges, welcome=None):
    """One connection; each exchange is the lines that answer one request."""
    heard = []

    def serve():
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb") as stream:
            heard.append(json.loads(stream.readline()))
            stream.write(welcome or accepted())
            stream.flush()
            for answers in exchanges:
                if answers is None:
                    select.select([connection], [], [])
                    return  # with a request that nobody has read
                heard.append(json.loads(stream.readline()))
                for answer in answers:
                    stream.write(answer if isinstance(answer, bytes) else json.dumps(answer).encode() + b"\n")
                stream.flush()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place.state / "hub.sock"))
        listening.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield heard
        finally:
            thread.join()


def test_a_call_gives_its_result_whatever_comes_in_between(place):
    answers = [{"method": "task_changed", "params": {}}, {"id": 99, "result": {}}, {"id": 1, "result": {"tasks": []}}]
    with hub(place, answers) as heard, client.connect(place.environ) as connection:
        assert connection.call("list_tasks", {"live": True}) == {"tasks": []}
    assert heard[0]["kind"] == "rpc"
    assert heard[1] == {"id": 1, "method": "list_tasks", "params": {"live": True}}


@pytest.mark.parametrize("of", [of for of in errors.all_errors() if "code" in vars(of)])
def test_an_error_is_raised_as_what_it_was(place, of):
    error = {"code": of.code, "message": "do this", "reasons": []}
    with hub(place, [{"id": 1, "error": error}]), client.connect(place.environ) as connection:
        with pytest.raises(of, match="do this") as raised:
            connection.call("start_task", {})
    assert type(raised.value) is of


def test_a_refused_apply_keeps_its_reasons(place):
    error = {"code": "apply_refused", "message": "nothing was written", "reasons": ["a.py: it says: no", "b.py: gone"]}
    with hub(place, [{"id": 1, "error": error}]), client.connect(place.environ) as connection:
        with pytest.raises(errors.ApplyRefused) as raised:
            connection.call("apply_task", {})
    assert raised.value.reasons == (("a.py", "it says: no"), ("b.py", "gone"))


def test_an_error_of_a_newer_hub_still_has_its_sentence(place):
    error = {"code": "something_new", "message": "do that", "reasons": []}
    with hub(place, [{"id": 1, "error": error}]), client.connect(place.environ) as connection:
        with pytest.raises(errors.OffloadError, match="do that"):
            connection.call("start_task", {})


@pytest.mark.parametrize("words", [[], [b'{"id": 1, "resu'], None], ids=["nothing", "half a line", "unread"])
def test_a_hub_that_ends_before_it_has_answered_is_told(place, words):
    with hub(place, words), client.connect(place.environ) as connection:
        with pytest.raises(errors.HubUnavailable, match="ended before it answered"):
            connection.call("list_tasks", {})


def test_a_hub_that_has_ended_is_told(place):
    with hub(place), client.connect(place.environ) as connection:
        with pytest.raises(errors.HubUnavailable, match="call again, a new one will start"):
            connection.call("list_tasks", {"search": "x" * 1_000_000})


def test_changes_are_watched_until_the_hub_ends(place):
    changes = [
        {"id": 1, "result": {}},
        *({"method": "task_changed", "params": {"revision": n}} for n in (1, 2)),
        {"id": 7},
    ]
    with hub(place, changes), client.connect(place.environ) as connection:
        watching = connection.watch()
        assert select.select([connection], [], [], 10)[0] == [connection]
        assert [next(watching)["revision"], next(watching)["revision"]] == [1, 2]
        with pytest.raises(errors.HubUnavailable):
            next(watching)


def test_a_hub_is_started_when_there_is_none(place):
    with client.connect(place.environ, command=ECHO_HUB) as connection:
        connection._connection.sendall(b"who\n")
        assert connection._read()["pid"] == place.lock.holder()


@pytest.mark.parametrize(
    ("refusal", "raised"),
    [
        (Refusal("version_mismatch", "use one version"), errors.VersionMismatch),
        (Refusal("invalid_request", "say hello"), errors.InvalidRequest),
        (Refusal("something_new", "do that"), errors.HubUnavailable),
    ],
)
def test_a_refused_connection_is_told_as_what_it_is(place, refusal, raised):
    with hub(place, welcome=refused(refusal)):
        with pytest.raises(raised, match=str(refusal)), client.connect(place.environ):
            pass
