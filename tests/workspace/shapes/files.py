"""Repositories by their files: names, line ends, modes, sizes, and what git is told of them."""

from __future__ import annotations

import os
from pathlib import Path

from tests.workspace.repositories import commit_all, git
from tests.workspace.shapes.made import Shape, project

ODD_NAMES = (
    b"a b",
    b"100%",
    b"%2e%2e",
    "ü é/日本".encode(),
    "e\u0301".encode(),
    b"new\nline",
    b"tab\there",
    b'"quoted"',
    b"it's",
    b"-rf",
    b"--",
    b"*",
    b"[a]?",
    b":(top)x",
    b"back\\slash",
    b" leading",
    b"trailing ",
    b"#hash",
    b"!bang",
    b"~tilde",
    b"$HOME",
    b"\xff\xfe",
)


def odd_names(home: Path) -> Shape:
    root = project(home)
    for name in ODD_NAMES:
        path = Path(os.fsdecode(os.fsencode(root) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name + b"\n")
    commit_all(root, "odd names")
    for name in ODD_NAMES[::2]:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(b"dirty\n")
    for name in ODD_NAMES:
        Path(os.fsdecode(os.fsencode(root) + b"/src/" + name.replace(b"/", b" "))).write_bytes(b"new\n")
    return Shape(root, file=os.fsdecode(b"\xff\xfe"))


LINES = {
    "crlf.txt": b"one\r\ntwo\r\n",
    "lf.txt": b"one\ntwo\n",
    "mixed.txt": b"one\r\ntwo\nthree\r\n",
    "none.txt": b"end",
}


def _with_lines(home: Path, *settings: str, attributes: str = "") -> Path:
    root = home / "project"
    root.mkdir()
    git(root, "init", "-q")
    for name, content in LINES.items():
        (root / name).write_bytes(content)
    commit_all(root, "as they are")
    for name, value in zip(settings[::2], settings[1::2], strict=True):
        git(root, "config", name, value)
    if attributes:
        (root / ".gitattributes").write_text(attributes)
        commit_all(root, "attributes")
    for name, content in LINES.items():
        (root / f"new {name}").write_bytes(content)
    return root


def line_ends_as_they_are(home: Path) -> Shape:
    return Shape(_with_lines(home), file="mixed.txt")


def line_ends_by_autocrlf(home: Path) -> Shape:
    """Files with LF or with both ends come out with CRLF alone, as they would for the user by git's own rules."""
    root = _with_lines(home, "core.autocrlf", "true")
    return Shape(root, file="crlf.txt", new=b"new\r\n", differing=("lf.txt", "new lf.txt", "new mixed.txt"))


def line_ends_by_autocrlf_input(home: Path) -> Shape:
    root = _with_lines(home, "core.autocrlf", "input")
    return Shape(root, file="lf.txt", differing=("new crlf.txt", "new mixed.txt"))


def line_ends_by_attributes(home: Path) -> Shape:
    root = _with_lines(home, attributes="* text=auto eol=crlf\nlf.txt eol=lf\nmixed.txt -text\n")
    return Shape(root, file="lf.txt", new=b"new\r\n", differing=("new lf.txt", "new mixed.txt", ".gitattributes"))


def encoding_by_attributes(home: Path) -> Shape:
    root = project(home)
    (root / ".gitattributes").write_text("*.utf16 working-tree-encoding=UTF-16LE-BOM eol=crlf\n")
    (root / "text.utf16").write_bytes(b"\xff\xfe" + "é\r\n".encode("utf-16-le"))
    commit_all(root, "encoded")
    (root / "text.utf16").write_bytes(b"\xff\xfe" + "é\r\nü\r\n".encode("utf-16-le"))
    return Shape(root)


def modes(home: Path) -> Shape:
    root = project(home)
    (root / "run.sh").chmod(0o644)
    (root / "src" / "a.py").chmod(0o755)
    (root / "b.txt").chmod(0o600)
    (root / "dangling").symlink_to("/no/such/place")
    (root / "out").symlink_to("..")
    (root / "folder").symlink_to("src")
    return Shape(root)


def modes_that_do_not_count(home: Path) -> Shape:
    root = project(home)
    git(root, "config", "core.fileMode", "false")
    (root / "src" / "a.py").chmod(0o755)
    return Shape(root, differing=("src/a.py",))


def binary_and_empty_files(home: Path) -> Shape:
    root = project(home)
    (root / "binary").write_bytes(bytes(range(256)) * 10)
    (root / "empty").write_bytes(b"")
    (root / "nul.txt").write_bytes(b"text\0text\r\n")
    commit_all(root, "binary")
    (root / "binary").write_bytes(bytes(range(255, -1, -1)) * 10)
    (root / "new empty").write_bytes(b"")
    return Shape(root, file="binary")


def a_huge_file(home: Path) -> Shape:
    root = project(home)
    (root / "huge.bin").write_bytes(os.urandom(1 << 20) * 60)
    commit_all(root, "huge")
    (root / "huge.txt").write_bytes(b"a line of text\n" * (4 << 20))
    return Shape(root)


def pipes(home: Path) -> Shape:
    root = project(home)
    os.mkfifo(root / "pipe")
    return Shape(root, missing=("pipe",))


def lfs_without_git_lfs(home: Path) -> Shape:
    """What git-lfs would have left: a pointer in the index, the contents on disk, and filters that cannot be run."""
    root = project(home)
    (root / "image.bin").write_bytes(b"contents" * 100)
    os.utime(root / "image.bin", (1e9, 1e9))  # so that git need not look whether it is as new as the index
    (root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    git(root, "-c", "filter.lfs.clean=echo a pointer", "add", "-A")
    git(root, "commit", "-q", "-m", "large file")
    for part, command in {"clean": "clean", "smudge": "smudge", "process": "filter-process"}.items():
        git(root, "config", f"filter.lfs.{part}", f"git-lfs-is-not-here {command}")
    git(root, "config", "filter.lfs.required", "true")
    return Shape(root, differing=("image.bin",), notes=("Git LFS are pointers",))


def files_that_git_shall_not_look_at(home: Path) -> Shape:
    """`--skip-worktree` and `--assume-unchanged`: what the user changed there is theirs alone, and stays out."""
    root = project(home)
    git(root, "update-index", "--skip-worktree", "run.sh")
    git(root, "update-index", "--assume-unchanged", "src/a.py")
    (root / "run.sh").write_text("#!/bin/sh\nmy own\n")
    (root / "src" / "a.py").write_text("my own\n")
    return Shape(root, file="b.txt", differing=("run.sh", "src/a.py"))


def a_folder_that_became_a_link(home: Path) -> Shape:
    root = project(home)
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to("moved")
    return Shape(root, file="moved/a.py")


def a_file_that_became_a_folder(home: Path) -> Shape:
    root = project(home)
    (root / "b.txt").unlink()
    (root / "b.txt").mkdir()
    (root / "b.txt" / "inner.py").write_text("inner\n")
    return Shape(root)
