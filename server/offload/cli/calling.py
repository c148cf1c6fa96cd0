"""Runs an operation for a command: one call, or as many as a person's patience asks for, then prints the result.

Knows the hub only as something to call.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from rich.table import Table
from rich.text import Text

from offload.cli.exits import Exit
from offload.cli.output import console, print_error, print_json
from offload.cli.render import rendered
from offload.domain.errors import OffloadError
from offload.wire.operations import Operation
from offload.wire.params import MAX_WAIT_S
from offload.wire.results import GetChangesResult, TaskResult, WaitForTasksResult
from offload.wire.views import TaskState, TaskStatus, View

OVER_BADLY = frozenset({TaskState.FAILED, TaskState.CANCELLED})
GIVES_AN_ID = "start_task"
ASKS = TaskState.INPUT_REQUIRED


class Hub(Protocol):
    """A connection to the hub. Raises `OffloadError` for what it refuses, and when it goes away."""

    def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]: ...

    def watch(self) -> Iterator[dict[str, Any]]:
        """Each change from now on; the connection is then for this alone, and can be selected on."""
        ...

    def fileno(self) -> int: ...


Connect = Callable[[], AbstractContextManager[Hub]]


def run_operation(
    connect: Connect, operation: Operation, params: dict[str, Any], wait: float | None, *, as_json: bool
) -> int:
    """Calls, prints, and gives the exit code. `wait` is in seconds, None for as long as it takes."""
    return guarded(
        lambda: _run(connect, operation, params, wait, as_json=as_json),
        as_json=as_json,
        task_id=params.get("task_id", ""),
    )


def guarded(run: Callable[[], int], *, as_json: bool, task_id: str = "") -> int:
    """Every way in which a command can end, as an exit code."""
    try:
        code = run()
        sys.stdout.flush()  # a reader that went away is noticed here, and not when Python ends
    except OffloadError as error:
        return print_error(error, as_json=as_json, task_id=task_id)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left in the buffer goes nowhere, quietly
        return Exit.NO_READER
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return code


def _run(connect: Connect, operation: Operation, params: dict[str, Any], wait: float | None, *, as_json: bool) -> int:
    if params.get("file") and not params["workspace"] and Path(params["file"]).is_file():
        params = {**params, "file": str(Path.cwd() / params["file"])}  # a person means the file that stands here
    with connect() as hub:
        if operation.result is WaitForTasksResult:
            answer = wait_for(hub, params, wait)
        else:
            answer = hub.call(operation.name, params)
            if wait:
                wait_for(hub, {"task_ids": [answer["task_id"]]}, wait)
                answer = hub.call("get_task_status", {"task_id": answer["task_id"]})
    result = operation.result.model_validate(answer)
    if as_json:
        print_json(answer)
    elif operation.name == GIVES_AN_ID and not sys.stdout.isatty():
        sys.stdout.write(f"{answer['task_id']}\n")  # for id=$(offload start-task ...)
        show(result, stderr=True)
    else:
        show(result)
    return _outcome(result, waited=wait != 0)


def wait_for(hub: Hub, params: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    """`wait_for_tasks`, again and again until it is done, a worker asks, there is news (when that was asked for), or the time
    is over."""
    end = None if seconds is None else time.monotonic() + seconds
    patience = (
        console(stderr=True).status("waiting; Ctrl-C ends the waiting, not the task") if sys.stderr.isatty() else None
    )
    with patience or nullcontext():
        while True:
            left = MAX_WAIT_S if end is None else max(0.0, min(MAX_WAIT_S, end - time.monotonic()))
            answer = hub.call("wait_for_tasks", {**params, "timeout_s": left})
            if answer["done"] or left == 0 or _news(answer, params.get("after_revision") or {}):
                return answer


def _news(answer: Mapping[str, Any], after: Mapping[str, int]) -> bool:
    """An ask is news, unless its task's revision is known."""
    for task in answer["tasks"]:
        known = next((after[begin] for begin in after if task["task_id"].startswith(begin)), None)
        if task["state"] == ASKS if known is None else task["revision"] > known:
            return True
    return False


def show(result: View, *, stderr: bool = False) -> None:
    """Prints a result for a person."""
    if isinstance(result, GetChangesResult) and not sys.stdout.isatty():
        sys.stdout.write(result.patch)  # as it is, so that `git apply` can read it
        return
    out = console(stderr=stderr)
    for part in rendered(result):
        if isinstance(part, Table):
            part.expand = out.is_terminal and any(column.ratio for column in part.columns)
        out.print(part, soft_wrap=isinstance(part, Text))  # a terminal folds lines better than we do


def _outcome(result: View, *, waited: bool) -> int:
    """A status that was only asked for is an answer; a task that was waited for, or whose result is wanted, has to be good."""
    match result:
        case WaitForTasksResult(done=done, tasks=tasks):
            good = done and not any(task.state in OVER_BADLY for task in tasks)
        case TaskStatus(state=state):
            good = not waited or state is TaskState.COMPLETED
        case TaskResult(state=state):
            good = state is TaskState.COMPLETED
        case _:
            good = True
    return Exit.OK if good else Exit.NOT_DONE
