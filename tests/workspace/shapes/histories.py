"""Repositories by what their history, objects and index are like, and what git is in the middle of."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.workspace.repositories import USER, commit_all, git
from tests.workspace.shapes.made import Shape, dirty, project


def plain(home: Path) -> Shape:
    return Shape(project(home))


def without_a_commit(home: Path) -> Shape:
    root = home / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\n")
    git(root, "init", "-q")
    (root / "staged.py").write_text("staged\n")
    git(root, "add", "staged.py")
    return Shape(root)


def without_any_file(home: Path) -> Shape:
    root = home / "project"
    root.mkdir()
    git(root, "init", "-q")
    return Shape(root, file="")


def detached(home: Path) -> Shape:
    root = project(home)
    git(root, "checkout", "-q", "--detach", "HEAD~0")
    return Shape(root)


def _diverged(home: Path) -> Path:
    """Two branches that changed the same line."""
    root = home / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (root / "other.py").write_text("x\n")
    git(root, "init", "-q", "-b", "main")
    commit_all(root, "first")
    git(root, "checkout", "-q", "-b", "other")
    (root / "src" / "a.py").write_text("one\nTHEIRS\nthree\n")
    commit_all(root, "theirs")
    git(root, "checkout", "-q", "main")
    (root / "src" / "a.py").write_text("one\nOURS\nthree\n")
    commit_all(root, "ours")
    return root


def _stopped(root: Path, *arguments: str) -> Shape:
    """In the middle of an operation of git's that met a conflict: the index holds several stages of a file."""
    environment = {**os.environ, **USER}
    subprocess.run(["git", *arguments], cwd=root, env=environment, capture_output=True, check=False)
    assert len(git(root, "ls-files", "--unmerged").splitlines()) == 3
    (root / "untracked.py").write_text("untracked\n")
    return Shape(root, file="other.py")


def during_a_rebase(home: Path) -> Shape:
    return _stopped(_diverged(home), "rebase", "other")


def during_a_merge(home: Path) -> Shape:
    return _stopped(_diverged(home), "merge", "other")


def during_a_cherry_pick(home: Path) -> Shape:
    return _stopped(_diverged(home), "cherry-pick", "other")


def during_a_revert(home: Path) -> Shape:
    root = _diverged(home)
    (root / "src" / "a.py").write_text("one\nLATER\nthree\n")
    commit_all(root, "later")
    return _stopped(root, "revert", "--no-edit", "HEAD~1")


def during_a_bisect(home: Path) -> Shape:
    root = project(home)
    commit_all(root, "third")
    git(root, "bisect", "start", "HEAD", "HEAD~2")
    return Shape(root)


def shallow(home: Path) -> Shape:
    root = home / "shallow"
    git(home, "clone", "-q", "--depth=1", f"file://{project(home)}", str(root))
    dirty(root)
    return Shape(root)


def _with_parts(home: Path) -> Path:
    root = project(home)
    for part in ("in", "out", "deep/out"):
        (root / part).mkdir(parents=True)
        (root / part / "file.py").write_text(f"{part}\n")
    commit_all(root, "parts")
    return root


def sparse_cone(home: Path) -> Shape:
    root = _with_parts(home)
    git(root, "sparse-checkout", "set", "--cone", "in", "src")
    dirty(root)
    return Shape(root)


def sparse_patterns(home: Path) -> Shape:
    root = _with_parts(home)
    git(root, "sparse-checkout", "set", "--no-cone", "/*", "!/out/", "!/deep/")
    dirty(root)
    return Shape(root)


def sparse_index(home: Path) -> Shape:
    root = _with_parts(home)
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "in", "src")
    assert "deep/\n" in git(root, "ls-files", "--sparse") + "\n"
    dirty(root)
    return Shape(root)


def partial(home: Path) -> Shape:
    """Blobs of earlier commits are not there."""
    root = home / "partial"
    origin = _with_parts(home)
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(home, "clone", "-q", "--filter=blob:none", f"file://{origin}", str(root))
    assert "?" in git(root, "rev-list", "--objects", "--missing=print", "--all")
    dirty(root)
    return Shape(root, notes=("partial clone",))


def partial_and_sparse(home: Path) -> Shape:
    """Blobs of the very commit that is checked out are not there, and the place that they would come from has gone."""
    origin = _with_parts(home)
    git(origin, "config", "uploadpack.allowFilter", "true")
    root = home / "partial"
    git(home, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{origin}", str(root))
    git(root, "sparse-checkout", "set", "--cone", "in", "src")
    git(root, "checkout", "-q", "main")
    assert "?" in git(root, "rev-list", "--objects", "--missing=print", "HEAD", "--max-count=1")
    dirty(root)
    origin.rename(home / "gone")
    return Shape(root, notes=("partial clone",))


def sha256(home: Path) -> Shape:
    return Shape(project(home, "project", "--object-format=sha256"))


def split_index(home: Path) -> Shape:
    root = project(home)
    git(root, "update-index", "--split-index")
    (root / "more.py").write_text("more\n")
    git(root, "add", "more.py")
    assert list((root / ".git").glob("sharedindex.*"))
    return Shape(root)


def index_of_version_4_with_untracked_cache(home: Path) -> Shape:
    root = project(home)
    git(root, "update-index", "--index-version", "4", "--force-untracked-cache")
    git(root, "config", "core.untrackedCache", "true")
    git(root, "status")
    return Shape(root)


def alternates(home: Path) -> Shape:
    """Objects that are borrowed over two steps."""
    root = home / "borrower"
    git(home, "clone", "-q", "--shared", str(project(home)), "middle")
    (home / "middle" / "c.txt").write_text("c\n")
    commit_all(home / "middle", "third")
    git(home, "clone", "-q", "--shared", "middle", str(root))
    dirty(root)
    return Shape(root)


def replaced_objects(home: Path) -> Shape:
    root = project(home)
    git(root, "replace", git(root, "rev-parse", "HEAD:b.txt"), git(root, "rev-parse", "HEAD~1:b.txt"))
    return Shape(root)


def many_branches(home: Path) -> Shape:
    """References that are packed, loose, symbolic and far from each other."""
    root = project(home)
    head = git(root, "rev-parse", "HEAD")
    orders = "".join(f"create refs/heads/topic/{number} {head}\n" for number in range(300))
    git(root, "update-ref", "--stdin", stdin=orders.encode())
    git(root, "pack-refs", "--all")
    git(root, "branch", "loose")
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(root, "stash")
    dirty(root)
    return Shape(root)
