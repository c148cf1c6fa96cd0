"""A front's way to the hub, step by step, against listeners that are made up here."""

import os
import socket
import sys
import threading
from contextlib import contextmanager

import pytest

from offload.hub import reach
from offload.hub.greeting import Refusal
from offload.hub.hello import accepted, refused

HELLO = b'{"hello": true}\n'


@contextmanager
def listener(place, *answers, read=True):
    """Listens at the hub's socket; each answer is for one connection, None keeps it without a word."""
    path = str(place.state / "hub.sock")
    kept = []

    def serve():
        for answer in answers:
            connection, _ = listening.accept()
            if read:
                connection.recv(100_000)
            if answer is None:
                kept.append(connection)
                continue
            connection.sendall(answer)
            connection.close()

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield path
        finally:
            thread.join()
            for connection in kept:
                connection.close()


def test_nobody_there_is_no_link(place):
    assert reach.attempt(str(place.state / "hub.sock"), HELLO) is None


def test_a_socket_that_a_killed_hub_left_behind_is_no_link(place):
    path = str(place.state / "hub.sock")
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    assert reach.attempt(path, HELLO) is None


def test_a_hub_that_is_ending_is_no_link(place):
    """Nothing but the hello was sent, so that the front may come again."""
    with listener(place, b"") as path:
        assert reach.attempt(path, HELLO) is None


def test_a_hub_that_closes_without_reading_is_no_link(place):
    """What the queue of a listener that goes away holds is reset."""
    with listener(place, b"", read=False) as path:
        assert reach.attempt(path, HELLO) is None


def test_a_refusal_is_read_although_the_hello_was_not(place):
    """A hello that is too long is refused before it is all sent."""
    with listener(place, refused(Refusal("invalid_request", "too long")), read=False) as path:
        with pytest.raises(reach.Unreachable, match="too long") as refusal:
            reach.attempt(path, b"x" * 1_000_000)
    assert refusal.value.code == "invalid_request"


def test_what_the_hub_says_right_after_its_answer_is_kept(place):
    with listener(place, accepted() + b"first words") as path:
        link = reach.attempt(path, HELLO)
    with link.connection:
        assert (link.pid, link.rest) == (os.getpid(), b"first words")


def test_a_hub_that_is_stuck_is_told(place):
    looked = []
    with listener(place, None) as path:
        with pytest.raises(reach.Unreachable, match="does not answer; end it with `offload hub stop`"):
            reach.attempt(path, HELLO, looked.append, answer_s=reach.GLANCE_S / 2 + reach.GLANCE_S)
    assert looked == [0]


def test_a_socket_that_is_none_is_told(place):
    (place.state / "hub.sock").symlink_to("hub.sock")
    with pytest.raises(reach.Unreachable, match="cannot be used") as error:
        reach.find("lsp", place.environ)
    assert error.value.code == "hub_unavailable"


class OlderHub:
    """Refuses the first front for its protocol, and makes of the wish to drain what the test says."""

    def __init__(self, place, answer):
        self.path = str(place.state / "hub.sock")
        self.answer = answer
        self.asked = b""
        self.listening = socket.socket(socket.AF_UNIX)
        self.listening.bind(self.path)
        self.listening.listen()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        with self.listening.accept()[0] as front:
            front.recv(100_000)
            front.sendall(refused(Refusal("version_mismatch", "the front is too new")))
        with self.listening.accept()[0] as control:
            control.recv(100_000)
            if self.answer is None:  # it ends at this very moment
                os.unlink(self.path)
                return
            control.sendall(accepted())
            self.asked = control.recv(100)
            if b"error" not in self.answer:
                os.unlink(self.path)
            control.sendall(self.answer)

    def close(self):
        self.thread.join()
        self.listening.close()


@pytest.fixture
def older_hub(place, monkeypatch):
    """This version plays the next one."""
    monkeypatch.setattr(reach, "PROTOCOL", reach.PROTOCOL + 1)
    made = []

    def make(answer):
        made.append(OlderHub(place, answer))
        return made[-1]

    yield make
    for hub in made:
        hub.close()


@pytest.mark.parametrize("answer", [b'{"result": {}}\n', b"", None], ids=["agrees", "ends", "is ending"])
def test_a_hub_of_an_older_protocol_is_asked_to_drain_and_the_next_one_is_started(place, older_hub, answer):
    """Case H24: the newer one takes over; here it fails to start, so that the test sees that it was."""
    hub = older_hub(answer)
    with pytest.raises(reach.Unreachable, match="the hub did not start: the next one"):
        reach.reach(
            "lsp", place.environ, command=(sys.executable, "-I", "-S", "-c", "raise SystemExit('the next one')")
        )
    assert hub.asked == (b"" if answer is None else b'{"method": "drain"}\n')


def test_a_hub_of_an_older_protocol_that_does_not_drain_is_told(place, older_hub):
    older_hub(b'{"error": {}}\n')
    with pytest.raises(reach.Unreachable, match="the front is too new") as error:
        reach.reach("lsp", place.environ)
    assert error.value.code == "version_mismatch"


def test_a_hub_that_goes_away_while_it_is_asked_to_drain_has_made_room(place):
    with listener(place, accepted(), read=False) as path:
        assert reach._drain(path, place.environ)


def test_finding_starts_no_hub(place):
    assert reach.find("lsp", place.environ) is None
    assert list(place.state.iterdir()) == []


@pytest.mark.parametrize("ask", [reach.find, reach.reach])
def test_an_address_that_is_none_is_told(ask):
    with pytest.raises(reach.Unreachable, match="OFFLOAD_STATE_DIR must name an absolute folder"):
        ask("lsp", {"OFFLOAD_STATE_DIR": "here"})


def test_a_hub_that_never_listens_is_given_up(place):
    """It ends well, as one does that meets another; but there is no other."""
    with pytest.raises(reach.Unreachable, match=r"no hub answered within 0.3 s; see .*hub.log"):
        reach.reach("lsp", place.environ, command=(sys.executable, "-I", "-S", "-c", ""), deadline_s=0.3)


def test_while_another_front_is_starting_a_hub_none_is_started(place):
    starting = reach.start_lock(str(place.state))
    assert starting.acquire()
    with pytest.raises(reach.Unreachable, match="no hub answered"):
        reach.reach("lsp", place.environ, command=(sys.executable, "-c", "print('started')"), deadline_s=0.1)
    starting.release()
    assert not (place.state / "hub.log").exists()


def test_a_hub_that_fails_without_a_word_is_told_too(place):
    (place.state / "hub.log").write_text("old words\n")
    with pytest.raises(reach.Unreachable, match="the hub did not start: it said nothing"):
        reach.reach("lsp", place.environ, command=(sys.executable, "-I", "-S", "-c", "raise SystemExit(3)"))


def test_a_program_that_is_gone_is_told(place):
    """An upgrade can take the interpreter away under a front that runs."""
    with pytest.raises(reach.Unreachable, match="could not be started with /gone/python: No such file"):
        reach.reach("lsp", place.environ, command=("/gone/python",))


def test_a_state_folder_that_cannot_be_written_is_told(place):
    (place.state / "start.lock").mkdir()
    with pytest.raises(
        reach.Unreachable, match=r"the hub cannot be started: .*start\.lock.*; mend .* or set OFFLOAD_STATE_DIR"
    ):
        reach.reach("lsp", place.environ)


def test_the_hub_runs_in_the_fronts_own_interpreter_and_leans_on_no_other_project():
    """venv, pipx and uv tool environments are found by their interpreter; a project's PYTHONPATH must not be."""
    assert (sys.executable, "-E", "-P", "-X", "utf8", "-m", "offload", "hub", "run") == reach.COMMAND
