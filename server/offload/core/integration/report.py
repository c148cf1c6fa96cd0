"""What is told of an integration, in plain words: what went in, what met, what was left out and the way out of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from offload.core.integration.culprits import Found
from offload.core.integration.overlaps import Result
from offload.domain.change import Conflict
from offload.domain.check import CheckResult
from offload.domain.integration import Integration, LeftOut, Overlap
from offload.domain.task import Phase, TaskId

NOTHING_MERGED = "nothing_to_integrate"  # the code of a failure
CONFLICTS = 5  # places of one result that are told, of however many
PATHS = 5  # files of one pair
PAIRS = 20
LINE = 60  # characters of a line that is shown


def report(task_id: TaskId, made: Integration, results: Sequence[Result]) -> str:
    """The whole of it; `task_id` is the integration."""
    by_id = {each.id: each for each in results}
    there = [f"* {_named(each)}" for each in results if not each.placed.files]
    parts = [
        _list(
            f"Merged {len(made.order)} of {len(results)} results onto your files, in this order:", _merged(made, by_id)
        ),
        _list("These change the same files:", _overlaps(made.overlaps)),
        _list("Left out:", (_left_out(task_id, made, each, by_id[each.task]) for each in made.left_out)),
        _list("Nothing of these is wanted that your files do not have:", there),
    ]
    if made.order:
        parts.append(
            f"apply_task {task_id} takes all of this in one step, and undo_apply takes it back; what was said of the hunks of the "
            "tasks that it is made of stays as it was."
        )
    return "\n\n".join(filter(None, parts))


def reservations(made: Integration, results: Sequence[Result]) -> str:
    """Why a person should look at it, "" for nothing."""
    unsure = [words for each in results if each.id in made.order and (words := _unsure(each, made))]
    return "; ".join([*map(_stayed_out, made.left_out), *unsure])


def cause(found: Found, failing: Sequence[CheckResult], named: Callable[[TaskId], str]) -> str:
    """What the checks that fail over the union fail with."""
    checks = ", ".join(each.name for each in failing)
    names = [named(task_id) for task_id in found.culprits]
    if found.before:
        return f"{checks}: fails with your files alone, without any of the results"
    if len(names) == 1:
        return f"{checks}: fails with {names[0]} alone, and passes without any of the results"
    if names:
        return f"{checks}: fails with {names[0]} and {names[1]} together, and passes with each of them alone"
    return f"{checks}: {found.doubt}"


def _merged(made: Integration, by_id: dict[TaskId, Result]) -> Iterator[str]:
    for number, result in enumerate((by_id[task_id] for task_id in made.order), start=1):
        files, placed = len(result.placed.files), result.placed
        counts = f"{files} {'file' if files == 1 else 'files'}, +{placed.added_lines} -{placed.removed_lines}"
        parts = "part" if result.without == 1 else "parts"
        without = f"; {result.without} {parts} rejected or out of its scope stayed out" if result.without else ""
        yield f"{number}. {_named(result)}: {counts}{without}"


def _overlaps(pairs: Sequence[Overlap]) -> Iterator[str]:
    for pair in pairs[:PAIRS]:
        near = ", in lines close to each other" if pair.hunks else ""
        yield f"* {pair.one} and {pair.other}: {_some(pair.paths, PATHS)}{near}"
    if more := pairs[PAIRS:]:
        yield f"* and {len(more)} more pairs"


def _left_out(task_id: TaskId, made: Integration, left: LeftOut, result: Result) -> str:
    lines = [f"* {_named(result)} conflicts with {_opponents(left)}:", *map(_conflict, left.conflicts[:CONFLICTS])]
    if more := left.conflicts[CONFLICTS:]:
        lines.append(f"  and {len(more)} more")
    if absent := sorted(result.needs - {*made.order}):
        lines.append(f"  It was begun from the results of {', '.join(absent)}, which are not in here.")
    onto, then = (
        (task_id, f"integrate_tasks {task_id} {left.task}") if left.with_tasks else ("files", "integrate again")
    )
    lines.append(
        f"  continue_task {left.task} onto={onto} sends it back to its worker with the conflicts marked; then {then}."
    )
    return "\n".join(lines)


def _conflict(conflict: Conflict) -> str:
    place = f"{conflict.path}, line {conflict.first_line}" if conflict.first_line else conflict.path
    return (
        f"  {place}: {conflict.reason}; there it is {_first(conflict.yours)}, in this result {_first(conflict.theirs)}"
    )


def _first(side: str) -> str:
    lines = side.strip().splitlines()
    if not lines:
        return "nothing"
    return f"“{lines[0] if len(lines[0]) <= LINE else lines[0][: LINE - 1] + '…'}”"


def _stayed_out(left: LeftOut) -> str:
    return f"{left.task} was left out: it conflicts with {_opponents(left)} in {_paths(left)}"


def _unsure(result: Result, made: Integration) -> str:
    task = result.task
    stands = (
        "" if task.phase is Phase.READY else f"{task.id} is {task.phase}, so what was taken of it may not be finished"
    )
    doubts = task.turn.needs_review
    if task.integration is not None:  # What it had left out may have come back from its worker, and be in here.
        here = [_stayed_out(left) for left in task.integration.left_out if left.task in made.order]
        doubts = "; ".join(each for each in doubts.split("; ") if each not in here)
    return "; ".join(filter(None, (stands, doubts and f"{task.id}: {doubts}")))


def _opponents(left: LeftOut) -> str:
    return " and ".join(left.with_tasks) or "your own files"


def _paths(left: LeftOut) -> str:
    return _some(list(dict.fromkeys(each.path for each in left.conflicts)), PATHS)


def _some(names: Sequence[str], most: int) -> str:
    return ", ".join([*names[:most], *([f"{len(names) - most} more"] if names[most:] else [])])


def _named(result: Result) -> str:
    return f"{result.id} ({result.task.spec.title})"


def _list(title: str, lines: Iterator[str] | Sequence[str]) -> str:
    found = list(lines)
    return "\n".join([title, *found]) if found else ""
