"""What is wrong is told to whoever asked, in words that help; nothing is lost, and the hub goes on for all others."""

import asyncio
import json
import shutil
import socket
import subprocess
from contextlib import suppress

import pytest
from pygls.exceptions import JsonRpcException

from offload.cli.exits import Exit
from offload.hub import address
from offload.hub.forward import LOST
from offload.hub.greeting import greeting
from tests.e2e.editor import editing
from tests.e2e.host import BareHost, hosting, refusal
from tests.e2e.stage import BOUND_S, OFFLOAD, Stage
from tests.lsp.client import Client

# An operation, what is wrong about it, and the word that says so.
WRONG = [
    ("get_task_status", {"task_id": "nothing"}, "unknown_task"),
    ("cancel_task", {"task_id": "nothing"}, "unknown_task"),
    ("start_task", {"brief": "x", "worker": "nobody"}, "unknown_worker"),
    ("start_task", {"brief": "x", "recipe": "soup"}, "unknown_recipe"),
    ("start_task", {"brief": "x", "file": "../outside.py"}, "invalid_request"),
    ("start_task", {"brief": "x", "file": "shapes.py", "symbol": "volume"}, "unknown_symbol"),
    ("start_task", {"brief": "x", "file": "shapes.py", "lines": "40-50"}, "invalid_request"),
    ("start_task", {"brief": " "}, "invalid_request"),
    ("start_task", {"brief": "x", "modell": "typing error"}, "invalid_request"),
]


@pytest.fixture
def apart(model):
    """A stage of its own, for what a hub may not be able to live with; no task of it needs a worker."""
    stage = Stage(model, trouble=True, OFFLOAD_OPENCODE="/nowhere/opencode")
    yield stage
    stage.close()


@pytest.fixture
def bare(stage, project):
    host = BareHost(stage, project).open()
    yield host
    host.process.kill()
    host.process.communicate()


class Scripted:
    """A script on the hub's socket, past the command line."""

    def __init__(self, stage, hello=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(BOUND_S)
        self.socket.connect(address.socket_path(str(stage.state)))
        self.answers = self.socket.makefile("rb")
        self.say(hello if hello is not None else greeting("rpc", stage.environ).strip())

    def say(self, line):
        self.socket.sendall(line + b"\n")

    def read(self):
        line = self.answers.readline()
        return json.loads(line) if line else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.answers.close()
        self.socket.close()


def asked(stage):
    """The hub's process, started when there is none: what a test compares afterwards."""
    assert stage.run("list-tasks").code == Exit.OK
    return stage.hub_pid()


async def test_every_front_tells_the_same_fault_by_the_same_word(stage, project):
    hub = asked(stage)
    before = stage.json("list-tasks")
    async with editing(stage, project) as editor, hosting(stage, project) as client:
        for operation, params, code in WRONG:
            first, *rest = operation.split("_")
            with pytest.raises(JsonRpcException) as told:
                await editor.ask("offload/" + first + "".join(map(str.title, rest)), **params)
            if code == "invalid_request" and "modell" in params:
                assert "modell" in str(told.value)
            assert told.value.data["code"] == code
            assert (await refusal(client, operation, **params)).startswith(f"{code}: ")
    assert stage.json("list-tasks") == before, "nothing was begun"
    assert stage.hub_pid() == hub


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (("task-status", "nothing"), Exit.REFUSED, "unknown_task"),
        (("start-task", "x", "--worker", "nobody"), Exit.REFUSED, "unknown_worker"),
        (("start-task", "x", "--file", "shapes.py", "--symbol", "volume"), Exit.REFUSED, "unknown_symbol"),
        (("diff", "nothing"), Exit.REFUSED, "unknown_task"),
    ],
)
def test_the_command_line_tells_it_in_json_and_in_words(stage, project, words, exit_code, code):
    assert stage.json(*words, cwd=project, code=exit_code)["error"]["code"] == code
    said = stage.run(*words, cwd=project)
    assert (said.code, said.stdout) == (exit_code, "")
    assert said.stderr.startswith("offload: ")
    assert said.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [("wait",), ("start-task", "x", "--wait", "-1"), ("no-such-command",)])
def test_a_wrong_command_line_is_the_callers(stage, words):
    said = stage.run(*words)
    assert (said.code, said.stdout) == (Exit.USAGE, "")
    assert "Usage: " in said.stderr


def test_a_route_that_is_not_there_fails_the_task_with_what_is(stage, project):
    for option, value, code, hint in (
        ("--model", "fake/workr", "unknown_model", "fake/worker"),
        ("--agent", "bild", "unknown_agent", "build"),
    ):
        failed = stage.json("start-task", "x", option, value, "--wait", 45, cwd=project, code=Exit.NOT_DONE)
        assert failed["failure"]["code"] == code
        assert hint in failed["failure"]["message"]


def test_a_folder_that_is_not_there_is_refused_at_once(stage, project):
    refused = stage.json("start-task", "x", "--workspace", "/not/there", cwd=project, code=Exit.REFUSED)
    assert refused["error"]["code"] == "not_a_workspace"
    assert "/not/there" in refused["error"]["message"]


def test_a_line_that_is_no_message_is_answered_and_the_host_goes_on(stage, bare):
    hub = asked(stage)
    for line in (b"{nope", b"[]", b'"words"', b'{"jsonrpc": "1.0"}', b"\xff\xfe"):
        bare.send(line)
        answer = bare.read()
        assert answer["error"]["code"] in {-32700, -32600}, answer
    bare.send(b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"x":"' + b"y" * (8 * 1024 * 1024) + b'"}}')
    answer = bare.answer(77)
    assert "longer than 8 MiB" in answer["error"]["message"]
    assert bare.call("list_tasks")["structuredContent"] is not None
    code, out, _ = bare.close()
    assert (code, out) == (0, b"")
    assert stage.hub_pid() == hub


@pytest.fixture
async def raw_editor(stage, project):
    """`offload lsp` under a client that can send what is no LSP."""
    process = await asyncio.create_subprocess_exec(
        OFFLOAD, "lsp", cwd=project, env=stage.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    client = Client(process.stdout, process.stdin)
    client.process = process
    await client.initialize({}, folders=[project])
    yield client
    client._reading.cancel()
    process.stdin.close()
    async with asyncio.timeout(BOUND_S):
        assert await process.wait() == (LOST if client.ended.is_set() else 0)


async def test_a_body_that_is_no_message_is_answered_and_the_editor_goes_on(stage, raw_editor):
    hub = asked(stage)
    for number, body in enumerate((b"{nope", b"[]", b'{"id": 400}'), start=1):
        raw_editor.send_body(body)
        assert "result" in await raw_editor.request("offload/listTasks", {})
        codes = [stray["error"]["code"] for stray in raw_editor.strays]
        assert len(codes) == number
        assert codes[-1] in {-32700, -32600}
    assert (await raw_editor.error("offload/startTask", {"brief": 5}))["code"] == -32602
    assert stage.hub_pid() == hub


@pytest.mark.parametrize("header", [b"Content-Length: 10000000000\r\n\r\n", b"Content-Length: soup\r\n\r\n"])
async def test_a_frame_without_end_ends_that_editor_alone(stage, raw_editor, header):
    hub = asked(stage)
    raw_editor.send_bytes(header)
    async with asyncio.timeout(BOUND_S):
        await raw_editor.ended.wait()
        assert await raw_editor.process.wait() == LOST, "an editor starts its server again then"
    assert [stray["error"]["code"] for stray in raw_editor.strays] == [-32700]
    assert stage.hub_pid() == hub


def test_a_script_that_sends_what_is_no_call_is_told_and_goes_on(stage):
    hub = asked(stage)
    with Scripted(stage) as script:
        assert script.read()["ok"]
        for line in (b"{nope", b"[]", b'{"method": "list_tasks"}', b'{"id": 1, "method": "nonsense"}'):
            script.say(line)
            assert script.read()["error"]["code"] == "invalid_request"
        script.say(b'{"id": 2, "method": "' + b"y" * (16 * 1024 * 1024) + b'"}')
        assert "longer than" in script.read()["error"]["message"]
        script.say(b'{"id": 3, "method": "list_tasks"}')
        assert "tasks" in script.read()["result"]
    assert stage.hub_pid() == hub


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"protocol": 99}, "version_mismatch", "offload hub stop"),
        ({"kind": "soup"}, "invalid_request", "there are control, lsp, mcp, rpc"),
        ({"cwd": "here"}, "invalid_request", "absolute"),
        ({"pid": "4711"}, "invalid_request", "pid"),
    ],
)
def test_a_hello_that_does_not_fit_is_refused_with_the_reason(stage, change, code, words):
    hub = asked(stage)
    hello = json.dumps({**json.loads(greeting("rpc", stage.environ)), **change}).encode()
    with Scripted(stage, hello) as script:
        answer = script.read()
        assert (answer["ok"], answer["code"]) == (False, code)
        assert words in answer["message"]
        assert script.read() is None
    assert stage.hub_pid() == hub


FRONTS = (("list-tasks",), ("lsp",), ("mcp",))


@pytest.mark.parametrize("front", FRONTS)
def test_a_state_folder_that_is_none_is_told_by_the_front(stage, front):
    file = stage.folder / "a-file"
    file.write_text("mine")
    said = stage.run(*front, env={"OFFLOAD_STATE_DIR": str(file)}, stdin="")
    assert (said.code, said.stdout) == (Exit.NO_HUB, "")
    assert f"the state folder {file} cannot be used" in said.stderr
    assert "OFFLOAD_STATE_DIR" in said.stderr
    assert file.read_text() == "mine"


@pytest.mark.parametrize("front", FRONTS)
def test_a_journal_that_cannot_be_opened_keeps_the_hub_from_starting_and_the_front_says_why(apart, front):
    journal = apart.state / "journal.sqlite3"
    journal.mkdir(parents=True)
    host = BareHost(apart, apart.folder, front)
    # The input stays open, as an editor's does: a front whose input has ended asks for nothing.
    assert host.process.wait(BOUND_S) == Exit.NO_HUB
    _, out, said = host.close()
    assert out == b""
    assert f"{journal}" in said.decode()
    assert "Traceback" not in said.decode()


def test_a_journal_that_is_no_database_is_set_aside_as_it_is(apart):
    apart.state.mkdir(mode=0o700)
    notes = b"the notes of somebody else\n" * 100
    (apart.state / "journal.sqlite3").write_bytes(notes)
    assert apart.json("list-tasks")["tasks"] == []
    assert notes in [path.read_bytes() for path in apart.state.glob("journal.sqlite3.damaged-*")]
    task = apart.json("start-task", "x", cwd=apart.project())
    assert apart.json("task-status", task["task_id"])["task_id"] == task["task_id"]


def test_a_setting_that_makes_no_sense_is_told_by_the_front(apart):
    said = apart.run("list-tasks", env={"OFFLOAD_MAX_TASKS": "many"})
    assert said.code == Exit.NO_HUB
    assert "OFFLOAD_MAX_TASKS" in said.stderr


@pytest.fixture
def small_disk(apart):
    """The state folder of `apart` on a file system of its own, of 16 MB."""
    apart.state.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m,mode=0700", "offload-e2e", str(apart.state)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only a user who may mount can have a full disk of his own")
    yield apart
    apart.stop()
    subprocess.run(["umount", str(apart.state)], check=True)


def fill(folder):
    """Leave no room in the file system of `folder`; gives the file that takes it all."""
    filler = folder / "filler"
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass
    assert shutil.disk_usage(folder).free == 0
    return filler


def test_on_a_full_disk_no_task_begins_and_none_is_lost(small_disk):
    stage = small_disk
    project = stage.project()
    first = stage.json("start-task", "before", cwd=project)["task_id"]
    stage.json("wait", first, code=Exit.NOT_DONE)  # there is no worker here
    hub = stage.hub_pid()
    filler = fill(stage.state)
    refused = stage.json("start-task", "on a full disk", cwd=project, code=Exit.MACHINE)["error"]
    assert refused["code"] == "storage_failed"
    assert "full" in refused["message"]
    assert [task["task_id"] for task in stage.json("list-tasks")["tasks"]] == [first]
    filler.unlink()
    second = stage.json("start-task", "after", cwd=project)["task_id"]
    assert {task["task_id"] for task in stage.json("list-tasks")["tasks"]} == {first, second}
    assert stage.hub_pid() == hub
