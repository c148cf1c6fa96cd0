"""What of a task's result a person has been given, and what the next apply adds to it.

A follow-up may change what was given before. So an apply brings the difference between two commits of the private repository:
what was given until now, and what is given then.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from offload.core.ports import Workspace
from offload.domain.change import ChangeSet
from offload.domain.review import standing
from offload.domain.task import Landing, Task


class Given:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def step(self, task: Task, changes: ChangeSet, units: Collection[str]) -> ChangeSet:
        """From what was given to that and `units` of the task's newest `changes`. What was given of `units` before counts as
        not given, so that it is put where it has gone since."""
        root = Path(task.spec.workspace)
        stands = _stands(task, changes)
        before = await self._before(root, task, changes, stands, frozenset(units))
        known = {unit for landing in stands for unit in landing.units}
        wanted = known.union(units).intersection(changes.units)
        if len(wanted) == len(changes.units) or known <= wanted:
            part = await self.part(root, changes, wanted)
            return await self._workspace.between(root, before, part.result)
        return await self._beside(root, before, changes, wanted, frozenset(units))

    async def _before(
        self, root: Path, task: Task, changes: ChangeSet, stands: list[Landing], again: frozenset[str]
    ) -> str:
        """The commit of what was given, but for the units that are given `again`."""
        if not stands:
            return changes.base
        last = stands[-1]
        known = {unit for landing in stands for unit in landing.units}
        earlier = task.landings[: task.landings.index(last)]
        taken_back_since = any(each.undone_at is not None and each.undone_at >= last.at for each in earlier)
        if not taken_back_since and not known & again:
            return last.result
        made_of = _made_of(task, last)
        return (await self.part(root, made_of, (known - again).intersection(made_of.units))).result

    async def _beside(
        self, root: Path, before: str, changes: ChangeSet, wanted: set[str], units: frozenset[str]
    ) -> ChangeSet:
        """A part of a result whose follow-up has changed other parts that were given before: these stay as they were given,
        unless the two are too close to be told apart; then the files of `units` alone are brought up to date."""
        merged = await self._workspace.merge(root, before, await self.part(root, changes, units))
        if not merged.conflicts:
            return await self._workspace.between(root, before, merged.commit)
        part = await self.part(root, changes, wanted)
        step = await self._workspace.between(root, before, part.result)
        touched = {
            path for file in changes.files if units.intersection(file.units) for path in (file.path, file.old_path)
        }
        own = [unit for file in step.files if file.path in touched for unit in file.units]
        return await self.part(root, step, own)

    async def part(self, root: Path, changes: ChangeSet, units: Collection[str]) -> ChangeSet:
        """The change set with these of its units alone."""
        if len(units) == len(changes.units):
            return changes
        if not units:
            return ChangeSet(changes.base, changes.base)
        return await self._workspace.select(root, changes, units)


def standing_units(task: Task, changes: ChangeSet) -> frozenset[str]:
    """The units of `changes` that were given and not taken back."""
    given = {unit for landing in _stands(task, changes) for unit in landing.units}
    return frozenset(given.intersection(changes.units))


def _stands(task: Task, changes: ChangeSet) -> list[Landing]:
    """The landings that count: those of results of the same base, because a newer one holds what was given. Records of a
    version without ids do not say what they brought."""
    return [landing for landing in standing(task) if landing.id and _made_of(task, landing).base == changes.base]


def _made_of(task: Task, landing: Landing) -> ChangeSet:
    """The newest result of the turn whose result was landed."""
    changes = next(turn.changes for turn in task.turns if turn.id == landing.turn)
    assert changes is not None
    return changes
