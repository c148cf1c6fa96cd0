"""Makes one result of several: merges them one by one onto the user's files, leaves out what does not go together, and finds
out with which of them the checks of the union fail. It takes the place of a worker; the task's folder holds the union."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from offload.core.integration.culprits import Fails, Found, Untried, find_culprits
from offload.core.integration.overlaps import Result, overlaps, proposed
from offload.core.integration.report import NOTHING_MERGED, cause, report, reservations
from offload.core.landing.accepted import accepted
from offload.core.landing.given import Given, standing_units
from offload.core.ledger import Ledger
from offload.core.ports import Workspace
from offload.core.refusals import newest_changes
from offload.core.turns.checking import Checking
from offload.core.turns.collecting import put_back
from offload.core.turns.preparing import FILES
from offload.core.turns.record import Record
from offload.core.turns.run import Interrupted, Run
from offload.domain.change import ChangeSet, Conflict
from offload.domain.check import Check, CheckResult
from offload.domain.errors import OffloadError
from offload.domain.events import ActivityChanged, ChecksEnded, Integrated, TurnEnded, TurnEvent, TurnFailed, TurnSeen
from offload.domain.integration import Integration, LeftOut
from offload.domain.task import Task, TaskId
from offload.domain.turn import Activity, ActivityKind, Failure


@dataclass
class _Union:
    """What has been merged so far."""

    base: str
    merged: list[Result] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    @property
    def commit(self) -> str:
        return self.steps[-1] if self.steps else self.base


class Integrating:
    """Every method raises `Interrupted` when a stop was asked for, and what the `Workspace` port raises."""

    def __init__(self, ledger: Ledger, record: Record, workspace: Workspace, checking: Checking) -> None:
        self._ledger = ledger
        self._clock = ledger.clock
        self._record = record
        self._workspace = workspace
        self._checking = checking
        self._given = Given(workspace)

    async def unite(self, task: Task, run: Run) -> TurnEvent:
        """Merge the results that the task is made of into its folder, which has been made; and say how that ended."""
        task = await self._record.event(task.id, TurnSeen(at=self._clock.now(), turn=run.turn))
        await self._doing(task, run, f"reading {len(task.spec.integrates)} results")
        tasks = self._ledger.all()
        results = [await self._result(task, self._ledger.get(each), tasks) for each in task.spec.integrates]
        found = overlaps(results)
        union = _Union(task.base)
        for result in proposed([each for each in results if each.placed.files], found):
            await self._doing(task, run, f"merging the result of {result.id}")
            await self._merge(Path(task.spec.workspace), union, result)
        made = Integration(
            order=tuple(each.id for each in union.merged),
            overlaps=found,
            left_out=tuple(union.left_out),
            steps=tuple(union.steps),
        )
        await self._record.event(task.id, Integrated(at=self._clock.now(), turn=run.turn, integration=made))
        return await self._end(task, made, results)

    async def blame(self, task: Task, run: Run, ended: ChecksEnded) -> ChecksEnded:
        """`ended` with what the checks that failed over the union fail with; the folder holds the union afterwards."""
        failing = [each for each in ended.results if not each.passed]
        made, changes = task.integration, ended.changes or task.turn.changes
        assert made is not None
        assert changes is not None
        found = await self._found(task, run, made, changes, failing) if failing else Found()
        known = replace(made, culprits=found.culprits, before=found.before, probes=found.probes)
        if known != made:
            await self._record.event(task.id, Integrated(at=self._clock.now(), turn=run.turn, integration=known))
        return replace(ended, cause=cause(found, failing, self._named)) if failing else ended

    async def _found(
        self, task: Task, run: Run, made: Integration, changes: ChangeSet, failing: Sequence[CheckResult]
    ) -> Found:
        try:
            found = await find_culprits(made.order, await self._probe(task, run, made, failing))
        except Interrupted:
            await put_back(self._workspace, task, changes)
            raise
        except OffloadError as error:
            return Found(doubt=f"what they fail with was not found out: {error}")
        await put_back(self._workspace, task, changes)
        return found

    async def _probe(self, task: Task, run: Run, made: Integration, failing: Sequence[CheckResult]) -> Fails:
        """Says whether the checks that failed fail with some of the results alone."""
        root, plan, tasks = Path(task.spec.workspace), task.plan, self._ledger.all()
        names = {(each.name, each.command) for each in failing}
        checks = [each for each in (plan.format, *plan.checks) if each and (each.name, each.command) in names]
        needs = {each.id: begun_from(each, tasks) for each in tasks if each.id in made.order}
        folder = await self._workspace.open_folder(task.id, root, task.base)

        async def fails(some: Collection[TaskId]) -> bool:
            await self._doing(
                task, run, f"looking for what the checks fail with: {', '.join(some) or 'your files alone'}"
            )
            commit = await self._some(root, task.base, made, _with_needs(some, needs))
            await self._workspace.reset_folder(task.id, root, task.base, commit)
            return await self._fail(task, run, folder, checks)

        return fails

    async def _result(self, task: Task, source: Task, tasks: Sequence[Task]) -> Result:
        """What is wanted of `source`, and what it comes to on the files of now."""
        root, base = Path(task.spec.workspace), task.base
        newest, changes = newest_changes(source)[1], await accepted(self._workspace, source)
        without = len(newest.units) - len(changes.units)
        alone = await self._workspace.merge(root, base, changes)
        given = standing_units(source, newest)
        if alone.conflicts and given:  # The user has gone on with what he was given of it: that is his now.
            changes = await self._given.step(source, newest, set(changes.units) - given)
            alone = await self._workspace.merge(root, base, changes)
        placed = await self._workspace.between(root, base, alone.commit)
        needs = begun_from(source, tasks)
        return Result(source, changes if alone.conflicts else placed, placed, alone.conflicts, needs, without)

    async def _merge(self, root: Path, union: _Union, result: Result) -> None:
        """Take one more result into the union, or leave it out."""
        missing = tuple(each.task for each in union.left_out if each.task in result.needs)
        needed = [each for each in union.merged if each.id in result.needs]
        if result.conflicts and not needed:
            union.left_out.append(LeftOut(result.id, missing, result.conflicts))
            return
        tried = await self._workspace.merge(root, union.commit, result.changes)
        if tried.conflicts:
            opponents = await self._opponents(root, result, union.merged, tried.conflicts)
            union.left_out.append(LeftOut(result.id, opponents, tried.conflicts))
        else:
            union.merged.append(result)
            union.steps.append(tried.commit)

    async def _opponents(
        self, root: Path, result: Result, merged: Sequence[Result], conflicts: Sequence[Conflict]
    ) -> tuple[TaskId, ...]:
        """Of those that touch the paths of the conflicts, those with which it conflicts when nothing else is there; all of them when
        it takes several. One that would go onto the user's files alone conflicts with some, whatever path git names."""
        paths = {each.path for each in conflicts}
        touching = [each for each in merged if paths & each.paths]
        if not touching and not result.conflicts:
            touching = list(merged)
        exact = [
            each
            for each in touching
            if (await self._workspace.merge(root, each.placed.result, result.changes)).conflicts
        ]
        return tuple(each.id for each in exact or touching)

    async def _end(self, task: Task, made: Integration, results: Sequence[Result]) -> TurnEvent:
        at, turn, text = self._clock.now(), task.turn.id, report(task.id, made, results)
        if not made.order:
            return TurnFailed(at=at, turn=turn, failure=Failure(NOTHING_MERGED, text))
        root = Path(task.spec.workspace)
        await self._workspace.reset_folder(task.id, root, task.base, made.steps[-1])
        changes = await self._workspace.between(root, task.base, made.steps[-1])
        return TurnEnded(
            at=at,
            turn=turn,
            text=text,
            changes=changes,
            needs_review=reservations(made, results),
            to_check=bool(task.plan and changes.files),
        )

    async def _some(self, root: Path, base: str, made: Integration, some: Collection[TaskId]) -> str:
        """The commit of the base with some of the results alone, merged in their order."""
        commit = before = base
        for task_id, step in zip(made.order, made.steps, strict=True):
            if task_id in some:
                own = await self._workspace.between(root, before, step)
                tried = await self._workspace.merge(root, commit, own)
                if tried.conflicts:
                    raise Untried
                commit = tried.commit
            before = step
        return commit

    async def _fail(self, task: Task, run: Run, folder: Path, checks: Sequence[Check]) -> bool:
        """Whether one of the checks fails over what the folder holds; the first one that does says it all."""
        for check in checks:
            (result,) = await self._checking.run(task, run, folder, (check,))
            if not result.passed:
                return True
        return False

    async def _doing(self, task: Task, run: Run, label: str) -> None:
        if run.interrupted:
            raise Interrupted
        activity = Activity(ActivityKind.TOOL, label)
        await self._record.event(task.id, ActivityChanged(at=self._clock.now(), turn=run.turn, activity=activity))

    def _named(self, task_id: TaskId) -> str:
        return next((f"{each.id} ({each.spec.title})" for each in self._ledger.all() if each.id == task_id), task_id)


def begun_from(task: Task, tasks: Sequence[Task]) -> frozenset[TaskId]:
    """The tasks whose results the newest one of `task` was made on top of."""
    onto = next((turn.onto for turn in reversed(task.turns) if turn.onto), "")
    integrations = {each.id: each.integration.order for each in tasks if each.integration is not None}
    based = () if onto in ("", FILES) else (TaskId(onto), *integrations.get(TaskId(onto), ()))
    return frozenset((*task.spec.after, *based))


def _with_needs(some: Collection[TaskId], needs: Mapping[TaskId, frozenset[TaskId]]) -> frozenset[TaskId]:
    """Those and, as far as it goes, the results that they were made on top of."""
    found: set[TaskId] = set()
    ahead = set(some)
    while ahead:
        found |= ahead
        ahead = {need for one in ahead for need in needs.get(one, ())} - found
    return frozenset(found)
