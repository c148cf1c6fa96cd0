"""Three texts into one: what the user has now and what the worker made, by what both began from."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from offload.workspace.git import Git

LOOKED_AT = 8000
"""How far git looks for a zero byte before it takes a file for text."""
MOST_CONFLICTS = 127


async def merge(git: Git, private: Path, base: bytes, live: bytes, result: bytes) -> bytes | None:
    """The merged text, None for a conflict. Line ends are live's."""
    if any(b"\0" in one[:LOOKED_AT] for one in (base, live, result)):
        return None
    crlf = live.count(b"\r\n")
    if 0 < crlf < live.count(b"\n"):
        return await _merge_file(git, private, base, live, result)  # mixed line ends: each line keeps its own
    base, live, result = (one.replace(b"\r\n", b"\n") for one in (base, live, result))
    merged: bytes | None
    if live == base:
        merged = result
    elif result in (base, live):
        merged = live
    else:
        merged = await _merge_file(git, private, base, live, result)
    return merged.replace(b"\n", b"\r\n") if crlf and merged is not None else merged


async def _merge_file(git: Git, private: Path, base: bytes, live: bytes, result: bytes) -> bytes | None:
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch, name) for name in ("live", "base", "result")]
        for file, content in zip(files, (live, base, result), strict=True):
            await asyncio.to_thread(file.write_bytes, content)
        done = await git.ours(private, "merge-file", "--stdout", "--quiet", *files, accepted=range(MOST_CONFLICTS + 1))
    if done.returncode:
        return None
    return done.stdout
