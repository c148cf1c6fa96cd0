"""Brings a result onto another commit: git merges whole trees, and what does not go together is told place by place.

git sees commits without a history, made for this, in a git directory of their own: it holds no configuration, attributes or
drivers of anybody, and the names of its two branches are what the conflict markers say.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.core.ports import Merged
from offload.domain.change import ChangeSet
from offload.workspace.git import Git
from offload.workspace.index import commit_tree
from offload.workspace.repository import Repository
from offload.workspace.results.conflicts import Complaint, Stages, conflicts_of

YOURS, THEIRS = "yours", "the-task"
SETTINGS = {
    "merge.conflictStyle": "zdiff3",
    "merge.directoryRenames": "false",  # a new file stays where the task put it
    "merge.renameLimit": "400",
    "merge.renames": "true",
}
CONFLICTS = 1
"""The status of `git merge-tree` for a merge that is not clean."""


@dataclass(frozen=True, slots=True)
class _Outcome:
    tree: str
    stages: Mapping[str, Stages]
    complaints: tuple[Complaint, ...]


async def merge_onto(git: Git, repository: Repository, onto: str, changes: ChangeSet) -> tuple[Merged, str]:
    """The merged commit with its conflicts, and its tree."""
    trees = [f"{one}^{{tree}}" for one in (changes.base, onto, changes.result)]
    printed = await git.ours(repository.private, "rev-parse", *trees)
    before, mine, other = printed.stdout.decode().split()
    base = await commit_tree(repository, before, "", "What both began from")
    yours = await commit_tree(repository, mine, base, "Yours")
    theirs = await commit_tree(repository, other, base, "The task's")
    with tempfile.TemporaryDirectory(dir=repository.private / "tasks") as scratch:
        await asyncio.to_thread(_furnish, repository, Path(scratch), {YOURS: yours, THEIRS: theirs})
        command = ("merge-tree", "--write-tree", "-z", "--messages", YOURS, THEIRS)
        done = await git.ours(Path(scratch), *command, settings=SETTINGS, accepted=(0, CONFLICTS))
    outcome = await asyncio.to_thread(_read, done.stdout)
    made = await commit_tree(repository, outcome.tree, onto, "A result merged")
    if done.returncode != CONFLICTS:
        return Merged(made), outcome.tree
    found = await conflicts_of(git, repository, outcome.tree, outcome.stages, outcome.complaints, changes)
    return Merged(made, found), outcome.tree


def _furnish(repository: Repository, git_dir: Path, branches: Mapping[str, str]) -> None:
    """A git directory that holds two branches and writes its objects into the private one."""
    sha256 = repository.object_format == "sha256"
    extension = "\n[extensions]\n\tobjectFormat = sha256" if sha256 else ""
    (git_dir / "config").write_text(f"[core]\n\tbare = true\n\trepositoryFormatVersion = {int(sha256)}{extension}\n")
    (git_dir / "HEAD").write_text("ref: refs/heads/none\n")
    (git_dir / "objects").symlink_to(repository.private / "objects")
    heads = git_dir / "refs" / "heads"
    heads.mkdir(parents=True)
    for name, commit_id in branches.items():
        (heads / name).write_text(f"{commit_id}\n")


def _read(output: bytes) -> _Outcome:
    """What `git merge-tree -z` prints: the tree, the sides of each file that is not clean, and what it has to say."""
    tree, *parts = os.fsdecode(output).split("\0")[:-1]
    at = parts.index("")
    stages: dict[str, dict[int, tuple[str, str]]] = {}
    for line in parts[:at]:
        about, path = line.split("\t", 1)
        mode, blob, stage = about.split(" ")
        stages.setdefault(path, {})[int(stage)] = (mode, blob)
    return _Outcome(tree, stages, tuple(_complaints(parts[at + 1 :])))


def _complaints(parts: Sequence[str]) -> Iterator[Complaint]:
    at = 0
    while at < len(parts):
        end = at + 1 + int(parts[at])
        kind, message = parts[end : end + 2]
        if kind.startswith("CONFLICT"):
            yield Complaint(tuple(parts[at + 1 : end]), kind, message)
        at = end + 2
