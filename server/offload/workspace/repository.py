"""What is known of a user's folder, and the private git directory that belongs to it.

One private directory per workspace folder: it borrows the user's objects and holds everything that we add. Its record
lies inside it, so that results can be read after a restart, even when the user's repository has gone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from offload.domain.errors import GitFailed, NotAWorkspace
from offload.workspace.git import Git, reason, together

BY_VALUE = (
    "core.attributesfile",
    "core.autocrlf",
    "core.checkstat",
    "core.eol",
    "core.excludesfile",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.symlinks",
    "core.trustctime",
)
"""The user's settings that say how files and objects correspond; handed on by value."""
PARTIAL = ("extensions.partialclone", "remote.*.promisor")
FOR_NOTES = (*PARTIAL, "filter.lfs.clean")
EXCLUDE = "info/exclude"
COPIED = (EXCLUDE, "info/attributes", "info/sparse-checkout", "shallow")


@dataclass(frozen=True, slots=True)
class Repository:
    """`top` is the folder that git keeps, `prefix` the workspace's path in it ("" or "a/b/"); `objects` is "" and
    `head` is "" where the user has no repository or no commit."""

    private: Path
    root: Path
    top: Path
    prefix: str = ""
    objects: str = ""
    object_format: str = "sha1"
    head: str = ""
    index: str = ""
    copied: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def kept_by_git(self) -> bool:
        return bool(self.objects)

    @property
    def only_below(self) -> tuple[str, ...]:
        """The option that makes git's diffs show the workspace alone, with paths relative to it."""
        return (f"--relative={self.prefix}",) if self.prefix else ()

    def from_workspace(self, path: str) -> str:
        """A path of the repository as the workspace's own patterns name it."""
        return path.removeprefix(self.prefix) if path.startswith(self.prefix) else f"../{path}"


def private_directory(state_folder: Path, root: Path) -> Path:
    name = hashlib.sha256(os.fsencode(root)).hexdigest()[:20]
    return state_folder / "repositories" / f"{name}.git"


async def examine(git: Git, state_folder: Path, root: Path) -> Repository:
    """Ask the user's git about `root`; reads no file of theirs. Raises `NotAWorkspace`."""
    private = private_directory(state_folder, root)
    if not _usable(root):
        raise NotAWorkspace(f"{root} is not a folder that can be read; name the folder that you work in.")
    paths = [part for name in ("objects", "index", *COPIED) for part in ("--git-path", name)]
    asked = ["--path-format=absolute", "--show-toplevel", "--show-prefix", "--show-object-format", *paths]
    wanted = "|".join((*BY_VALUE, *FOR_NOTES)).replace(".", r"\.").replace("*", ".*")
    # With --verify a repository without a commit is an answer (status 1), not an error.
    found, set_by_user = await together(
        git.users(root, "rev-parse", *asked, "--quiet", "--verify", "HEAD"),
        git.users(root, "config", "--type=path", "-z", "--get-regexp", f"^({wanted})$"),
    )
    settings = dict(entry.partition("\n")[::2] for entry in os.fsdecode(set_by_user.stdout).split("\0") if entry)
    by_value = {name: value for name, value in settings.items() if name in BY_VALUE}
    if found.returncode not in (0, 1):
        if b"not a git repository (or any" in found.stderr:
            return Repository(private, root, root, settings=by_value)
        raise NotAWorkspace(f"git does not accept {root}: {reason(found)}")
    top, prefix, object_format, objects, index, *rest = os.fsdecode(found.stdout).split("\n")
    if len(rest) != len(COPIED) + (2 if found.returncode == 0 else 1):
        raise NotAWorkspace(f"{root!r} has a line break in its path, which is not supported; use another folder.")
    if not _same(Path(top, prefix), root):
        raise NotAWorkspace(f"git keeps the files of {root} in {top} (core.worktree); name that folder.")
    return Repository(
        private,
        root,
        Path(top),
        prefix,
        objects,
        object_format,
        rest[len(COPIED)],
        index,
        dict(zip(COPIED, rest, strict=False)),
        by_value,
        _notes(Path(top), settings),
    )


def _usable(root: Path) -> bool:
    return root.is_dir() and os.access(root, os.R_OK | os.X_OK)


def _same(one: Path, other: Path) -> bool:
    return one.samefile(other)


def _notes(top: Path, settings: Mapping[str, str]) -> tuple[str, ...]:
    notes = []
    if any(fnmatchcase(name, partial) for name in settings for partial in PARTIAL):
        notes.append("This is a partial clone: what git has not fetched yet is missing in the copy.")
    if (top / ".gitmodules").exists():
        notes.append("Submodules are not in the copy: their folders are empty.")
    attributes = top / ".gitattributes"
    if "filter.lfs.clean" in settings and attributes.is_file() and b"filter=lfs" in attributes.read_bytes():
        notes.append("Files kept by Git LFS are pointers in the copy.")
    excludes = settings.get("core.excludesfile")
    if excludes and not Path(excludes).is_file():
        notes.append(f"The ignore file {excludes} (core.excludesFile) does not exist.")
    return tuple(notes)


async def prepare(git: Git, repository: Repository, state_folder: Path) -> None:
    """Make the private directory if need be, and bring it up to what the user has set now."""
    private = repository.private
    if not (private / "offload.json").exists():
        shutil.rmtree(private, ignore_errors=True)
        private.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        await git.init(private, repository.object_format, "--bare")
        (private / "info").mkdir(exist_ok=True)
        (private / "tasks").mkdir()
    await asyncio.to_thread(_bring_up_to_date, repository, state_folder)


def _bring_up_to_date(repository: Repository, state_folder: Path) -> None:
    private = repository.private
    if repository.kept_by_git:
        borrow(private, Path(repository.objects))
    # Our own folder inside the user's (a home folder kept by git) must not be copied into itself.
    inside = state_folder.is_relative_to(repository.top)
    ours = f"\n/{state_folder.relative_to(repository.top).as_posix()}/\n" if inside else ""
    copy_rules(repository, private, os.fsencode(ours))
    save(repository, private / "offload.json")


def borrow(git_dir: Path, objects: Path) -> None:
    """Let a git directory of ours read the objects of another one."""
    info = git_dir / "objects" / "info"
    info.mkdir(exist_ok=True)
    quoted = json.dumps(str(objects), ensure_ascii=False)
    _put(info / "alternates", os.fsencode(f"{quoted}\n"))


def copy_rules(repository: Repository, git_dir: Path, excluded: bytes = b"") -> None:
    """What the user keeps beside the repository: ignore rules, with `excluded` after them, and attributes; the ends of a
    shallow history."""
    for name in COPIED:
        source = Path(repository.copied.get(name, os.devnull))
        content = (source.read_bytes() if source.is_file() else b"") + (excluded if name == EXCLUDE else b"")
        if content:
            _put(git_dir / name, content)
        else:
            (git_dir / name).unlink(missing_ok=True)


def save(repository: Repository, path: Path) -> None:
    record = dataclasses.asdict(repository) | {
        name: str(getattr(repository, name)) for name in ("private", "root", "top")
    }
    _put(path, json.dumps(record).encode())


def _put(path: Path, content: bytes) -> None:
    """Nothing where it is so already; else beside and renamed, so that whoever reads it meanwhile gets all of it."""
    if path.is_file() and path.read_bytes() == content:
        return
    beside = path.with_name(f"{path.name}.new")
    beside.write_bytes(content)
    beside.replace(path)


def load(path: Path) -> Repository:
    """Raises `GitFailed` when there is no such record."""
    try:
        record = json.loads(path.read_text())
    except FileNotFoundError:
        raise GitFailed(f"There is no private copy at {path.parent}; start the task again.") from None
    return Repository(
        **record | {name: Path(record[name]) for name in ("private", "root", "top")} | {"notes": tuple(record["notes"])}
    )
