"""One connection of the command line or of a script.

    → {"id": 1, "method": "start_task", "params": {"brief": "…"}}
    ← {"id": 1, "result": {…}}          or {"id": 1, "error": {"code", "message", "reasons", "conflicts"}}
    → {"id": 2, "method": "watch_tasks"}
    ← {"id": 2, "result": {}}           then {"method": "task_changed", "params": TaskView} until the connection ends

Calls run side by side and are answered as they come to an end. What a call has begun goes on when its connection is gone: an
end of the input ends the watch, the other calls come to their own end.
"""

from __future__ import annotations

import json
import logging
import secrets
from asyncio import StreamReader, StreamWriter, Task, TaskGroup
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from offload.core.caller import Caller, Delivery
from offload.core.delegation import Delegation
from offload.domain.errors import Defect, InvalidRequest, OffloadError
from offload.domain.task import Front
from offload.rpc.lines import lines
from offload.wire import convert
from offload.wire.operations import OPERATIONS, Operation
from offload.wire.params import Params

logger = logging.getLogger(__name__)

LINE_LIMIT = 16 * 1024 * 1024  # bytes
CALLS_LIMIT = 256  # at a time on one connection
WATCH = "watch_tasks"
CHANGED = "task_changed"
METHODS = {operation.name: operation for operation in OPERATIONS if Front.TERMINAL in operation.fronts}

Json = dict[str, Any]


async def serve(
    reader: StreamReader, writer: StreamWriter, caller: Caller, delegation: Delegation, *, line_limit: int = LINE_LIMIT
) -> None:
    """Answer until the connection ends and the last call with it."""
    connection = _Connection(writer, caller, delegation)
    async with TaskGroup() as group:
        async for line in lines(reader, line_limit):
            if line is None:
                await connection.refuse(None, InvalidRequest(f"a line is longer than {line_limit} bytes"))
            else:
                await connection.take(line, group)
        connection.end_of_input()


class _Connection:
    def __init__(self, writer: StreamWriter, caller: Caller, delegation: Delegation) -> None:
        self._writer = writer
        self._caller = caller
        self._delegation = delegation
        self._calls: set[Task[None]] = set()
        self._deliveries: set[Delivery] = set()
        self._watch: Task[None] | None = None

    async def take(self, line: bytes, group: TaskGroup) -> None:
        """One request. It is answered here when it makes no sense, else by a task of its own."""
        request_id: int | str | None = None
        try:
            request = _parsed(line)
            request_id = _id(request)
            if request.get("method") == WATCH:
                if self._watch is None:
                    self._watch = group.create_task(self._stream(request_id))
                else:  # a second stream would say everything twice
                    await self._send({"id": request_id, "result": {}})
                return
            operation = _operation(request.get("method"))
            params = _checked(operation, request.get("params", {}))
            self._look_for_room()
        except InvalidRequest as error:
            await self.refuse(request_id, error)
            return
        task = group.create_task(self._call(request_id, operation, params))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def refuse(self, request_id: int | str | None, error: OffloadError) -> None:
        """Answer with an error; `request_id` is None when the request's own could not be read."""
        await self._send({"id": request_id, "error": convert.error(error).model_dump(mode="json")})

    def end_of_input(self) -> None:
        """Nobody reads changes any more, and perhaps no answer either: until one can be written it counts as lost."""
        for delivery in self._deliveries:
            delivery.lose()
        if self._watch is not None:
            self._watch.cancel()

    def _look_for_room(self) -> None:
        if len(self._calls) >= CALLS_LIMIT:
            raise InvalidRequest(f"{CALLS_LIMIT} calls are running on this connection; wait for some to end")

    async def _call(self, request_id: int | str, operation: Operation, params: Params) -> None:
        with Delivery() as delivery:
            self._deliveries.add(delivery)
            try:
                caller = replace(self._caller, delivery=delivery)
                result = await operation.call(self._delegation, caller, params)
                if await self._send({"id": request_id, "result": result.model_dump(mode="json")}):
                    delivery.written()
            except OffloadError as error:
                await self.refuse(request_id, error)
            except Exception:  # noqa: BLE001 - the edge of a request; it is logged in `_defect`
                await self.refuse(request_id, _defect(operation.name))
            finally:
                self._deliveries.discard(delivery)

    async def _stream(self, request_id: int | str) -> None:
        """The feed holds the latest state of each task only, so that a slow reader costs no more than a quick one."""
        changes = self._delegation.watch()
        # No pause between this answer and the first step of the feed: who has the answer misses nothing from there on.
        self._write({"id": request_id, "result": {}})
        async for task in changes:
            view = convert.task(task, self._delegation.live(task.id))
            await self._send({"method": CHANGED, "params": view.model_dump(mode="json")})

    async def _send(self, message: Json) -> bool:
        """Whether it was written. When nobody reads any more, what the call did stays done."""
        self._write(message)
        with suppress(ConnectionError):
            await self._writer.drain()
        return not self._writer.is_closing()

    def _write(self, message: Json) -> None:
        if self._writer.is_closing():
            return  # nobody reads any more, and asyncio would log every try
        # ASCII on the wire: text that no UTF-8 can hold, half of a character from a model, passes unharmed.
        self._writer.write(json.dumps(message).encode() + b"\n")


def _parsed(line: bytes) -> Json:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"a line must be one JSON object: {error}") from None
    if not isinstance(request, dict):
        raise InvalidRequest('a line must be one JSON object: {"id", "method", "params"}')
    return request


def _id(request: Json) -> int | str:
    request_id = request.get("id")
    if not isinstance(request_id, int | str) or isinstance(request_id, bool):
        raise InvalidRequest("a request needs an id, a number or a string")
    return request_id


def _operation(method: object) -> Operation:
    operation = METHODS.get(method) if isinstance(method, str) else None
    if operation is None:
        raise InvalidRequest(f"there is no method {method!r}; there are {', '.join(METHODS)} and {WATCH}")
    return operation


def _checked(operation: Operation, params: object) -> Params:
    try:
        return operation.params.model_validate(params)
    except ValidationError as error:
        told = [f"{'.'.join(map(str, each['loc'])) or 'params'}: {each['msg']}" for each in error.errors()]
        raise InvalidRequest(f"{operation.name}: {'; '.join(told[:5])}") from None


def _defect(where: str) -> Defect:
    key = secrets.token_hex(4)
    logger.exception("defect", extra={"key": key, "operation": where})
    return Defect(f"offload made a mistake; the hub's log has it under {key}")
