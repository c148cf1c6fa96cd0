"""Lands a result in the user's files: everything is worked out and checked before the first write."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from offload.core.ports import BufferChange
from offload.domain.change import ChangeSet
from offload.domain.errors import ApplyRefused, GitFailed
from offload.workspace.changes import RAW, Entry, entries
from offload.workspace.disk import EXECUTABLE, LINK, WRITABLE, Edit, Live, WriteFailed, forbidden, leaves, look, write
from offload.workspace.git import Git, together
from offload.workspace.merge import merge
from offload.workspace.repository import Repository
from offload.workspace.snapshot import same_text


class _Refused(Exception):
    """One file cannot be landed, for this reason."""


@dataclass(frozen=True, slots=True)
class Planned:
    """Fits `core.ports.LandingPlan`; `edits` are for the disk."""

    paths: tuple[str, ...]
    unchanged: tuple[str, ...]
    edits: tuple[Edit, ...]
    buffers: tuple[BufferChange, ...] = ()
    before: str = ""
    after: str = ""


async def plan(git: Git, repository: Repository, changes: ChangeSet, unsaved: Mapping[str, str]) -> Planned:
    """Merge with what is on disk. Raises `ApplyRefused`."""
    printed = await git.ours(repository.private, *RAW, *repository.only_below, changes.base, changes.result)
    chosen = entries(printed.stdout)
    contents = await _blobs(git, repository, chosen)
    planned = await together(*(_plan(git, repository, entry, contents, unsaved) for entry in chosen))
    reasons = tuple((one.path, plan) for one, plan in zip(chosen, planned, strict=True) if isinstance(plan, str))
    if reasons:
        raise _refusal(reasons)
    unchanged = tuple(one.path for one, plan in zip(chosen, planned, strict=True) if plan is None)
    edits = tuple(plan for plan in planned if isinstance(plan, Edit))
    return Planned(tuple(entry.path for entry in chosen), unchanged, edits)


async def write_planned(repository: Repository, planned: Planned) -> None:
    try:
        await asyncio.to_thread(write, repository.root, planned.edits)
    except WriteFailed as problem:
        raise _refusal(((problem.path, f"could not be written: {problem}"),)) from problem


def _refusal(reasons: tuple[tuple[str, str], ...]) -> ApplyRefused:
    return ApplyRefused("Nothing was written. " + "; ".join(f"{path}: {why}" for path, why in reasons) + ".", reasons)


async def _blobs(git: Git, repository: Repository, chosen: Sequence[Entry]) -> dict[str, bytes]:
    """The contents of both sides of every entry, by object id."""
    wanted = sorted(
        {id_ for one in chosen for mode, id_ in ((one.old_mode, one.old), (one.new_mode, one.new)) if mode in WRITABLE}
    )
    asked = "".join(f"{id_}\n" for id_ in wanted)
    printed = await git.ours(repository.private, "cat-file", "--batch", stdin=asked.encode())
    found, at = {}, 0
    for id_ in wanted:
        end = printed.stdout.index(b"\n", at)
        header = printed.stdout[at:end].split(b" ")
        if header[1] != b"blob":
            raise GitFailed(f"The private copy lacks the object {id_}; start the task again.")
        size = int(header[2])
        found[id_] = printed.stdout[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return found


async def _plan(
    git: Git, repository: Repository, entry: Entry, contents: Mapping[str, bytes], unsaved: Mapping[str, str]
) -> Edit | str | None:
    """What is to be done for one file: an edit, nothing, or the reason why it is refused."""
    try:
        live = await asyncio.to_thread(_allowed, repository, entry, contents, unsaved)
        content = await _content(git, repository, entry, contents, live)
    except _Refused as refused:
        return str(refused)
    link = entry.new_mode == LINK
    executable = None if link or entry.old_mode == entry.new_mode else entry.new_mode == EXECUTABLE
    same_mode = executable is None or not live.mode or bool(live.mode & 0o100) == executable
    if content == live.content and (content is None or (link == live.link and same_mode)):
        return None
    return Edit(entry.path, live, content, link, executable)


def _allowed(repository: Repository, entry: Entry, contents: Mapping[str, bytes], unsaved: Mapping[str, str]) -> Live:
    """What is at the path now, if it may be written at all."""
    if problem := forbidden(entry.path):
        raise _Refused(problem)
    if any(mode and mode not in WRITABLE for mode in (entry.old_mode, entry.new_mode)):
        raise _Refused("is a submodule, which is not applied")
    if entry.new_mode == LINK and leaves(repository.root, entry.path, contents[entry.new]):
        raise _Refused("is a link that leads out of the workspace")
    live = look(repository.root, entry.path)
    if live.problem:
        raise _Refused(live.problem)
    if entry.path in unsaved and not same_text(live.content or b"", unsaved[entry.path]):
        raise _Refused("has unsaved text in an editor; save it, then apply again")
    return live


async def _content(
    git: Git, repository: Repository, entry: Entry, contents: Mapping[str, bytes], live: Live
) -> bytes | None:
    """What the file shall hold; None when it shall not be there."""
    base, result = contents.get(entry.old), contents.get(entry.new)
    as_base = live.content == base and (base is None or live.link == (entry.old_mode == LINK))
    if result is None:
        if live.content is None or as_base:
            return None
        base = await _on_disk(git, repository, entry.path, entry.old, entry.old_mode, contents)
        if live.content == base and not live.link:
            return None
        raise _Refused("was changed by you and deleted by the task")
    if as_base and base is not None:
        return result
    result = await _on_disk(git, repository, entry.path, entry.new, entry.new_mode, contents)
    if live.content is None:
        if base is not None:
            raise _Refused("was deleted by you and changed by the task")
        return result
    if live.content == result and live.link == (entry.new_mode == LINK):
        return result
    if base is None:
        raise _Refused("was made by you as well, with other contents")
    if live.link or LINK in (entry.old_mode, entry.new_mode):
        raise _Refused("was changed by you as well, and is a link on one side")
    base = await _on_disk(git, repository, entry.path, entry.old, entry.old_mode, contents)
    merged = await merge(git, repository.private, base, live.content, result)
    if merged is None:
        raise _Refused("was changed by you in the same place")
    return merged


async def _on_disk(
    git: Git, repository: Repository, path: str, blob: str, mode: str, contents: Mapping[str, bytes]
) -> bytes:
    """A blob as git would check it out here: line ends and encoding as the user has them set."""
    if mode == LINK:
        return contents[blob]
    return await smudged(git, repository, path, blob)


async def smudged(git: Git, repository: Repository, path: str, blob: str) -> bytes:
    done = await git.ours(
        repository.private,
        *("cat-file", "--filters", f"--path={repository.prefix}{path}", blob),
        settings=repository.settings,
        work_tree=repository.top,
    )
    return done.stdout
