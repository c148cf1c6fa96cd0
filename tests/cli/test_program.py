"""The commands about offload itself, and how a command line ends."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from offload import __version__
from offload.cli import main, page
from offload.cli.exits import Exit
from offload.hub import run
from offload.workers.opencode.find import platform_programs
from tests.support.terminal import HUB, ROOT

# A whole process: what happens to its output and at Ctrl-C cannot be seen from inside.
PROGRAM = f"""
import sys
from functools import partial
from offload.cli.main import build
from offload.hub import client
build(partial(client.connect, command={HUB!r}))()
"""


def process(terminal, *words, **options):
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.Popen(command, env=terminal.environ, stdin=subprocess.DEVNULL, text=True, **options)


def script(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def test_the_version_is_printed(terminal):
    assert terminal.run("--version").stdout == f"offload {__version__}\n"


def test_the_entry_point_gives_the_exit_code(capsys):
    assert main.main(["--version"]) == Exit.OK
    assert main.main(["no-such-command"]) == Exit.USAGE
    assert "No such command" in capsys.readouterr().err


def test_hub_run_is_a_command_too(tmp_path):
    """Fronts start it past the command line; a service manager may come through it."""
    program = "import sys; from offload.cli.main import main; sys.exit(main(['hub', 'run']))"
    environ = {**os.environ, "OFFLOAD_STATE_DIR": "relative"}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "OFFLOAD_STATE_DIR must name an absolute folder" in done.stderr


def test_the_commands_page_is_printed(terminal):
    done = subprocess.run([sys.executable, "-m", "offload.cli.page"], capture_output=True, text=True, check=True)
    assert done.stdout == page.page()


def test_help_comes_without_words(terminal):
    """Unix tools show it as an error: nothing was asked for."""
    result = terminal.run()
    assert result.exit_code == Exit.USAGE
    assert "start-task" in result.output


def test_a_reader_that_went_away_is_no_error_with_a_trace(terminal):
    reading, writing = os.pipe()
    os.close(reading)
    program = process(terminal, "list-tasks", stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    _, errors = program.communicate(timeout=60)
    assert (program.returncode, errors) == (Exit.NO_READER, "")


def test_ctrl_c_ends_the_waiting_and_not_the_task(terminal):
    task = terminal.start("::gate closed")
    program = process(terminal, "wait", task, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    connected = []
    while not connected:
        # The hub knows the waiting process by its hello.
        connected = [front for front in run.status(terminal.environ)["fronts"] if front["pid"] == program.pid]
        assert program.poll() is None
    program.send_signal(signal.SIGINT)
    output = program.communicate(timeout=60)
    assert (program.returncode, output) == (Exit.INTERRUPTED, ("", ""))
    assert terminal.json("task-status", task)["state"] == "working"


def test_ctrl_c_while_the_program_is_still_being_read_leaves_no_trace(terminal):
    """It takes 0.3 s, and what the person saw was a traceback through pydantic."""
    interrupted = "import sys\nclass Key:\n    def find_spec(self, name, *rest):\n        if name == 'pydantic':\n"
    interrupted += "            raise KeyboardInterrupt\nsys.meta_path.insert(0, Key())\n"
    interrupted += "from offload.__main__ import main\nsys.exit(main(['list-tasks']))"
    ended = subprocess.run([sys.executable, "-c", interrupted], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (Exit.INTERRUPTED, "", "")


def test_a_hub_that_cannot_be_started_ends_with_its_own_code(terminal, tmp_path, monkeypatch):
    taken = tmp_path / "taken"
    taken.write_text("")
    terminal.environ = {**terminal.environ, "OFFLOAD_STATE_DIR": str(taken)}
    program = process(terminal, "list-tasks", "--json", stdout=subprocess.PIPE)
    output, _ = program.communicate(timeout=60)
    assert program.returncode == Exit.NO_HUB
    assert json.loads(output)["error"]["code"] == "hub_unavailable"


def test_the_hub_says_who_uses_it(terminal, plain):
    with terminal.connect():
        shown = plain(terminal.run("hub", "status").stdout)
    assert f"hub {__version__}, process" in shown
    assert f"rpc offload in {Path.cwd()}" in shown
    assert terminal.json("hub", "status")["running"] is True


def test_the_hub_is_stopped(terminal, plain):
    terminal.run("list-tasks")
    assert "the hub has ended" in terminal.run("hub", "stop").stdout
    assert "no hub runs" in terminal.run("hub", "stop").stdout
    assert terminal.json("hub", "stop") == {"stopped": False}
    assert "no hub runs" in plain(terminal.run("hub", "status").stdout)
    assert terminal.json("hub", "status", code=Exit.NOT_DONE) == {"running": False}


def test_the_doctor_finds_all_well(terminal, plain):
    result = terminal.run("doctor")
    shown = plain(result.stdout)
    assert result.exit_code == Exit.OK, shown
    assert "problem" not in shown
    for found in (
        f"offload: {__version__}",
        "git: git version",
        "state folder:",
        "socket:",
        "hub:",
        "fake: 1.0, 2 models",
    ):
        assert f"ok {found}" in shown
    assert all(check["ok"] for check in terminal.json("doctor")["checks"])


def test_the_doctor_knows_whether_a_hub_ran_before(terminal, plain):
    terminal.run("hub", "stop")
    assert "ok hub: was not running" in plain(terminal.run("doctor").stdout)
    assert f"ok hub: version {__version__}" in plain(terminal.run("doctor").stdout)


def test_the_doctor_says_what_to_do(terminal, monkeypatch, tmp_path, plain):
    terminal.run("list-tasks")
    monkeypatch.setenv("PATH", str(tmp_path))
    result = terminal.run("doctor")
    assert result.exit_code == Exit.NOT_DONE
    assert "problem git: not found on PATH Install git, for example with `apt-get install git`." in plain(result.stdout)


def checks(terminal):
    return {check["name"]: check for check in terminal.json("doctor", code=Exit.NOT_DONE)["checks"]}


@pytest.mark.parametrize(
    ("version", "remedy"),
    [("", "Install git, for example with"), ("git version 2.20.1", "Install git 2.34 or newer.")],
)
def test_the_doctor_misses_a_git_that_can_be_used(terminal, tmp_path, monkeypatch, version, remedy):
    terminal.run("list-tasks")
    if version:
        script(tmp_path / "bin", "git", f"echo '{version}'")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert checks(terminal)["git"]["remedy"].startswith(remedy)


def test_the_doctor_names_a_state_folder_that_cannot_be_used(terminal, tmp_path, monkeypatch):
    monkeypatch.setenv("OFFLOAD_STATE_DIR", "relative")
    found = checks(terminal)
    assert "absolute" in found["state folder"]["remedy"]
    assert found["hub"]["found"] == "does not answer"


def test_the_doctor_tells_a_hub_of_another_version(terminal, monkeypatch):
    terminal.run("list-tasks")
    monkeypatch.setattr("offload.cli.doctor.__version__", "0.0.1")
    assert "end the other hub with `offload hub stop`" in checks(terminal)["hub"]["remedy"]


@pytest.mark.parametrize(
    ("info", "told"),
    [("no-models", "knows no model"), ("problem", "run the installer")],
)
def test_the_doctor_tells_a_worker_that_cannot_be_used(terminal, tmp_path, monkeypatch, info, told):
    with monkeypatch.context() as changed:
        changed.setitem(terminal.environ, "OFFLOAD_TEST_WORKER", info)
        terminal.run("hub", "stop")
        assert told in checks(terminal)["fake"]["remedy"]
    terminal.run("hub", "stop")


def test_the_doctor_notes_where_code_would_go_and_counts_in_plain_english(terminal, monkeypatch, plain):
    with monkeypatch.context() as changed:
        changed.setitem(terminal.environ, "OFFLOAD_TEST_WORKER", "note")
        terminal.run("hub", "stop")
        result = terminal.run("doctor")
        assert result.exit_code == Exit.OK
        assert "ok fake: 1.0, 1 model, 1 agent; no sign-in found: it goes elsewhere" in plain(result.stdout)
        assert "no sign-in found: it goes elsewhere" in plain(terminal.run("agents").stdout)
    terminal.run("hub", "stop")


def test_the_doctor_tells_a_hub_that_does_not_start(terminal, tmp_path, monkeypatch):
    terminal.run("hub", "stop")
    (tmp_path / "taken").write_text("")
    monkeypatch.setitem(terminal.environ, "OFFLOAD_STATE_DIR", str(tmp_path / "taken"))
    assert checks(terminal)["workers"]["found"] == "the hub did not say"


def test_an_agent_is_installed_by_npm(terminal, tmp_path, monkeypatch, plain):
    """The npm here stands for the registry's: it lays out what the real package lays out."""
    program = next(platform_programs(Path("$3")))
    said = tmp_path / "said"
    script(
        tmp_path / "bin",
        "npm",
        f"""echo "$@" > {said}
mkdir -p "{program.parent}"
printf '#!/bin/sh\\necho 1.18.33\\n' > "{program}"
chmod +x "{program}\"""",
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("OFFLOAD_STATE_DIR", str(tmp_path / "state"))
    result = terminal.run("install", "opencode")
    assert result.exit_code == Exit.OK, result.output
    assert f"opencode 1.18.33 is in {tmp_path}/state/workers/opencode" in plain(result.stdout)
    assert f"Sign in with: {tmp_path}/state/workers/opencode/node_modules/" in plain(result.stdout)
    assert plain(result.stdout).endswith("/bin/opencode auth login")
    assert "opencode-ai@1.18.33" in said.read_text()
    assert terminal.json("install", "opencode")["version"] == "1.18.33"


def test_what_is_missing_for_an_install_is_told(terminal, tmp_path, monkeypatch):
    monkeypatch.setenv("OFFLOAD_STATE_DIR", str(tmp_path / "state"))
    assert terminal.json("install", "nothing", code=Exit.REFUSED)["error"]["code"] == "unknown_worker"
    monkeypatch.setenv("PATH", str(tmp_path))
    result = terminal.run("install", "opencode")
    assert result.exit_code == Exit.WORKER
    assert "npm was not found" in result.stderr
    monkeypatch.setenv("OFFLOAD_STATE_DIR", "relative")
    assert terminal.run("install", "opencode").exit_code == Exit.MACHINE


def test_what_was_recovered_of_a_damaged_journal_is_told_until_it_is_removed(terminal, plain, monkeypatch):
    """The hub starts in any case, so that nobody would notice by himself."""
    note = "The journal was damaged and was set aside as /state/journal.sqlite3.damaged-1; 7 events of 2 tasks were recovered."
    terminal.run("hub", "stop")
    monkeypatch.setitem(terminal.environ, "OFFLOAD_TEST_NOTES", note)
    terminal.run("list-tasks")
    assert note in plain(terminal.run("hub", "status").stdout)
    assert terminal.json("hub", "status")["notes"] == [note]
    found = checks(terminal)["journal"]
    assert (found["found"], found["remedy"], found["ok"]) == ("was damaged", note, False)
    terminal.run("hub", "stop")


@pytest.mark.parametrize("front", ["lsp", "mcp"])
def test_the_fronts_are_commands_too(front):
    """`__main__` takes a short way past the command line; whoever comes through it is served all the same."""
    program = f"""
import sys
from offload.hub import forward
forward.main = lambda kind: print("served", kind) or 7
from offload.cli.main import main
sys.exit(main([{front!r}]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout) == (7, f"served {front}\n")
