"""Reads and writes contents in a private directory, many with one call."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import zlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from offload.domain.errors import GitFailed
from offload.workspace.git import Git
from offload.workspace.repository import Repository

HEADER, STORED_HEADER = 64, 512
"""So many bytes hold the beginning of an object, "blob", its size and a zero byte; and so many when it is compressed, with the
table of its code before it."""


async def read_blobs(git: Git, repository: Repository, blobs: Collection[str]) -> dict[str, bytes]:
    """The contents by object id. Raises `GitFailed` for one that is not there."""
    wanted = sorted(set(blobs))
    asked = "".join(f"{blob}\n" for blob in wanted)
    printed = await git.ours(repository.private, "cat-file", "--batch", "--buffer", stdin=asked.encode())
    return await asyncio.to_thread(_taken_apart, printed.stdout, wanted)


def _taken_apart(output: bytes, wanted: Sequence[str]) -> dict[str, bytes]:
    found, at = {}, 0
    for blob in wanted:
        end = output.index(b"\n", at)
        header = output[at:end].split(b" ")
        if header[1] != b"blob":
            raise GitFailed(f"The private copy lacks the object {blob}; start the task again.")
        size = int(header[2])
        found[blob] = output[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
    return found


async def sizes_of(git: Git, repository: Repository, blobs: Collection[str]) -> dict[str, int]:
    """How many bytes these contents have, by object id; one that is not there is left out."""
    found = await asyncio.to_thread(_loose, repository.private / "objects", blobs)
    others = [blob for blob in blobs if blob not in found]
    if others:
        asked = "".join(f"{blob}\n" for blob in others)
        command = ("cat-file", "--batch-check=%(objectsize)", "--buffer")
        printed = await git.ours(repository.private, *command, stdin=asked.encode())
        lines = zip(others, printed.stdout.splitlines(), strict=True)
        found.update((blob, int(size)) for blob, size in lines if size.isdigit())
    return found


def _loose(objects: Path, blobs: Iterable[str]) -> dict[str, int]:
    """Those of objects that lie in files of their own, as new ones do: their first bytes are read for it, which spares a
    process in each collection."""
    found = {}
    for blob in blobs:
        with contextlib.suppress(FileNotFoundError), (objects / blob[:2] / blob[2:]).open("rb") as stored:
            header = zlib.decompressobj().decompress(stored.read(STORED_HEADER), HEADER)
            found[blob] = int(header.partition(b"\0")[0].partition(b" ")[2])
    return found


async def write_blobs(git: Git, repository: Repository, contents: Sequence[bytes]) -> list[str]:
    """The object ids, in order; the bytes are kept as they are."""
    if not contents:
        return []
    with tempfile.TemporaryDirectory(dir=repository.private / "tasks") as scratch:
        files = [Path(scratch, str(number)) for number in range(len(contents))]
        for file, content in zip(files, contents, strict=True):
            await asyncio.to_thread(file.write_bytes, content)
        named = b"".join(os.fsencode(file) + b"\n" for file in files)
        written = await git.ours(repository.private, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=named)
    return written.stdout.decode().split()
