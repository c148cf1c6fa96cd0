"""What private copies and results cost, beside bare git on the same repository: snapshots, folders, collecting, merging into an
open document, sixteen starts at once, and how all of it grows with the number of files."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from offload.domain.task import TaskId
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.bench.measure import Rows, clean_environment

SMALL, MIDDLE, LARGE = 1_000, 10_000, 50_000
ROUNDS = {SMALL: 15, MIDDLE: 15, LARGE: 5}
FOLDERS = {SMALL: 5, MIDDLE: 3, LARGE: 1}  # each is a whole checkout, of which many take minutes
MERGES = 15
LINES = 20_000
STARTS = 16
TIMES = 3
QUIET_S = 0.3  # what is packed after a snapshot or a result is not what is measured here
NOISE = 1.1
"""What is not worse than linear may come out a little above one."""

Samples = defaultdict[str, list[float]]
Result = TypeVar("Result")
WORKER = "w" * 40 + "\n"


@dataclass
class Place:
    """A repository with so many files, and what is measured on it (milliseconds)."""

    folder: Path
    files: int
    samples: Samples = field(default_factory=lambda: defaultdict(list))

    @property
    def root(self) -> Path:
        return self.folder / "project"

    @property
    def environment(self) -> Mapping[str, str]:
        return clean_environment(
            GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1", GIT_TERMINAL_PROMPT="0", HOME=str(self.folder)
        )

    def git(self, *arguments: str | Path, cwd: Path | None = None) -> None:
        subprocess.run(
            ["git", *arguments], cwd=cwd or self.root, env=dict(self.environment), check=True, stdout=subprocess.DEVNULL
        )

    def make(self) -> None:
        """Files of forty lines, fifty to a folder, committed and packed."""
        for number in range(self.files):
            folder = self.root / f"part{number // 1000}" / f"module{number // 50 % 20}"
            if number % 50 == 0:
                folder.mkdir(parents=True)
            lines = (f"line {line} of file {number}\n" for line in range(40))
            (folder / f"file{number}.py").write_text("".join(lines))
        self.git("init", "--quiet", "--initial-branch=main")
        for name, value in {"user.name": "Bench", "user.email": "bench@localhost", "gc.auto": "0"}.items():
            self.git("config", name, value)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=all")
        self.git("gc", "--quiet")
        (self.root / "part0" / "module0" / "file1.py").write_text("changed\n")
        (self.root / "new.py").write_text("new\n")
        self.git("status")


def bench(rows: Rows, _cache: Path, folder: Path) -> None:
    """One repository after the other, so that the disk holds one of them at a time."""
    places = {}
    for files in (SMALL, MIDDLE, LARGE):
        place = places[files] = Place(folder / str(files), files)
        place.root.mkdir(parents=True)
        place.make()
        asyncio.run(_measure(place))
        if files == SMALL:
            asyncio.run(_at_once(place))
            asyncio.run(_merge(place))
        shutil.rmtree(place.folder)
    _costs(rows, places[MIDDLE].samples)
    _growth(rows, places)
    _others(rows, places[SMALL].samples)


async def _measure(place: Place) -> None:
    """A snapshot, a folder and a collection beside what git alone needs, in turn; the first round is not counted."""
    async with GitWorkspaces(place.folder / "state", Processes(), place.environment) as workspace:
        taken = await workspace.snapshot(place.root, {})
        for number in range(ROUNDS[place.files] + 1):
            await asyncio.sleep(QUIET_S)
            (place.root / "new.py").write_text(f"new {number}\n")
            _timed(place.samples, "status", lambda: place.git("status", "--porcelain"))
            taken = await _awaited(place.samples, "snapshot", workspace.snapshot(place.root, {}))
        for number in range(FOLDERS[place.files] + 1):
            task = TaskId(f"t{number}")
            for ours in (True, False) if number % 2 else (False, True):  # what one has written may slow the other down
                await asyncio.sleep(QUIET_S)
                if ours:
                    opening = workspace.open_folder(task, place.root, taken.base)
                    clone = await _awaited(place.samples, "folder", opening)
                else:
                    _timed(place.samples, "clone", lambda: _clone(place))
            shutil.rmtree(place.folder / "clone")
            if number < FOLDERS[place.files]:
                await workspace.release(task, place.root)
        for number in range(ROUNDS[place.files] + 1):
            await asyncio.sleep(QUIET_S)
            (clone / "part0" / "module0" / "file2.py").write_text(f"{number}\n{WORKER}")
            (clone / "added.py").write_text(f"{number}\n{WORKER}")
            _timed(place.samples, "status there", lambda: place.git("status", "--porcelain", cwd=clone))
            changes = await _awaited(place.samples, "collect", workspace.collect(task, place.root, taken.base))
            assert len(changes.files) == 2, changes
    for samples in place.samples.values():
        del samples[0]


def _clone(place: Place) -> None:
    place.git("clone", "--quiet", "--shared", "--no-checkout", place.root, place.folder / "clone", cwd=place.folder)
    place.git("checkout", "--quiet", cwd=place.folder / "clone")


async def _at_once(place: Place) -> None:
    async with GitWorkspaces(place.folder / "state", Processes(), place.environment) as workspace:

        async def start(name: str) -> Path:
            taken = await workspace.snapshot(place.root, {})
            return await workspace.open_folder(TaskId(name), place.root, taken.base)

        for number in range(TIMES + 1):
            (place.root / "new.py").write_text(f"start {number}\n")
            names = [f"s{number}-{each}" for each in range(STARTS)]
            await asyncio.sleep(QUIET_S)
            await _awaited(place.samples, "one start", start(f"s{number}"))
            (place.root / "new.py").write_text(f"starts {number}\n")
            await asyncio.sleep(QUIET_S)
            folders = await _awaited(place.samples, "starts", asyncio.gather(*map(start, names)))
            assert len({*folders}) == STARTS
            assert all((each / "new.py").read_text() == f"starts {number}\n" for each in folders)
            for name in (f"s{number}", *names):
                await workspace.release(TaskId(name), place.root)
    for name in ("one start", "starts"):
        del place.samples[name][0]


async def _merge(place: Place) -> None:
    """The user typed at the top, the worker changed the middle; the same three texts for both."""
    lines = [f"line {number} of a long file\n" for number in range(LINES)]
    texts = {
        "base": "".join(lines),
        "live": "".join(["typed\n", *lines]),
        "theirs": "".join([*lines[: LINES // 2], "by the worker\n", *lines[LINES // 2 + 5 :]]),
    }
    (place.root / "long.txt").write_text(texts["base"])
    for name, text in texts.items():
        (place.folder / name).write_text(text)
    async with GitWorkspaces(place.folder / "state", Processes(), place.environment) as workspace:
        taken = await workspace.snapshot(place.root, {})
        clone = await workspace.open_folder(TaskId("merge"), place.root, taken.base)
        (clone / "long.txt").write_text(texts["theirs"])
        changes = await workspace.collect(TaskId("merge"), place.root, taken.base)
        sides = [str(place.folder / name) for name in ("live", "base", "theirs")]
        for _ in range(MERGES + 1):
            await asyncio.sleep(QUIET_S)
            _timed(place.samples, "merge-file", lambda: place.git("merge-file", "--stdout", *sides))
            planning = workspace.plan(place.root, changes, {"long.txt": texts["live"]})
            plan = await _awaited(place.samples, "merge", planning)
            (buffer,) = plan.buffers
            assert buffer.after.startswith("typed\n")
            assert "by the worker\n" in buffer.after
    for name in ("merge-file", "merge"):
        del place.samples[name][0]


def _timed(samples: Samples, name: str, work: Callable[[], object]) -> None:
    begun = time.perf_counter()
    work()
    samples[name].append((time.perf_counter() - begun) * 1000)


async def _awaited(samples: Samples, name: str, work: Awaitable[Result]) -> Result:
    begun = time.perf_counter()
    result = await work
    samples[name].append((time.perf_counter() - begun) * 1000)
    return result


def _costs(rows: Rows, samples: Samples) -> None:
    status, there = "git status, 10,000 files", "git status in a task's folder"
    clone = "git clone --shared and checkout"
    rows.add(status, "ms", samples["status"])
    rows.add("a later snapshot", "ms", samples["snapshot"], against=status, goal=2)
    rows.add(clone, "ms", samples["clone"])
    rows.add("a task's folder ready", "ms", samples["folder"], against=clone, goal=1.3)
    rows.add(there, "ms", samples["status there"])
    rows.add("a result collected", "ms", samples["collect"], against=there, goal=3)


def _others(rows: Rows, samples: Samples) -> None:
    bare, one = "git merge-file, 20,000 lines", "one start: snapshot and folder, 1,000 files"
    rows.add(bare, "ms", samples["merge-file"])
    rows.add("a result merged into an open document", "ms", samples["merge"], against=bare, goal=2)
    rows.add(one, "ms", samples["one start"])
    rows.add("sixteen starts at once", "ms", samples["starts"], against=one, goal=9)


def _growth(rows: Rows, places: Mapping[int, Place]) -> None:
    """By file, so that what grows in line with the number of files stays the same."""
    titles = {
        "clone": "git clone and checkout",
        "snapshot": "later snapshot",
        "folder": "folder ready",
        "collect": "collected",
    }
    for name, title in titles.items():
        goal = None if name == "clone" else NOISE  # git's own is there to compare with
        for files, place in places.items():
            per_file = [sample * 1000 / files for sample in place.samples[name]]
            if files == SMALL:
                rows.add(f"{title}, by file of {files:,}", "µs", per_file)
            else:
                first = f"{title}, by file of {SMALL:,}"
                rows.add(f"{title}, by file of {files:,}", "µs", per_file, against=first, goal=goal)
