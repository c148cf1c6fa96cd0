"""What a shape of a user's folder is, and the project that most are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.workspace.repositories import commit_all, git


@dataclass
class Shape:
    """`root` is the workspace. `missing` are paths of the user's that the copy lacks (all below them with them), `differing`
    those that it has otherwise than they are on disk; `notes` are words that the snapshot's notes hold.

    `refused` is a pattern of what is said when it does not work; `file` is one that the worker changes, `new` what a new
    file of its own holds at the user's.
    """

    root: Path
    file: str = "src/a.py"
    new: bytes = b"new\n"
    top: Path | None = None
    missing: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str = ""
    at_once: bool = False  # refused before anything is recorded: `locate` does it
    environment: dict[str, str] = field(default_factory=dict)


def project(home: Path, name: str = "project", *options: str) -> Path:
    """A repository with a packed history and something of everything uncommitted."""
    root = home / name
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (root / "b.txt").write_text("b\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("src/a.py")
    git(root, "init", "-q", "-b", "main", *options)
    commit_all(root, "first")
    (root / "b.txt").write_text("b\nb\n")
    commit_all(root, "second")
    git(root, "tag", "v1")
    git(root, "gc", "-q")
    dirty(root)
    return root


def dirty(root: Path) -> None:
    (root / "b.txt").write_text("b\nb\ndirty\n")
    (root / "staged.py").write_text("staged\n")
    git(root, "add", "staged.py")
    (root / "untracked.py").write_text("untracked\n")
