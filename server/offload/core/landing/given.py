"""What of a task's result a person has been given, and what the next apply adds to it.

A follow-up may change what was given before. So an apply brings the difference between two commits of the private repository:
what was given until now, and what is given then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from offload.core.ports import Workspace
from offload.core.refusals import newest_changes
from offload.domain.change import ChangeSet, Conflict
from offload.domain.review import standing
from offload.domain.task import Landing, Task


class Given:
    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def step(self, task: Task, changes: ChangeSet, units: Collection[str]) -> ChangeSet:
        """From what was given to that and `units` of the task's newest `changes`. What was given of `units` before counts as
        not given, so that it is put where it has gone since."""
        root = Path(task.spec.workspace)
        known = _known(task, changes)
        before = given_before(task, changes)
        again = known.intersection(units)
        if again:
            before = await self._taken_out(root, before, changes, known, again)
        wanted = known.union(units).intersection(changes.units)
        if len(wanted) == len(changes.units) or known <= wanted:
            part = await self.part(root, changes, wanted)
            return part if part.base == before else await self._workspace.between(root, before, part.result)
        return await self._beside(root, before, changes, wanted, frozenset(units))

    async def without(self, task: Task, landing: Landing) -> str:
        """The commit of what is given when this landing is undone."""
        if not task.given or _made_of(task, landing).base != task.base:
            return task.given  # of the base that the result was brought onto, which may be the same one once more
        if task.given == landing.result:
            return landing.earlier
        root = Path(task.spec.workspace)
        back = await self._workspace.between(root, landing.result, landing.earlier)
        merged = await self._workspace.merge(root, task.given, back)
        if not merged.conflicts:
            return merged.commit
        _, changes = newest_changes(task)
        rest = {unit for each in _stands(task, changes) if each.id != landing.id for unit in each.units}
        return (await self.part(root, changes, rest.intersection(changes.units))).result

    async def named(
        self, task: Task, changes: ChangeSet, step: ChangeSet, conflicts: Sequence[Conflict]
    ) -> tuple[Conflict, ...]:
        """The conflicts of `step` by the units of `changes`: those of a step between two results nobody could name."""
        known = frozenset((*changes.units, *(file.id for file in changes.files)))
        if all(conflict.unit in known for conflict in conflicts):
            return tuple(conflicts)
        given = await self._workspace.between(Path(task.spec.workspace), changes.base, step.result)
        units = (
            conflict.unit if conflict.unit in known else _there(conflict.unit, step, given) for conflict in conflicts
        )
        named = (unit if unit in known else "" for unit in units)
        return tuple(replace(conflict, unit=unit) for conflict, unit in zip(conflicts, named, strict=True))

    async def _taken_out(
        self, root: Path, given: str, changes: ChangeSet, known: frozenset[str], again: frozenset[str]
    ) -> str:
        """What was given but for `again`."""
        if not known <= set(changes.units):  # Not all that was given is a part of the newest result.
            part = await self.part(root, changes, again)
            back = await self._workspace.between(root, part.result, changes.base)
            merged = await self._workspace.merge(root, given, back)
            if not merged.conflicts:
                return merged.commit
        return (await self.part(root, changes, (known - again).intersection(changes.units))).result

    async def _beside(
        self, root: Path, before: str, changes: ChangeSet, wanted: frozenset[str], units: frozenset[str]
    ) -> ChangeSet:
        """A part of a result whose follow-up has changed other parts that were given before: these stay as they were given,
        unless the two are too close to be told apart; then the files of `units` alone are brought up to date."""
        merged = await self._workspace.merge(root, before, await self.part(root, changes, units))
        if not merged.conflicts:
            return await self._workspace.between(root, before, merged.commit)
        part = await self.part(root, changes, wanted)
        step = await self._workspace.between(root, before, part.result)
        chosen = [file for file in changes.files if units.intersection(file.units)]
        touched = {path for file in chosen for path in (file.path, file.old_path)}
        own = [unit for file in step.files if file.path in touched for unit in file.units]
        return await self.part(root, step, own)

    async def part(self, root: Path, changes: ChangeSet, units: Collection[str]) -> ChangeSet:
        """The change set with these of its units alone."""
        if len(units) == len(changes.units):
            return changes
        if not units:
            return ChangeSet(changes.base, changes.base)
        return await self._workspace.select(root, changes, units)


def _there(unit: str, step: ChangeSet, given: ChangeSet) -> str:
    """The hunk of `given` that shares most lines with this one of `step`, whose result is the same; "" when none does."""
    shared = [
        (
            min(one.new_start + one.new_lines, other.new_start + other.new_lines) - max(one.new_start, other.new_start),
            other.id,
        )
        for file in step.files
        for whole in given.files
        if whole.path == file.path
        for one in file.hunks
        if one.id == unit
        for other in whole.hunks
    ]
    lines, best = max(shared, default=(0, ""))
    return best if lines > 0 else ""


def standing_units(task: Task, changes: ChangeSet) -> frozenset[str]:
    """The units of `changes` that were given and not taken back."""
    return _known(task, changes).intersection(changes.units)


def _known(task: Task, changes: ChangeSet) -> frozenset[str]:
    """All units that were given and not taken back, those that a follow-up has changed since as well."""
    return frozenset(unit for landing in _stands(task, changes) for unit in landing.units)


def given_before(task: Task, changes: ChangeSet) -> str:
    """The commit of what was given until now. A task that failed to be brought onto another base has its result on the one before."""
    stands = _stands(task, changes)
    if changes.base != task.base:
        return stands[-1].result if stands else changes.base
    return task.given or changes.base


def _stands(task: Task, changes: ChangeSet) -> list[Landing]:
    """The landings that count: those of results of the same base, because a newer one holds what was given. Records of a
    version without ids do not say what they brought."""
    return [landing for landing in standing(task) if landing.id and _made_of(task, landing).base == changes.base]


def _made_of(task: Task, landing: Landing) -> ChangeSet:
    """The newest result of the turn whose result was landed."""
    changes = next(turn.changes for turn in task.turns if turn.id == landing.turn)
    assert changes is not None
    return changes
