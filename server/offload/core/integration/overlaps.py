"""Where tasks meet: results that change the same files, before anything of them is merged, and tasks that are about the same
files, before one of them begins. Knows nothing of git: it compares what is known of change sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from offload.domain.change import ChangeSet, Conflict, FileChange, FileStatus
from offload.domain.integration import Overlap
from offload.domain.scope import overlap
from offload.domain.task import Task, TaskId, TaskSpec

WARNINGS = 5  # as many as somebody reads


@dataclass(frozen=True, slots=True)
class Result:
    """What is wanted of one task. `placed` is what it comes to on the files that all the results are merged with, where the
    places of `conflicts` are marked; `changes` is what is to be merged; `needs` are the tasks that it was begun from; `without`
    counts the parts of it that stay out, because they were rejected or are out of its scope."""

    task: Task
    changes: ChangeSet
    placed: ChangeSet
    conflicts: tuple[Conflict, ...] = ()
    needs: frozenset[TaskId] = frozenset()
    without: int = 0

    @property
    def id(self) -> TaskId:
        return self.task.id

    @property
    def paths(self) -> frozenset[str]:
        """All that it touches; a renamed file is touched in both places."""
        return frozenset(path for file in self.placed.files for path in _paths(file))


def overlaps(results: Sequence[Result]) -> tuple[Overlap, ...]:
    """The pairs that change the same files, in the order of `results`."""
    return tuple(
        Overlap(one.id, other.id, tuple(sorted(shared)), _meet(one, other))
        for one, other in combinations(results, 2)
        if (shared := one.paths & other.paths)
    )


def proposed(results: Sequence[Result], found: Iterable[Overlap]) -> list[Result]:
    """The results in the order in which they are best merged: those that meet few others first, of them the small ones, and
    each after those that it was begun from."""
    meetings = [task for pair in found for task in (pair.one, pair.other)]
    left = sorted(results, key=lambda each: (meetings.count(each.id), _size(each.placed)))
    order: list[Result] = []
    while left:
        waiting = {each.id for each in left}
        free = (each for each in left if not waiting & (each.needs - {each.id}))
        order.append(next(free, left[0]))  # Two that were each brought onto the other have no right order.
        left.remove(order[-1])
    return order


def warnings(spec: TaskSpec, tasks: Iterable[Task]) -> tuple[str, ...]:
    """What somebody who starts a task should know of those that are at work there: a sentence for each that is about the same
    file, or whose caller named paths that overlap with his. Those that it begins from are no surprise."""
    here = [task for task in tasks if task.live and task.spec.workspace == spec.workspace and task.id not in spec.after]
    return tuple(_warnings(spec, here))[:WARNINGS]


def _warnings(spec: TaskSpec, tasks: Sequence[Task]) -> Iterator[str]:
    for task in tasks:
        other = task.spec
        if spec.anchor is not None and other.anchor is not None and spec.anchor.path == other.anchor.path:
            yield f"task {task.id} ({other.title}) works on {spec.anchor.path} too"
        elif spec.paths_named and other.paths_named and overlap(spec.allowed_paths, other.allowed_paths):
            yield f"task {task.id} ({other.title}) may change {', '.join(other.allowed_paths)} too"


def _meet(one: Result, other: Result) -> bool:
    """Whether they change lines close to each other. A file that both add, remove or rename counts, and one without lines."""
    return any(
        _close(mine, theirs)
        for mine in one.placed.files
        for theirs in other.placed.files
        if set(_paths(mine)) & set(_paths(theirs))
    )


def _close(one: FileChange, other: FileChange) -> bool:
    if FileStatus.MODIFIED not in (one.status, other.status) or not one.hunks or not other.hunks:
        return True
    # Hunks hold three lines around what they change, so those that share a line are close.
    return any(
        mine.old_start < theirs.old_start + max(theirs.old_lines, 1)
        and theirs.old_start < mine.old_start + max(mine.old_lines, 1)
        for mine in one.hunks
        for theirs in other.hunks
    )


def _paths(file: FileChange) -> tuple[str, ...]:
    return (file.path, file.old_path) if file.old_path else (file.path,)


def _size(changes: ChangeSet) -> int:
    return changes.added_lines + changes.removed_lines
