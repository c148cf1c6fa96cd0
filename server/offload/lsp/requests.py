"""The operations table as LSP: a request `offload/…` for each operation that editors have. Decides nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from offload.core.caller import Delivery
from offload.domain.errors import InvalidRequest
from offload.domain.task import Front, TaskId
from offload.lsp.editor import Editor
from offload.wire.operations import OPERATIONS, Operation
from offload.wire.params import StartTaskParams

REQUESTS = {f"offload/{operation.lsp}": operation for operation in OPERATIONS if Front.EDITOR in operation.fronts}

# The operations after which a task may run on behalf of this editor.
_RUNNING = frozenset({"start_task", "continue_task", "resume_task", "reject_task", "integrate_tasks", "run_checks"})


async def call(operation: Operation, editor: Editor, raw: Any) -> dict[str, Any]:
    """Do what an operation does. Raises `InvalidRequest` for params that do not fit it, and what core raises."""
    try:
        params = operation.params.model_validate({} if raw is None else raw)
    except ValidationError as error:
        raise InvalidRequest(_told(operation, error)) from None
    file = params.file if isinstance(params, StartTaskParams) else ""
    with Delivery() as delivery:  # A request that is cancelled, or whose editor goes, does not come to its end.
        caller = replace(editor.caller_for(file), delivery=delivery)
        result = await operation.call(editor.delegation, caller, params)
        delivery.written()
    view = result.model_dump(mode="json")
    if operation.name in _RUNNING:
        editor.show_progress(TaskId(view["task_id"]))
    return view


def _told(operation: Operation, error: ValidationError) -> str:
    problems = [
        f"{'.'.join(str(part) for part in problem['loc']) or 'params'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_input=False, include_context=False)
    ]
    return f"{operation.lsp} was asked wrongly: {'; '.join(problems)}"
