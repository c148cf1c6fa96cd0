"""Reads and writes contents in a private directory, many with one call."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from offload.domain.errors import GitFailed
from offload.workspace.git import Git
from offload.workspace.repository import Repository


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
