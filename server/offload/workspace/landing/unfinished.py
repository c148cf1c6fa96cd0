"""Remembers a write to the user's files while it lasts, so that one that was cut off is taken back by the next hub.

Blocking; to be called in a thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

RECORD = "unfinished.json"


class Stage(enum.StrEnum):
    PREPARING = "preparing"  # no file has changed
    SWAPPING = "swapping"
    WRITTEN = "written"  # only what lies beside the files has to go


@dataclass(frozen=True, slots=True)
class Step:
    """One file: its `new` content and a copy of the `old` one lie beside it. `had` is whether it was there before, `comes`
    whether it shall be there; `stamp` knows the new content again, () as long as it is not complete."""

    target: str
    new: str
    old: str
    had: bool
    comes: bool
    stamp: tuple[int, ...] = ()


def stamp(status: os.stat_result) -> tuple[int, ...]:
    """Two that are equal are of the same file, untouched."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_mode)


def note(record: Path, root: Path, stage: Stage, steps: Iterable[Step], folders: Iterable[Path]) -> None:
    """`folders` are those that are made for it, or may be empty after it, inner ones first."""
    noted = {
        "root": str(root),
        "stage": stage,
        "steps": [dataclasses.asdict(step) for step in steps],
        "folders": [str(folder) for folder in folders],
    }
    beside = record.with_suffix(".new")
    beside.write_text(json.dumps(noted))
    beside.replace(record)


def take_back(record: Path) -> bool:
    """Put the files back of a write that was cut off, but for those that somebody has changed since; whether there was one. Where
    the folder is not there, the record is kept for another time."""
    try:
        noted = json.loads(record.read_text())
    except FileNotFoundError:
        return False
    if not Path(noted["root"]).is_dir():
        return False
    steps = [Step(**{**step, "stamp": tuple(step["stamp"])}) for step in noted["steps"]]
    if noted["stage"] == Stage.SWAPPING:
        for step in reversed(steps):
            _swap_back(step)
    tidy(record, steps, map(Path, noted["folders"]))
    return True


def _swap_back(step: Step) -> None:
    target = Path(step.target)
    try:
        now = stamp(target.lstat())
        swapped = step.comes and now == step.stamp
    except (FileNotFoundError, NotADirectoryError):
        swapped = not step.comes
    if swapped and step.had:
        Path(step.old).replace(target)
    elif swapped:
        target.unlink()


def tidy(record: Path, steps: Iterable[Step], folders: Iterable[Path]) -> None:
    """Remove what lies beside the files, those of `folders` that are empty, and at last the record."""
    for step in steps:
        for beside in (step.new, step.old):
            with contextlib.suppress(NotADirectoryError):
                Path(beside).unlink(missing_ok=True)
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
    record.unlink(missing_ok=True)
