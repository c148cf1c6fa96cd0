"""Puts a task's folder back to a commit of ours, whatever state its worker left it in.

What the worker's own git is set up to run is never run: files are checked out through the private directory, and into the
worker's git directory only plain files are put, by renaming.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path

from offload.domain.change import FileStatus
from offload.domain.errors import GitFailed
from offload.workspace.git import Git, together
from offload.workspace.index import copy_index, not_behind_links, put, take_in
from offload.workspace.repository import Repository
from offload.workspace.results.changes import RAW, Entry, entries
from offload.workspace.tasks import Place, furnish, opened, touched

IN_PROGRESS = (
    *("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock"),
    *("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "SQUASH_MSG"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "BISECT_*"),
    *("rebase-apply", "rebase-merge", "sequencer", "sharedindex.*"),
)
"""What says that the worker's git is in the middle of something, or holds a lock."""


async def reset(git: Git, place: Place, base: str, commit: str) -> None:
    """The folder holds what `commit` holds, ignored files aside; its own git stands on `base`, and what is collected next is
    what differs from `commit` then."""
    repository, clone = await opened(place)
    with tempfile.TemporaryDirectory(dir=repository.private / "tasks") as scratch:
        index, own_index = Path(scratch, "index"), Path(scratch, "own")
        await asyncio.to_thread(copy_index, place.index, index)
        await asyncio.to_thread(_unlock, clone)
        (tracked, new), printed = await together(
            touched(git, repository, place, index), git.ours(repository.private, *RAW, base, commit)
        )
        differing = entries(printed.stdout)
        gone = [entry for entry in differing if entry.status is FileStatus.DELETED]
        come = {entry.path for entry in differing if entry.status is FileStatus.ADDED}
        left = [path for path in new if path not in come]
        await asyncio.to_thread(clear, clone, [*left, *(entry.path for entry in gone)])
        # Known to the index, those that hold what they shall are not written: a worker's tools look at the times of files.
        known = await asyncio.to_thread(_readable, clone, [*tracked, *come.intersection(new)])
        await take_in(git, repository, clone, index, known)
        await _read_tree(git, repository, clone, index, commit, "-u")
        # Other rules may have hidden these until now.
        _, shown = await touched(git, repository, place, index)
        await asyncio.to_thread(clear, clone, shown)
        (clone / repository.prefix).mkdir(parents=True, exist_ok=True)
        await asyncio.to_thread(copy_index, index, own_index)
        await _read_tree(git, repository, clone, own_index, base)
        await put(git, repository, index, _still_known(gone, come))
        await _put_in_order(git, repository, place, own_index, base)
        beside = place.index.with_suffix(".new")
        await asyncio.to_thread(copy_index, index, beside)
        beside.replace(place.index)


async def _read_tree(git: Git, repository: Repository, clone: Path, index: Path, commit: str, *options: str) -> None:
    """Make `index` one of `commit`; the files, too, by the option "-u", whatever is in their way."""
    command = ("read-tree", "--reset", *options, commit)
    await git.ours(repository.private, *command, settings=repository.settings, work_tree=clone, index=index)


def _unlock(clone: Path) -> None:
    """Let us list and write in folders of which the worker took that right away."""
    _open(clone)
    for folder, inner, _ in os.walk(clone):
        for name in inner:
            _open(Path(folder, name))


def _open(folder: Path) -> None:
    mode = folder.lstat().st_mode
    if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
        folder.chmod(stat.S_IMODE(mode) | stat.S_IRWXU)


def clear(clone: Path, paths: Sequence[str]) -> None:
    """Remove these files, and folders that are empty then. Raises `GitFailed` naming one that cannot be removed."""
    for path in not_behind_links(clone, paths):
        target = clone / path
        try:
            if target.is_symlink() or not target.is_dir():
                target.unlink(missing_ok=True)
        except NotADirectoryError:
            continue  # a file is in the place of its folder
        except OSError as problem:
            raise GitFailed(f"{target} cannot be removed: {problem.strerror}; see to it, then try again.") from problem
        with contextlib.suppress(OSError):
            for folder in target.relative_to(clone).parents[:-1]:
                (clone / folder).rmdir()


def _readable(clone: Path, paths: Sequence[str]) -> list[str]:
    """The files and links among `paths` that an index can take in."""
    there = not_behind_links(clone, paths)
    return [
        path
        for path in there
        if (clone / path).is_symlink() or ((clone / path).is_file() and os.access(clone / path, os.R_OK))
    ]


def _still_known(gone: Sequence[Entry], come: Collection[str]) -> list[tuple[str, str, str]]:
    """The files of the base that are not there: should the worker make one again that is ignored, it is seen all the same.
    One that has a file in the place of its folder, or a folder in its own, cannot be in the same index."""
    taken = {*come, *chain.from_iterable(map(_above, come))}
    return [
        (entry.old_mode, entry.old, entry.path)
        for entry in gone
        if entry.path not in taken and not any(folder in come for folder in _above(entry.path))
    ]


def _above(path: str) -> Iterator[str]:
    """Every folder that a path is in."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(1, len(parts)))


async def _put_in_order(git: Git, repository: Repository, place: Place, index: Path, base: str) -> None:
    """Let the worker's own git stand on `base`, with nothing in progress; one that it has not got any more is made anew."""
    git_dir = place.clone(repository) / ".git"
    if git_dir.is_symlink() or not all((git_dir / part).is_dir() for part in ("objects", "refs")):
        await asyncio.to_thread(_remove, git_dir)
        await git.init(git_dir.parent, repository.object_format)
        await asyncio.to_thread(furnish, repository, git_dir.parent)
    await asyncio.to_thread(_stand_on, repository, git_dir, place, index, base)


def _stand_on(repository: Repository, git_dir: Path, place: Place, index: Path, base: str) -> None:
    for left in chain.from_iterable(git_dir.glob(pattern) for pattern in IN_PROGRESS):
        _remove(left)
    with tempfile.TemporaryDirectory(dir=place.outer) as beside:
        head, own_index, shallow = (Path(beside, name) for name in ("HEAD", "index", "shallow"))
        head.write_text(f"{base}\n")
        copy_index(index, own_index)
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(repository.private / "shallow", shallow)
            shallow.replace(git_dir / "shallow")  # the base's history may end elsewhere than that of the one before
        own_index.replace(git_dir / "index")
        head.replace(git_dir / "HEAD")


def _remove(path: Path) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path)
