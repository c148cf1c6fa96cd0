"""The folders of servers that run no more: how large one is, and whether anybody may still want it.

A folder holds a server's database with all its sessions. It knows nothing of tasks: who asks says since when it must have been
left alone.
"""

from __future__ import annotations

import json
from pathlib import Path

from offload.processes import Identity, alive


def size(folder: Path, before: float) -> int:
    """Bytes of a folder in which nothing was written since `before` and whose server is gone; 0 for any other."""
    if _runs(folder):
        return 0
    total = 0
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        if status.st_mtime >= before:
            return 0
        total += status.st_size
    return total


def _runs(folder: Path) -> bool:
    """Whether the server that was started last is alive, whichever hub started it."""
    try:
        left = json.loads((folder / "server.json").read_text(encoding="utf-8"))
        return alive(Identity(left["pid"], left["started"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False
