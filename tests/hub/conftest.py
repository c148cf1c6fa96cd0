"""A place for a hub: a short state folder of its own, and the ends of all that was started there."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from offload.hub import run
from offload.hub.lock import hub_lock
from tests.hub.echo_hub import OPTIONS_FILE
from tests.support import counted

FRONT = Path(__file__).with_name("front.py")


class Place:
    """`environ` leads to the state folder; every process that is started here is ended with it."""

    def __init__(self, state):
        self.state = Path(state)
        self.environ = {**os.environ, "OFFLOAD_STATE_DIR": str(state), "OFFLOAD_CONFIG_DIR": f"{state}/config"}
        self.lock = hub_lock(str(state))
        self._fronts = []

    def options(self, *words):
        (self.state / OPTIONS_FILE).write_text(" ".join(words))

    def front(self, kind="lsp", stdin=subprocess.PIPE, environ=None, **options):
        front = subprocess.Popen(
            counted.command(FRONT, kind),
            env=counted.environment({**self.environ, **(environ or {})}),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )
        self._fronts.append(front)
        return front

    def connected(self, kind="lsp", **options):
        """A front that has been answered by the hub, and the hub's process id."""
        front = self.front(kind, **options)
        return front, ask(front)["pid"]

    def hubs(self):
        """The processes that became the hub here, one after another."""
        return [int(pid) for pid in (self.state / "hubs").read_text().split()]

    def wait_for_end(self):
        """Return when the hub's process has ended."""
        with open(self.lock.path) as file:
            fcntl.flock(file, fcntl.LOCK_EX)

    def close(self):
        for front in self._fronts:
            for stream in (front.stdin, front.stdout, front.stderr):
                if stream:
                    with suppress(BrokenPipeError):
                        stream.close()
            try:
                front.wait(timeout=5)  # it ends by itself without an input, and then its lines are counted
            except subprocess.TimeoutExpired:
                front.kill()
                front.wait()
        # A front may have started one more hub than it needed, which is only now on its way to the place.
        while left := self._processes():
            if not self.lock.is_held():
                psutil.wait_procs(left, timeout=0.1)
                continue
            try:
                run.stop(self.environ, wait_s=15)
            except Exception:
                os.kill(self.lock.holder(), signal.SIGKILL)
                raise

    def _processes(self):
        """Those that were started for this place, but for the fronts, which have ended."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("OFFLOAD_STATE_DIR") == str(self.state):
                    found.append(process)
        return found


def ask(front):
    front.stdin.write(b"who\n")
    front.stdin.flush()
    return json.loads(front.stdout.readline())


@pytest.fixture
def place():
    # Not tmp_path: with a test's name in it, it would be too long for a socket.
    state = os.path.realpath(tempfile.mkdtemp(prefix="hub-"))
    place = Place(state)
    try:
        yield place
    finally:
        place.close()
        shutil.rmtree(state)
