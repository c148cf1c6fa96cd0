"""How connections start and end."""

import asyncio
import os
import subprocess
import sys

import pytest

from offload.lsp.serving import Ended, ProcessWatch, content_length
from tests.lsp.test_protocol import PING, register


async def ended(client):
    async with asyncio.timeout(20):
        return await client.served


async def test_exit_after_shutdown_ends_the_connection_and_no_process(host):
    """The stock handler calls sys.exit(), for every editor at once."""
    client, other = await host(register), await host(register)
    await client.initialize()
    await other.initialize()
    await client.result("shutdown")
    client.notify("exit")
    assert await ended(client) is Ended.EXIT
    assert await other.result(PING) is None
    async with asyncio.timeout(20):
        await client.ended.wait()


async def test_exit_without_shutdown_is_told_apart(host):
    client = await host(register)
    client.notify("exit")
    client.notify("exit")
    assert await ended(client) is Ended.EXIT_WITHOUT_SHUTDOWN


async def test_an_editor_that_goes_away_takes_its_handlers_along(host):
    client = await host(register)
    await client.initialize()
    client.start("demo/sleep")
    await client.result(PING)
    await client.disconnect()
    assert await ended(client) is Ended.DISCONNECTED


async def test_an_editor_that_goes_away_in_the_middle_of_a_message_has_gone_away(host):
    client = await host(register)
    client.send_bytes(b"Content-Length: 100\r\n\r\n{")
    await client.writer.drain()
    client.writer.close()
    assert await ended(client) is Ended.DISCONNECTED


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 10000000000\r\n\r\n",
        b"Content-Length: 99999999999999999999999\r\n\r\n",
        b"Content-Length: -1\r\n\r\n",
        b"Content-Type: x\r\n\r\n",
        b"x" * 200_000,
        b"x" * 200_000 + b"\r\n\r\n",
    ],
)
async def test_a_hopeless_frame_ends_only_its_connection(host, header):
    client, other = await host(register), await host(register)
    await other.initialize()
    client.send_bytes(header)
    assert await ended(client) is Ended.BAD_FRAME
    await client.until(lambda: client.strays)
    assert client.strays[0]["error"]["code"] == -32700
    assert await other.result(PING) is None


def test_the_length_is_read_from_any_header_block():
    assert content_length(b"Content-Type: x\r\nCONTENT-LENGTH:  12 \r\n\r\n") == 12
    assert content_length(b"Content-Length: twelve\r\n\r\n") is None


@pytest.fixture
def process():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait(20)
    process.stdin.close()


async def test_a_dead_editor_is_noticed_though_its_stream_stays_open(host, process):
    client = await host(register)
    await client.initialize(processId=process.pid)
    process.kill()
    assert await ended(client) is Ended.EDITOR_DIED


NAMES = ["unused", "too-large", "own", "init", "zero", "negative"]  # ids that are the same in every process of xdist


@pytest.mark.parametrize("pid", [2**22 + 12345, 2**70, os.getpid(), 1, 0, -1], ids=NAMES)
async def test_a_process_that_does_not_end_or_is_of_another_machine_ends_nothing(host, pid):
    client = await host(register)
    await client.initialize(processId=pid)
    assert await client.result(PING) is None


def no_pidfd(pid):
    raise OSError("not in this sandbox")


@pytest.mark.parametrize("open_pidfd", [None, no_pidfd])
async def test_where_there_is_no_pidfd_the_process_is_looked_at_now_and_then(process, open_pidfd):
    gone = asyncio.Event()
    watch = ProcessWatch(gone.set, open_pidfd, poll_s=0.01)
    watch.start(process.pid)
    watch._check(process.pid)
    assert not gone.is_set()
    process.kill()
    process.wait(20)
    async with asyncio.timeout(20):
        await gone.wait()
    watch.stop()
    watch.stop()
