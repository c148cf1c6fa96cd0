"""A place of its own for one hub: state, configuration, home and environment, the installed command, projects, and an end that is
checked. It knows nothing about what the tests do there."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path

import psutil

from offload.demo.run import OFFLINE
from offload.hub import run as hub
from offload.processes import alive, identify

ROOT = Path(__file__).resolve().parents[2]
OFFLOAD = Path(sys.executable).with_name("offload")
BOUND_S = 120  # the one bound of everything that is waited for
KEY = "sk-canary-0f3b5d71a9"  # the provider's key, which must come to the model and be nowhere else

SOURCE = """def area(width, height):
    return width * height


def label(name):
    return f"<{name}>"
"""


@dataclass(frozen=True)
class Ended:
    """A command that is over; `json` is what it printed with --json."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


class Stage:
    """`environ` is what every front is started with; `settings` go before the ones that all tests need."""

    def __init__(self, model, *, trouble=False, **settings):
        """`trouble` says that the hub has something to complain about here; else its log must hold no error."""
        self._trouble = trouble
        self.folder = Path(tempfile.mkdtemp(prefix="offload-e2e-"))  # short, because a socket lies in it
        self.state = self.folder / "state"
        self._numbers = count(1)
        config = model.opencode_config()
        config["provider"]["fake"]["options"]["apiKey"] = "{env:FAKE_API_KEY}"
        written = self.folder / "opencode.json"
        written.write_text(json.dumps(config))
        (self.folder / "home").mkdir()
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OFFLOAD_", "OPENCODE_", "XDG_", "GIT_"))
        }
        self.environ = {
            **inherited,
            **OFFLINE,
            "HOME": str(self.folder / "home"),
            "FAKE_API_KEY": KEY,
            "OFFLOAD_STATE_DIR": str(self.state),
            "OFFLOAD_CONFIG_DIR": str(self.folder / "config"),
            "OFFLOAD_OPENCODE": opencode_program(),
            "OFFLOAD_OPENCODE_CONFIG": str(written),
            "OFFLOAD_LOG_LEVEL": "debug",
            **settings,
        }

    # -- what is there ---------------------------------------------------------------------------------------------------

    def project(self):
        """A new repository with one commit and one file, `shapes.py`."""
        folder = self.folder / f"project-{next(self._numbers)}"
        folder.mkdir()
        (folder / "shapes.py").write_text(SOURCE)
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "start"]):
            self.git(folder, *words)
        return folder

    def git(self, folder, *words, **options):
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid"]
        command = ["git", "-C", str(folder), *identity, *words]
        return subprocess.run(command, env=self.environ, check=True, capture_output=True, **options).stdout

    def run(self, *words, cwd=None, stdin=None, env=()):
        """The command line as a person has it."""
        done = subprocess.run(
            [OFFLOAD, *map(str, words)],
            cwd=cwd or self.folder,
            env={**self.environ, **dict(env)},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=BOUND_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def json(self, *words, code=0, **options):
        ended = self.run(*words, "--json", **options)
        assert ended.code == code, (ended.code, ended.stdout, ended.stderr)
        return ended.json

    # -- the processes ---------------------------------------------------------------------------------------------------

    def hub_pid(self):
        """The process id of the hub that runs, None when none does."""
        found = hub.status(self.environ)
        return None if found is None else found["pid"]

    def connected(self, kind):
        """Wait until a front of that kind is served."""
        end = time.monotonic() + BOUND_S
        while kind not in {front["kind"] for front in hub.status(self.environ)["fronts"]}:
            assert time.monotonic() < end, f"no front of kind {kind} came"

    def opencode(self):
        """What each OpenCode server of this stage left about itself: url, password, pid."""
        return [json.loads(path.read_text()) for path in self.state.glob("workers/**/server.json")]

    def errors(self):
        """The lines of the hub's log that tell of an error, or that no logger has written."""
        log = self.state / "hub.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in lines if not line.startswith("{") or json.loads(line)["level"] == "error"]

    def stop(self):
        """End the hub in order, and wait until its process is gone, which is a moment later than its lock."""
        pid = self.hub_pid()
        running = identify(pid) if pid else None
        hub.stop(self.environ)
        assert running is None or gone(running)

    def close(self):
        """End the hub, and see that nothing is left of it: no process of ours, no server of OpenCode."""
        pids = [self.hub_pid(), *(server["pid"] for server in self.opencode())]
        ours = [psutil.Process(pid) for pid in pids if pid is not None and psutil.pid_exists(pid)]
        trees = {identify(one.pid) for each in ours for one in (each, *each.children(recursive=True))}
        self.stop()
        left = [one.pid for one in trees if not gone(one, 30)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        servers, errors = self.opencode(), self.errors()
        shutil.rmtree(self.folder)
        assert not left, f"these outlived their hub: {left}"
        assert not servers, "the OpenCode servers were not ended in order"
        assert self._trouble or not errors, errors


@cache
def opencode_program():
    """The pinned one; `make` has it installed, and a single test does so here."""
    install = ["sh", str(ROOT / "tests/opencode/install")]
    return os.environ.get("OFFLOAD_OPENCODE") or subprocess.check_output(install, text=True).strip()


def gone(identity, bound_s=BOUND_S):
    """Whether the process ends in time. The system tells nobody but its parent, so it is looked at."""
    end = time.monotonic() + bound_s
    while alive(identity):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def write(path, content):
    """A step of the scripted model: write a file by the worker's own tool."""
    return f"::tool write {json.dumps({'filePath': path, 'content': content})}"


def rewriting(path, content):
    """Two steps: a worker's own tool writes over no file that it has not read."""
    return f"::tool read {json.dumps({'filePath': path})}", write(path, content)


def shell(command):
    """A step of the scripted model: run a shell command by the worker's own tool."""
    return f"::tool bash {json.dumps({'command': command, 'description': 'a command'})}"


def brief(*steps):
    """A brief whose steps the scripted model plays, one a round."""
    return "\n".join(["Please do this.", *steps])


async def reached(gate):
    """The model stands before its gate; waited for in a thread, so that clients live meanwhile."""
    return await asyncio.to_thread(gate.reached.wait, BOUND_S)
