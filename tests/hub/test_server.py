"""The hub's own work in this process: connections over the real socket, time by the manual clock."""

import asyncio
import json
import logging
import os
import resource
import socket
import stat
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from offload.hub import reach
from offload.hub.greeting import LIMIT, greeting, welcome
from offload.hub.hello import accepted
from offload.hub.server import ACCEPT_AGAIN_S, CHECK_S, Limits, Server
from offload.hub.services import Services
from tests.fakes.clock import ManualClock

IDLE_S = 600


async def echo(reader, writer, hello):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


class Hub:
    """A server that runs, with what a test changes about it."""

    def __init__(self, place):
        self.path = str(place.state / "hub.sock")
        self.clock = ManualClock()
        self.busy = False
        self.warmed = []
        self.left = []
        self.owned = True
        self.writers = []
        self.services = Services(
            serve={"lsp": echo},
            busy=lambda: self.busy,
            status=lambda: {"tasks": 3},
            warm=lambda: self.warmed.append(1),
            leave=lambda: self.left.append(1),
        )

    @asynccontextmanager
    async def running(self, **limits):
        self.server = Server(
            self.path, self.services, self.clock, Limits(idle_exit_s=IDLE_S, **limits), lambda: self.owned
        )
        async with asyncio.timeout(30), asyncio.TaskGroup() as group:
            self.task = group.create_task(self.server.run())
            await self.clock.sleepers(1)
            yield self
            self.server.stop("the test is over")
            for writer in self.writers:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()

    async def connect(self, hello=None):
        reader, writer = await asyncio.open_unix_connection(self.path)
        self.writers.append(writer)
        writer.write(greeting("lsp", {}) if hello is None else hello)
        return reader, writer

    async def connected(self):
        reader, writer = await self.connect()
        welcome(await reader.readline())
        return reader, writer

    async def pass_time(self, seconds):
        """Step by step, because each look at what goes on comes after the time of the one before."""
        for _ in range(int(seconds / CHECK_S)):
            self.clock.advance(CHECK_S)
            await asyncio.wait(
                {self.task, asyncio.ensure_future(self.clock.sleepers(1))}, return_when=asyncio.FIRST_COMPLETED
            )


@pytest.fixture
def hub(place):
    return Hub(place)


async def refusal(reader):
    answer = json.loads(await reader.read())
    assert answer.pop("ok") is False
    return answer


async def test_a_stale_socket_and_left_over_names_are_replaced(hub, place):
    for name in ("hub.sock", "hub.sock.123", "hub.sock.456"):
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(place.state / name))
    async with hub.running():
        assert [path.name for path in place.state.iterdir()] == ["hub.sock"]
        assert stat.S_IMODE(Path(hub.path).stat().st_mode) == 0o600
        await hub.connected()
    assert list(place.state.iterdir()) == []


async def test_a_front_is_served_after_its_hello(hub):
    async with hub.running():
        reader, writer = await hub.connected()
        writer.write(b"hello?")
        assert await reader.read(100) == b"hello?"


async def test_imports_are_warmed_once_it_listens(hub):
    async with hub.running():
        await hub.connected()
    assert hub.warmed == [1]


async def test_a_warming_that_fails_is_logged_and_the_hub_serves(hub, caplog):
    hub.services = Services(serve={"lsp": echo}, busy=lambda: False, status=dict, warm=lambda: 1 / 0)
    async with hub.running():
        await hub.connected()
    assert "warming failed" in caplog.messages


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        (b"Content-Length: 20\r\n", "invalid_request", "must be one JSON object"),
        (b"x" * (LIMIT + 1), "invalid_request", "longer than 256 KiB"),
        (greeting("lsp", {}) + b"more", "invalid_request", "nothing may be sent after the hello"),
        (greeting("telnet", {}), "invalid_request", "no connection is of kind 'telnet'; there are control, lsp"),
        (greeting("lsp", {}).replace(b'"protocol": 1', b'"protocol": 9'), "version_mismatch", "offload hub stop"),
    ],
    ids=["malformed", "oversize", "impatient", "unknown kind", "other version"],
)
async def test_a_bad_hello_is_refused_with_its_reason_and_the_hub_lives(hub, sent, code, reason):
    """Issue 2, bad input: a clear error to the one who asked."""
    async with hub.running():
        reader, _ = await hub.connect(sent)
        answer = await refusal(reader)
        assert answer["code"] == code
        assert reason in answer["message"]
        await hub.connected()


async def test_a_hello_that_is_cut_off_is_refused(hub):
    async with hub.running():
        reader, writer = await hub.connect(b'{"protocol"')
        writer.write_eof()
        assert "ended before its hello was complete" in (await refusal(reader))["message"]


async def test_a_hello_that_does_not_come_is_not_waited_for(hub):
    async with hub.running(hello_s=0.05):
        reader, _ = await hub.connect(b"")
        assert (await refusal(reader))["message"] == "no hello came within 0.05 s"


@pytest.mark.parametrize("error", [ConnectionResetError("gone"), ExceptionGroup("both", [BrokenPipeError("gone")])])
async def test_a_connection_that_breaks_is_no_defect(hub, caplog, error):
    caplog.set_level(logging.INFO)

    async def broken(reader, writer, hello):
        raise error

    hub.services = Services(serve={"lsp": broken}, busy=lambda: False, status=dict)
    async with hub.running():
        reader, _ = await hub.connected()
        assert await reader.read() == b""
        await hub.connected()
    assert {record.levelname for record in caplog.records if record.message == "connection lost"} == {"INFO"}


async def test_a_connection_that_fails_is_logged_with_a_key_and_the_hub_lives(hub, caplog):
    async def failing(reader, writer, hello):
        raise ExceptionGroup("both", [ConnectionResetError("gone"), ZeroDivisionError()])

    hub.services = Services(serve={"lsp": failing, "mcp": echo}, busy=lambda: False, status=dict)
    async with hub.running():
        reader, _ = await hub.connected()
        assert await reader.read() == b""
        reader, _ = await hub.connect(greeting("mcp", {}))
        welcome(await reader.readline())
    (failed,) = [record for record in caplog.records if record.message == "connection failed"]
    assert len(failed.key) == 8
    assert failed.front.startswith("Hello(kind='lsp'")


async def test_it_ends_when_nobody_needed_it_for_long_enough(hub):
    async with hub.running():
        await hub.pass_time(IDLE_S)
        await hub.task
        assert not Path(hub.path).exists()


async def test_it_stays_while_there_is_a_front_and_counts_from_its_end(hub):
    async with hub.running():
        _, writer = await hub.connected()
        await hub.pass_time(3 * IDLE_S)
        writer.close()
        while hub.server.status()["fronts"]:
            await asyncio.sleep(0)
        await hub.pass_time(IDLE_S - CHECK_S)
        assert not hub.task.done()
        await hub.pass_time(CHECK_S)
        await hub.task


async def test_it_stays_while_there_is_work_without_any_front(hub):
    """Closing the editor ends no task, and so not the hub either."""
    hub.busy = True
    async with hub.running():
        await hub.pass_time(3 * IDLE_S)
        hub.busy = False
        await hub.pass_time(IDLE_S)
        await hub.task


async def test_a_hub_that_nobody_can_find_any_more_ends_and_leaves_the_socket_of_another(hub):
    """The state folder was removed by hand, and another hub lives in the new one."""
    async with hub.running():
        os.unlink(hub.path)
        Path(hub.path).write_text("of another")
        hub.owned = False
        await hub.pass_time(CHECK_S)
        await hub.task
    assert Path(hub.path).read_text() == "of another"


async def test_a_hub_whose_socket_was_removed_listens_again_and_keeps_its_fronts(hub):
    """Issue 3: a runtime folder that is cleaned under a live hub. The new socket is for its owner only, as the first was."""
    async with hub.running():
        reader, writer = await hub.connected()
        os.unlink(hub.path)
        await hub.pass_time(CHECK_S)
        assert stat.S_IMODE(Path(hub.path).stat().st_mode) == 0o600
        await hub.connected()
        writer.write(b"still there?")
        assert await reader.read(100) == b"still there?"
    assert not Path(hub.path).exists()


async def test_a_hub_that_cannot_listen_again_ends(hub, place):
    async with hub.running():
        os.unlink(hub.path)
        (place.state / "hub.sock.blocked").mkdir()  # not to be removed as a socket is
        await hub.pass_time(CHECK_S)
        await hub.task
    (place.state / "hub.sock.blocked").rmdir()


async def test_a_hub_that_drains_ends_and_leaves_its_workers(hub):
    async with hub.running():
        assert not hub.server.left
        reader, writer = await hub.connect(greeting("control", {}))
        welcome(await reader.readline())
        writer.write(b'{"method": "drain"}\n')
        assert await reader.readline() == b'{"result": {}}\n'
        await hub.task
    assert (hub.server.left, hub.left) == (True, [1])


@pytest.mark.parametrize("turns", range(8))
async def test_a_front_that_connects_at_the_moment_of_the_end_is_not_stranded(hub, turns):
    """It has connected and sent its hello. However far the hub has come with it, the front is served or comes again."""
    async with hub.running():
        with socket.socket(socket.AF_UNIX) as late:
            late.connect(hub.path)
            late.sendall(greeting("lsp", {}))
            for _ in range(turns):
                await asyncio.sleep(0)
            hub.server.stop("now")
            await hub.task
            late.settimeout(10)
            try:
                answer = await asyncio.to_thread(late.recv, 1000)
            except ConnectionResetError:
                answer = b""
    assert answer in (b"", accepted())
    assert reach.attempt(hub.path, greeting("lsp", {})) is None


async def test_a_hub_without_free_file_descriptors_serves_again_when_it_has_some(hub, caplog):
    """Who comes in the meantime waits in the queue; the hub neither ends nor spins."""
    async with hub.running():
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with socket.socket(socket.AF_UNIX) as waiting:
            resource.setrlimit(resource.RLIMIT_NOFILE, (waiting.fileno() + 1, hard))
            try:
                waiting.connect(hub.path)
                while "cannot accept" not in caplog.messages:
                    await asyncio.sleep(0)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            hub.clock.advance(ACCEPT_AGAIN_S)
            waiting.sendall(greeting("lsp", {}))
            waiting.settimeout(10)
            assert await asyncio.to_thread(waiting.recv, 1000) == accepted()
    assert caplog.messages.count("cannot accept") == 1


async def test_a_hub_without_free_file_descriptors_can_be_stopped(hub, caplog):
    async with hub.running():
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with socket.socket(socket.AF_UNIX) as waiting:
            resource.setrlimit(resource.RLIMIT_NOFILE, (waiting.fileno() + 1, hard))
            try:
                waiting.connect(hub.path)
                while "cannot accept" not in caplog.messages:
                    await asyncio.sleep(0)
                hub.server.stop("now")
                await hub.task
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
