"""What a live hub makes of a state folder or a socket that is taken away from under it."""

import shutil
import socket
import stat
from pathlib import Path

from offload.hub import address, forward, run
from offload.hub.lock import hub_lock
from tests.hub.conftest import ask


def test_the_folder_of_a_socket_alone_is_made_again(tmp_path):
    """A cleaner of /tmp takes the short folder that a long state path has there."""
    state = str(tmp_path / ("long" * 30))
    path = address.prepare(state)
    short = Path(path).parent
    lock = hub_lock(state)
    assert lock.acquire()
    place = run.Place(state, path, lock)
    shutil.rmtree(short)
    try:
        assert place.is_own()
        assert stat.S_IMODE(short.stat().st_mode) == 0o700
        short.rmdir()
        short.write_text("of somebody")
        assert not place.is_own()
        short.unlink()
        shutil.rmtree(state)
        assert not place.is_own()
    finally:
        lock.release()


def test_a_socket_that_was_removed_is_there_again_in_a_moment_and_fronts_stay(place):
    """Issue 3, item 8: the runtime folder is cleaned under a live hub."""
    front, hub = place.connected()
    (place.state / "hub.sock").unlink()
    # The next front starts a hub, which leaves the place to the one that holds the lock, and meets that one again.
    _, second = place.connected()
    assert second == hub
    assert ask(front)["pid"] == hub
    assert place.hubs() == [hub]


def test_a_hub_whose_state_folder_was_removed_ends_and_the_next_one_has_the_new_folder(place):
    front, hub = place.connected()
    shutil.rmtree(place.state)
    place.state.mkdir(mode=0o700)
    _, second = place.connected("rpc")
    assert second != hub
    assert front.wait(timeout=30) == forward.LOST
    assert place.hubs() == [second]


def test_a_socket_that_somebody_else_has_put_there_is_replaced_while_the_lock_is_ours(place):
    _, hub = place.connected()
    path = place.state / "hub.sock"
    path.unlink()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    _, second = place.connected()
    assert second == hub
