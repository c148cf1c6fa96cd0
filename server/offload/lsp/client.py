"""What the connected editor can, and every call back to it. Knows nothing of tasks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from offload.domain.text import Encoding

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ANSWER_S = 10.0  # A person may be asked something meanwhile, but nothing of ours depends on the answer.


class Client:
    """Empty-handed until `learn`; an editor that answers late, with an error or not at all changes nothing here."""

    def __init__(self, server: LanguageServer, answer_s: float = _ANSWER_S) -> None:
        self._server = server
        self._answer_s = answer_s
        self.name = ""
        self.encoding = Encoding.UTF_16
        self.shows_progress = False
        self.shows_documents = False
        self.has_code_lens = False
        self.refreshes_code_lens = False
        self.draws_marks = False
        self.takes_edits = False
        self.is_neovim = False
        self._takes_versions = False

    def learn(self, params: types.InitializeParams) -> None:
        """Take in what the editor says about itself; `initializationOptions.offload.marks` = "client" means that a client
        of ours draws the status beside the blocks."""
        can = params.capabilities
        self.name = params.client_info.name if params.client_info else ""
        chosen = self._server.workspace.position_encoding
        self.encoding = Encoding(str(getattr(chosen, "value", chosen)))
        self.shows_progress = bool(can.window and can.window.work_done_progress)
        self.shows_documents = bool(can.window and can.window.show_document and can.window.show_document.support)
        self.has_code_lens = bool(can.text_document and can.text_document.code_lens)
        self.refreshes_code_lens = bool(
            can.workspace and can.workspace.code_lens and can.workspace.code_lens.refresh_support
        )
        # As of 0.11: of an edit's documents only the first one's version counts, version 0 stands for any, and the line end at
        # the end of a text is an option of the buffer, which edits cannot change.
        self.is_neovim = self.name == "Neovim"
        self.takes_edits = bool(can.workspace and can.workspace.apply_edit)
        edits = can.workspace.workspace_edit if can.workspace else None
        # Neovim announces only what it can do with files, and takes versions all the same.
        self._takes_versions = bool(edits and (edits.document_changes or edits.resource_operations))
        options = params.initialization_options
        ours = options.get("offload") if isinstance(options, dict) else None
        self.draws_marks = isinstance(ours, dict) and ours.get("marks") == "client"

    def say(self, text: str, kind: types.MessageType = types.MessageType.Info) -> None:
        """Show one line to the person."""
        self._server.window_show_message(types.ShowMessageParams(kind, f"offload: {text}"))

    def progress(
        self, token: str, value: types.WorkDoneProgressBegin | types.WorkDoneProgressReport | types.WorkDoneProgressEnd
    ) -> None:
        self._server.protocol.notify(types.PROGRESS, types.ProgressParams(token, value))

    async def create_progress(self, token: str) -> bool:
        """Whether the editor took the token."""
        params = types.WorkDoneProgressCreateParams(token)
        return self.shows_progress and await self._asked(self._server.window_work_done_progress_create_async(params))

    async def refresh_code_lens(self) -> None:
        """Have the editor ask for its code lenses again, if it announced that it can."""
        if self.refreshes_code_lens:
            await self._asked(self._server.workspace_code_lens_refresh_async(None))

    async def show_document(self, uri: str) -> bool:
        """Whether the editor shows it."""
        if not self.shows_documents:
            return False
        return await self._asked(
            self._server.window_show_document_async(types.ShowDocumentParams(uri, take_focus=True))
        )

    def publish(self, uri: str, diagnostics: list[types.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))

    def notify(self, method: str, params: dict[str, object]) -> None:
        """A notification of our own."""
        self._server.protocol.notify(method, params)

    async def apply_edit(
        self,
        label: str,
        changes: Sequence[types.TextDocumentEdit],
        answer_s: float,
        answered: Callable[[object], object],
    ) -> bool:
        """Whether the editor says that it has changed these documents; `answered` is called before any later message of it is
        looked at."""
        edit = (
            types.WorkspaceEdit(document_changes=[*changes])
            if self._takes_versions
            else types.WorkspaceEdit(changes={each.text_document.uri: _plain(each) for each in changes})
        )
        params = types.ApplyWorkspaceEditParams(edit, label=f"offload: {label}")
        answer = self._server.workspace_apply_edit(params)
        answer.add_done_callback(answered)
        return await self._asked(asyncio.wrap_future(answer), answer_s, lambda result: result.applied)

    async def _asked(
        self, answer: Awaitable[T], answer_s: float | None = None, agrees: Callable[[T], bool] = lambda _: True
    ) -> bool:
        """Whether the editor did as it was asked, in bounded time. The protocol ignores an answer that comes late."""
        try:
            async with asyncio.timeout(self._answer_s if answer_s is None else answer_s):
                return agrees(await answer)
        except (JsonRpcException, OSError, TimeoutError) as error:
            logger.debug("the editor did not do as it was asked: %s", type(error).__name__)
            return False


def _plain(changes: types.TextDocumentEdit) -> list[types.TextEdit]:
    return [edit for edit in changes.edits if isinstance(edit, types.TextEdit)]
