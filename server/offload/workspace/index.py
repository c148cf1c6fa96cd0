"""Brings an index up to date with a folder: only what differs is read, and nothing of theirs runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.domain.errors import GitFailed
from offload.workspace.git import Git, together
from offload.workspace.kept import Objects
from offload.workspace.repository import Repository

MOST_FILES = 50_000
MOST_BYTES = 1 << 30
LISTING_LIMIT = 32 << 20
PACKED = ("--revs", "--quiet", "--window=0", "--non-empty", "--missing=allow-any")


@dataclass(frozen=True, slots=True)
class Differing:
    """What differs from an index: `tracked` was changed or deleted, `new` is not ignored, `embedded` are folders that are
    repositories of their own (ending in "/")."""

    tracked: tuple[str, ...]
    new: tuple[str, ...]
    embedded: tuple[str, ...]


async def differing(git: Git, repository: Repository, folder: Path, index: Path) -> Differing:
    """List what differs between `index` and `folder`, by the times that the index holds."""
    changed, others = await together(
        # Only this one looks at files on all processors. Of a submodule it takes the commit, and starts nothing in it.
        git.ours(
            repository.private,
            *("diff-files", "-z", "--name-only", "--ignore-submodules=dirty"),
            settings=repository.settings,
            work_tree=folder,
            index=index,
            output_limit=LISTING_LIMIT,
        ),
        git.ours(
            repository.private,
            *("ls-files", "-z", "--others", "--exclude-standard"),
            settings=repository.settings,
            work_tree=folder,
            index=index,
            output_limit=LISTING_LIMIT,
        ),
    )
    return await asyncio.to_thread(_sorted_out, changed.stdout, others.stdout)


def _sorted_out(changed: bytes, others: bytes) -> Differing:
    """The listings taken apart; they may be long."""
    tracked = dict.fromkeys(os.fsdecode(changed).split("\0")[:-1])  # a file in conflict is listed twice
    kinds: tuple[list[str], list[str]] = ([], [])
    for path in os.fsdecode(others).split("\0")[:-1]:
        kinds[path.endswith("/")].append(path)
    new, embedded = kinds
    return Differing(tuple(tracked), tuple(new), tuple(embedded))


async def take_in(git: Git, repository: Repository, folder: Path, index: Path, paths: Sequence[str]) -> None:
    """Record the present state of `paths` in `index`."""
    if paths:
        await git.ours(
            repository.private,
            *("update-index", "--add", "--remove", "--replace", "-z", "--stdin"),
            settings=repository.settings,
            work_tree=folder,
            index=index,
            stdin=b"".join(os.fsencode(path) + b"\0" for path in paths),
        )


async def refresh(git: Git, repository: Repository, folder: Path, index: Path) -> None:
    """Compare the files that are as new as `index`, and write it anew: what it holds stays the same."""
    await git.ours(
        repository.private,
        *("update-index", "-q", "--refresh", "--force-write-index"),
        settings=repository.settings,
        work_tree=folder,
        index=index,
        accepted=(0, 1),  # 1 for files that differ
    )


def not_behind_links(folder: Path, paths: Sequence[str]) -> list[str]:
    """Without those that are reached through a link: what a folder held goes when a link takes its place."""
    links: dict[str, bool] = {"": False}

    def behind(inner: str) -> bool:
        if inner not in links:
            links[inner] = behind(inner.rpartition("/")[0]) or (folder / inner).is_symlink()
        return links[inner]

    return [path for path in paths if not behind(path.rpartition("/")[0])]


async def write_tree(git: Git, repository: Repository, index: Path) -> str:
    # In a partial clone files that are not checked out have no objects here, and need none.
    written = await git.ours(repository.private, "write-tree", "--missing-ok", index=index)
    return written.stdout.decode().strip()


async def put(git: Git, repository: Repository, index: Path, wanted: Sequence[tuple[str, str, str]]) -> None:
    """Set mode and object of these paths in `index`, in this order; without a mode the path goes."""
    if wanted:
        nothing = "0" * (64 if repository.object_format == "sha256" else 40)
        lines = (f"{mode or 0} {blob or nothing}\t{path}\0" for mode, blob, path in wanted)
        await git.ours(
            repository.private,
            *("update-index", "--add", "-z", "--index-info"),
            index=index,
            stdin=os.fsencode("".join(lines)),
        )


async def record(git: Git, repository: Repository, index: Path, parent: str, message: str) -> tuple[str, str]:
    """Make a commit of what an index holds; its tree, and the commit."""
    tree = await write_tree(git, repository, index)
    return tree, await commit_tree(repository, tree, parent, message)


def too_much(folder: Path, paths: Sequence[str]) -> str:
    """Why these new files are more than a copy should hold, "" when they are not."""
    if len(paths) > MOST_FILES:
        return f"{folder} holds {len(paths)} files that git does not know, more than {MOST_FILES}"
    size = 0
    for path in paths:
        try:
            size += (folder / path).lstat().st_size
        except FileNotFoundError:
            continue  # it went away since it was listed; update-index sees the same
    return (
        f"{folder} holds {size >> 20} MiB that git does not know, more than {MOST_BYTES >> 20}"
        if size > MOST_BYTES
        else ""
    )


def copy_index(source: Path, target: Path) -> None:
    """Copy an index with its time, by which git tells which entries it must look at again; without one, begin empty."""
    target.unlink(missing_ok=True)
    try:
        with source.open("rb") as opened:
            content, status = opened.read(), os.fstat(opened.fileno())
    except FileNotFoundError:
        return
    target.write_bytes(content)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


async def commit_tree(repository: Repository, tree: str, parent: str, message: str) -> str:
    """Both by their object ids; `parent` is "" for none."""
    objects = Objects(repository.private, repository.object_format)
    return await asyncio.to_thread(objects.record, tree, parent, message)


async def pin(git: Git, private: Path, commit_id: str, tree: str, known: Sequence[str]) -> None:
    """Pack all of `tree` that is not in the trees `known` into the private directory, and keep `commit_id` by a ref: what
    we borrow goes away when the user's git tidies up."""
    wanted = "".join(f"{line}\n" for line in (tree, *(f"^{one}" for one in known)))
    pack = private / "objects" / "pack" / "pack"
    await git.ours(private, "pack-objects", *PACKED, pack, stdin=wanted.encode())
    await git.ours(private, "update-ref", f"refs/offload/{commit_id}", commit_id)


def refuse_too_much(folder: Path, paths: Sequence[str], advice: str) -> None:
    if problem := too_much(folder, paths):
        raise GitFailed(f"{problem}; {advice}")
