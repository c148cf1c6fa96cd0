"""Servers that start badly, are found again, or belong to somebody else; the program here is a script."""

import asyncio
import json
import os
import sys

import psutil
import pytest

from offload.domain.errors import WorkerBroken
from offload.processes import Identity, Processes, alive
from offload.workers.opencode import marks
from offload.workers.opencode.find import Finder
from offload.workers.opencode.servers import Attach, Launch, Servers
from offload.workers.registry import agents
from tests.fakes.clock import ManualClock
from tests.fakes.opencode_server import FakeOpenCode

BOUND_S = 60

# `opencode serve` as far as starting goes: it says where it listens, which is where a test's own server is.
SERVE = """
import os, sys, time
if sys.argv[1] == "--version":
    print("1.18.33")
else:
    {serve}
"""
LISTENS = 'print("Warning: x\\nopencode server listening on {url}", flush=True); time.sleep(600)'


class Rig:
    def __init__(self, folder, server):
        self.folder = folder
        self.server = server
        self.clock = ManualClock()
        self.opened = []

    def servers(self, serve=LISTENS, attach=None, **launch):
        program = self.folder / "opencode"
        body = SERVE.format(serve=serve.format(url=self.server.url))
        program.write_text(f"#!{sys.executable}\n{body}")
        program.chmod(0o755)
        finder = Finder(agents()["opencode"], self.folder, str(program), Processes())
        servers = Servers(finder, Launch(self.folder, **launch), self.clock, Processes(), attach)
        self.opened.append(servers)
        return servers

    def files(self):
        return [*self.folder.glob("servers/*/server.json")]

    def left(self, **values):
        """A file that an earlier hub left, for the only environment of these tests."""
        file = self.files()[0]
        content = json.loads(file.read_text())
        file.write_text(json.dumps({**content, **values}))
        return content


@pytest.fixture
async def rig(tmp_path):
    async with FakeOpenCode() as server:
        rig = Rig(tmp_path, server)
        yield rig
        for servers in rig.opened:
            await servers.aclose()


async def until(condition):
    async with asyncio.timeout(BOUND_S):
        while not condition():  # noqa: ASYNC110 - the life of a process can only be looked at
            await asyncio.sleep(0.01)


async def test_a_program_that_ends_at_once_is_told_with_its_last_words(rig):
    secret = 'print("no such flag", os.environ["OPENCODE_SERVER_PASSWORD"])'
    with pytest.raises(WorkerBroken, match=r"no such flag \*\*\*"):
        async with rig.servers(secret).use({}):
            raise AssertionError
    assert rig.files() == []


async def test_a_program_that_never_listens_is_ended_and_told(rig):
    serve = f"open({str(rig.folder / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    with pytest.raises(WorkerBroken, match="did not begin to listen; it said: nothing"):
        async with rig.servers(serve, start_limit_s=1.0).use({}):
            raise AssertionError
    assert not psutil.pid_exists(int((rig.folder / "pid").read_text()))


async def test_a_start_that_nobody_waits_for_any_more_leaves_no_process(rig):
    path = rig.folder / "pid"
    serve = (
        f"open({str(path)!r} + '.part', 'w').write(str(os.getpid())); os.rename({str(path)!r} + '.part', {str(path)!r})"
    )
    servers = rig.servers(f"{serve}; time.sleep(600)")

    async def use():
        async with servers.use({}):
            raise AssertionError

    using = asyncio.create_task(use())
    await until(path.exists)
    using.cancel()
    await asyncio.wait([using])
    assert not psutil.pid_exists(int(path.read_text()))


async def test_a_program_that_cannot_be_started_is_told(rig):
    servers = rig.servers()
    async with servers.use({}):
        pass
    await servers.aclose()
    program = rig.folder / "opencode"
    stat = program.stat()
    program.write_text("x" * stat.st_size)  # its version is remembered, and now it is no program
    os.utime(program, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(WorkerBroken, match="cannot be started"):
        async with servers.use({}):
            raise AssertionError


async def test_many_who_want_a_server_at_once_get_the_same(rig):
    servers = rig.servers()

    async def use():
        async with servers.use({"A": "1"}) as server:
            return server.identity

    assert len(set(await asyncio.gather(*(use() for _ in range(5))))) == 1
    assert servers.runs({"A": "1"})
    assert not servers.runs({"A": "2"})


async def test_a_server_leaves_nothing_in_its_temporary_folder(rig):
    """OpenCode unpacks a library of 5 MB at each start and never removes it."""
    servers = rig.servers()
    async with servers.use({}) as server:
        (server.folder / "tmp" / ".library.so").write_text("x")
    await servers.aclose()
    assert not (server.folder / "tmp").exists()


async def test_a_server_that_says_a_lot_is_not_held_up(rig):
    """A pipe that nobody reads takes 64 kB, and then its writer stands still."""
    said = rig.folder / "said"
    servers = rig.servers(
        f"{LISTENS.removesuffix('; time.sleep(600)')}; print('x' * 1_000_000, flush=True); open({str(said)!r}, 'w'); time.sleep(600)"
    )
    async with servers.use({}):
        await until(said.exists)


async def test_a_server_that_is_used_is_not_idle(rig):
    servers = rig.servers(idle_s=10.0)
    async with servers.use({}) as server:
        await rig.clock.sleepers(1)
        rig.clock.advance(30)
        await rig.clock.sleepers(1)
        assert not server.gone.is_set()
    rig.clock.advance(11)
    await until(server.gone.is_set)
    assert server.why == "was stopped"
    assert rig.server.count("POST /global/dispose") == 1
    assert rig.files() == []


async def test_a_server_that_ends_by_itself_is_noticed_and_another_is_started(rig):
    """Public trouble report: the dead connection was used again for ever (H26)."""
    servers = rig.servers("print('opencode server listening on {url}', flush=True); time.sleep(0.05); sys.exit(3)")
    async with servers.use({}) as server:
        await until(server.gone.is_set)
        assert server.why == "ended with exit status 3"
    async with servers.use({}) as other:
        assert other is not server


async def test_a_hub_finds_the_server_of_an_earlier_one_and_notices_its_end(rig):
    first, second = rig.servers(), rig.servers()
    async with first.use({}) as server:
        pass
    async with second.use({}) as again:
        assert again.identity == server.identity
        await rig.clock.sleepers(3)
        psutil.Process(server.identity.pid).kill()
        await until(lambda: not alive(server.identity))
        rig.clock.advance(2)
        await until(again.gone.is_set)
        assert again.why == "has ended"


async def test_a_server_that_was_found_again_is_ended_with_the_hub(rig):
    first, second = rig.servers(), rig.servers()
    async with first.use({}) as server, second.use({}):
        pass
    await second.aclose()
    assert not alive(server.identity)


async def test_a_hub_looks_at_its_start_for_what_an_earlier_one_left(rig):
    """A living server is watched, so that it ends when nobody needs it; the file of one that has ended is removed."""
    first, second = rig.servers(), rig.servers()
    async with first.use({"A": "1"}) as server, first.use({"A": "2"}) as dead, first.use({"A": "3"}) as used:
        pass
    (kept,) = [file for file in rig.files() if file.parent == dead.folder]
    content = kept.read_text()
    psutil.Process(dead.identity.pid).kill()
    await until(dead.gone.is_set)
    kept.write_text(content)
    async with second.use({"A": "3"}):
        await second.adopt()
        await until(lambda: len(second.identities()) == 2 and not kept.exists())
    assert set(second.identities()) == {server.identity, used.identity}
    await second.aclose()
    assert not alive(server.identity)


async def test_the_end_of_a_server_that_was_found_again_is_noticed_by_who_wants_it(rig):
    """Nobody waits for a process that is no child; whoever looks first tells of its end."""
    first, second = rig.servers(), rig.servers()
    async with first.use({}) as server, second.use({}) as again:
        pass
    psutil.Process(server.identity.pid).kill()
    await until(lambda: not alive(server.identity))
    async with second.use({}) as other:
        assert other.identity != server.identity
    assert again.why == "has ended"


async def test_the_end_of_a_server_that_is_being_stopped_is_told_by_its_stop(rig):
    first, second = rig.servers(), rig.servers()
    async with first.use({}), second.use({}) as again:
        await rig.clock.sleepers(3)
    await again.stop()
    rig.clock.advance(2)
    async with second.use({}) as other:
        assert other.identity != again.identity
    assert again.why == "was stopped"


async def test_a_server_that_runs_with_the_environment_of_another_is_started_again_for_its_own(rig):
    """A session of it was followed from another environment, by a hub that had only that one at hand."""
    first, second = rig.servers(), rig.servers()
    async with first.use({"A": "1"}) as server:
        marks.keep(server.folder, "ses_1", server.identity)
    await first.aclose()
    async with second.use({"A": "2"}, "ses_1") as followed:
        assert followed.folder == server.folder
        async with second.use({"A": "1"}) as shared:
            assert shared is followed, "its user must not lose it"
    async with second.use({"A": "1"}) as other:
        assert (other.folder, other.identity != followed.identity) == (server.folder, True)
        assert psutil.Process(other.identity.pid).environ()["A"] == "1"


@pytest.mark.parametrize("trouble", ["another version", "refused"])
async def test_a_server_of_an_earlier_hub_that_is_not_as_wanted_is_ended_first(rig, trouble):
    """Two servers must not share a folder: both would run the same session."""
    first, second = rig.servers(), rig.servers()
    async with first.use({}) as server:
        pass
    if trouble == "refused":
        rig.server.refusals["GET /global/health"] = 401
    else:
        rig.server.health = {"healthy": True, "version": "2.0.0"}
    async with second.use({}) as other:
        assert other.identity != server.identity
        assert not alive(server.identity)


@pytest.mark.parametrize("text", ["", "[]", '{"pid": 1}'])
async def test_a_file_that_makes_no_sense_is_not_followed(rig, text):
    first, second = rig.servers(), rig.servers()
    async with first.use({}) as server:
        pass
    await first.aclose()
    file = server.folder / "server.json"
    file.write_text(text)
    async with second.use({}) as other:
        assert json.loads(file.read_text())["pid"] == other.identity.pid


async def test_a_file_of_a_server_that_is_gone_ends_nobody_else(rig):
    """The number may be somebody else's by now; so the start time is compared as well."""
    first, second = rig.servers(), rig.servers()
    async with first.use({}) as server:
        pass
    await first.aclose()
    stranger = Identity(os.getpid(), 1.0)
    left = {"url": rig.server.url, "password": "p", "pid": stranger.pid, "started": stranger.started}
    (server.folder / "server.json").write_text(json.dumps(left))
    async with second.use({}) as other:
        assert other.identity.pid != os.getpid()


async def test_an_attached_server_needs_a_password_file_that_only_its_owner_can_read(rig):
    file = rig.folder / "password"
    file.write_text("secret\n")
    file.chmod(0o644)
    attach = Attach(rig.server.url, file)
    with pytest.raises(WorkerBroken, match="chmod 600"):
        async with rig.servers(attach=attach).use({}):
            raise AssertionError
    file.chmod(0o600)
    servers = rig.servers(attach=attach)
    async with servers.use({}) as server:
        assert server.version == "1.18.33"
    await servers.aclose()
    assert rig.server.count("POST /global/dispose") == 0
    with pytest.raises(WorkerBroken, match="cannot be read"):
        async with rig.servers(attach=Attach(rig.server.url, rig.folder / "none")).use({}):
            raise AssertionError


@pytest.mark.parametrize("status", [404, 500, None])
async def test_a_server_that_cannot_be_disposed_of_is_ended_all_the_same(rig, status):
    rig.server.refusals["POST /global/dispose"] = status
    servers = rig.servers()
    async with servers.use({}) as server:
        pass
    await servers.aclose()
    assert not alive(server.identity)


async def test_the_folder_of_a_server_that_ended_long_ago_is_removed_and_that_of_a_living_one_stays(rig):
    first = rig.servers()
    async with first.use({}) as server:
        folder = server.folder
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (1000.0, 1000.0), follow_symlinks=False)
    assert await first.clean(2000.0, dry_run=False) == 0
    await first.aclose()
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (1000.0, 1000.0), follow_symlinks=False)
    found = await first.clean(2000.0, dry_run=True)
    assert (found > 0, folder.exists()) == (True, True)
    assert await first.clean(2000.0, dry_run=False) == found
    assert not folder.exists()
