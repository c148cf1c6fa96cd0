"""The user's own files: what is there now, and writing all of a result or none of it.

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
    """`content` None deletes; `mode` are the permissions that the file gets, None leaves them as they are. A new file without
    any gets what the system gives, for an `executable` one with leave to run it."""

    path: str
    before: Live
    content: bytes | None
    link: bool = False
    mode: int | None = None
    executable: bool = False


class WriteFailed(Exception):
    """A write failed; everything is as it was. `path` is the one that failed."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path


def runnable(mode: int, executable: bool) -> int:
    """The same permissions for a file that is a program, or none: whoever may read it may run it, or nobody."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


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
        # What goes, goes first: a disk that is blind to case has one place for both names of a renamed file.
        for edit in sorted(edits, key=lambda each: each.content is not None):
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
    edit = one.edit
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
    mode = edit.before.mode if edit.mode is None else edit.mode
    if mode:  # else it is a new file, whose mode the system has given
        one.new.chmod(mode)


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
