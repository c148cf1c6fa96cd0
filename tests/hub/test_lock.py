import os
import subprocess
import sys

from offload.hub import run
from offload.hub.lock import Lock, hub_lock, start_lock

HOLD = "import sys; from offload.hub.lock import Lock; assert Lock(sys.argv[1]).acquire(); print('held', flush=True); input()"


def test_only_one_holds_it(tmp_path):
    first, second = Lock(str(tmp_path / "lock")), Lock(str(tmp_path / "lock"))
    assert first.acquire()
    assert not second.acquire()
    first.release()
    assert second.acquire()
    second.release()


def test_releasing_what_is_not_held_does_nothing(tmp_path):
    lock = Lock(str(tmp_path / "lock"))
    lock.release()
    assert lock.acquire()
    lock.release()
    lock.release()
    assert not lock.is_held()


def test_its_holder_is_named_in_the_file(tmp_path):
    lock = Lock(str(tmp_path / "lock"))
    assert lock.holder() is None
    (tmp_path / "lock").write_text("no number, and longer than one")
    assert lock.holder() is None
    assert lock.acquire()
    assert lock.holder() == os.getpid()
    lock.release()


def test_asking_whether_it_is_held_leaves_no_trace(tmp_path):
    lock = Lock(str(tmp_path / "lock"))
    assert not lock.is_held()
    assert list(tmp_path.iterdir()) == []


def test_it_ends_with_its_process_however_that_ends(tmp_path):
    path = str(tmp_path / "lock")
    holder = subprocess.Popen([sys.executable, "-c", HOLD, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout.readline() == b"held\n"
        assert Lock(path).is_held()
        assert Lock(path).holder() == holder.pid
        holder.kill()
        holder.wait()
        assert not Lock(path).is_held()


def test_a_child_does_not_keep_it(tmp_path):
    """A worker that outlives a killed hub must not keep the next hub out."""
    lock = Lock(str(tmp_path / "lock"))
    assert lock.acquire()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, close_fds=False) as child:
        lock.release()
        assert not lock.is_held()
        child.stdin.close()


class Waiting(Lock):
    """Takes the lock as a new hub does; before its third try the old one has ended."""

    def __init__(self, path, other):
        super().__init__(path)
        self.other = other
        self.tries = 0

    def acquire(self):
        self.tries += 1
        if self.tries == 3:
            self.other.release()
        return super().acquire()


def test_a_new_hub_waits_for_one_that_is_ending(tmp_path):
    """One that ends has no socket any more, but still its lock."""
    old = hub_lock(str(tmp_path))
    assert old.acquire()
    new = Waiting(old.path, old)
    assert run._take(new, str(tmp_path / "hub.sock"))
    assert new.tries == 3
    new.release()


def test_a_new_hub_does_not_wait_for_one_that_listens(tmp_path):
    old = hub_lock(str(tmp_path))
    assert old.acquire()
    (tmp_path / "hub.sock").touch()
    assert not run._take(hub_lock(str(tmp_path)), str(tmp_path / "hub.sock"))
    old.release()


def test_being_the_hub_and_starting_one_are_two_locks(tmp_path):
    hub, start = hub_lock(str(tmp_path)), start_lock(str(tmp_path))
    assert hub.acquire()
    assert start.acquire()
    hub.release()
    start.release()


def test_a_lock_is_own_as_long_as_others_would_find_it(tmp_path):
    path = tmp_path / "lock"
    lock = Lock(str(path))
    assert not lock.is_own()
    assert lock.acquire()
    assert lock.is_own()
    path.rename(tmp_path / "moved")
    assert not lock.is_own()
    path.write_text("")
    assert not lock.is_own()
    lock.release()
    assert not lock.is_own()
