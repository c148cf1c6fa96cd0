"""The user's own files: which paths may be touched, what is there now, and writing all of a result or none of it.

Blocking; to be called in a thread.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Sequence
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


def write(root: Path, edits: Sequence[Edit]) -> None:
    """Do all edits; when one fails, undo those before it and raise `WriteFailed`."""
    done: list[Edit | Path] = []  # a path is a folder that was made
    for edit in edits:
        try:
            _check_untouched(root, edit)
            _do(root, edit, done)
        except OSError as problem:
            _undo(root, done)
            raise WriteFailed(edit.path, problem.strerror or str(problem)) from problem


def _check_untouched(root: Path, edit: Edit) -> None:
    if look(root, edit.path) != edit.before:
        raise OSError(errno.EBUSY, "it was changed while the result was being applied")


def _do(root: Path, edit: Edit, done: list[Edit | Path]) -> None:
    target = root / edit.path
    if edit.content is None:
        target.unlink()
        done.append(edit)
        _remove_empty(root, target.parent)
        return
    missing = [folder for folder in target.parents if folder.is_relative_to(root) and not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir()
        done.append(folder)
    mode = edit.before.mode if edit.executable is None else _with_execute(edit.before.mode, edit.executable)
    _put(target, edit.content, link=edit.link, mode=mode, executable=bool(edit.executable))
    done.append(edit)


def _put(target: Path, content: bytes, *, link: bool, mode: int, executable: bool) -> None:
    """Write beside and rename, so that nobody ever reads half a file. Mode 0: a new file's, as the system gives it."""
    beside = target.with_name(f".offload-{secrets.token_hex(8)}")
    try:
        if link:
            beside.symlink_to(os.fsdecode(content))
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with os.fdopen(os.open(beside, flags, 0o777 if executable else 0o666), "wb") as opened:
                opened.write(content)
            if mode:
                beside.chmod(mode)
        beside.replace(target)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def _with_execute(mode: int, executable: bool) -> int:
    """Whoever may read a file may run it, or nobody."""
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def _remove_empty(root: Path, folder: Path) -> None:
    """A folder goes with its last file, as git does it."""
    while folder != root and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _undo(root: Path, done: Sequence[Edit | Path]) -> None:
    for step in reversed(done):
        if isinstance(step, Path):
            step.rmdir()
            continue
        target, before = root / step.path, step.before
        if before.content is None:
            target.unlink()
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            _put(target, before.content, link=before.link, mode=before.mode, executable=False)
