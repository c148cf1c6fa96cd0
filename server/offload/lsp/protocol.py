"""pygls' LanguageServerProtocol, made fit for a process that hosts many editors. Knows nothing of tasks.

It answers every request whatever is wrong with it, frees what it tracked, and never ends the process. The overrides reach
into pygls 2.1.1, which is why it is pinned; tests/lsp/test_stock_defects.py says which of them an upgrade makes needless.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import logging
from collections.abc import Callable, Generator, Hashable
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.protocol import LanguageServerProtocol, lsp_method

from offload.lsp.errors import response_error
from offload.lsp.outbox import Outbox

logger = logging.getLogger(__name__)

_MESSAGE_KEYS = ("jsonrpc", "id", "method", "params", "result", "error")

TASK_CHANGED = "offload/taskChanged"


class HostedProtocol(LanguageServerProtocol):
    """`on_exit(clean)` and `on_editor_pid(pid)` are the connection's; set them before the first message."""

    def __init__(self, server: Any, converter: Any) -> None:
        self.outbox: Outbox | None = None
        self.on_exit: Callable[[bool], None] = lambda _: None
        self.on_editor_pid: Callable[[int], None] = lambda _: None
        super().__init__(server, converter)

    # -- incoming ------------------------------------------------------------------------------------------------------

    def dispatch(self, body: bytes) -> None:
        """Handle one message body; a request is answered whatever is wrong with it."""
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            self.refuse(None, types.ErrorCodes.ParseError, "the message is not JSON")
            return
        if not isinstance(message, dict):
            self.refuse(None, types.ErrorCodes.InvalidRequest, "the message is not a JSON object")
            return
        message_id = message.get("id")
        if isinstance(message_id, bool) or not isinstance(message_id, int | str | None):
            self.refuse(None, types.ErrorCodes.InvalidRequest, "the id is neither a number nor a string")
            return
        method = message.get("method", "")
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            self.refuse(message_id, types.ErrorCodes.InvalidRequest, "the message is not JSON-RPC 2.0")
            return
        is_request = message_id is not None and "method" in message
        if is_request and self._shutdown:
            self.refuse(message_id, types.ErrorCodes.InvalidRequest, "the connection is shut down")
            return
        if is_request and self._workspace is None and method != types.INITIALIZE:
            self.refuse(message_id, types.ErrorCodes.ServerNotInitialized, "initialize comes first")
            return
        if is_request and self._workspace is not None and method == types.INITIALIZE:
            self.refuse(message_id, types.ErrorCodes.InvalidRequest, "initialize comes once")
            return
        self._structured(message, is_request=is_request)

    def _structured(self, message: dict[str, Any], *, is_request: bool) -> None:
        message = {key: message[key] for key in _MESSAGE_KEYS if key in message}
        if "method" in message:
            message.setdefault("params", None)
            if message.get("id") is None:
                message.pop("id", None)
        try:
            # Only the top level is structured: a payload may hold a "jsonrpc" key of its own.
            structured = self.structure_message(message)
        except Exception as error:  # noqa: BLE001 - the edge of a request: cattrs raises whatever a field raises
            self._reject(message, error, is_request=is_request)
            return
        self.handle_message(structured)

    def _reject(self, message: dict[str, Any], error: Exception, *, is_request: bool) -> None:
        if is_request:
            bad_params = isinstance(error, JsonRpcInvalidParams)
            code = types.ErrorCodes.InvalidParams if bad_params else types.ErrorCodes.InternalError
            self.refuse(message["id"], code, f"the params do not fit {message['method']}")
        elif "method" in message:
            logger.warning("dropped a malformed %s", message["method"])
        else:  # a broken answer: wake the one who waits for it
            future = self._request_futures.pop(message.get("id", ""), None)
            if future is not None and not future.done():
                future.set_exception(error)

    def refuse(self, message_id: int | str | None, code: int, text: str) -> None:
        """Answer with an error."""
        # JSON-RPC answers what has no readable id with null, which pygls' types leave out.
        self._send_response(message_id, error=types.ResponseError(code=code, message=text))  # type: ignore[arg-type]

    def _execute_handler(self, msg_id: Any, handler: Any, callback: Any, args: Any = None, kwargs: Any = None) -> None:
        def finished(future: Any) -> None:
            self._request_futures.pop(msg_id, None)  # pygls keeps it for notifications and commands
            callback(future)

        super()._execute_handler(msg_id, handler, finished, args, kwargs)

    def _send_handler_result(self, future: Any, *, msg_id: Any) -> None:
        # The stock method sends tracebacks, logs every refused request as a failure and pops errors up in the editor.
        if future.cancelled():
            self.refuse(msg_id, types.LSPErrorCodes.RequestCancelled, "the request was cancelled")
        elif (error := future.exception()) is not None:
            self._send_response(msg_id, error=response_error(error))
        else:
            self._send_response(msg_id, result=future.result())

    def _check_handler_result(self, future: Any) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            logger.error("a notification's handler failed", exc_info=error)

    def _handle_response(self, msg_id: Any, result: Any = None, error: Any = None) -> None:
        self._result_types.pop(msg_id, None)
        future = self._request_futures.get(msg_id)
        if future is not None and future.done():  # the waiter was cancelled or timed out
            del self._request_futures[msg_id]
            return
        super()._handle_response(msg_id, result, error)

    # -- outgoing ------------------------------------------------------------------------------------------------------

    def coalescing_key(self, method: str, params: Any) -> Hashable | None:
        """Key under which a later notification makes an earlier, unsent one useless."""
        if method == types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS:
            return method, params.uri
        if method == types.PROGRESS and isinstance(params.value, types.WorkDoneProgressReport):
            return method, params.token
        if method == TASK_CHANGED:
            return method, params["task_id"]
        return None

    def _send_data(self, data: Any) -> None:
        # The stock method logs payloads, does not answer where a result does not serialise, and knows no keys.
        if self.outbox is None:
            return
        try:
            body = json.dumps(data, default=self._serialize_message, separators=(",", ":")).encode("ascii")
        except Exception:
            if hasattr(data, "method"):
                raise
            logger.exception("a result cannot be serialised")
            self.refuse(data.id, types.ErrorCodes.InternalError, "offload failed; see the hub's log")
            return
        frame = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        if hasattr(data, "method") and not hasattr(data, "id"):
            self.outbox.write(frame, self.coalescing_key(data.method, data.params))
        else:
            self.outbox.write(frame)

    # -- message types -------------------------------------------------------------------------------------------------

    # The stock methods carry lru_cache on `self`: up to 128 dead protocols, with their documents, would stay in memory.
    def get_message_type(self, method: str) -> Any:  # type: ignore[override]
        """The class of a message, None for one of our own."""
        return types.METHOD_TO_TYPES.get(method, (None,))[0]

    def get_result_type(self, method: str) -> Any:  # type: ignore[override]
        """The class of an answer, None for one of our own."""
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    # -- lifecycle -----------------------------------------------------------------------------------------------------

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """Answer what this server can do, and watch the editor's process."""
        result = yield from super().lsp_initialize(params)
        if params.process_id is not None:
            self.on_editor_pid(params.process_id)
        return result

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *_: Any) -> None:  # type: ignore[override]
        """Cancel what runs; only `exit` is listened to from now on."""
        self._shutdown = True
        self._drop()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]
        """End this connection. The stock method calls sys.exit(): it would end the hub, for every editor."""
        self.on_exit(self._shutdown)

    def abandon(self) -> list[asyncio.Task[Any]]:
        """The connection is gone: stop its handlers, wake those who wait for its answers. Gives the handlers still ending."""
        running = self._drop()
        self._request_futures.clear()
        self._result_types.clear()
        self.outbox = None
        return running

    def _drop(self) -> list[asyncio.Task[Any]]:
        running: list[asyncio.Task[Any]] = []
        futures: list[Any] = list(self._request_futures.values())  # pygls calls asyncio's tasks futures too
        for future in futures:
            if isinstance(future, asyncio.Task):
                future.cancel()
                running.append(future)
            elif isinstance(future, concurrent.futures.Future) and not future.done():
                future.set_exception(ConnectionResetError("the editor has gone"))
        return running

    # -- handlers of ours instead of pygls' own ------------------------------------------------------------------------

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> None:
        """Open documents are the connection's, not pygls' (see `text_buffer`)."""
        self.fm.features[types.TEXT_DOCUMENT_DID_OPEN](params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> None:
        """As for `did_open`."""
        self.fm.features[types.TEXT_DOCUMENT_DID_CHANGE](params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> None:
        """As for `did_open`."""
        self.fm.features[types.TEXT_DOCUMENT_DID_CLOSE](params)

    @lsp_method(types.WORKSPACE_EXECUTE_COMMAND)
    async def lsp_workspace__execute_command(  # type: ignore[override]
        self, params: types.ExecuteCommandParams
    ) -> Any:
        """Every command takes one JSON value. Async, because a command answers when core has taken it."""
        command = self.fm.commands.get(params.command)
        if command is None:
            raise JsonRpcInvalidParams(f"there is no command {params.command}")
        (argument,) = params.arguments or (None,)
        return await command(argument)

    @lsp_method(types.WINDOW_WORK_DONE_PROGRESS_CANCEL)
    async def lsp_work_done_progress_cancel(self, params: types.WorkDoneProgressCancelParams) -> None:
        """Progress tokens are the connection's, not pygls'. Async, because core is told."""
        await self.fm.features[types.WINDOW_WORK_DONE_PROGRESS_CANCEL](params)
