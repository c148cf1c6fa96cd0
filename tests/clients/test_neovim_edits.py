"""Edits of open buffers in the real Neovim, over the real edge and core's own documents: no plugin, no hub."""

import asyncio
import random
import tempfile
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from offload.core.caller import Caller
from offload.core.ports import DocumentEdit, EditOutcome
from offload.domain.task import Front
from offload.lsp.applying import Patience
from offload.lsp.server import serve_editor
from tests.clients.conftest import neovim
from tests.fakes.house import open_house

BOUND_S = 45
PATIENCE = Patience(answer_s=BOUND_S, seen_s=BOUND_S, moved_s=0.5)

START = """
local socket, root, debounce = ...
vim.lsp.start({
  name = 'offload',
  cmd = vim.lsp.rpc.connect(socket),
  root_dir = root,
  flags = { debounce_text_changes = debounce },
})
"""
LINES = "return vim.api.nvim_buf_get_lines(vim.fn.bufnr(...), 0, -1, true)"
TYPE = "vim.api.nvim_buf_set_lines(vim.fn.bufnr(...), 0, 0, true, { '# typed' })"


class Screen:
    """A Neovim that is attached to the edge; what asks it runs beside the loop, which serves it meanwhile."""

    def __init__(self, house, editor, socket):
        self.house = house
        self._editor = editor
        self._socket = str(socket)

    async def lua(self, statements, *arguments):
        return await asyncio.to_thread(self._editor.lua, statements, *arguments)

    async def lines(self, path):
        return await self.lua(LINES, str(path))

    async def open(self, path, data, settings="", debounce=150):
        """A file in a buffer of its own; gives the document as core has it."""
        path.write_bytes(data)
        await self.lua("vim.cmd.edit(...)", str(path))
        if settings:
            await self.lua("vim.cmd(...)", settings)
        await self.lua(START, self._socket, str(self.house.root), debounce)
        return await self.document(path, lambda document: document is not None)

    async def document(self, path, wanted):
        """The document as core has it, as soon as it is as `wanted`; every look lets the editor go on."""
        async with asyncio.timeout(BOUND_S):
            while True:
                (document,) = self.house.delegation.documents.below(self.house.root).get(path.name, (None,))
                if wanted(document):
                    return document
                await self.lua("vim.wait(10)")

    async def edit(self, *changes):
        editor = self.house.delegation.documents.editor("lsp-1")
        edits = [DocumentEdit(document.path, document.version, document.text, after) for document, after in changes]
        return await editor.edit("tests", edits)


@asynccontextmanager
async def served(house):
    """The edge on a socket, until its editor has gone."""
    connections = []
    with tempfile.TemporaryDirectory(prefix="offload-") as folder:
        caller = Caller(Front.EDITOR, "lsp-1", house.root)

        async def serve(reader, writer):
            connections.append(asyncio.current_task())
            await serve_editor(house.delegation, caller, reader, writer, patience=PATIENCE)

        async with await asyncio.start_unix_server(serve, Path(folder) / "socket"):
            yield Path(folder) / "socket"
            await asyncio.wait(connections, timeout=BOUND_S)


@pytest.fixture
async def screen(tmp_path):
    async with open_house(tmp_path, files={}) as house, served(house) as socket:
        with ExitStack() as stack:
            yield Screen(house, stack.enter_context(neovim(house.root, {})), socket)
            await asyncio.to_thread(stack.close)


@pytest.mark.parametrize(
    ("data", "settings", "after", "written"),
    [
        (b"a\nb\n", "", "a\nB\nc\n", b"a\nB\nc\n"),
        (b"a\r\nb\r\n", "", "a\r\nB\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
        (b"a\nb", "setlocal nofixeol", "a\nB", b"a\nB"),
        (b"a\nb", "", "a\nB\n", b"a\nB\n"),
        (b"a\nb\n", "", "a\nB", b"a\nB\n"),
        (b"\xef\xbb\xbfa\nb\n", "", "a\nB\n", b"\xef\xbb\xbfa\nB\n"),
        ("#😋😋x\né".encode(), "setlocal nofixeol", "#😋😋y\né😋", "#😋😋y\né😋".encode()),
    ],
)
async def test_a_buffer_is_changed_and_written_with_its_own_line_ends(screen, data, settings, after, written):
    """The mark at the beginning of a file and the line end at its end are options of the buffer."""
    file = screen.house.root / "a.txt"
    document = await screen.open(file, data, settings)
    assert await screen.edit((document, after)) is EditOutcome.DONE
    assert file.read_bytes() == data, "nothing is written by itself"
    await screen.lua("vim.cmd('silent write')")
    assert file.read_bytes() == written


async def test_any_buffer_becomes_any_other(screen):
    """What core has of a buffer afterwards is what is in it: Neovim tells of some changes at the end of a text wrongly."""
    rng = random.Random(5)
    for number in range(25):
        end = rng.choice(["\n", "\r\n"])
        words = ["#😋😋x", "é", "", "a = 1", "b = 2", "c", "d"]
        before, after = (end.join(["first", *rng.choices(words, k=rng.randrange(8)), ""]) for _ in range(2))
        file = screen.house.root / f"{number}.txt"
        document = await screen.open(file, before.encode())
        assert await screen.edit((document, after)) is EditOutcome.DONE
        assert [line + end for line in await screen.lines(file)] == after.splitlines(keepends=True)
        told = await screen.document(file, lambda document: document is not None)
        assert told.text == after


async def test_one_undo_takes_an_edit_back_with_all_its_places(screen):
    file = screen.house.root / "a.txt"
    document = await screen.open(file, b"a\nb\nc\nd\n")
    assert await screen.edit((document, "A\nb\nc\nD\n")) is EditOutcome.DONE
    await screen.lua("vim.cmd.undo()")
    assert await screen.lines(file) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("which", [0, 1])
async def test_a_buffer_that_was_typed_in_unheard_is_left_alone_and_so_are_the_others(screen, which):
    """Neovim looks at the version of an edit's first document only, takes version 0 for none, and answers "applied"."""
    files = [screen.house.root / name for name in ("a.txt", "b.txt")]
    documents = [await screen.open(file, b"a\nb\n", debounce=1000) for file in files]
    assert [document.version for document in documents] == [0, 0]
    await screen.lua(TYPE, str(files[which]))
    assert await screen.edit(*((document, "a\nB\n") for document in documents)) is EditOutcome.MOVED
    for file in files:
        typed = ["# typed"] if file == files[which] else []
        assert await screen.lines(file) == [*typed, "a", "b"]


async def test_a_buffer_that_cannot_be_modified_refuses(screen):
    file = screen.house.root / "a.txt"
    document = await screen.open(file, b"a\nb\n", "setlocal nomodifiable")
    assert await screen.edit((document, "a\nB\n")) is EditOutcome.REFUSED
    assert await screen.lines(file) == ["a", "b"]
