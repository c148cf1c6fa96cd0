"""`$/progress` for the tasks that this editor started: one begin, any reports and one end, whatever happens."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field

from lsprotocol import types

from offload.core.delegation import Delegation
from offload.domain.task import Task, TaskId
from offload.lsp import titles
from offload.lsp.client import Client


@dataclass(slots=True)
class _Shown:
    """`task` is as it was told last: it may be cleaned away before its end is shown. A token is never used twice: editors keep
    ended ones."""

    task: Task
    token: str = field(default_factory=lambda: f"offload-{uuid.uuid4().hex}")
    news: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: bool = False


class TaskProgress:
    """`show` runs in the connection's task group; its end is the end of the progress, not of the task."""

    def __init__(self, client: Client, delegation: Delegation) -> None:
        self._client = client
        self._delegation = delegation
        self._shown: dict[TaskId, _Shown] = {}

    def changed(self, task: Task) -> None:
        """A task has changed; a report follows if its progress is shown."""
        shown = self._shown.get(task.id)
        if shown is not None:
            shown.task = task
            shown.news.set()

    def cancelled(self, token: int | str) -> TaskId | None:
        """The task whose progress the person has cancelled; None for a token that is not ours, and the second time."""
        for task_id, shown in self._shown.items():
            if shown.token == token and not shown.cancelled:
                shown.cancelled = True
                return task_id
        return None

    async def show(self, task_id: TaskId) -> None:
        """Show a task's progress until it rests, or until the connection ends."""
        task = self._delegation.get(task_id)
        if task_id in self._shown or not task.live:
            return
        shown = self._shown[task_id] = _Shown(task)
        try:
            if await self._client.create_progress(shown.token):
                await self._follow(shown)
        finally:
            del self._shown[task_id]

    async def _follow(self, shown: _Shown) -> None:
        title, state = f"offload: {shown.task.spec.title}", self._state(shown.task)
        begin = types.WorkDoneProgressBegin(title, cancellable=True, message=state)
        self._client.progress(shown.token, begin)
        try:
            while shown.task.live:
                await shown.news.wait()
                shown.news.clear()
                self._client.progress(shown.token, types.WorkDoneProgressReport(message=self._state(shown.task)))
        finally:
            self._client.progress(shown.token, types.WorkDoneProgressEnd(message=self._state(shown.task)))

    def _state(self, task: Task) -> str:
        return titles.state(task, self._delegation.live(task.id), self._delegation.clock.now())
