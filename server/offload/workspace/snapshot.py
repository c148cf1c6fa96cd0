"""The user's files at one moment: HEAD, what is uncommitted, what is untracked, and what is on the screen unsaved."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from offload.domain.errors import NotAWorkspace
from offload.domain.scope import matches
from offload.workspace.git import Git, literal, together
from offload.workspace.index import Differing, copy_index, differing, not_behind_links, take_in, too_much, write_tree
from offload.workspace.repository import Repository

NAMED = 5
"""How many paths a note names before it only counts."""


async def take(
    git: Git, repository: Repository, buffers: Mapping[str, str], never_send: Sequence[str]
) -> tuple[str, tuple[str, ...]]:
    """Write the tree of the user's files into the private directory; the tree's id, and what was left out."""
    index = repository.private / "snapshot.index"
    await asyncio.to_thread(_begin, repository, index)
    found = await differing(git, repository, repository.top, index)
    # A folder may hold hundreds of thousands of files: nothing that looks at each of them runs on the loop.
    secret, wanted = await asyncio.to_thread(_chosen, repository, found, never_send)
    await take_in(git, repository, repository.top, index, wanted)
    unsent = await _take_in_buffers(git, repository, index, buffers, never_send)
    notes = (
        *repository.notes,
        *_note("Left out, because they may hold secrets", secret),
        *_note("Left out, because they are repositories of their own", found.embedded),
        *_note("The unsaved text is not in the copy, because the file is ignored, secret or elsewhere", unsent),
    )
    return await write_tree(git, repository, index), notes


def _chosen(repository: Repository, found: Differing, never_send: Sequence[str]) -> tuple[list[str], list[str]]:
    """The secret ones of the new files, and what is to be taken in."""
    secret, new = _apart(repository, found.new, never_send)
    if problem := too_much(repository.top, new):
        raise NotAWorkspace(f"{problem}; ignore what is not needed (.gitignore), or name a smaller folder.")
    return secret, not_behind_links(repository.top, (*found.tracked, *new))


def _apart(repository: Repository, paths: Sequence[str], never_send: Sequence[str]) -> tuple[list[str], list[str]]:
    """The secret ones, and the others."""
    kinds: tuple[list[str], list[str]] = ([], [])
    for path in paths:
        kinds[0 if matches(repository.from_workspace(path), never_send) else 1].append(path)
    return kinds


def same_text(content: bytes, text: str) -> bool:
    """Whether a file's bytes are what an editor shows as `text`, in the encodings that editors read by themselves."""
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "latin-1"):
        try:
            if content.decode(encoding) == text:
                return True
        except UnicodeDecodeError:
            continue
    return False


def _begin(repository: Repository, index: Path) -> None:
    """Start from the user's index, so that only files that differ from it are read."""
    copy_index(Path(repository.index or os.devnull), index) if repository.index else index.unlink(missing_ok=True)
    if repository.index:
        for shared in Path(repository.index).parent.glob("sharedindex.*"):
            shutil.copy2(shared, repository.private / shared.name)


def _note(what: str, paths: Sequence[str]) -> Iterator[str]:
    if paths:
        more = f" and {len(paths) - NAMED} more" if len(paths) > NAMED else ""
        yield f"{what}: {', '.join(paths[:NAMED])}{more}."


async def _take_in_buffers(
    git: Git, repository: Repository, index: Path, buffers: Mapping[str, str], never_send: Sequence[str]
) -> list[str]:
    """Put unsaved texts in place of the files; returns the paths that were not."""
    placed = {path: _place(repository, path) for path in buffers}
    unsent = sorted(path for path, place in placed.items() if not place)
    changed = {
        placed[path]: text
        for path, text in buffers.items()
        if placed[path] and _unsaved(repository, placed[path], text)
    }
    if not changed:
        return unsent
    unknown = await _unknown(git, repository, index, list(changed))
    ignored = await _ignored(git, repository, index, unknown)
    secret, _ = _apart(repository, unknown, never_send)
    hidden = {*secret, *ignored}
    wanted = [path for path in changed if path not in hidden]
    written = await together(*(_blob(git, repository, index, path, changed[path]) for path in wanted))
    lines = (f"{_mode(repository.top / path)} {blob}\t{path}\0" for path, blob in zip(wanted, written, strict=True))
    await git.ours(
        repository.private,
        *("update-index", "--add", "--replace", "-z", "--index-info"),
        index=index,
        stdin=os.fsencode("".join(lines)),
    )
    return sorted((*unsent, *hidden))


def _place(repository: Repository, path: str) -> str:
    """The path in the repository of the file that a buffer belongs to, "" for one that is not in the copy: outside of it,
    behind a link that leads out, in a repository of its own."""
    top = Path(os.path.realpath(repository.top))
    target = Path(os.path.realpath(repository.root / path))
    if not target.is_relative_to(top) or ".git" in target.relative_to(top).parts:
        return ""
    inner = target.parent
    while inner != top:
        if (inner / ".git").exists():
            return ""
        inner = inner.parent
    return target.relative_to(top).as_posix()


def _unsaved(repository: Repository, path: str, text: str) -> bool:
    try:
        return not same_text((repository.top / path).read_bytes(), text)
    except OSError:
        return True


async def _unknown(git: Git, repository: Repository, index: Path, paths: Sequence[str]) -> list[str]:
    """Those of `paths` that the index does not hold."""
    listed = await git.ours(
        repository.private, "ls-files", "-z", "--", *map(literal, paths), index=index, work_tree=repository.top
    )
    known = set(os.fsdecode(listed.stdout).split("\0"))
    return [path for path in paths if path not in known]


async def _ignored(git: Git, repository: Repository, index: Path, paths: Sequence[str]) -> set[str]:
    if not paths:
        return set()
    found = await git.ours(
        repository.private,
        *("check-ignore", "-z", "--stdin"),
        settings=repository.settings,
        work_tree=repository.top,
        index=index,
        stdin=os.fsencode("".join(f"./{path}\0" for path in paths)),
        accepted=(0, 1),
    )
    return {path.removeprefix("./") for path in os.fsdecode(found.stdout).split("\0")[:-1]}


async def _blob(git: Git, repository: Repository, index: Path, path: str, text: str) -> str:
    written = await git.ours(
        repository.private,
        *("hash-object", "-w", "--stdin", f"--path={path}"),
        settings=repository.settings,
        work_tree=repository.top,
        index=index,
        stdin=text.encode(errors="replace"),
    )
    return written.stdout.decode().strip()


def _mode(path: Path) -> str:
    try:
        return "100755" if path.lstat().st_mode & stat.S_IXUSR else "100644"
    except OSError:
        return "100644"
