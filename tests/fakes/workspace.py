"""A workspace without git: snapshots are dictionaries in memory, task folders are real folders.

It keeps the same contract as the real one (`tests/workspace/contract.py`), except that it merges whole files only: a file
that the user changed as well is always a conflict.
"""

from __future__ import annotations

import difflib
import hashlib
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.core.ports import BufferChange, Merged, Snapshot
from offload.domain.change import ChangeSet, Conflict, FileChange, FileStatus, Hunk, digest
from offload.domain.errors import ApplyRefused, InvalidRequest, NotAWorkspace
from offload.domain.task import TaskId

Files = dict[str, bytes]


@dataclass(frozen=True)
class FakePlan:
    paths: tuple
    unchanged: tuple
    buffers: tuple
    disk: dict
    before: str
    after: str


class FakeWorkspace:
    """Fits the `Workspace` port. `folder` is where task folders are made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._commits: dict[str, Files] = {}

    async def locate(self, folder: Path) -> Path:
        _check_folder(folder)
        return folder

    async def snapshot(self, root: Path, buffers: Mapping[str, str], never_send: Sequence[str] = ()) -> Snapshot:
        return Snapshot(self._commit(_files_below(root) | {path: text.encode() for path, text in buffers.items()}))

    async def open_folder(
        self, task: TaskId, root: Path, base: str, carry: Sequence[str] = (), never_send: Sequence[str] = ()
    ) -> Path:
        folder = self._folder / task / root.name
        if not folder.exists():
            folder.mkdir(parents=True)
            for path, content in self._commits[base].items():
                _write(folder / path, content)
        return folder

    async def collect(self, task: TaskId, root: Path, base: str) -> ChangeSet:
        return self._between(base, self._commit(_files_below(self._folder / task / root.name)))

    async def between(self, root: Path, older: str, newer: str) -> ChangeSet:
        return self._between(older, newer)

    async def last_change(self, task: TaskId, root: Path) -> float:
        return max((path.lstat().st_mtime for path in (self._folder / task).rglob("*")), default=0.0)

    async def diff(self, root: Path, changes: ChangeSet, paths: Sequence[str] = ()) -> str:
        before, after = self._commits[changes.base], self._commits[changes.result]
        sections = []
        for change in _selected(changes, paths):
            old, new = (_lines(files.get(change.path)) for files in (before, after))
            sections.append(f"diff --git a/{change.path} b/{change.path}\n")
            sections.extend(difflib.unified_diff(old, new, f"a/{change.path}", f"b/{change.path}"))
        return "".join(sections)

    async def reset_folder(self, task: TaskId, root: Path, base: str, commit: str) -> None:
        folder = self._folder / task / root.name
        shutil.rmtree(folder)
        for path, content in self._commits[commit].items():
            _write(folder / path, content)

    async def select(self, root: Path, changes: ChangeSet, units: Collection[str]) -> ChangeSet:
        if unknown := set(units) - set(changes.units) - {change.id for change in changes.files}:
            raise InvalidRequest(f"{', '.join(sorted(unknown))}: not in this result; leave it out.")
        before, after = self._commits[changes.base], self._commits[changes.result]
        files = dict(before)
        for change in changes.files:
            if change.id in units or set(change.units) <= set(units):
                _put(files, change.path, after.get(change.path))
            elif set(change.units) & set(units):
                files[change.path] = _with_hunks(change.path, before.get(change.path), after.get(change.path), units)
        return self._between(changes.base, self._commit(files))

    async def merge(self, root: Path, onto: str, changes: ChangeSet) -> Merged:
        before, after = self._commits[changes.base], self._commits[changes.result]
        files, conflicts = dict(self._commits[onto]), []
        for change in changes.files:
            ours, base, theirs = (each.get(change.path) for each in (files, before, after))
            if ours in (base, theirs):
                _put(files, change.path, theirs)
                continue
            texts = [(each or b"").decode() for each in (ours, base, theirs)]
            conflicts.append(Conflict(change.path, "both sides changed it", change.units[0], 1, *texts))
            marked = f"<<<<<<<\n{texts[0]}=======\n{texts[2]}>>>>>>>\n"
            files[change.path] = marked.encode()
        return Merged(self._commit(files), tuple(conflicts))

    async def plan(
        self,
        root: Path,
        changes: ChangeSet,
        buffers: Mapping[str, str],
        *,
        exact: bool = False,
        keep_last_end: Collection[str] = (),
    ) -> FakePlan:
        before, after = dict(self._commits[changes.base]), dict(self._commits[changes.result])
        for files in (before, after):
            for path in files.keys() & keep_last_end:
                end = "\n" if buffers[path].endswith("\n") else ""
                files[path] = (files[path].decode().removesuffix("\n") + end).encode()
        reasons, conflicts, lives = [], [], {}
        for change in changes.files:
            target = root / change.path
            live = buffers[change.path].encode() if change.path in buffers else _on_disk(target)
            lives[change.path] = live
            if live not in (before.get(change.path), after.get(change.path)):
                reasons.append((change.path, "was changed by you as well"))
                texts = [(each or b"").decode() for each in (live, before.get(change.path), after.get(change.path))]
                conflicts.append(Conflict(change.path, "was changed by you as well", change.units[0], 1, *texts))
        if reasons:
            message = "Nothing was written: " + "; ".join(f"{path} {why}" for path, why in reasons)
            raise ApplyRefused(message, tuple(reasons), tuple(conflicts))
        changed = [change.path for change in changes.files if lives[change.path] != after.get(change.path)]
        return FakePlan(
            paths=tuple(change.path for change in changes.files),
            unchanged=tuple(change.path for change in changes.files if change.path not in changed),
            buffers=tuple(
                BufferChange(path, buffers[path], (after.get(path) or b"").decode())
                for path in changed
                if path in buffers
            ),
            disk={path: (lives[path], after.get(path)) for path in changed if path not in buffers},
            before=self._commit({path: live for path, live in lives.items() if live is not None}) if changed else "",
            after=self._commit({path: after[path] for path in lives if path in after}) if changed else "",
        )

    async def write(self, root: Path, plan: FakePlan) -> None:
        stale = [path for path, (live, _) in plan.disk.items() if _on_disk(root / path) != live]
        if stale:
            raise ApplyRefused("Nothing was written: it changed meanwhile", tuple((path, "changed") for path in stale))
        for path, (_, content) in plan.disk.items():
            if content is None:
                (root / path).unlink(missing_ok=True)
            else:
                _write(root / path, content)

    async def read(self, root: Path, commit: str, path: str) -> bytes | None:
        return self._commits[commit].get(path)

    async def read_live(self, root: Path, path: str) -> str:
        return _live_text(root, path)

    async def release(self, task: TaskId, root: Path) -> None:
        shutil.rmtree(self._folder / task, ignore_errors=True)

    def _between(self, older: str, newer: str) -> ChangeSet:
        before, after = self._commits[older], self._commits[newer]
        changed = sorted(path for path in before | after if before.get(path) != after.get(path))
        files = tuple(_change(path, before.get(path), after.get(path)) for path in changed)
        return ChangeSet(older, newer if files else older, files)

    async def size(self, task: TaskId, root: Path) -> int | None:
        folder = self._folder / task
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.exists() else None

    async def forget(self, root: Path, commits: Collection[str], keep: Collection[str]) -> None:
        for commit in {*commits} - {*keep}:
            self._commits.pop(commit, None)

    def _commit(self, files: Files) -> str:
        commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
        self._commits[commit] = files
        return commit


def _put(files: Files, path: str, content: bytes | None) -> None:
    if content is None:
        files.pop(path, None)
    else:
        files[path] = content


def _on_disk(target: Path) -> bytes | None:
    return target.read_bytes() if target.is_file() else None


def _live_text(root: Path, path: str) -> str:
    target = root / path
    if not target.resolve().is_relative_to(root.resolve()):
        raise InvalidRequest(f"{path} is outside of {root}; name a file inside of it.")
    try:
        return target.read_bytes().decode()
    except FileNotFoundError:
        raise InvalidRequest(f"there is no file {path} in {root}") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidRequest(f"{path} cannot be read as text: {problem}.") from None


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise NotAWorkspace(f"{folder} is not a folder; name the folder that you work in.")


def _files_below(root: Path) -> Files:
    _check_folder(root)
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)


def _selected(changes: ChangeSet, paths: Sequence[str]) -> list[FileChange]:
    if unknown := set(paths) - {change.path for change in changes.files}:
        raise InvalidRequest(f"{', '.join(sorted(unknown))}: not changed by this task; leave it out.")
    return [change for change in changes.files if not paths or change.path in paths]


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode(errors="replace").splitlines(keepends=True)


def _with_hunks(path: str, old: bytes | None, new: bytes | None, ids: Collection[str]) -> bytes:
    """The old text with these hunks alone."""
    lines, at = [], 0
    for group in _groups(old, new):
        begin, end = group[0][1], group[-1][2]
        chosen = _hunk(path, old, new, group).id in ids
        lines += _lines(old)[at:begin]
        lines += _lines(new)[group[0][3] : group[-1][4]] if chosen else _lines(old)[begin:end]
        at = end
    return "".join([*lines, *_lines(old)[at:]]).encode()


def _change(path: str, old: bytes | None, new: bytes | None) -> FileChange:
    status = FileStatus.ADDED if old is None else FileStatus.DELETED if new is None else FileStatus.MODIFIED
    modes = ("" if old is None else "100644", "" if new is None else "100644")
    if b"\0" in (old or b"") + (new or b""):
        return FileChange(path, status, *modes, 0, 0, binary=True)
    hunks, added, removed = [], 0, 0
    for group in _groups(old, new):
        hunks.append(_hunk(path, old, new, group))
        edits = [codes for codes in group if codes[0] != "equal"]
        removed += sum(codes[2] - codes[1] for codes in edits)
        added += sum(codes[4] - codes[3] for codes in edits)
    return FileChange(path, status, *modes, added, removed, hunks=tuple(hunks))


def _groups(old: bytes | None, new: bytes | None) -> list:
    return list(difflib.SequenceMatcher(None, _lines(old), _lines(new)).get_grouped_opcodes())


def _hunk(path: str, old: bytes | None, new: bytes | None, group: list) -> Hunk:
    """The id is made of the lines that go and come."""
    (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
    moved = [(_lines(old)[i:j], _lines(new)[k:m]) for kind, i, j, k, m in group if kind != "equal"]
    return Hunk(a + (b > a), b - a, c + (d > c), d - c, "h" + digest(path, repr(moved)))
