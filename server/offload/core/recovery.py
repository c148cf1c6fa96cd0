"""What becomes of tasks that were live when the last hub ended.

A restarted hub lists what it had and says plainly that nobody works on it any more; what the worker had changed by then is
read from its folder and kept.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from offload.core.ledger import Ledger
from offload.core.ports import Workspace
from offload.domain.change import ChangeSet
from offload.domain.lifecycle import CannotResume, WorkLost
from offload.domain.task import Phase, Task

REASON = "the hub ended while this turn ran; continue the task to go on from where its folder stands"


async def recover(ledger: Ledger, workspace: Workspace, defect: Callable[[str, BaseException], None]) -> None:
    """Bring every live task to rest. To be called once, before the first front is served."""
    for task in [task for task in ledger.all() if task.live]:
        await _interrupt(ledger, workspace, task, defect)


async def _interrupt(
    ledger: Ledger, workspace: Workspace, task: Task, defect: Callable[[str, BaseException], None]
) -> None:
    if task.phase is not Phase.RECOVERING:
        await ledger.record(task.id, WorkLost(at=ledger.clock.now(), turn=task.turn.id, reason=REASON))
    changes: ChangeSet | None = None
    if task.base and task.turn.started_at is not None:
        try:
            changes = await workspace.collect(task.id, Path(task.spec.workspace), task.base)
        except Exception as error:  # noqa: BLE001 - the edge of a task: one that cannot be read does not keep the hub from starting.
            defect(f"the changes of task {task.id} could not be read", error)
    ended = CannotResume(at=ledger.clock.now(), turn=task.turn.id, reason=REASON, changes=changes)
    await ledger.record(task.id, ended)
