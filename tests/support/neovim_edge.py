"""A real Neovim on the real edge of a core that runs in the test's own process: no plugin, no hub."""

import asyncio
import tempfile
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from offload.core.caller import Caller
from offload.core.ports import DocumentEdit
from offload.domain.task import Front
from offload.lsp.applying import Patience
from offload.lsp.server import serve_editor
from tests.support.neovim import Neovim

BOUND_S = 45
PATIENCE = Patience(answer_s=BOUND_S, seen_s=BOUND_S, moved_s=2)

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


@asynccontextmanager
async def screen_of(house):
    """A Neovim in the house's workspace; it is ended beside the loop, which serves it to the end."""
    async with served(house) as socket:
        with tempfile.TemporaryDirectory(prefix="nvim-") as home, ExitStack() as stack:
            editor = Neovim(Path(home), house.root, {})
            stack.callback(editor.quit)
            yield Screen(house, editor, socket)
            await asyncio.to_thread(stack.close)
