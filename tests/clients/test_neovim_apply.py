"""Results merged into the real Neovim's buffers: real git, core, the edge; only the worker is played."""

import os

import pytest

from offload.domain.errors import ApplyRefused
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.fakes.house import open_house
from tests.fakes.worker import FakeWorker
from tests.support.neovim_edge import screen_of
from tests.workspace.repositories import commit_all, git

LINES = [f"line {number}" for number in range(1, 21)]
BASE = "".join(f"{line}\n" for line in LINES).encode()

TYPE = "local at, text = ...; vim.api.nvim_buf_set_lines(0, at, at + 1, true, { text })"
SHOUT = """
vim.api.nvim_create_autocmd('BufWritePre', { callback = function()
  vim.api.nvim_buf_set_lines(0, -2, -1, true, { 'formatted' })
end })
"""


@pytest.fixture
async def house(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "a.txt").write_bytes(BASE)
    (root / "b.txt").write_bytes(BASE)
    git(root, "init", "-q", "-b", "main")
    commit_all(root)
    environment = os.environ | {"HOME": str(tmp_path)}
    async with (
        GitWorkspaces(tmp_path / "state", Processes(), environment) as workspace,
        open_house(tmp_path, files={}, worker=FakeWorker(), workspace=workspace) as house,
    ):
        yield house


@pytest.fixture
async def screen(house):
    async with screen_of(house) as screen:
        yield screen


async def delegated(house, edits):
    """A task whose worker does `edits`: by path, what its bytes become."""

    async def script(stage):
        await stage.seen()
        for path, edit in edits.items():
            target = stage.order.folder / path
            target.write_bytes(edit(target.read_bytes() if target.exists() else b""))
        await stage.finish("Done.")

    house.worker.script = script
    return await house.rested((await house.start("tidy up")).id)


def becomes(old, new):
    return lambda data: data.replace(old, new)


async def texts(screen, path):
    return "\n".join(await screen.lines(path))


async def test_a_result_is_merged_with_what_was_typed_and_undone_by_itself(house, screen):
    """H18: the worker changed other lines than the user, whose text was never saved."""
    file = house.root / "a.txt"
    await screen.open(file, BASE)
    task = await delegated(house, {"a.txt": becomes(b"line 15\n", b"by the worker\n"), "new.txt": lambda _: b"new\n"})
    await screen.lua(TYPE, 1, "typed")
    _, landing = await house.delegation.apply(house.caller, task.id)
    assert (landing.paths, landing.buffers) == (("a.txt", "new.txt"), ("a.txt",))
    merged = ["line 1", "typed", *LINES[2:14], "by the worker", *LINES[15:]]
    assert await screen.lines(file) == merged
    assert file.read_bytes() == BASE, "the file is saved by its user alone"
    assert (house.root / "new.txt").read_bytes() == b"new\n"
    await screen.lua(TYPE, 18, "typed later")
    _, back = await house.delegation.undo(house.caller, task.id)
    assert back.buffers == ("a.txt",)
    assert await screen.lines(file) == ["line 1", "typed", *LINES[2:18], "typed later", LINES[19]]
    assert not (house.root / "new.txt").exists()


async def test_where_both_changed_the_same_lines_nothing_is_changed_anywhere(house, screen):
    """H18: neither side is lost, and both are told."""
    file = house.root / "a.txt"
    await screen.open(file, BASE)
    task = await delegated(
        house, {"a.txt": becomes(b"line 15\n", b"theirs\n"), "b.txt": becomes(b"line 1\n", b"one\n")}
    )
    await screen.lua(TYPE, 14, "mine")
    with pytest.raises(ApplyRefused) as refused:
        await house.delegation.apply(house.caller, task.id)
    (conflict,) = refused.value.conflicts
    assert (conflict.path, conflict.first_line, conflict.yours, conflict.theirs) == ("a.txt", 15, "mine\n", "theirs\n")
    assert await screen.lines(file) == [*LINES[:14], "mine", *LINES[15:]]
    assert file.read_bytes() == (house.root / "b.txt").read_bytes() == BASE


async def test_what_is_formatted_on_saving_keeps_both_sides(house, screen):
    """H18, with an editor that changes the text once more when it is written."""
    file = house.root / "a.txt"
    await screen.lua(SHOUT)
    await screen.open(file, BASE)
    task = await delegated(house, {"a.txt": becomes(b"line 10\n", b"by the worker\n")})
    await screen.lua(TYPE, 1, "typed")
    await house.delegation.apply(house.caller, task.id)
    await screen.lua("vim.cmd('silent write')")
    written = ["line 1", "typed", *LINES[2:9], "by the worker", *LINES[10:19], "formatted"]
    assert file.read_text().splitlines() == written
    await house.delegation.undo(house.caller, task.id)
    assert await screen.lines(file) == ["line 1", "typed", *LINES[2:19], "formatted"]


async def test_all_buffers_of_a_result_are_changed_by_one_apply(house, screen):
    for name in ("a.txt", "b.txt"):
        await screen.open(house.root / name, BASE)
    edit = becomes(b"line 10\n", b"by the worker\n")
    task = await delegated(house, {"a.txt": edit, "b.txt": edit})
    _, landing = await house.delegation.apply(house.caller, task.id)
    assert landing.buffers == ("a.txt", "b.txt")
    for name in ("a.txt", "b.txt"):
        assert "by the worker" in await screen.lines(house.root / name)
        assert (house.root / name).read_bytes() == BASE


@pytest.mark.parametrize(
    ("data", "settings", "edit", "written"),
    [
        (b"a\r\nb\r\nc\r\n", "", becomes(b"b", b"B"), b"a\r\nB\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "", lambda _: b"a\nB\nc\n", b"a\r\nB\r\nc\r\n"),
        (b"a\nb\nc", "setlocal nofixeol", becomes(b"b", b"B"), b"a\nB\nc"),
        (b"a\nb\nc", "", becomes(b"c", b"C\n"), b"a\nb\nC\n"),
        (b"a\nb\nc\n", "", lambda _: b"a\nb\nC", b"a\nb\nC\n"),
        (b"a\nb\nc\n", "", lambda _: b"a\nB\nc", b"a\nB\nc\n"),
        (b"\xef\xbb\xbfa\nb\nc\n", "", becomes(b"b", b"B"), b"\xef\xbb\xbfa\nB\nc\n"),
        (b"\xef\xbb\xbfa\nb\nc\n", "", becomes(b"a", b"A"), b"\xef\xbb\xbfA\nb\nc\n"),
        (b"\xef\xbb\xbfa\nb\nc\n", "", lambda _: b"A\nb\nc\n", b"\xef\xbb\xbfA\nb\nc\n"),
    ],
)
async def test_a_file_keeps_its_line_ends_and_its_mark_and_can_be_undone(house, screen, data, settings, edit, written):
    file = house.root / "c.txt"
    await screen.open(file, data, settings)
    before = await screen.lines(file)
    task = await delegated(house, {"c.txt": edit})
    await house.delegation.apply(house.caller, task.id)
    assert file.read_bytes() == data
    await screen.lua("vim.cmd('silent write')")
    assert file.read_bytes() == written
    await house.delegation.undo(house.caller, task.id)
    assert await screen.lines(file) == before
