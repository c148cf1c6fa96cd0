"""Fits the `Workspace` port: snapshots that are shared and pinned, and everything else by its own module."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from offload.core.ports import LandingPlan, Merged, Snapshot
from offload.domain.change import ChangeSet
from offload.domain.errors import GitFailed, InvalidRequest, NotAWorkspace, StorageFailed
from offload.domain.task import TaskId
from offload.processes import Origin, Processes, end_strays
from offload.workspace.carry import Wanted
from offload.workspace.forget import forget, size_of
from offload.workspace.git import Git, full_disk_told, literal
from offload.workspace.index import commit_tree, pin
from offload.workspace.landing.plan import Planned, plan, write_planned
from offload.workspace.landing.sides import smudged
from offload.workspace.landing.unfinished import RECORD, take_back
from offload.workspace.repository import Repository, examine, load, prepare, private_directory
from offload.workspace.reset import reset
from offload.workspace.results.changes import NOTHING_FOREIGN, RENAMES, compare
from offload.workspace.results.merge import merge_onto
from offload.workspace.results.select import select
from offload.workspace.snapshot import take
from offload.workspace.tasks import Place, collect, make

log = logging.getLogger(__name__)

NEVER_SEND = (
    ".env*",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "*.jks",
    "*.kdbx",
    "*.key",
    "*.keystore",
    "*.p12",
    "*.pem",
    "*.pfx",
    "id_dsa*",
    "id_ecdsa*",
    "id_ed25519*",
    "id_rsa*",
)
"""Untracked files of these names (patterns as `domain.scope` reads them) are never copied, in any workspace."""

Asked = tuple[Path, frozenset[tuple[str, str]], tuple[str, ...]]
"""What a snapshot depends on: the workspace, unsaved texts, and what the project never sends."""


class GitWorkspaces:
    """An async context manager: leaving it waits for what is still being packed.

    A workspace may be a sub-folder of a repository: the worker gets the whole repository, but only changes below the
    workspace are collected, shown and applied; paths are relative to it. A path that is not valid UTF-8 is given as Python
    does it, with surrogates. `state_folder` must not be readable by others.
    """

    def __init__(
        self,
        state_folder: Path,
        processes: Processes,
        environment: Mapping[str, str],
        never_send: Sequence[str] = NEVER_SEND,
    ) -> None:
        self._state_folder = state_folder
        self._processes = processes
        self._git = Git(processes, environment)
        self._never_send = tuple(never_send)
        self._owned = asyncio.TaskGroup()
        self._locks: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._waiting: dict[Asked, asyncio.Future[Snapshot]] = {}
        self._last: dict[Path, tuple[str, str, str]] = {}  # tree, head, base
        self._pinned: dict[Path, str] = {}  # the last tree that is whole in the private directory
        self._working: Counter[Path] = Counter()  # what relies on objects of a private directory that no ref holds yet

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self._take_back)
        await self._owned.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._owned.__aexit__(kind, error, trace)

    def _take_back(self) -> None:
        """Put back what a hub was writing to the user's files when it was killed: it is not recorded as applied or undone."""
        for record in (self._state_folder / "repositories").glob(f"*/{RECORD}"):
            if take_back(record):
                log.warning("a write was cut off, and is taken back: %s", record)

    async def locate(self, folder: Path) -> Path:
        """Looks for a `.git` upwards, without asking git: the snapshot finds out whether it is one."""
        return await asyncio.to_thread(_located, folder)

    async def snapshot(self, root: Path, buffers: Mapping[str, str], never_send: Sequence[str] = ()) -> Snapshot:
        """Calls that come while another snapshot is being taken share the next one; none shares one that had begun."""
        key = (root, frozenset(buffers.items()), tuple(never_send))
        shared = self._waiting.get(key)
        if shared is None:
            shared = self._waiting[key] = asyncio.get_running_loop().create_future()
            self._owned.create_task(_settle(shared, lambda: self._take(key)))
        return await asyncio.shield(shared)

    async def _take(self, key: Asked) -> Snapshot:
        root, buffers, never_send = key
        async with self._locks[root]:
            del self._waiting[key]
            repository = await examine(self._git, self._state_folder, root)
            await prepare(self._git, repository, self._state_folder)
            tree, notes = await take(self._git, repository, dict(buffers), (*self._never_send, *never_send))
            last_tree, last_head, base = self._last.get(root, ("", "", ""))
            if (last_tree, last_head) != (tree, repository.head):
                base = await commit_tree(repository, tree, repository.head, "Your files as they were")
                self._last[root] = (tree, repository.head, base)
                self._pin(repository.private, base, tree)
        return Snapshot(base, notes)

    def _pin(self, private: Path, commit_id: str, tree: str) -> None:
        self._working[private] += 1
        self._owned.create_task(self._pin_quietly(private, commit_id, tree))

    async def _pin_quietly(self, private: Path, commit_id: str, tree: str) -> None:
        async with self._locks[private]:  # one after the other, so that each packs only what is new
            known = [self._pinned[private]] if private in self._pinned else []
            try:
                await pin(self._git, private, commit_id, tree, known)
                self._pinned[private] = tree
            except (GitFailed, StorageFailed) as problem:
                log.warning("%s was not packed and depends on the user's objects: %s", commit_id, problem)
            finally:
                self._working[private] -= 1

    @contextlib.contextmanager
    def _at_work(self, root: Path) -> Iterator[Path]:
        """While objects are made in the private directory that no ref holds yet, nothing there is tidied up."""
        private = private_directory(self._state_folder, root)
        self._working[private] += 1
        try:
            with full_disk_told():
                yield private
        finally:
            self._working[private] -= 1

    async def open_folder(
        self, task: TaskId, root: Path, base: str, carry: Sequence[str] = (), never_send: Sequence[str] = ()
    ) -> Path:
        repository = self._load(root)
        with full_disk_told():
            wanted = Wanted(carry, (*self._never_send, *never_send), self._state_folder)
            clone = await make(self._git, self._processes, repository, self._place(task, root), base, wanted)
        return clone / repository.prefix

    async def collect(self, task: TaskId, root: Path, base: str) -> ChangeSet:
        with self._at_work(root) as private:
            changes, tree = await collect(self._git, self._place(task, root), base)
            if changes.files:
                self._pin(private, changes.result, tree)
            return changes

    async def between(self, root: Path, older: str, newer: str) -> ChangeSet:
        repository = self._load(root)
        files = await compare(self._git, repository, older, newer)
        return ChangeSet(older, newer if files else older, files)

    async def last_change(self, task: TaskId, root: Path) -> float:
        return await asyncio.to_thread(_last_change, self._place(task, root).outer)

    async def diff(self, root: Path, changes: ChangeSet, paths: Sequence[str] = ()) -> str:
        """Text that is not UTF-8 is shown with replacement characters: the patch is for reading."""
        repository, chosen = self._load(root), _known(changes, paths)
        printed = await self._git.ours(
            repository.private,
            *(
                "diff-tree",
                "-r",
                "--patch",
                "--binary",
                "--full-index",
                *RENAMES,
                *NOTHING_FOREIGN,
                *repository.only_below,
            ),
            *(changes.base, changes.result, "--", *(literal(repository.prefix + path) for path in chosen)),
        )
        return printed.stdout.decode(errors="replace")

    async def reset_folder(self, task: TaskId, root: Path, base: str, commit: str) -> None:
        with self._at_work(root):
            await reset(self._git, self._place(task, root), base, commit)

    async def select(self, root: Path, changes: ChangeSet, units: Collection[str]) -> ChangeSet:
        repository = self._load(root)
        with self._at_work(root) as private:
            chosen, tree = await select(self._git, repository, changes, units)
            if tree:
                self._pin(private, chosen.result, tree)
            return chosen

    async def merge(self, root: Path, onto: str, changes: ChangeSet) -> Merged:
        repository = self._load(root)
        with self._at_work(root) as private:
            merged, tree = await merge_onto(self._git, repository, onto, changes)
            self._pin(private, merged.commit, tree)
            return merged

    async def plan(
        self,
        root: Path,
        changes: ChangeSet,
        buffers: Mapping[str, str],
        *,
        exact: bool = False,
        keep_last_end: Collection[str] = (),
    ) -> LandingPlan:
        """Files that hold the result already count as written."""
        repository = self._load(root)
        async with self._locks[root]:
            with full_disk_told():
                return await plan(self._git, repository, changes, buffers, exact=exact, keep_last_end=keep_last_end)

    async def write(self, root: Path, plan: LandingPlan) -> None:
        assert isinstance(plan, Planned)
        async with self._locks[root]:
            with full_disk_told():
                await write_planned(self._git, self._load(root), plan)

    async def read(self, root: Path, commit: str, path: str) -> bytes | None:
        """As git would write it here: with the user's line ends."""
        repository = self._load(root)
        listed = await self._git.ours(
            repository.private, "ls-tree", "-z", "--full-tree", commit, literal(repository.prefix + path)
        )
        if not listed.stdout:
            return None
        mode, kind, blob = listed.stdout.partition(b"\t")[0].decode().split(" ")
        if kind != "blob":
            return None
        if mode == "120000":
            return (await self._git.ours(repository.private, "cat-file", "blob", blob)).stdout
        return await smudged(self._git, repository, path, blob)

    async def read_live(self, root: Path, path: str) -> str:
        return await asyncio.to_thread(_live_text, root, path)

    async def release(self, task: TaskId, root: Path) -> None:
        place = self._place(task, root)
        # What a worker left there would make the folder anew while it is removed.
        await end_strays(Origin(place.outer))
        for path in (place.index, place.record, place.carried):
            path.unlink(missing_ok=True)
        await asyncio.to_thread(shutil.rmtree, place.outer, ignore_errors=True)

    async def size(self, task: TaskId, root: Path) -> int | None:
        outer = self._place(task, root).outer
        return await asyncio.to_thread(size_of, outer) if outer.is_dir() else None

    async def forget(self, root: Path, commits: Collection[str], keep: Collection[str]) -> None:
        private = private_directory(self._state_folder, root)
        async with self._locks[root], self._locks[private]:
            self._pinned.pop(private, None)
            self._last.pop(root, None)  # a snapshot of the same files is made anew, and pinned
            if private.is_dir():
                await forget(self._git, private, commits, keep, lambda: not self._working[private])

    def _load(self, root: Path) -> Repository:
        return load(private_directory(self._state_folder, root) / "offload.json")

    def _place(self, task: TaskId, root: Path) -> Place:
        return Place.of(self._state_folder, private_directory(self._state_folder, root), task)


async def _settle(shared: asyncio.Future[Snapshot], take_it: Callable[[], Awaitable[Snapshot]]) -> None:
    """Hand the outcome to all who wait; an error is theirs, not the task group's."""
    try:
        with full_disk_told():
            result = await take_it()
    except Exception as problem:  # noqa: BLE001 - the edge of a task: it is raised again in whoever asked
        shared.set_exception(problem)
    else:
        shared.set_result(result)


def _last_change(folder: Path) -> float:
    """Folders count too, so that a file that came or went is seen. What goes away in the middle is passed over."""
    newest = 0.0
    waiting = [str(folder)]
    while waiting:
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    newest = max(newest, entry.stat(follow_symlinks=False).st_mtime)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return newest


def _located(folder: Path) -> Path:
    if not folder.is_dir():
        raise NotAWorkspace(f"{folder} is not a folder; name one that exists.")
    if folder == Path("/"):
        # Where a program stands whose own folder was removed; nobody means to hand over the whole machine.
        raise NotAWorkspace("/ is the whole machine, not a project; name the project's folder.")
    if "\n" in str(folder):
        raise NotAWorkspace(
            f"{str(folder)!r} has a line break in its path, which is not supported; use another folder."
        )
    for each in (folder, *folder.parents):
        if (each / ".git").exists():
            return each
        if _git_directory(each):
            raise NotAWorkspace(f"{each} is a folder of git's own, without files to work on; name that of a work tree.")
    return folder


def _git_directory(folder: Path) -> bool:
    """A bare repository, or a `.git`: told as git tells it."""
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _known(changes: ChangeSet, paths: Sequence[str]) -> list[str]:
    """The paths with those that they had before, without which a renamed file would look like a new one."""
    if unknown := set(paths) - {change.path for change in changes.files}:
        raise InvalidRequest(f"{', '.join(sorted(unknown))}: not changed by this task; leave it out.")
    before = [change.old_path for change in changes.files if change.old_path and change.path in paths]
    return [*paths, *before]


def _live_text(root: Path, path: str) -> str:
    target = root / path
    try:
        if not Path(os.path.realpath(target)).is_relative_to(os.path.realpath(root)):
            raise InvalidRequest(f"{path} is outside of {root}; name a file inside of it.")
        return target.read_bytes().decode()
    except FileNotFoundError:
        raise InvalidRequest(f"there is no file {path} in {root}") from None
    except (OSError, ValueError) as problem:
        raise InvalidRequest(f"{path} cannot be read as text: {problem}.") from None
