"""What a host hears while one of its calls waits: every change of the tasks that it waits for, and a sign of life."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from offload.core.delegation import Delegation
from offload.core.timing import within
from offload.domain.task import Front, Task
from offload.wire.params import ContinueTaskParams, Params, StartTaskParams, WaitForTasksParams

EVERY_S = 10  # Some hosts end a call that was silent for long; those that count do so from 30 s up.

Report = Callable[[float, str], Awaitable[None]]


def concerned(delegation: Delegation, params: Params) -> Callable[[Task], bool] | None:
    """Which tasks a call waits for, asked before it begins; None for a call that does not wait."""
    match params:
        case WaitForTasksParams(task_ids=ids):
            return lambda task: task.id.startswith(tuple(ids))
        case ContinueTaskParams(task_id=task_id, wait_s=wait_s) if wait_s:
            return lambda task: task.id.startswith(task_id)
        case StartTaskParams(wait_s=wait_s) if wait_s:
            known = {task.id for task in delegation.tasks(closed=True)}
            return lambda task: task.id not in known and _asked_for(task, params)
        case _:
            return None


def _asked_for(task: Task, params: StartTaskParams) -> bool:
    """The id of a task that a call starts is not known before its answer; what was asked for tells it from others."""
    spec = task.spec
    symbol = spec.anchor.block.symbol if spec.anchor else ""
    return spec.front is Front.MODEL and spec.brief == params.brief and params.symbol in ("", symbol)


async def report(delegation: Delegation, concerns: Callable[[Task], bool], send: Report) -> None:
    """Until cancelled: one report at once, one per change, at least one every `EVERY_S` seconds, strictly increasing."""
    count = 1
    with delegation.watching() as watcher:
        await send(count, "waiting")
        while True:
            changed = await within(delegation.clock, EVERY_S, watcher.changes())
            messages = ["still waiting"] if changed is None else [say(task) for task in changed if concerns(task)]
            for message in messages:
                count += 1
                await send(count, message)


def say(task: Task) -> str:
    """One line: the task, where it stands, and what its worker is doing."""
    doing = f": {task.activity.label}" if task.activity and task.activity.label else ""
    return f"{task.id} {task.phase}{doing}"
