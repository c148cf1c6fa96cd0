"""One language server per editor, plugged into the hub: what it answers is the table below."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from lsprotocol import types
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer

from offload import __version__
from offload.core.caller import Caller
from offload.core.delegation import Delegation
from offload.lsp import actions, commands, lenses, requests
from offload.lsp.applying import PATIENCE, Patience
from offload.lsp.conversion import shared_converter
from offload.lsp.editor import Editor
from offload.lsp.protocol import HostedProtocol
from offload.lsp.serving import Ended, serve_connection

logger = logging.getLogger(__name__)


def _initialize(editor: Editor, params: types.InitializeParams) -> None:
    editor.learn(params)


def _did_open(editor: Editor, params: types.DidOpenTextDocumentParams) -> None:
    document = editor.documents.open(params.text_document, editor.client.encoding)
    if document is not None:
        editor.marks.soon(document.path)


def _did_change(editor: Editor, params: types.DidChangeTextDocumentParams) -> None:
    identifier = params.text_document
    changed = editor.documents.change(identifier.uri, identifier.version, params.content_changes)
    if changed is not None:
        document, edits = changed
        editor.places.edited(document.path, edits)
        editor.marks.soon(document.path)


def _did_close(editor: Editor, params: types.DidCloseTextDocumentParams) -> None:
    document = editor.documents.close(params.text_document.uri)
    if document is not None:
        editor.places.forget(document.path)
        editor.marks.closed(document)


async def _cancel_progress(editor: Editor, params: types.WorkDoneProgressCancelParams) -> None:
    """Stop the task whose progress was cancelled. Async, because core is told."""
    task_id = editor.progress.cancelled(params.token)
    if task_id is not None:
        await editor.delegation.cancel(editor.caller, task_id)


# All that is answered beside the lifecycle (`protocol`), the commands (`commands.COMMANDS`) and the operations
# (`requests.REQUESTS`). A plain function changes state and returns; an `async def` says why it is one.
FEATURES: tuple[tuple[str, Callable[[Editor, Any], Any], Any], ...] = (
    (types.INITIALIZE, _initialize, None),
    (types.TEXT_DOCUMENT_DID_OPEN, _did_open, None),
    (types.TEXT_DOCUMENT_DID_CHANGE, _did_change, None),
    (types.TEXT_DOCUMENT_DID_CLOSE, _did_close, None),
    (types.TEXT_DOCUMENT_CODE_ACTION, actions.code_actions, types.CodeActionOptions(code_action_kinds=[actions.KIND])),
    (types.TEXT_DOCUMENT_CODE_LENS, lenses.code_lens, types.CodeLensOptions()),
    (types.WINDOW_WORK_DONE_PROGRESS_CANCEL, _cancel_progress, None),
)


class HostedServer(LanguageServer):
    """A LanguageServer that logs its own errors instead of popping them up in the editor."""

    def report_server_error(self, error: Exception, source: type[PyglsError] | type[JsonRpcException]) -> None:
        """Keep the kind of what went wrong; its text may hold the person's code."""
        logger.warning("%s: %s", source.__name__, type(error).__name__)


def make_server(delegation: Delegation, caller: Caller, patience: Patience = PATIENCE) -> tuple[HostedProtocol, Editor]:
    """A server for one connection, with everything registered."""
    server = HostedServer("offload", __version__, protocol_cls=HostedProtocol, converter_factory=shared_converter)
    editor = Editor(server, delegation, caller, patience)
    for method, handler, options in FEATURES:
        server.feature(method, options)(partial(handler, editor))
    for method, operation in requests.REQUESTS.items():
        server.feature(method)(partial(requests.call, operation, editor))
    for name, command in commands.COMMANDS.items():
        server.command(name)(partial(commands.execute, command, editor))
    return cast("HostedProtocol", server.protocol), editor


async def serve_editor(
    delegation: Delegation,
    caller: Caller,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    named: Callable[[str], object] = str,
    patience: Patience = PATIENCE,
) -> Ended:
    """Serve one editor until its connection ends, and say why it ended; `named` is told its name. No task ends with it."""
    protocol, editor = make_server(delegation, caller, patience)
    editor.named = named
    async with asyncio.TaskGroup() as group:
        background = group.create_task(editor.run())

        async def farewell() -> None:
            editor.leave()
            background.cancel()
            await asyncio.wait({background})

        try:
            return await serve_connection(protocol, reader, writer, farewell)
        finally:
            delegation.documents.drop_editor(caller.id)
            editor.patches.remove()
