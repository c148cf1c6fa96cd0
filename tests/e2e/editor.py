"""An editor on the real `offload lsp`: pytest-lsp's typed client, with plain JSON for our own messages and a log to wait on."""

import asyncio
import os
from contextlib import asynccontextmanager
from functools import partial

import psutil
from attrs import evolve
from lsprotocol import types
from pygls.protocol import default_converter
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage
from pytest_lsp.client import LanguageClient, register_lsp_features
from pytest_lsp.protocol import LanguageClientProtocol

from offload.domain.text import Encoding
from offload.lsp.documents import path_of
from offload.lsp.text_buffer import TextBuffer
from tests.e2e.stage import BOUND_S, OFFLOAD

TASK_CHANGED = "offload/taskChanged"
OVER = {"ready", "failed", "cancelled", "interrupted"}

CAPABILITIES = types.ClientCapabilities(
    window=types.WindowClientCapabilities(
        work_done_progress=True, show_document=types.ShowDocumentClientCapabilities(support=True)
    ),
    workspace=types.WorkspaceClientCapabilities(
        code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=True)
    ),
    text_document=types.TextDocumentClientCapabilities(code_lens=types.CodeLensClientCapabilities()),
)

EDITING = evolve(
    CAPABILITIES,
    workspace=evolve(
        CAPABILITIES.workspace,
        apply_edit=True,
        workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True),
    ),
)


def _converter():
    converter = default_converter()
    for envelope in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        converter.register_structure_hook(envelope, lambda value, kind: kind(**value))
    # lsprotocol takes every action for a command, whose text is then the action's own command in words.
    converter.register_structure_hook(
        types.Command | types.CodeAction, lambda value, _: converter.structure(value, types.CodeAction)
    )
    return converter


class _Protocol(LanguageClientProtocol):
    """Tells the editor of everything that the server sends of its own accord, after it was dealt with."""

    def _handle_notification(self, method_name, params):
        super()._handle_notification(method_name, params)
        self._server.heard(method_name, params)

    def _handle_request(self, msg_id, method_name, params):
        super()._handle_request(msg_id, method_name, params)
        self._server.heard(method_name, params)


class Editor(LanguageClient):
    def __init__(self):
        super().__init__(converter_factory=_converter, protocol_cls=_Protocol)
        register_lsp_features(self)
        self.feature(types.WORKSPACE_APPLY_EDIT)(partial(self.apply))  # pygls marks it, and a method cannot be marked
        self.feature(TASK_CHANGED)(lambda _: None)
        self.feature(types.WORKSPACE_CODE_LENS_REFRESH)(lambda _: None)
        self.log = []
        self.taken = lambda: None  # called when an edit of the server is on the screen, before the server is told so
        self.screen = {}
        self._news = asyncio.Event()

    def heard(self, method, params):
        self.log.append((method, params))
        self._news.set()

    @property
    def process(self):
        return self._server

    def front(self):
        """The process of `offload lsp` itself, which the editor may have started by a shell."""
        started = psutil.Process(self.process.pid)
        return next(iter(started.children()), started)

    # -- waiting ---------------------------------------------------------------------------------------------------------

    async def until(self, wanted):
        """The first good value of `wanted`, which is asked again after everything that the server says."""
        async with asyncio.timeout(BOUND_S):
            while not (value := wanted()):
                self._news.clear()
                await self._news.wait()
            return value

    def tasks(self, task_id=""):
        """All that was told of a task, or of any, oldest first."""
        views = [params for method, params in self.log if method == TASK_CHANGED]
        return [view for view in views if view["task_id"] == task_id] if task_id else views

    async def task_in(self, task_id, *phases):
        """The first view of the task in one of these phases; at once wrong when it has come to another end."""

        def seen():
            views = self.tasks(task_id)
            found = next((view for view in views if view["phase"] in phases), None)
            assert found or not views or views[-1]["phase"] not in OVER, views[-1]
            return found

        return await self.until(seen)

    async def lens_saying(self, uri, words):
        """The titles of all lenses as soon as one of them says `words`."""
        async with asyncio.timeout(BOUND_S):
            while True:
                seen = len(self.log)
                params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
                titles = [lens.command.title for lens in await self.text_document_code_lens_async(params)]
                if any(words in title for title in titles):
                    return titles
                await self.until(lambda seen=seen: len(self.log) > seen)

    # -- asking ----------------------------------------------------------------------------------------------------------

    async def ask(self, method, **params):
        """One of our own requests, as plain JSON both ways."""
        async with asyncio.timeout(BOUND_S):
            return await self.protocol.send_request_async(method, params)

    def open(self, path, text=None):
        text = path.read_text() if text is None else text
        self.screen[path.as_uri()] = (1, text)
        item = types.TextDocumentItem(path.as_uri(), "python", 1, text)
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def type(self, path, text):
        """The user changes the document as a whole."""
        version, _ = self.screen[path.as_uri()]
        self.screen[path.as_uri()] = (version + 1, text)
        identifier = types.VersionedTextDocumentIdentifier(version + 1, path.as_uri())
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))

    def text(self, path):
        """What is on the screen."""
        return self.screen[path.as_uri()][1]

    def apply(self, params):
        """Take an edit of the server, unless one of its documents has another version."""
        changes = params.edit.document_changes
        if any(self.screen[each.text_document.uri][0] != each.text_document.version for each in changes):
            return types.ApplyWorkspaceEditResult(applied=False)
        for each in changes:
            buffer = TextBuffer(self.screen[each.text_document.uri][1], None, Encoding.UTF_16)
            for edit in sorted(each.edits, key=lambda edit: edit.range.start.line, reverse=True):
                buffer.apply(edit.range, edit.new_text)
            self.type(path_of(each.text_document.uri), buffer.text)
        self.taken()
        return types.ApplyWorkspaceEditResult(applied=True)

    def save(self, path, text):
        path.write_text(text)
        identifier = types.TextDocumentIdentifier(path.as_uri())
        self.text_document_did_save(types.DidSaveTextDocumentParams(identifier, text))

    async def actions(self, path, line):
        """The commands that are offered on a line, by title."""
        cursor = types.Position(line, 4)
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(path.as_uri()), types.Range(cursor, cursor), types.CodeActionContext([])
        )
        async with asyncio.timeout(BOUND_S):
            actions = await self.text_document_code_action_async(params)
        return {action.title: action.command for action in actions}

    async def execute(self, command):
        params = types.ExecuteCommandParams(command.command, command.arguments)
        async with asyncio.timeout(BOUND_S):
            return await self.workspace_execute_command_async(params)

    # -- the end ---------------------------------------------------------------------------------------------------------

    async def leave(self):
        """As editors do: shutdown, exit, and the front's exit status."""
        async with asyncio.timeout(BOUND_S):
            await self.shutdown_async(None)
            self.exit(None)
            return await self.process.wait()


@asynccontextmanager
async def editing(stage, project, *, by_a_shell=False, environ=None, takes_edits=False):
    """An editor with `project` open, initialized. `by_a_shell`: a process between it and the front, which can be killed."""
    editor = Editor()
    command = ["/bin/sh", "-c", '"$0" lsp; exit', str(OFFLOAD)] if by_a_shell else [str(OFFLOAD), "lsp"]
    await editor.start_io(*command, env=environ or stage.environ, cwd=project)
    try:
        folder = types.WorkspaceFolder(project.as_uri(), project.name)
        params = types.InitializeParams(
            EDITING if takes_edits else CAPABILITIES,
            client_info=types.ClientInfo("an editor of tests", "1"),
            process_id=editor.process.pid if by_a_shell else os.getpid(),
            root_uri=project.as_uri(),
            workspace_folders=[folder],
        )
        async with asyncio.timeout(BOUND_S):
            await editor.initialize_session(params)
        yield editor
    finally:
        if editor.process.returncode is None:
            editor.process.kill()
        await editor.stop()
