"""The front's loop on pipes and sockets of this test, for the moments that real processes meet only by chance."""

import os
import socket
import sys

import pytest

from offload.hub import forward

PARENT = 4711


class Ends:
    """All four ends around one front: `editor_in`/`editor_out` are the editor's, `hub` is the hub's."""

    def __init__(self):
        self.stdin, self.editor_in = os.pipe()
        self.editor_out, self.stdout = os.pipe()
        self.connection, self.hub = socket.socketpair()
        self.at_look = {}  # what happens when the front looks at its parent for the n-th time; the first is its start
        self.looks = 0
        self.parents = PARENT
        self.open = {self.stdin, self.editor_in, self.editor_out, self.stdout}
        self.front = forward.Front(self.stdin, self.stdout, self.parent)

    def parent(self):
        self.looks += 1
        self.at_look.pop(self.looks, int)()
        return self.parents

    def shut(self, end):
        self.open.discard(end)
        os.close(end)

    def carry(self, first=b""):
        return self.front.carry(self.connection, first)


@pytest.fixture
def ends():
    ends = Ends()
    yield ends
    for end in ends.open:
        os.close(end)
    ends.connection.close()
    ends.hub.close()


def fill(send):
    """As much as fits; how much that was."""
    total = 0
    while True:
        try:
            total += send(b"x" * 65536)
        except BlockingIOError:
            return total


def receive(connection, total):
    got = 0
    while got < total:
        got += len(connection.recv(total - got))
    return got


def test_both_sides_are_copied_until_the_hub_closes(ends):
    os.write(ends.editor_in, b"to the hub")
    ends.hub.sendall(b"to the editor")
    ends.hub.shutdown(socket.SHUT_WR)
    assert ends.carry(b"first, ") == forward.LOST
    assert os.read(ends.editor_out, 100) == b"first, to the editor"


def test_the_end_of_the_input_is_passed_on_after_the_last_byte(ends):
    os.write(ends.editor_in, b"last words")
    ends.shut(ends.editor_in)
    assert ends.carry() == forward.ENDED  # by its deadline: this hub does not close
    assert ends.hub.recv(100) == b"last words"
    assert ends.hub.recv(100) == b""


def test_an_editor_that_leaves_while_the_hub_takes_nothing_is_noticed(ends):
    """The input is not read then, so only its hang-up can tell."""
    ends.connection.setblocking(False)
    fill(ends.connection.send)
    os.write(ends.editor_in, b"never taken")
    ends.shut(ends.editor_in)
    assert ends.carry() == forward.ENDED


def test_a_hub_that_takes_no_more_may_still_speak(ends):
    os.write(ends.editor_in, b"too late")
    ends.hub.sendall(b"goodbye")
    ends.hub.close()
    assert ends.carry() == forward.LOST
    assert os.read(ends.editor_out, 100) == b"goodbye"


def test_a_hub_that_was_killed_with_unread_bytes_is_a_failure(ends):
    """Then the connection is reset, not closed."""
    ends.connection.sendall(b"unread")
    ends.hub.close()
    assert ends.carry() == forward.LOST


def test_a_hub_that_takes_no_more_and_never_ends_is_a_failure(ends):
    """By the deadline: what it may still say is not waited for longer."""
    ends.hub.shutdown(socket.SHUT_RD)
    os.write(ends.editor_in, b"too late")
    assert ends.carry() == forward.LOST


@pytest.mark.parametrize("pieces", [1, 2])
def test_a_hub_that_closes_after_the_editors_exit_is_a_good_end(ends, pieces):
    """However the bytes of the message have come."""
    body = b'{"jsonrpc": "2.0", "method": "exit", "params": null}'
    message = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    for piece in (message[:40], message[40:]) if pieces == 2 else (message,):
        ends.front._up = piece
        ends.front._send(ends.connection)
    ends.hub.recv(1000)
    ends.hub.shutdown(socket.SHUT_WR)
    assert ends.carry() == forward.ENDED


def test_what_an_editor_left_behind_is_passed_on_when_the_hub_takes_it_in_time(ends):
    ends.connection.setblocking(False)
    total = fill(ends.connection.send)
    os.write(ends.editor_in, b"left behind")
    ends.shut(ends.editor_in)
    taken = []
    ends.at_look[4] = lambda: taken.append(receive(ends.hub, total))
    assert ends.carry() == forward.ENDED
    assert taken == [total]
    assert ends.hub.recv(100) == b"left behind"


def test_room_to_send_is_no_reason_to_receive(ends):
    """Both directions hold something, both can go on, and the hub has said nothing."""
    ends.connection.setblocking(False)
    ends.front._up, ends.front._down = b"up", b"down"
    ends.front._step(ends.connection)
    assert ends.hub.recv(100) == b"up"
    assert os.read(ends.editor_out, 100) == b"down"


def test_what_is_held_for_a_slow_editor_stays_when_the_hub_hangs_up(ends):
    """Nothing may take the place of what the editor has not read yet."""
    os.set_blocking(ends.stdout, False)
    fill(lambda data: os.write(ends.stdout, data))
    ends.connection.setblocking(False)
    fill(ends.connection.send)
    ends.front._up, ends.front._down = b"up", b"held"
    ends.hub.close()
    ends.front._step(ends.connection)
    assert ends.front._down == b"held"


def test_an_editor_that_reads_no_more_is_an_end(ends):
    ends.shut(ends.editor_out)
    assert ends.carry() == forward.UNREAD
    assert ends.carry(b"something to write") == forward.UNREAD


def test_an_output_that_breaks_while_it_is_written_is_an_end(ends):
    """Between the look and the write an editor can go."""
    ends.front._down = b"bytes"
    ends.shut(ends.editor_out)
    with pytest.raises(forward.Over) as over:
        ends.front._write_output(forward.select.POLLOUT)
    assert over.value.status == forward.UNREAD


def test_a_parent_that_is_gone_is_an_end(ends):
    ends.parents = 1
    assert ends.carry() == forward.UNREAD


def test_an_input_that_cannot_be_read_has_ended(ends):
    """A terminal that is gone gives an error, not an end."""
    ends.front._stdin = os.open("/", os.O_RDONLY)
    try:
        ends.front._read_input()
    finally:
        os.close(ends.front._stdin)
    assert ends.front._input_ended


def test_waiting_for_a_hub_ends_when_nothing_was_asked_and_nobody_is_left(ends):
    """Case H09: also when there is no hub yet."""
    ends.front.pause(0)
    ends.shut(ends.editor_in)
    with pytest.raises(forward.Over) as over:
        ends.front.pause(0)
    assert over.value.status == forward.ENDED


def test_waiting_for_a_hub_goes_on_for_what_was_asked_already(ends):
    os.write(ends.editor_in, b"asked")
    ends.shut(ends.editor_in)
    ends.front.pause(0)
    ends.front.pause(0)
    assert ends.carry() == forward.ENDED
    assert ends.hub.recv(100) == b"asked"


def test_waiting_for_a_hub_ends_with_the_parent(ends):
    ends.parents = 1
    with pytest.raises(forward.Over) as over:
        ends.front.pause(0)
    assert over.value.status == forward.UNREAD


def test_a_front_that_ends_while_it_waits_gives_its_status(ends, place):
    ends.shut(ends.editor_in)
    status = forward.run(
        "lsp",
        place.environ,
        command=(sys.executable, "-I", "-S", "-c", ""),
        stdin=ends.stdin,
        stdout=ends.stdout,
    )
    assert status == forward.ENDED


def test_a_closed_standard_stream_is_opened_on_nothing():
    """Else the next file that is opened, the hub's socket, would be taken for it."""
    before = os.dup(0)
    try:
        os.close(0)
        forward._keep_standard_streams()
        assert os.read(0, 1) == b""
        assert os.get_inheritable(0)
    finally:
        os.dup2(before, 0)
        os.close(before)
