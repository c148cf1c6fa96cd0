"""One MCP server object per connection, on the SDK's public low-level server: both protocol eras are the SDK's business.

A call is not a task: a call that is cancelled, or whose host goes away, leaves its tasks alone.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from pydantic import ValidationError

from mcp import MCPError
from offload import __version__
from offload.core.caller import Caller, Delivery
from offload.core.delegation import Delegation
from offload.domain.errors import Defect, OffloadError
from offload.mcp import lines, progress, words
from offload.mcp.errors import HINTS, error_text, params_text
from offload.mcp.render import render
from offload.mcp.tools import OPERATIONS_FOR_MODELS, TOOLS
from offload.wire.operations import Operation
from offload.wire.params import Params

logger = logging.getLogger(__name__)

Context = ServerRequestContext[dict[str, Any]]


async def serve_model(
    delegation: Delegation,
    caller: Caller,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    *,
    named: Callable[[str], object] = str,
    last_words_s: float = 5,
) -> None:
    """Serve one host until it has ended its side; what it does not read within `last_words_s` after that is dropped.
    `named` is told the host's own name."""
    to_server, from_client, to_client, from_server = lines.streams()
    server = _Calls(delegation, caller, named).server()
    async with anyio.create_task_group() as group:
        group.start_soon(lines.receive, reader, to_server, to_client.clone())
        group.start_soon(lines.send, from_server, writer)
        await server.run(from_client, to_client, server.create_initialization_options())
        group.cancel_scope.deadline = anyio.current_time() + last_words_s


class _Calls:
    """What the SDK calls for one connection."""

    def __init__(self, delegation: Delegation, caller: Caller, named: Callable[[str], object]) -> None:
        self._delegation = delegation
        self._caller = caller
        self._named = named

    def server(self) -> Server[dict[str, Any]]:
        return Server(
            "offload",
            version=__version__,
            instructions=words.INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
        )

    async def _list_tools(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=TOOLS)

    async def _list_prompts(self, _: Context, __: PaginatedRequestParams | None) -> ListPromptsResult:
        return ListPromptsResult(prompts=[words.PROMPT])

    async def _get_prompt(self, _: Context, params: GetPromptRequestParams) -> GetPromptResult:
        goal = (params.arguments or {}).get("goal", "")
        if params.name != words.PROMPT.name:
            raise MCPError(code=INVALID_PARAMS, message=f"there is no prompt {params.name!r}; there is delegate_task")
        if not goal:
            raise MCPError(code=INVALID_PARAMS, message="goal is missing: say what is to be reached")
        return words.delegate_prompt(goal)

    async def _call_tool(self, context: Context, call: CallToolRequestParams) -> CallToolResult:
        operation = OPERATIONS_FOR_MODELS.get(call.name)
        if operation is None:
            return _refusal(f"there is no tool {call.name!r}; there are {', '.join(OPERATIONS_FOR_MODELS)}")
        # Some hosts send null for what was not given, and some drop a schema's limits: both are settled here.
        given = {name: value for name, value in (call.arguments or {}).items() if value is not None}
        try:
            params = operation.params.model_validate(given)
        except ValidationError as problem:
            return _refusal(params_text(problem, operation.params))
        concerns = progress.concerned(self._delegation, params)
        if concerns is None or "progress_token" not in (context.meta or {}):
            return await self._answer(context, operation, params)

        async def send(count: float, message: str) -> None:
            await context.session.report_progress(count, None, message)

        async with anyio.create_task_group() as group:
            group.start_soon(progress.report, self._delegation, concerns, send)
            answer = await self._answer(context, operation, params)
            group.cancel_scope.cancel()
        return answer

    async def _answer(self, context: Context, operation: Operation, params: Params) -> CallToolResult:
        """The result of an operation; whatever goes wrong is told to the model, and the connection lives.

        A call that the host cancels, and one that is open when the host goes, never comes to the end of this.
        """
        with Delivery() as delivery:
            client = context.session.client_params
            name = client.client_info.name if client else self._caller.name
            self._named(name)
            answer = await self._result(replace(self._caller, name=name, delivery=delivery), operation, params)
            delivery.written()
            return answer

    async def _result(self, caller: Caller, operation: Operation, params: Params) -> CallToolResult:
        try:
            facts, text = render(await operation.call(self._delegation, caller, params))
        except Defect as defect:
            return _refusal(f"{error_text(defect)} It is in the log under {_logged(operation)}.")
        except OffloadError as error:
            return _refusal(error_text(error))
        except Exception:  # noqa: BLE001 the edge of a request: it must not end the others
            return _refusal(
                f"defect: {operation.name} went wrong, see {_logged(operation)} in the log.\n{HINTS['defect']}"
            )
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=facts)


def _logged(operation: Operation) -> str:
    """Log the exception at hand, and give the key by which it is found."""
    key = secrets.token_hex(4)
    logger.exception("%s: %s went wrong", key, operation.name)
    return key


def _refusal(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)
