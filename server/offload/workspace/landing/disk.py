"""The user's own files: what is there now, and writing all of a result or none of it.

Blocking; to be called in a thread.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.workspace.landing.unfinished import Stage, Step, note, stamp, take_back, tidy


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
        if stat.S_ISLNK(status.st_mode):
            return Live(os.fsencode(target.readlink()), link=True, stamp=stamp(status))
        if stat.S_ISREG(status.st_mode):
            return Live(target.read_bytes(), mode=stat.S_IMODE(status.st_mode), stamp=stamp(status))
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

    def step(self, *, complete: bool = False) -> Step:
        known = stamp(self.new.lstat()) if complete and self.edit.content is not None else ()
        had, comes = self.edit.before.content is not None, self.edit.content is not None
        return Step(str(self.target), str(self.new), str(self.old), had, comes, known)


def write(root: Path, edits: Sequence[Edit], record: Path) -> None:
    """Do all edits; when one fails, undo those before it and raise `WriteFailed`. A write that is cut off can be taken back by
    its `record`.

    All that needs room on the disk happens before the first file changes; after that there are only renames, which also
    keep anybody from ever reading half a file.
    """
    take_back(record)
    # What goes, goes first: a disk that is blind to case has one place for both names of a renamed file.
    staged = [_staged(root, edit) for edit in sorted(edits, key=lambda each: each.content is not None)]
    missing = _missing_folders(root, edits)
    done: list[_Staged] = []
    current = ""
    try:
        note(record, root, Stage.PREPARING, [one.step() for one in staged], missing)
        for one in staged:
            current = one.edit.path
            _make_folders(root, one.edit)
            _fill(one)
        note(record, root, Stage.SWAPPING, [one.step(complete=True) for one in staged], missing)
        for one in staged:
            current = one.edit.path
            _swap(root, one)
            done.append(one)
        # A folder goes with its last file, as git does it.
        left = [folder for one in done if one.edit.content is None for folder in one.target.parents]
        empty = [folder for folder in left if folder != root and folder.is_relative_to(root)]
        note(record, root, Stage.WRITTEN, [one.step() for one in staged], empty)
    except OSError as problem:
        for one in reversed(done):
            _swap_back(one)
        tidy(record, [one.step() for one in staged], missing)
        raise WriteFailed(current, problem.strerror or str(problem)) from problem
    tidy(record, [one.step() for one in staged], empty)


def _missing_folders(root: Path, edits: Sequence[Edit]) -> list[Path]:
    """Those that have to be made, inner ones first."""
    parents = {folder for edit in edits if edit.content is not None for folder in (root / edit.path).parents}
    missing = [each for each in parents if each.is_relative_to(root) and not each.exists()]
    return sorted(missing, key=lambda each: len(each.parts), reverse=True)


def _make_folders(root: Path, edit: Edit) -> None:
    if edit.content is not None:
        parents = (root / edit.path).parents
        for folder in reversed([each for each in parents if each.is_relative_to(root) and not each.exists()]):
            folder.mkdir()


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
