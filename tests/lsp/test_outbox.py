"""An editor that stops reading."""

import asyncio
import socket
from contextlib import asynccontextmanager

from offload.lsp.outbox import Outbox


class Peer:
    def __init__(self, outbox, theirs, running):
        self.outbox = outbox
        self.theirs = theirs
        self.running = running
        self.failed = False

    async def read(self, length):
        loop = asyncio.get_running_loop()
        received = b""
        async with asyncio.timeout(20):
            while len(received) < length:
                received += await loop.sock_recv(self.theirs, 1 << 20)
        return received


@asynccontextmanager
async def stalled_peer(max_queued_bytes=1 << 26):
    """An outbox whose other end is read only on demand."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)
    _, writer = await asyncio.open_unix_connection(sock=ours)

    def failed():
        peer.failed = True

    outbox = Outbox(writer, failed, max_queued_bytes)
    peer = Peer(outbox, theirs, asyncio.create_task(outbox.run()))
    yield peer
    await outbox.close(timeout_s=0.05)
    peer.running.cancel()
    await asyncio.wait({peer.running})
    theirs.close()


async def test_the_latest_state_wins_and_the_order_is_kept():
    async with stalled_peer() as peer:
        filler = b"." * (1 << 20)
        peer.outbox.write(filler)
        for number in range(1000):
            peer.outbox.write(b"<state %d>" % number, key="task")
        peer.outbox.write(b"<answer>")
        peer.outbox.write(b"<last>", key="other")
        assert peer.outbox.waiting == 3
        expected = filler + b"<state 999><answer><last>"
        assert await peer.read(len(expected)) == expected
        peer.outbox.write(b"straight on")
        assert await peer.read(11) == b"straight on"


async def test_an_endless_backlog_ends_the_connection():
    async with stalled_peer(1 << 20) as peer:
        for _ in range(40):
            peer.outbox.write(b"." * (1 << 16))
        assert peer.failed
        assert peer.outbox.waiting == 0


async def test_a_backlog_is_handed_over_in_pieces():
    async with stalled_peer() as peer:
        for _ in range(40):
            peer.outbox.write(b"." * (1 << 16))
        assert await peer.read(40 << 16) == b"." * (40 << 16)
        assert not peer.failed


async def test_a_peer_that_goes_away_is_a_failure_while_something_waits():
    async with stalled_peer() as peer:
        for _ in range(40):
            peer.outbox.write(b"." * (1 << 16))
        peer.theirs.close()
        async with asyncio.timeout(20):
            await peer.running
        assert peer.failed


async def test_closing_hands_over_what_waits():
    async with stalled_peer() as peer:
        peer.outbox.write(b"." * (1 << 20))
        peer.outbox.write(b"<end>")
        closing = asyncio.create_task(peer.outbox.close(timeout_s=20))
        assert (await peer.read((1 << 20) + 5)).endswith(b"<end>")
        await closing


async def test_closing_does_not_wait_for_a_peer_that_never_reads():
    async with stalled_peer() as peer:
        peer.outbox.write(b"." * (1 << 20))
        peer.outbox.write(b"<end>")
        await peer.outbox.close(timeout_s=0.01)
        peer.outbox.write(b"too late")
        assert peer.outbox.waiting == 1
