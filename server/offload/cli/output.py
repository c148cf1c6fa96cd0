"""What is printed: JSON for scripts, words for people, errors for both."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from offload.cli.exits import exit_for
from offload.cli.render import as_commands
from offload.domain.errors import ApplyRefused, OffloadError
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


def print_error(error: OffloadError, *, as_json: bool) -> int:
    """Tells the error and gives the exit code."""
    reasons = [f"{path}: {reason}" for path, reason in error.reasons] if isinstance(error, ApplyRefused) else []
    if as_json:
        print_json({"error": {"code": error.code, "message": str(error), "reasons": reasons}})
    else:
        unsaid = [f"  {reason}" for reason in reasons if reason not in str(error)]
        for line in [f"offload: {as_commands(str(error))}", *unsaid]:
            sys.stderr.write(harmless(line) + "\n")
    return exit_for(error)
