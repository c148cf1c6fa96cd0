"""Lands a result in the user's files: everything is worked out and checked before the first write."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from offload.core.ports import BufferChange
from offload.domain.change import ChangeSet, Conflict
from offload.domain.errors import ApplyRefused
from offload.workspace.forget import REFS
from offload.workspace.git import Git, together
from offload.workspace.kept import File, Objects
from offload.workspace.landing.asked import Asked, Refused
from offload.workspace.landing.disk import Edit, WriteFailed, write
from offload.workspace.landing.guard import LINK, own_folders, tangled
from offload.workspace.landing.outcome import Settled
from offload.workspace.landing.settle import settle
from offload.workspace.landing.sides import Sides, sides
from offload.workspace.landing.unfinished import RECORD
from offload.workspace.repository import Repository
from offload.workspace.results.changes import Entry

BEFORE, AFTER = "Files before a result was applied", "Files after a result was applied"


@dataclass(slots=True)
class Planned:
    """Fits `core.ports.LandingPlan`; `edits` are for the disk. `was` and `shall` are the touched files by path, of which `before`
    and `after` are the commits once it is written: most plans that are made again and again are not."""

    paths: tuple[str, ...]
    unchanged: tuple[str, ...]
    edits: tuple[Edit, ...]
    buffers: tuple[BufferChange, ...]
    was: Mapping[str, File]
    shall: Mapping[str, File]
    before: str = ""
    after: str = ""


async def plan(
    git: Git,
    repository: Repository,
    changes: ChangeSet,
    buffers: Mapping[str, str],
    *,
    exact: bool,
    keep_last_end: Collection[str],
) -> Planned:
    """Merge with what the user has now. Raises `ApplyRefused`."""
    both, own = await together(
        sides(git, repository, changes, exact, buffers.keys()), asyncio.to_thread(own_folders, repository)
    )
    asked = Asked(
        git,
        repository,
        both,
        buffers,
        keep_last_end,
        exact,
        {file.path: file for file in changes.files},
        _links(both),
        tangled(both.entries, repository.settings.get("core.ignorecase") == "true"),
        own,
    )
    settled = await together(*(_settled(asked, entry) for entry in both.entries))
    refused = [(entry.path, one) for entry, one in zip(both.entries, settled, strict=True) if isinstance(one, Refused)]
    if refused:
        conflicts = tuple(conflict for _, one in refused for conflict in one.conflicts)
        raise _refusal(tuple((path, str(one)) for path, one in refused), conflicts)
    done = [(entry.path, one) for entry, one in zip(both.entries, settled, strict=True) if isinstance(one, Settled)]
    return Planned(
        tuple(path for path, _ in done),
        tuple(path for path, one in done if not one.changes_anything),
        tuple(edit for _, one in done for edit in one.edits),
        tuple(one.buffer for _, one in done if one.buffer is not None),
        {path: file for _, one in done for path, file in one.before.items()},
        {path: file for _, one in done for path, file in one.after.items()},
    )


async def write_planned(git: Git, repository: Repository, planned: Planned) -> None:
    if planned.edits or planned.buffers:
        await _keep(git, repository, planned)  # first of all, so that whatever is applied can be undone
    try:
        await asyncio.to_thread(write, repository.root, planned.edits, repository.private / RECORD)
    except WriteFailed as problem:
        raise _refusal(((problem.path, f"could not be written: {problem}"),), ()) from problem


async def _settled(asked: Asked, entry: Entry) -> Settled | Refused:
    try:
        return await settle(asked, entry)
    except Refused as refused:
        return refused


def _links(both: Sides) -> dict[str, str]:
    made = {entry.path: both.result(entry) for entry in both.entries if entry.new_mode == LINK}
    return {path: os.fsdecode(target) for path, target in made.items() if target is not None}


async def _keep(git: Git, repository: Repository, planned: Planned) -> None:
    objects = Objects(repository.private, repository.object_format)
    planned.before, planned.after = await together(
        asyncio.to_thread(objects.commit, BEFORE, repository.prefix, planned.was),
        asyncio.to_thread(objects.commit, AFTER, repository.prefix, planned.shall),
    )
    kept = "".join(f"update {REFS}{commit} {commit}\n" for commit in (planned.before, planned.after))
    await git.ours(repository.private, "update-ref", "--stdin", stdin=kept.encode())


def _refusal(reasons: tuple[tuple[str, str], ...], conflicts: tuple[Conflict, ...]) -> ApplyRefused:
    told = "; ".join(f"{path}: {why}" for path, why in reasons)
    way_out = (
        " Change your side so that it fits and apply again, or let continue_task with onto=files send it back to the worker."
        if conflicts
        else ""
    )
    return ApplyRefused(f"Nothing was written. {told}.{way_out}", reasons, conflicts)
