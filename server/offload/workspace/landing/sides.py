"""Reads both sides of a result: which files differ, and their contents as they would be on the user's disk."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from offload.domain.change import ChangeSet
from offload.domain.errors import GitFailed
from offload.workspace.git import Git, together
from offload.workspace.kept import named, permissions
from offload.workspace.landing.disk import look
from offload.workspace.landing.guard import LINK, WRITABLE, forbidden
from offload.workspace.repository import Repository
from offload.workspace.results.changes import RENAMES, Entry, entries

LISTED = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", *RENAMES)


Place = tuple[str, str]
"""A path and an object: the same object may be written in different ways at different paths."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The files that differ, what both sides hold, and the permissions that the result keeps, by path."""

    entries: Sequence[Entry]
    contents: Mapping[Place, bytes]
    permissions: Mapping[str, int]

    def base(self, entry: Entry) -> bytes | None:
        return self.contents.get((entry.old_path or entry.path, entry.old))

    def result(self, entry: Entry) -> bytes | None:
        return self.contents.get((entry.path, entry.new))


async def sides(
    git: Git, repository: Repository, changes: ChangeSet, exact: bool, open_files: Collection[str]
) -> Sides:
    """With `exact` contents are the bytes that git holds, else as it would check them out here: with the line ends and the
    encoding that the user has set. Of `open_files` the text counts alone, so that either will do for the base."""
    listed = await git.ours(repository.private, *LISTED, *repository.only_below, changes.base, changes.result)
    found = entries(listed.stdout)
    older = {(entry.old_path or entry.path, entry.old): entry.old_mode for entry in found if entry.old_mode in WRITABLE}
    newer = {(entry.path, entry.new): entry.new_mode for entry in found if entry.new_mode in WRITABLE}
    # Both at once: git takes as long to unpack two long files as a merge of them takes.
    base, result = await together(
        _base(git, repository, older, exact, open_files), _contents(git, repository, newer, exact)
    )
    kept = await _permissions(git, repository, changes.result) if exact else {}
    return Sides(found, base | result, kept)


async def _base(
    git: Git, repository: Repository, wanted: Mapping[Place, str], exact: bool, open_files: Collection[str]
) -> dict[Place, bytes]:
    found = await asyncio.to_thread(_at_hand, repository, wanted, open_files)
    rest = {place: mode for place, mode in wanted.items() if place not in found}
    return found | await _contents(git, repository, rest, exact)


def _at_hand(repository: Repository, places: Iterable[Place], open_files: Collection[str]) -> dict[Place, bytes]:
    """What lies on disk as the task was given it: to ask git for a long file takes half as long as to merge it."""
    found = {}
    for path, blob in places:
        content = look(repository.root, path).content if path in open_files and not forbidden(path) else None
        if content is not None and named(repository.object_format, "blob", content) == blob:
            found[path, blob] = content
    return found


async def _contents(git: Git, repository: Repository, wanted: Mapping[Place, str], exact: bool) -> dict[Place, bytes]:
    raw = [place for place, mode in wanted.items() if exact or mode == LINK]
    others = [place for place in wanted if place not in raw]
    as_held = await _read(git, repository, [blob for _, blob in raw])
    as_written = await _read(
        git, repository, [f"{blob} {_said(repository, path)}" for path, blob in others], "--filters"
    )
    return dict(zip([*raw, *others], [*as_held, *as_written], strict=True))


async def _permissions(git: Git, repository: Repository, commit: str) -> Mapping[str, int]:
    (message,) = await _read(git, repository, [commit])
    return permissions(message.decode(errors="replace"))


def _said(repository: Repository, path: str) -> str:
    """A path by which attributes are looked up; a line break would end it."""
    return f"{repository.prefix}{path}".replace("\n", "?")


async def _read(git: Git, repository: Repository, asked: Sequence[str], *options: str) -> Sequence[bytes]:
    """The contents in this order. The size that git says is that before any filter, so a random word tells where each begins."""
    if not asked:
        return ()
    word = secrets.token_hex(16)
    printed = await git.ours(
        repository.private,
        *("cat-file", f"--batch={word}", "--buffer", *options),
        settings=repository.settings,
        work_tree=repository.top,
        stdin="".join(f"{line}\n" for line in asked).encode("utf-8", "surrogateescape"),
    )
    found = await asyncio.to_thread(_apart, printed.stdout, word.encode())
    if len(found) != len(asked):
        raise GitFailed("The private copy lacks an object of this result; start the task again.")
    return found


def _apart(output: bytes, word: bytes) -> list[bytes]:
    """What follows each line that is `word`; git has other lines for what is not there."""
    before, *found = output.removesuffix(b"\n").split(word + b"\n")
    return [*(one.removesuffix(b"\n") for one in found[:-1]), *found[-1:]] if not before else []


async def smudged(git: Git, repository: Repository, path: str, blob: str) -> bytes:
    """One object as git would check it out here."""
    (content,) = await _read(git, repository, [f"{blob} {_said(repository, path)}"], "--filters")
    return content
