"""What is printed: JSON for scripts, words for people, errors for both."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from offload.cli.exits import exit_for
from offload.cli.render import as_commands
from offload.domain.errors import OffloadError
from offload.domain.text import split_lines
from offload.wire import convert
from offload.wire.views import ConflictView
from offload.wire.words import harmless

UNFOLDED = 2000  # columns


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the program with code 1 by itself."""
        raise BrokenPipeError


def console(*, stderr: bool = False) -> Console:
    """Without markup and highlighting: what is printed is data. In a pipe or a file no line is folded or cut."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else UNFOLDED
    return _Console(stderr=stderr, width=width, markup=False, highlight=False, emoji=False)


def print_json(value: Mapping[str, Any]) -> None:
    """One object, indented, in ASCII: safe for every terminal and locale."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def print_error(error: OffloadError, *, as_json: bool, task_id: str = "") -> int:
    """Tells the error and gives the exit code. `task_id` is what the command is about, for the advice that goes on with it."""
    view = convert.error(error)
    if as_json:
        print_json({"error": view.model_dump(mode="json")})
    else:
        unsaid = [f"  {reason}" for reason in view.reasons if reason not in str(error)]
        sides = [line for conflict in view.conflicts for line in _sides(conflict)]
        for line in [f"offload: {as_commands(str(error), task_id)}", *unsaid, *sides]:
            sys.stderr.write(harmless(line) + "\n")
    return exit_for(error)


def _sides(conflict: ConflictView) -> Iterator[str]:
    """Both sides of a conflict, the way a diff shows them: "-" is the user's, "+" the task's."""
    place = f":{conflict.first_line}" if conflict.first_line else ""
    yield f"  {conflict.path}{place} {conflict.hunk_id}".rstrip()
    yield from (f"    -{line.rstrip()}" for line in split_lines(conflict.yours))
    yield from (f"    +{line.rstrip()}" for line in split_lines(conflict.theirs))
