"""Waiting for tasks: what is waited for, and when it has come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offload.core.feed import Watcher
from offload.core.ledger import Ledger
from offload.core.timing import within
from offload.domain.task import Task, TaskId


@dataclass(frozen=True, slots=True)
class WaitFor:
    """`every` waits for all tasks to rest, else for one; `after_revision` ends the wait at any later revision. An open ask ends it
    too, unless `after_revision` says that it is known; a task that is over does not rest as long as a person is asked about it."""

    tasks: tuple[TaskId, ...]
    every: bool
    timeout_s: float
    after_revision: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Waited:
    """`done` says whether what was waited for has come; `tasks` stand as they do now, in the order that was asked."""

    done: bool
    tasks: tuple[Task, ...]


async def wait_for(ledger: Ledger, wanted: WaitFor) -> Waited:
    """Until the tasks rest, one has news or asks, or the time is over."""
    ids = tuple(ledger.get(task_id).id for task_id in wanted.tasks)
    with ledger.feed.watching() as watcher:
        done = await within(ledger.clock, wanted.timeout_s, _come(ledger, watcher, ids, wanted))
        return Waited(bool(done), tuple(ledger.get(task_id) for task_id in ids))


async def _come(ledger: Ledger, watcher: Watcher, ids: Sequence[TaskId], wanted: WaitFor) -> bool:
    seen = {ledger.get(TaskId(key)).id: revision for key, revision in (wanted.after_revision or {}).items()}
    while True:
        tasks = [ledger.get(task_id) for task_id in ids]
        resting = [not task.live and not task.asking for task in tasks]
        if all(resting) if wanted.every else any(resting):
            return True
        if any(task.revision > seen[task.id] if task.id in seen else task.asking for task in tasks):
            return False
        await watcher.changes()
