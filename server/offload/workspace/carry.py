"""Takes along what git ignores and work needs (`node_modules`, `.venv`): copied from the user's folder into a task's.

Only ignored files, only those that the project names, and none that must never be sent. They are no work of the worker: the
record of what was carried lies outside of what the worker is given, and by it they are left out of what is collected.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import stat
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from offload.domain.errors import GitFailed, StorageFailed
from offload.domain.scope import matches
from offload.processes import Processes, TookTooLong
from offload.workspace.git import NO_SPACE, Git
from offload.workspace.index import LISTING_LIMIT
from offload.workspace.repository import Repository

log = logging.getLogger(__name__)

MOST_FILES = 200_000
MOST_BYTES = 8 << 30
COPY: Mapping[str, tuple[str, ...]] = {
    "linux": ("cp", "--archive", "--reflink=auto", "--"),
    "darwin": ("cp", "-c", "-p", "-R", "-P", "--"),
}
"""Commands that share the blocks of a file where the file system can, by `sys.platform`."""
COPY_LIMIT_S = 600.0
AT_ONCE = 500
"""How many paths one command is given."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """`carry` and `never_send` are patterns as `domain.scope` reads them; the latter win. `apart` is a folder that is left out
    as well, being ours."""

    carry: Sequence[str]
    never_send: Sequence[str]
    apart: Path


@dataclass(slots=True)
class Load:
    """What is taken: `entries` are files, links and folders, `left_out` the paths below these that are not, `kept_back` those
    that may hold secrets."""

    entries: list[str] = field(default_factory=list)
    left_out: set[str] = field(default_factory=set)
    kept_back: list[str] = field(default_factory=list)
    files: int = 0
    size: int = 0


async def carry(
    git: Git, processes: Processes, repository: Repository, clone: Path, record: Path, wanted: Wanted
) -> None:
    """Copy into `clone`, fresh from its checkout, and write down in `record` what was copied."""
    ignored = await _ignored(git, repository, clone)
    load = await asyncio.to_thread(select, repository, ignored, wanted)
    for batch in await asyncio.to_thread(_prepare, repository.top, clone, load):
        await _copy(processes, batch)
    await asyncio.to_thread(_hide, clone, load.entries)
    await asyncio.to_thread(record.write_text, json.dumps(load.entries))
    if load.kept_back:
        log.info("%s: not carried, because they may hold secrets: %s", repository.root, sorted(load.kept_back)[:20])
    paths = [repository.from_workspace(path) for path in load.entries]
    if missing := [one for one in wanted.carry if not any(matches(path, [one]) for path in paths)]:
        log.warning("%s: nothing that git ignores is named %s, so nothing was carried.", repository.root, missing)


def without_carried(record: Path, paths: Iterable[str]) -> list[str]:
    """Those of `paths` (folders end in "/") that were not carried and do not lie in a folder that was."""
    carried = set(json.loads(record.read_text())) if record.exists() else set()
    return [path for path in paths if carried.isdisjoint(_line(path))] if carried else [*paths]


def _line(path: str) -> Iterator[str]:
    """The path, and every folder above it, without an ending "/"."""
    parts = path.rstrip("/").split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts) + 1))


async def _ignored(git: Git, repository: Repository, clone: Path) -> list[str]:
    """Ignored files and whole ignored folders of the user's; what the snapshot holds is known by the clone's index."""
    listed = await git.ours(
        repository.private,
        *("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"),
        settings=repository.settings,
        work_tree=repository.top,
        index=clone / ".git" / "index",
        output_limit=LISTING_LIMIT,
    )
    paths = os.fsdecode(listed.stdout).split("\0")[:-1]
    # A folder in which everything is ignored is named with what is in it, one that is ignored itself without.
    folders = {path.rstrip("/") for path in paths if path.endswith("/")}
    return [path for path in (each.rstrip("/") for each in paths) if folders.isdisjoint([*_line(path)][:-1])]


def select(repository: Repository, ignored: Sequence[str], wanted: Wanted) -> Load:
    """Look through the ignored folders for what is wanted, and through that for what must stay out. Links are not followed."""
    load = Load()
    waiting = [(path, False) for path in ignored]
    while waiting:
        path, inside = waiting.pop()
        place, placed = repository.top / path, repository.from_workspace(path)
        try:
            status = place.lstat()
            folder = stat.S_ISDIR(status.st_mode)
            below = [inner.name for inner in place.iterdir()] if folder else []
        except OSError:
            load.left_out.add(path)  # it went away meanwhile, or is not the user's to read
            continue
        secret = matches(placed, wanted.never_send)
        taken = inside or matches(placed, wanted.carry)
        if secret and taken:
            load.kept_back.append(path)
        if secret or _no_file(repository, path, status.st_mode) or place == wanted.apart:
            load.left_out.add(path)
            continue
        if taken and not inside:
            load.entries.append(path)
        if taken and not folder:
            load.files += 1
            load.size += status.st_size
        if load.files > MOST_FILES or load.size > MOST_BYTES:
            raise GitFailed(
                f"What is to be carried from {repository.top} is more than {MOST_FILES} files or {MOST_BYTES >> 30} GiB "
                f"({load.entries[-1]} was the last); name less of it in carry."
            )
        waiting.extend((f"{path}/{name}", taken) for name in below)
    return load


def _no_file(repository: Repository, path: str, mode: int) -> bool:
    """Whether it is nothing to be carried: a repository's own folder, a pipe or device, a link to the user's own files, through
    which a worker would write to them."""
    if path.rpartition("/")[2].lower() == ".git":
        return True
    if stat.S_ISLNK(mode):
        target = (repository.top / path).readlink()
        return target.is_absolute() and Path(os.path.normpath(target)).is_relative_to(repository.top)
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _prepare(top: Path, clone: Path, load: Load) -> list[tuple[list[Path], Path]]:
    """Make the folders of which a part stays out; what is copied as it is, and into which folder."""
    partly = {folder for path in load.left_out for folder in _line(path)} - load.left_out
    batches: defaultdict[str, list[Path]] = defaultdict(list)
    waiting = [path for path in load.entries if _free(clone, path)]
    while waiting:
        path = waiting.pop()
        if path in load.left_out:
            continue
        if path in partly:
            (clone / path).mkdir(parents=True, exist_ok=True)
            shutil.copystat(top / path, clone / path)
            waiting.extend(f"{path}/{inner.name}" for inner in (top / path).iterdir())
        else:
            batches[path.rpartition("/")[0]].append(top / path)
    for folder in batches:
        (clone / folder).mkdir(parents=True, exist_ok=True)
    return [
        (sources[start : start + AT_ONCE], clone / folder)
        for folder, sources in batches.items()
        for start in range(0, len(sources), AT_ONCE)
    ]


def _free(clone: Path, path: str) -> bool:
    """Whether nothing of the snapshot is in the way, such as a link where the user has a folder by now."""
    target = clone / path
    parent = Path(os.path.realpath(target.parent))
    return not os.path.lexists(target) and parent == Path(os.path.realpath(clone)) / path.rpartition("/")[0]


async def _copy(processes: Processes, batch: tuple[list[Path], Path]) -> None:
    """By the command where there is one; what it did not manage is copied plainly."""
    sources, folder = batch
    command = COPY.get(sys.platform, ("false",))
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        done = await processes.run(
            [*command, *sources, folder], cwd=folder, environment=environment, time_limit_s=COPY_LIMIT_S
        )
    except TookTooLong as problem:
        raise GitFailed(f"{problem}, copying {sources[0]} and more; name less of it in carry.") from problem
    if done.returncode == 0:
        return
    if any(sign in done.stderr for sign in NO_SPACE):
        raise StorageFailed(f"The disk is full, so {sources[0]} was not copied: free some space.")
    await asyncio.to_thread(_copy_plainly, sources, folder)


def _copy_plainly(sources: Sequence[Path], folder: Path) -> None:
    """What went away meanwhile, or cannot be read, stays out."""
    for source in sources:
        target = folder / source.name
        try:
            if source.is_dir() and not source.is_symlink():
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, copy_function=_copy_file)
            else:
                _copy_file(str(source), str(target))
        except (FileNotFoundError, PermissionError, shutil.Error) as problem:
            log.warning("Not all of %s was carried: %s", source, problem)


def _copy_file(source: str, target: str) -> None:
    Path(target).unlink(missing_ok=True)  # half of it may be there
    shutil.copy2(source, target, follow_symlinks=False)


def _hide(clone: Path, entries: Sequence[str]) -> None:
    """Let the worker's own git ignore them, whatever becomes of the ignore files."""
    with (clone / ".git" / "info" / "exclude").open("a", errors="surrogateescape") as rules:
        rules.write("\n" + "".join(f"/{_rule(path)}\n" for path in entries))


def _rule(path: str) -> str:
    """A path as an ignore file must spell it; a line break cannot be spelled, so any character stands for it."""
    spelled = "".join(f"\\{letter}" if letter in "\\*?[ " else letter for letter in path)
    return spelled.replace("\n", "?")
