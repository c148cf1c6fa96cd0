"""A task's own folder: an ordinary repository for its worker, and what the worker made of it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.domain.change import ChangeSet
from offload.domain.errors import GitFailed
from offload.domain.task import TaskId
from offload.processes import Processes
from offload.workspace.carry import Wanted, carry, without_carried
from offload.workspace.droppings import without as without_droppings
from offload.workspace.git import IDENTITY, Git, together
from offload.workspace.index import (
    copy_index,
    differing,
    not_behind_links,
    record,
    refresh,
    refuse_too_much,
    take_in,
)
from offload.workspace.repository import Repository, borrow, copy_rules, load, save
from offload.workspace.results.changes import compare_index


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task's things are. The saved index and the records lie outside of what the worker is given."""

    outer: Path
    index: Path
    record: Path
    carried: Path

    @classmethod
    def of(cls, state_folder: Path, private: Path, task: TaskId) -> Place:
        kept = private / "tasks"
        names = (f"{task}.index", f"{task}.json", f"{task}.carried.json")
        return cls(state_folder / "tasks" / task, *(kept / name for name in names))

    def clone(self, repository: Repository) -> Path:
        """Named like the user's folder: some tools take a project's name from it."""
        return self.outer / (repository.top.name or "files")


async def make(git: Git, processes: Processes, repository: Repository, place: Place, base: str, wanted: Wanted) -> Path:
    """The task folder, checked out at `base`, with what is carried; the one that is there already when it was finished."""
    if place.index.exists():
        return place.clone(load(place.record))
    clone = place.clone(repository)
    await asyncio.to_thread(shutil.rmtree, place.outer, ignore_errors=True)
    place.outer.mkdir(parents=True, mode=0o700)
    await git.init(clone, repository.object_format)
    await asyncio.to_thread(furnish, repository, clone)
    await git.ours(
        clone / ".git", "checkout", "--quiet", "--detach", base, settings=repository.settings, work_tree=clone
    )
    (clone / repository.prefix).mkdir(parents=True, exist_ok=True)
    if wanted.carry:
        await carry(git, processes, repository, clone, place.carried, wanted)
    save(repository, place.record)
    beside = place.index.with_suffix(".new")
    copy_index(clone / ".git" / "index", beside)
    beside.replace(place.index)  # last: it says that the folder is finished
    return clone


def furnish(repository: Repository, clone: Path) -> None:
    """What `git clone --shared` would write, without a remote, and with the user's settings by value."""
    git_dir = clone / ".git"
    borrow(git_dir, repository.private / "objects")
    (git_dir / "info").mkdir(exist_ok=True)
    copy_rules(repository, git_dir)
    values = {**repository.settings, "gc.auto": "0", **{f"user.{name}": value for name, value in IDENTITY.items()}}
    lines = []
    for name, value in values.items():
        section, key = name.split(".")
        escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        lines.append(f'[{section}]\n\t{key} = "{escaped}"\n')
    with (git_dir / "config").open("a") as config:
        config.writelines(lines)


async def collect(git: Git, place: Place, base: str) -> tuple[ChangeSet, str]:
    """All that differs from `base`, and the tree of it, by the index that was saved when the folder was made or reset."""
    repository, clone = await opened(place)
    with tempfile.TemporaryDirectory(dir=repository.private / "tasks") as scratch:
        index = Path(scratch, "index")
        await asyncio.to_thread(copy_index, place.index, index)
        if await asyncio.to_thread(_as_new_as_files, place):
            await refresh(git, repository, clone, index)
            await asyncio.to_thread(_keep, index, place)
        found = await touched(git, repository, place, index)
        tracked, new = ([path for path in paths if path.startswith(repository.prefix)] for paths in found)
        advice = "the work is kept there; ignore or remove what is not part of it, then continue the task."
        await asyncio.to_thread(refuse_too_much, clone, new, advice)
        reached = await asyncio.to_thread(not_behind_links, clone, (*tracked, *new))
        await take_in(git, repository, clone, index, reached)
        (tree, result), files = await together(  # the longer one first
            record(git, repository, index, base, "Result of a task"), compare_index(git, repository, base, index)
        )
    return ChangeSet(base, result if files else base, files), tree


def _as_new_as_files(place: Place) -> bool:
    """Whether the saved index is still the one of the checkout, whose last second has passed. Files of that second git would
    read again each time, because they may have changed in it; an index that is written later says whether they did."""
    saved = place.index.stat().st_mtime
    return saved <= place.record.stat().st_mtime and int(saved) < int(time.time())


def _keep(index: Path, place: Place) -> None:
    beside = index.with_name("kept")
    copy_index(index, beside)
    beside.replace(place.index)


async def opened(place: Place) -> tuple[Repository, Path]:
    """What the folder was made with, and the folder. Raises `GitFailed` when it is gone, or leads elsewhere."""
    repository = await asyncio.to_thread(load, place.record)
    clone = place.clone(repository)
    if place.outer.is_symlink() or clone.is_symlink():
        raise GitFailed(f"The task's folder {clone} is not what was made for the task, but a link; start a new task.")
    if not clone.is_dir():
        raise GitFailed(f"The task's folder {clone} is gone; its work cannot be read.")
    return repository, clone


async def touched(git: Git, repository: Repository, place: Place, index: Path) -> tuple[list[str], list[str]]:
    """What differs from `index`: the files that it holds, and new ones that are work."""
    clone = place.clone(repository)
    found = await differing(git, repository, clone, index)
    embedded, fresh = (without_carried(place.carried, paths) for paths in (found.embedded, found.new))
    walked = await _walk(git, repository, clone, embedded, index.with_name("none"))
    return [*found.tracked], await without_droppings(git, repository, clone, index, [*fresh, *walked])


async def _walk(git: Git, repository: Repository, clone: Path, embedded: Sequence[str], nothing: Path) -> list[str]:
    """The files of folders that the worker made repositories: without this only a link to each would be recorded."""
    waiting = list(embedded)
    files: list[str] = []
    while waiting:
        inner = waiting.pop()
        found = await differing(git, repository, clone / inner, nothing)
        files.extend(inner + path for path in found.new)
        waiting.extend(inner + path for path in found.embedded)
    return files
