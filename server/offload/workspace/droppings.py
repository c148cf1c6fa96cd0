"""What tools leave behind in a task's folder and nobody calls work: it is not collected.

The list is written down in `docs/WORKSPACES.md`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from offload.workspace.git import Git
from offload.workspace.index import LISTING_LIMIT
from offload.workspace.repository import Repository

FOLDERS = frozenset({"__pycache__", "node_modules"})
FILES = frozenset({".coverage", ".DS_Store"})
ENDING = ".pyc"
CACHE_TAG = "/CACHEDIR.TAG"
"""With this file a folder calls itself a cache, as those of cargo, pytest, mypy and ruff do (bford.info/cachedir)."""


async def without(git: Git, repository: Repository, clone: Path, index: Path, new: Sequence[str]) -> list[str]:
    """The new files that are none. A folder of which `index` holds a part was kept by the user, so what is added there counts."""
    caches = {path.removesuffix(CACHE_TAG) for path in new if path.endswith(CACHE_TAG)}
    found = {path: dropping for path in new if (dropping := _dropping(path, caches))}
    if not found:
        return [*new]
    listed = await git.ours(
        repository.private, "ls-files", "-z", work_tree=clone, index=index, output_limit=LISTING_LIMIT
    )
    kept = {_dropping(path, caches) for path in os.fsdecode(listed.stdout).split("\0")}
    return [path for path in new if path not in found or found[path] in kept]


def _dropping(path: str, caches: Collection[str]) -> str:
    """The folder or file that makes the path one, "" for none."""
    *folders, name = path.split("/")
    for depth, folder in enumerate(folders, 1):
        whole = "/".join(folders[:depth])
        if folder in FOLDERS or whole in caches:
            return whole
    return path if name in FILES or name.endswith(ENDING) else ""
