"""Accepting results: what is chosen of them is applied, applied ones are undone, the rest is rejected."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from offload.core.caller import Caller
from offload.core.idempotency import landed
from offload.core.ids import new_id
from offload.core.landing.consent import applied_before, consent_of, must_be_allowed, only_for_people, user_is_asked
from offload.core.landing.given import Given, given_before, standing_units
from offload.core.landing.live import LiveFiles
from offload.core.landing.undoing import cannot_go_back, to_be_undone
from offload.core.ledger import Ledger
from offload.core.ports import Workspace
from offload.core.refusals import must_rest, newest_changes, open_ask, selected
from offload.core.turns.collecting import still_marked
from offload.domain.ask import DENY, Answer, AskId, AskOutcome, ModelApply, WantedApply
from offload.domain.change import ChangeSet, FileStatus, files_of
from offload.domain.errors import ApplyForbidden, ApplyRefused, InvalidRequest
from offload.domain.events import ConsentAsked, ConsentClosed, Event, Landed, Rejected, Undone
from offload.domain.review import ReviewState, Selection, outside, review, standing
from offload.domain.task import Front, Landing, Rejection, Task, TaskId
from offload.domain.text import cut

SENT_BACK_LIMIT = 20_000  # characters of a patch that is sent back: a worker can read its own files

FollowUp = Callable[[Task, str], Sequence[Event]]


class Landings:
    """`alone` holds one lock per workspace: what is applied is the result of a task that rests, and stays so."""

    def __init__(
        self,
        ledger: Ledger,
        workspace: Workspace,
        live: LiveFiles,
        alone: Mapping[str, asyncio.Lock],
        models: ModelApply,
    ) -> None:
        self._ledger = ledger
        self._clock = ledger.clock
        self._workspace = workspace
        self._live = live
        self._given = Given(workspace)
        self._alone = alone
        self._models = models

    async def apply(self, caller: Caller, task_id: TaskId, selection: Selection, key: str) -> tuple[Task, Landing]:
        async with self._alone[self._ledger.get(task_id).spec.workspace]:
            task = self._ledger.get(task_id)
            before = landed(task, key, selection)
            if before is not None:
                return task, before
            must_rest(task, "applied", closed_too=True)
            _, changes = newest_changes(task)
            units = chosen(task, changes, selection)
            if selection.everything:
                await self._look_for_marks(task, changes, units)
            wanted = WantedApply(units, selection.paths, selection.hunks, selection.include_outside, caller.who, key)
            if caller.front is Front.MODEL:
                must_be_allowed(caller, task, self._models, self._ledger.all())
                if self._models is ModelApply.ASK:
                    before = applied_before(task, units)
                    if before is not None:
                        return task, before
                    await self._ask(task, wanted)
            return await self._apply(caller, task, wanted, by=caller.who)

    async def answer(self, caller: Caller, task_id: TaskId, ask_id: AskId, answer: Answer, key: str) -> Task:
        """What a person says to a model that wants to apply: "allow" does it, all or nothing, and closes the ask with it."""
        only_for_people(caller)
        async with self._alone[self._ledger.get(task_id).spec.workspace]:
            task = self._ledger.get(task_id)
            wanted = open_ask(task, ask_id).wanted
            assert wanted is not None
            must_rest(task, "applied", closed_too=True)
            closed = ConsentClosed(
                at=self._clock.now(),
                ask=ask_id,
                outcome=AskOutcome.ANSWERED,
                choice=answer.choice,
                message=answer.message,
                by=caller.who,
                key=key,
            )
            if answer.choice == DENY:
                return await self._ledger.record(task.id, closed)
            task, _ = await self._apply(caller, task, wanted, by=f"{wanted.by} via {caller.who}", also=(closed,))
            return task

    async def undo(self, caller: Caller, task_id: TaskId, apply_id: str) -> tuple[Task, Landing]:
        async with self._alone[self._ledger.get(task_id).spec.workspace]:
            task = self._ledger.get(task_id)
            must_rest(task, "undone", closed_too=True)
            landing = to_be_undone(task, apply_id)
            if caller.front is Front.MODEL:
                self._may_undo(caller, task, landing)
            given = await self._given.without(task, landing)
            now = self._clock.now()
            back = replace(landing, undone_at=now, unchanged=landing.paths, buffers=())
            if landing.before:
                root = Path(task.spec.workspace)
                changes = await self._workspace.between(root, landing.after, landing.before)
                label = f"Undo: {task.spec.title}"
                try:
                    written = await self._live.land(root, changes, label, editor=caller.id, exact=True)
                except ApplyRefused as refusal:
                    raise cannot_go_back(task, landing, self._ledger.all(), refusal) from None
                plan = written.plan
                back = replace(
                    back,
                    paths=plan.paths,
                    unchanged=plan.unchanged,
                    buffers=written.buffers,
                    removed=removed(changes),
                )
            undone = Undone(at=now, landing=landing.id, given=given)
            return await self._ledger.record(task.id, undone), back

    async def reject(
        self,
        task_id: TaskId,
        selection: Selection,
        reason: str,
        follow_up: FollowUp | None,
        launch: Callable[[Task], None],
    ) -> Task:
        """With `follow_up`, which makes events of a task and a brief, the worker is told; `launch` is given the task then.
        What is refused of the two, neither is done."""
        async with self._alone[self._ledger.get(task_id).spec.workspace]:
            task = self._ledger.get(task_id)
            must_rest(task, "rejected", closed_too=follow_up is None)
            turn, changes = newest_changes(task)
            units = unwanted(task, changes, selection)
            brief = "" if follow_up is None else await self._sent_back(task, changes, units, reason)

            def events(task: Task) -> list[Event]:
                now = self._clock.now()
                rejection = Rejection(turn, units, now, reason, len(task.landings))
                overtaken = [
                    ConsentClosed(at=now, ask=ask.id, outcome=AskOutcome.WITHDRAWN)
                    for ask in task.asks.values()
                    if ask.wanted is not None and set(units).intersection(ask.wanted.units)
                ]
                more = [] if follow_up is None else follow_up(task, brief)
                return [Rejected(at=now, rejection=rejection), *overtaken, *more]

            return await self._ledger.decide(task.id, events, None if follow_up is None else launch)

    async def _ask(self, task: Task, wanted: WantedApply) -> None:
        """Let a person be asked, if that was not done; raises `ApplyForbidden` in any case."""
        root, (_, changes) = Path(task.spec.workspace), newest_changes(task)
        ask = consent_of(task, wanted, await self._given.part(root, changes, wanted.units))
        if ask is not None:
            await self._ledger.record(task.id, ConsentAsked(at=self._clock.now(), ask=ask))
        raise user_is_asked(task)

    async def _look_for_marks(self, task: Task, changes: ChangeSet, units: Sequence[str]) -> None:
        """Raises `ApplyRefused` for a file that its worker was to resolve conflicts in, and has not: nobody means to have the
        marks, unless he names the file."""
        chosen_paths = {file.path for file in files_of(changes, units)}
        marked = [path for path in await still_marked(self._workspace, task, changes) if path in chosen_paths]
        if marked:
            reasons = tuple((path, "holds marks of a conflict that its worker has not resolved") for path in marked)
            told = "; ".join(f"{path} {why}" for path, why in reasons)
            raise ApplyRefused(
                f"Nothing was written. {told}. continue_task sends it back; name the file to apply it as it is.",
                reasons,
            )

    async def _apply(
        self, caller: Caller, task: Task, wanted: WantedApply, by: str, also: Sequence[Event] = ()
    ) -> tuple[Task, Landing]:
        turn, changes = newest_changes(task)
        root = Path(task.spec.workspace)
        step = await self._given.step(task, changes, wanted.units)
        try:
            written = await self._live.land(root, step, f"Apply: {task.spec.title}", editor=caller.id)
        except ApplyRefused as refused:
            refused.conflicts = await self._given.named(task, changes, step, refused.conflicts)
            raise
        now, plan = self._clock.now(), written.plan
        had = standing_units(task, changes)
        landing = Landing(
            turn=turn,
            result=step.result,
            paths=plan.paths,
            at=now,
            wanted=wanted.paths,
            key=wanted.key,
            unchanged=plan.unchanged,
            id=new_id("apply"),
            units=tuple(unit for unit in wanted.units if unit not in had),
            buffers=written.buffers,
            before=plan.before,
            after=plan.after,
            wanted_hunks=wanted.hunks,
            wanted_outside=wanted.include_outside,
            removed=removed(step),
            by=by,
            earlier=given_before(task, changes),
        )
        return await self._ledger.record(task.id, *also, Landed(at=now, landing=landing)), landing

    async def _sent_back(self, task: Task, changes: ChangeSet, units: Sequence[str], reason: str) -> str:
        root = Path(task.spec.workspace)
        part = await self._given.part(root, changes, units)
        patch = cut((await self._workspace.diff(root, part)).rstrip(), SENT_BACK_LIMIT)
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", patch)), default=0))
        why = f"The reason: {reason.strip()}\n\n" if reason.strip() else ""
        return (
            f"This part of your changes is not wanted as it is:\n\n{fence}diff\n{patch}\n{fence}\n\n{why}"
            "Change it accordingly, or take it back, and leave the rest of your changes as they are."
        )

    def _may_undo(self, caller: Caller, task: Task, landing: Landing) -> None:
        must_be_allowed(caller, task, self._models, self._ledger.all())
        if self._models is not ModelApply.ALLOW or landing.by != caller.who:
            raise ApplyForbidden(
                f"only the user can undo this: in the editor, or with `offload undo {task.id} --apply {landing.id}`"
            )


def removed(changes: ChangeSet) -> tuple[str, ...]:
    """The files that are not there any more afterwards."""
    gone = (file.path if file.status is FileStatus.DELETED else file.old_path for file in changes.files)
    return tuple(path for path in gone if path)


def chosen(task: Task, changes: ChangeSet, selection: Selection) -> tuple[str, ...]:
    """The units that an apply is about. What is named is meant, whatever became of it; else it is what is pending and in scope,
    and when that is nothing, what was applied. Raises `ApplyRefused`, `InvalidRequest`."""
    if not selection.everything:
        return selected(Path(task.spec.workspace), changes, selection)
    states = review(task)
    waiting = [file for file in changes.files if not states.keys() >= set(file.units)]
    out = () if selection.include_outside else tuple(file for file in outside(task, changes) if file in waiting)
    units = tuple(unit for file in waiting if file not in out for unit in file.units if unit not in states)
    units = units or tuple(unit for unit in changes.units if states.get(unit) is ReviewState.APPLIED)
    if units or (not changes.files and standing(task)):  # A follow-up may have taken back all that was applied.
        return units
    if out:
        reasons = tuple((file.path, "is outside of the paths that the task may change") for file in out)
        told = "; ".join(f"{path} {why}" for path, why in reasons)
        raise ApplyRefused(f"Nothing was written. {told}. Say include_outside, or name it, to apply it too.", reasons)
    if changes.files:
        raise ApplyRefused(
            f"all that task {task.id} changed was rejected; name files or hunks to apply them all the same"
        )
    raise ApplyRefused(f"task {task.id} changed no file")


def unwanted(task: Task, changes: ChangeSet, selection: Selection) -> tuple[str, ...]:
    """The units that a rejection is about. Raises `InvalidRequest` for one that is applied."""
    states = review(task)
    if selection.everything:
        units = tuple(unit for unit in changes.units if states.get(unit) is not ReviewState.APPLIED)
        if not units:
            raise InvalidRequest(
                f"nothing of task {task.id} is left to be rejected; undo_apply takes back what is applied"
            )
        return units
    units = selected(Path(task.spec.workspace), changes, selection)
    applied = [unit for unit in units if states.get(unit) is ReviewState.APPLIED]
    if applied:
        raise InvalidRequest(f"{', '.join(applied)} of task {task.id} is applied; undo_apply takes it back")
    return units
