"""Removes from a private directory what no task names any more.

Packs are written anew only while no task has a folder here: a worker's own git may rely on any object that it can see.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path

from offload.workspace.git import Git
from offload.workspace.index import PACKED

REFS = "refs/offload/"
NO_SUCH_OBJECT = 128
UNNAMED_S = 24 * 3600
"""What is made for an operation is named by a task long before, or never."""


async def forget(
    git: Git, private: Path, commits: Collection[str], keep: Collection[str], undisturbed: Callable[[], bool]
) -> None:
    """Remove `commits`, and what nobody has named for a day: parts of results that were only looked at. Without any to `keep`,
    everything goes. `undisturbed` says whether nothing else is being read from the
    folder's objects at that moment; nobody else may write refs or packs meanwhile."""
    if not keep and undisturbed() and not _has_folders(private):
        await asyncio.to_thread(shutil.rmtree, private, ignore_errors=True)
        return
    held = await _held(git, private)
    for commit in set(keep).difference(held):
        # One that was never packed, because that failed; its objects are there, or they are lost already.
        await git.ours(private, "update-ref", REFS + commit, commit, accepted=(0, NO_SUCH_OBJECT))
    long_ago = time.time() - UNNAMED_S
    gone = [commit for commit, made in held.items() if commit not in keep and (commit in commits or made < long_ago)]
    deleted = "".join(f"delete {REFS}{commit}\n" for commit in gone)
    await git.ours(private, "update-ref", "--stdin", stdin=deleted.encode())
    await _repack(git, private, undisturbed)


async def _held(git: Git, private: Path) -> dict[str, int]:
    """The commits that are kept by a ref, with the time at which each was made."""
    listed = await git.ours(private, "for-each-ref", "--format=%(objectname) %(committerdate:unix)", REFS)
    words = listed.stdout.decode().split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


async def _repack(git: Git, private: Path, undisturbed: Callable[[], bool]) -> None:
    """One pack with the trees of all that is still named, in place of every other object but the commits."""
    if _has_folders(private):
        return
    held, objects = await _held(git, private), private / "objects"
    wanted = "".join(f"{commit}^{{tree}}\n" for commit in sorted(held))
    made = await git.ours(private, "pack-objects", *PACKED, objects / "pack" / "pack", stdin=wanted.encode())
    new = {f"pack-{name}" for name in made.stdout.decode().split()}
    if undisturbed() and not _has_folders(private):  # without a pause from here on
        old = [file for file in objects.glob("pack/pack-*") if file.stem not in new]
        loose = [file for file in objects.glob("[0-9a-f][0-9a-f]/*") if file.parent.name + file.name not in held]
        for file in (*old, *loose):
            file.unlink()


def _has_folders(private: Path) -> bool:
    return any((private / "tasks").glob("*.index"))


def size_of(folder: Path) -> int:
    """All bytes of the files below a folder, as far as they can be seen."""
    return sum(_size(file) for file in folder.rglob("*"))


def _size(file: Path) -> int:
    try:
        return file.lstat().st_size
    except FileNotFoundError:
        return 0  # it went away meanwhile
