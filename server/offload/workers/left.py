"""Says in words what a turn's tools had left running, and what of it could not be ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from offload.core.worker import End, Failed, Finished, Halted, Lost, Unstopped
from offload.domain.turn import Survivor
from offload.processes import Ended, Stray

SHORT = 60
NAMED = 3


def told(end: End, ended: Ended) -> End:
    """The end of a turn with what there is to say of its processes; it is no clean stop while one of them is left."""
    survivors = tuple(_survivor(stray) for stray in ended.survivors)
    still = f"left processes that could not be ended and may still write: {_words(survivors)}" if survivors else ""
    match end:
        case Halted() if survivors:
            return Unstopped(survivors, end.text)
        case Finished():
            roots = [_survivor(stray) for stray in ended.gone if stray.root]
            over = f"ended {_count(roots)} that the worker had left running: {_words(roots)}" if roots else ""
            return replace(
                end, doubt="; ".join(part for part in (end.doubt, over, still and f"the worker {still}") if part)
            )
        case Failed() if still:
            return replace(end, failure=replace(end.failure, message=f"{end.failure.message} The worker {still}."))
        case Lost() if still:
            return replace(end, reason=f"{end.reason} The worker {still}.")
        case _:
            return end


def _survivor(stray: Stray) -> Survivor:
    line = " ".join(stray.command.split())
    return Survivor(stray.identity.pid, line if len(line) <= SHORT else f"{line[: SHORT - 1]}…")


def _count(named: Sequence[Survivor]) -> str:
    return f"{len(named)} process{'es' if len(named) > 1 else ''}"


def _words(named: Sequence[Survivor]) -> str:
    words = ", ".join(f"{one.pid} ({one.command})" for one in named[:NAMED])
    return words if len(named) <= NAMED else f"{words} and {len(named) - NAMED} more"
