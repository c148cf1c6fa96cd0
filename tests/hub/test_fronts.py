"""Real fronts and a real hub, as processes: who starts whom, and who ends when."""

import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from offload import __version__
from offload.hub import address, forward, reach, run
from offload.hub.greeting import CONTROL
from offload.hub.hello import accepted
from tests.hub.conftest import FRONT, ask
from tests.hub.front import ECHO_HUB
from tests.support import counted

TWO_SECONDS = 2  # the bound of case H09, and so not a guess of ours
PATIENCE = 30  # seconds for what has no bound of its own, on a busy machine

# Starts what it is told and waits for it, like an editor; it is there to be killed.
EDITOR = "import subprocess, sys; subprocess.run(sys.argv[1:])"


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_front_starts_the_hub_and_the_next_one_finds_it(place):
    _, first = place.connected("lsp")
    _, second = place.connected("mcp")
    assert [first] == [second] == place.hubs()


def test_the_socket_and_its_folder_are_for_their_owner_only(place):
    place.state.chmod(0o755)
    place.connected()
    assert mode(place.state) == 0o700
    assert {name: mode(place.state / name) for name in ("hub.sock", "hub.log", "hub.lock")} == {
        "hub.sock": 0o600,
        "hub.log": 0o600,
        "hub.lock": 0o600,
    }


def test_bytes_pass_both_ways_unchanged_whatever_their_number(place):
    """More than all buffers on the way hold, so that each direction has to wait for the other side."""
    front, _ = place.connected()
    sent = os.urandom(3_000_000)
    writing = threading.Thread(target=front.stdin.write, args=(sent,))
    writing.start()
    assert front.stdout.read(len(sent)) == sent
    writing.join()
    front.stdin.close()
    assert front.stdout.read() == b"bye\n"
    assert (front.wait(timeout=PATIENCE), front.stderr.read()) == (0, b"")


def test_what_was_asked_before_there_was_a_hub_is_answered(place):
    front = place.front()
    got, _ = front.communicate(b"early\n", timeout=PATIENCE)
    assert got == b"early\nbye\n"


def test_twelve_fronts_that_come_at_once_after_a_kill_get_one_hub_in_twenty_rounds(place):
    """Case H23: a socket that a killed hub left behind is no hub. Issue 2, item 4: never two hubs on one state folder."""
    _, hub = place.connected()
    for _ in range(20):
        os.kill(hub, signal.SIGKILL)
        place.wait_for_end()
        before = place.hubs()
        fronts = [place.front() for _ in range(12)]
        answers = {ask(front)["pid"] for front in fronts}
        assert len(answers) == 1
        (hub,) = answers
        assert place.hubs() == [*before, hub]
        for front in fronts:
            front.communicate(timeout=PATIENCE)


def test_a_front_ends_within_two_seconds_of_the_end_of_its_input(place):
    """Case H09."""
    front, _ = place.connected()
    front.stdin.close()
    assert front.wait(timeout=TWO_SECONDS) == 0
    assert front.stdout.read() == b"bye\n"


def test_a_front_does_not_wait_for_a_hub_that_keeps_its_side_open(place):
    """Case H09: within two seconds here too."""
    place.options("stubborn")
    front = place.front()
    assert front.stdout.readline() == b"here\n"
    front.stdin.close()
    assert front.wait(timeout=TWO_SECONDS) == 0


@pytest.mark.parametrize("redirection", ["</dev/null", "<&-"])
def test_a_front_without_any_input_ends_by_itself(place, redirection):
    """Case H09: `server </dev/null`; with no standard input at all its socket must not be taken for it."""
    place.connected()
    # Not counted: the counter's own files would take the place of the closed stream.
    command = ["sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-I", "-S", FRONT, "lsp"]
    ended = subprocess.run(command, env=place.environ, capture_output=True, check=False, timeout=PATIENCE)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_front_whose_parent_is_killed_ends_although_its_input_stays_open(place):
    """Case H09: a sibling, here this test, holds the input open, so that its end never comes."""
    read, write = os.pipe()
    editor = subprocess.Popen(
        [sys.executable, "-c", EDITOR, *counted.command(FRONT, "lsp")],
        env=counted.environment(place.environ),
        stdin=read,
        stdout=subprocess.PIPE,
    )
    os.close(read)
    os.write(write, b"who\n")
    assert b"pid" in editor.stdout.readline()
    editor.kill()
    editor.wait()
    # The front is the last one to hold the output.
    assert editor.stdout.read() == b""
    editor.stdout.close()
    os.close(write)


def test_a_front_ends_when_nobody_reads_its_output(place):
    front, _ = place.connected()
    front.stdout.close()
    assert front.wait(timeout=PATIENCE) == 1


def test_an_editors_front_ends_with_a_failure_when_its_hub_is_killed(place):
    """So that the editor sees a server that crashed, and starts another one."""
    front, hub = place.connected()
    os.kill(hub, signal.SIGKILL)
    assert front.wait(timeout=PATIENCE) == forward.LOST


def test_a_front_that_is_interrupted_says_nothing(place):
    front, _ = place.connected()
    front.send_signal(signal.SIGINT)
    assert front.wait(timeout=PATIENCE) == 130
    assert front.stderr.read() == b""


def test_a_hub_outlives_the_front_that_started_it(place):
    front, hub = place.connected()
    front.kill()
    front.wait()
    _, second = place.connected()
    assert second == hub


def test_a_hub_keeps_nothing_open_that_its_starter_was_given(place):
    """A pipe whose write end lives on in the hub would never end for the editor that reads it."""
    read, write = os.pipe()
    front, hub = place.connected(pass_fds=[write])
    os.close(write)
    front.communicate(timeout=PATIENCE)
    assert os.read(read, 1) == b""
    os.close(read)
    assert place.lock.holder() == hub
    assert place.lock.is_held()


def test_the_environment_of_a_hook_reaches_neither_hub_nor_worker(place):
    """GIT_DIR of a hook would send every git of the hub into the wrong repository; odd bytes must not stop anything."""
    odd = {
        b"PYTHONPATH": b"/nowhere",
        b"GIT_DIR": b"/nowhere",
        b"GIT_INDEX_FILE": b"x",
        b"LC_ODD": b"\xff\xfe",
        b"MY_API_KEY": b"k",
        b"UNRELATED": b"u",
    }
    environ = {os.fsdecode(name): os.fsdecode(value) for name, value in odd.items()}
    told = ask(place.front(environ=environ))
    assert told["strange"] == []
    assert not {"GIT_DIR", "GIT_INDEX_FILE", "UNRELATED"} & set(told["environment"])
    assert os.fsencode(told["environment"]["LC_ODD"]) == b"\xff\xfe"
    assert told["environment"]["MY_API_KEY"] == "k"
    assert told["cwd"] == os.getcwd()


def test_a_hub_that_cannot_start_is_told_with_its_own_words(place):
    place.options("broken")
    front = place.front()
    assert front.wait(timeout=PATIENCE) == 69
    assert front.stderr.read().decode() == (
        f"offload: the hub did not start: the journal is broken; mend it (see {place.state / 'hub.log'})\n"
    )


def test_a_state_folder_that_is_none_is_told(place):
    (place.state / "file").write_text("")
    front = place.front(environ={"OFFLOAD_STATE_DIR": str(place.state / "file")})
    _, errors = front.communicate(timeout=PATIENCE)
    assert front.returncode == 69
    assert b"set OFFLOAD_STATE_DIR" in errors
    assert errors.count(b"\n") == 1


def test_a_state_path_that_is_too_long_for_a_socket_works_too(place):
    deep = place.state / ("long" * 20) / ("longer" * 20)
    environ = {**place.environ, "OFFLOAD_STATE_DIR": str(deep)}
    front = place.front(environ={"OFFLOAD_STATE_DIR": str(deep)})
    try:
        hub = ask(front)["pid"]
        found = run.status(environ)
        assert found["pid"] == hub
    finally:
        assert run.stop(environ)
    short = Path(address.socket_path(str(deep))).parent
    assert mode(short) == 0o700
    short.rmdir()


def test_a_front_of_another_version_says_so_and_works(place):
    """Case H24: the same protocol, so that both understand each other; the person is told."""
    with socket.socket(socket.AF_UNIX) as hub:
        hub.bind(str(place.state / "hub.sock"))
        hub.listen()
        front = place.front()
        connection, _ = hub.accept()
        with connection:
            connection.recv(100_000)
            connection.sendall(accepted().replace(__version__.encode(), b"99.0") + b"served\n")
            assert front.stdout.readline() == b"served\n"
        assert front.wait(timeout=PATIENCE) == forward.LOST
    assert front.stderr.read().decode() == (
        f"offload: the hub that runs is offload 99.0, this is {__version__}; `offload hub stop` ends the other\n"
    )


def test_a_hub_that_nobody_needs_ends_and_the_next_front_starts_another(place):
    place.options("hasty")
    front, first = place.connected()
    front.communicate(timeout=PATIENCE)
    place.wait_for_end()
    assert not (place.state / "hub.sock").exists()
    _, second = place.connected()
    assert first != second
    assert {first, second} <= set(place.hubs())


def test_a_front_that_comes_while_a_hub_ends_is_served(place):
    """It is counted by the hub that ends, or it starts the next one; each round meets the end at another moment."""
    place.options("hasty")
    for _ in range(10):
        front = place.front()
        assert ask(front)["pid"]
        front.communicate(timeout=PATIENCE)


def test_stop_ends_the_hub_and_its_fronts_in_order(place):
    front, hub = place.connected()
    assert [one["kind"] for one in run.status(place.environ)["fronts"]] == ["lsp"]
    assert run.stop(place.environ)
    assert front.wait(timeout=PATIENCE) == forward.LOST
    assert run.status(place.environ) is None
    assert not run.stop(place.environ)
    assert place.lock.holder() == hub


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_hub_in_order(place, number):
    _, hub = place.connected()
    os.kill(hub, number)
    place.wait_for_end()
    assert not (place.state / "hub.sock").exists()


def test_a_hub_whose_connections_do_not_end_is_cut_off(place):
    place.options("stubborn")
    front = place.front()
    front.stdout.readline()
    assert run.stop(place.environ)
    assert front.wait(timeout=PATIENCE) == forward.LOST


def test_what_an_editor_makes_fail_ends_its_own_connection_only(place):
    """A language server's `exit` calls sys.exit; the others must not notice."""
    front, hub = place.connected()
    for kind in ("crash", "exit"):
        assert place.front(kind).wait(timeout=PATIENCE) == forward.LOST
    assert ask(front)["pid"] == hub


def test_a_second_hub_leaves_the_place_to_the_first(place):
    _, hub = place.connected()
    second = subprocess.run(ECHO_HUB, env=place.environ, capture_output=True, check=False, timeout=PATIENCE)
    assert (second.returncode, second.stderr.decode()) == (0, f"a hub runs already, process {hub}\n")


LISTENER = """
import os, signal, socket, sys
from offload.hub import address, lock
state = address.state_folder(os.environ)
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
assert lock.hub_lock(state).acquire()
with socket.socket(socket.AF_UNIX) as listening:
    listening.bind(address.prepare(state))
    listening.listen()
    print("listens", flush=True)
    while True:
        connection, _ = listening.accept()
        connection.sendall(b"HTTP/1.1 400 Bad Request\\r\\n")
        connection.close()
"""


@pytest.fixture
def stranger(place):
    """Starts something that holds the hub's place but is no hub."""
    started = []

    def start(word):
        process = subprocess.Popen([sys.executable, "-c", LISTENER, word], env=place.environ, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout.readline() == b"listens\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_stop_ends_a_hub_that_does_not_answer_as_one(place, stranger):
    """Case H24: a stop that cannot reach the old one would leave it for ever."""
    old = stranger("ordinary")
    with pytest.raises(run.HubUnavailable, match="does not speak its protocol"):
        run.status(place.environ)
    assert run.stop(place.environ)
    assert old.wait(timeout=PATIENCE) == -signal.SIGTERM


def test_stop_says_how_to_end_a_hub_that_does_not_end(place, stranger):
    deaf = stranger("deaf")
    with pytest.raises(run.HubUnavailable, match=f"kill -9 {deaf.pid}"):
        run.stop(place.environ, wait_s=0.2)


def test_status_and_stop_are_understood_by_any_version(place):
    """Case H24: the control connection is not refused for its protocol's number."""
    _, hub = place.connected()
    hello = reach.greeting(CONTROL, place.environ).replace(b'"protocol": 1', b'"protocol": 99')
    link = reach.attempt(str(place.state / "hub.sock"), hello)
    with link.connection as connection:
        connection.sendall(b'{"method": "stop"}\n')
        assert connection.recv(100) == b'{"result": {}}\n'
    place.wait_for_end()
    assert link.pid == hub
