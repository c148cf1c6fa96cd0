"""Several results made one: what was merged in which order, what did not go together, and which results break the checks."""

from __future__ import annotations

from dataclasses import dataclass

from offload.domain.change import Conflict
from offload.domain.ids import TaskId


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two results that change the same files; `hunks` says whether they change lines that are close to each other."""

    one: TaskId
    other: TaskId
    paths: tuple[str, ...]
    hunks: bool = False


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A result that is not in the union, and why: it conflicts with what was merged before it (`with_tasks`; empty for the
    user's own files)."""

    task: TaskId
    with_tasks: tuple[TaskId, ...]
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Integration:
    """`order` are the tasks whose results are in the union, as they were merged, and `steps` the commits after each of them;
    `culprits` are those with which its checks fail: one that fails alone, or two that pass alone and fail together. `before` is
    true when the checks fail without any of the results; `probes` counts how often they were run to find out."""

    order: tuple[TaskId, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    culprits: tuple[TaskId, ...] = ()
    before: bool = False
    probes: int = 0
    steps: tuple[str, ...] = ()
