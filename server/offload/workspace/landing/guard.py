"""What a result may never write to: paths and links that leave the workspace or mean git's own folder, by any spelling."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from offload.workspace.repository import Repository
from offload.workspace.results.changes import Entry

LINK, EXECUTABLE, REGULAR = "120000", "100755", "100644"
WRITABLE = {REGULAR, EXECUTABLE, LINK}
IGNORABLE = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)  # characters that some file systems drop from a name
MOST_LINKS = 40
"""How many links one path may lead through, as on Linux."""


def own_folders(repository: Repository) -> tuple[str, ...]:
    """Where git keeps its own below the workspace under another name than `.git` (`git init --separate-git-dir`)."""
    root = os.path.realpath(repository.root)
    kept = {os.path.realpath(Path(file).parent) for file in (repository.objects, repository.index) if file}
    return tuple(os.path.relpath(folder, root) for folder in kept if Path(folder).is_relative_to(root))


def forbidden(path: str, own: Sequence[str] = ()) -> str:
    """Why a result may never write to `path`, "" when it may; `own` are `own_folders`."""
    parts = path.split("/")
    if path.startswith("/") or "" in parts:
        return "is not a relative path"
    if "." in parts or ".." in parts:
        return 'has "." or ".." in it'
    if _is_gits(path, own):
        return "is inside of .git"
    return ""


def _is_gits(path: str, own: Sequence[str]) -> bool:
    pieces = path.replace("\\", "/").split("/")
    return any(map(_means_git, pieces)) or any(f"{path}/".startswith(f"{folder}/") for folder in own)


def _means_git(name: str) -> bool:
    """`.git` in any spelling that some file system takes for it."""
    plain = name.translate(IGNORABLE).lower().partition(":")[0].rstrip(". ")
    return plain in {".git", "git~1"}


def tangled(entries: Sequence[Entry], case_blind: bool) -> dict[str, str]:
    """Why files of one result cannot be there together, by path: the result's own link would lead the next file elsewhere.

    Git writes no such tree, but a worker can make one by hand; and what git keeps apart may be one name on a disk.
    """
    reasons: dict[str, str] = {}
    coming: dict[str, str] = {}
    for path in (entry.path for entry in entries if entry.new_mode):
        name = _as_one(path, case_blind)
        if name in coming:
            reasons[path] = f"is one file with {coming[name]} on this disk"
        coming[name] = path
    for name, path in coming.items():
        above = (str(parent) for parent in PurePosixPath(name).parents)
        if over := next((coming[parent] for parent in above if parent in coming), ""):
            reasons[path] = f"is below {over}, which the result makes a file or a link"
    return reasons


def _as_one(path: str, case_blind: bool) -> str:
    return unicodedata.normalize("NFC", path).casefold() if case_blind else path


def leaves(root: Path, path: str, target: bytes, links: Mapping[str, str], own: Sequence[str] = ()) -> bool:
    """Whether a link at `path` would lead out of `root`, or into git's own folder. `links` are all that come with it (path to
    target): one may lead through another."""
    led_to = os.fsdecode(target)
    parts = led_to.split("/")
    climbs = [part for part in parts if part == ".."]
    # A ".." after a name goes up from wherever that name leads, which another link may decide.
    if led_to.startswith("/") or parts[: len(climbs)] != climbs or _is_gits(led_to, ()):
        return True
    reached = _followed(root, path.split("/")[:-1], led_to, links)
    return reached is None or _is_gits("/".join(reached), own)


def _followed(root: Path, here: list[str], target: str, links: Mapping[str, str]) -> list[str] | None:
    """Where `target` leads to from the folder `here`, below `root`; None for out of it."""
    waiting = target.split("/")[::-1]
    followed = 0
    while waiting and followed < MOST_LINKS:  # links that lead to each other lead nowhere
        part = waiting.pop()
        if part == "..":
            if not here:
                return None
            here.pop()
        elif part not in ("", "."):
            here.append(part)
            led_to = _link(root, here, links)
            if led_to.startswith("/"):
                top = os.path.realpath(root)
                if not Path(led_to).is_relative_to(top):
                    return None
                here, led_to = [], os.path.relpath(led_to, top)
            elif led_to:
                here.pop()
            waiting += led_to.split("/")[::-1]
            followed += bool(led_to)
    return here


def _link(root: Path, here: Sequence[str], links: Mapping[str, str]) -> str:
    """What the link at this place leads to, "" for none."""
    path = "/".join(here)
    try:
        return links[path] if path in links else str((root / path).readlink())
    except OSError:
        return ""
