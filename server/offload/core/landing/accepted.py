"""The part of a result that other tasks may build on: what was applied, and of the rest what nobody has rejected and the task was
allowed to change, but no file in which conflicts are still marked."""

from __future__ import annotations

from pathlib import Path

from offload.core.ports import Workspace
from offload.core.refusals import newest_changes
from offload.core.turns.collecting import still_marked
from offload.domain.change import ChangeSet
from offload.domain.review import ReviewState, outside, pending, review
from offload.domain.task import Task


async def accepted(workspace: Workspace, task: Task) -> ChangeSet:
    """As a change set of its own. Raises `WrongPhase` for a task that has none."""
    changes = newest_changes(task)[1]
    states = review(task)
    marked = await still_marked(workspace, task, changes)
    not_ready = [*outside(task, changes), *(file for file in changes.files if file.path in marked)]
    beyond = {unit for file in not_ready for unit in file.units}
    wanted = pending(changes, {*states, *beyond})
    units = [unit for unit in changes.units if unit in wanted or states.get(unit) is ReviewState.APPLIED]
    if len(units) == len(changes.units):
        return changes
    return await workspace.select(Path(task.spec.workspace), changes, units)
