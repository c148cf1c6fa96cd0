"""The user's own files: which paths may be touched, what is there now, and writing all of a result or none of it.

Blocking; to be called in a thread.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

IGNORABLE = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)  # characters that some file systems drop from a name
LINK, EXECUTABLE = "120000", "100755"
WRITABLE = {"100644", EXECUTABLE, LINK}


@dataclass(frozen=True, slots=True)
class Live:
    """What is at a path now. `content` is None where there is nothing, a link's is its target; `problem` says why the path
    cannot be written. Two that are equal hold the same file, untouched."""

    content: bytes | None = None
    link: bool = False
    mode: int = 0
    problem: str = ""
    stamp: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Edit:
    """`content` None deletes; `executable` None leaves the file's mode as it is."""

    path: str
    before: Live
    content: bytes | None
    link: bool = False
    executable: bool | None = None


class WriteFailed(Exception):
    """A write failed; everything is as it was. `path` is the one that failed."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path


def forbidden(path: str) -> str:
    """Why a result may never write to `path`, "" when it may."""
    parts = path.split("/")
    if path.startswith("/") or "" in parts:
        return "is not a relative path"
    if "." in parts or ".." in parts:
        return 'has "." or ".." in it'
    if any(_means_git(piece) for part in parts for piece in part.split("\\")):
        return "is inside of .git"
    return ""


def _means_git(name: str) -> bool:
    """`.git` in any spelling that some file system takes for it."""
    plain = name.translate(IGNORABLE).lower().partition(":")[0].rstrip(". ")
    return plain in {".git", "git~1"}


def leaves(root: Path, path: str, target: bytes) -> bool:
    """Whether a link at `path` would lead out of `root`, or into git's own folder."""
    parts = os.fsdecode(target).split("/")
    climbs = [part for part in parts if part == ".."]
    # A ".." after a name goes up from wherever that name leads, which another link may decide.
    led_to = Path(os.fsdecode(target))
    if led_to.is_absolute() or parts[: len(climbs)] != climbs or any(_means_git(part) for part in parts):
        return True
    # realpath and not resolve: links that lead to each other are no error here.
    reached = os.path.realpath(Path(os.path.realpath((root / path).parent)) / led_to)
    return not Path(reached).is_relative_to(os.path.realpath(root))


def look(root: Path, path: str) -> Live:
    folder = root
    for part in path.split("/")[:-1]:
        folder /= part
        try:
            status = folder.lstat()
        except FileNotFoundError:
            return Live()
        if stat.S_ISLNK(status.st_mode):
            return Live(problem="is behind a link")
        if not stat.S_ISDIR(status.st_mode):
            return Live(problem="has a file where its folder should be")
    target = root / path
    try:
        status = target.lstat()
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            return Live(os.fsencode(target.readlink()), link=True, stamp=stamp)
        if stat.S_ISREG(status.st_mode):
            return Live(target.read_bytes(), mode=stat.S_IMODE(status.st_mode), stamp=stamp)
    except FileNotFoundError:
        return Live()
    except OSError as problem:
        return Live(problem=f"cannot be read ({problem.strerror})")
    return Live(problem="is a folder or a device on disk")


@dataclass(frozen=True, slots=True)
class _Staged:
    """An edit with all that it needs, beside the file: `new` to be renamed into place, `old` to be renamed back."""

    edit: Edit
    target: Path
    new: Path
    old: Path


def write(root: Path, edits: Sequence[Edit]) -> None:
    """Do all edits; when one fails, undo those before it and raise `WriteFailed`.

    All that needs room on the disk happens before the first file changes; after that there are only renames, which also
    keep anybody from ever reading half a file.
    """
    made: list[Path] = []  # folders
    staged: list[_Staged] = []
    done: list[_Staged] = []
    current = ""
    try:
        for edit in edits:
            current = edit.path
            _make_folders(root, edit, made)
            staged.append(_staged(root, edit))
            _fill(staged[-1])
        for one in staged:
            current = one.edit.path
            _swap(root, one)
            done.append(one)
    except OSError as problem:
        for one in reversed(done):
            _swap_back(one)
        _tidy(staged, reversed(made))
        raise WriteFailed(current, problem.strerror or str(problem)) from problem
    # A folder goes with its last file, as git does it.
    left = [folder for one in done if one.edit.content is None for folder in one.target.parents]
    _tidy(staged, [folder for folder in left if folder != root and folder.is_relative_to(root)])


def _make_folders(root: Path, edit: Edit, made: list[Path]) -> None:
    if edit.content is not None:
        parents = (root / edit.path).parents
        for folder in reversed([each for each in parents if each.is_relative_to(root) and not each.exists()]):
            folder.mkdir()
            made.append(folder)


def _staged(root: Path, edit: Edit) -> _Staged:
    target, token = root / edit.path, secrets.token_hex(8)
    return _Staged(edit, target, target.with_name(f".offload-{token}.new"), target.with_name(f".offload-{token}.old"))


def _fill(one: _Staged) -> None:
    edit, mode = one.edit, one.edit.before.mode
    if edit.before.content is not None:
        shutil.copy2(one.target, one.old, follow_symlinks=False)
    if edit.content is None:
        return
    if edit.link:
        one.new.symlink_to(os.fsdecode(edit.content))
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(one.new, flags, 0o777 if edit.executable else 0o666), "wb") as opened:
        opened.write(edit.content)
    if mode:  # else it is a new file, whose mode the system has given
        one.new.chmod(mode if edit.executable is None else _with_execute(mode, edit.executable))


def _with_execute(mode: int, executable: bool) -> int:
    """Whoever may read a file may run it, or nobody."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _swap(root: Path, one: _Staged) -> None:
    if look(root, one.edit.path) != one.edit.before:
        raise OSError(errno.EBUSY, "it was changed while the result was being applied")
    if one.edit.content is None:
        one.target.unlink()
    else:
        one.new.replace(one.target)


def _swap_back(one: _Staged) -> None:
    if one.edit.before.content is None:
        one.target.unlink()
    else:
        one.old.replace(one.target)


def _tidy(staged: Sequence[_Staged], folders: Iterable[Path]) -> None:
    """Remove what was staged, and those of `folders` that are empty."""
    for one in staged:
        one.new.unlink(missing_ok=True)
        one.old.unlink(missing_ok=True)
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
