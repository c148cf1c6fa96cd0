"""What came of an apply or an undo, in words for the person at the editor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from offload.domain.change import Conflict
from offload.domain.errors import OffloadError
from offload.domain.task import Place
from offload.lsp import titles

_PLACES = {Place.BUFFER: "in the buffer (not saved)", Place.DISK: "on disk"}


def refused(error: OffloadError) -> str:
    """Why nothing came of a command. The way out of a conflict is a code action here, and no call."""
    action = f"the code action “{titles.UP_TO_DATE}”"
    return str(error).replace("continue_task with onto=files", action)


def applied(result: Mapping[str, Any]) -> str:
    """`result` is that of apply_task."""
    left = result["hunks_pending"]
    more = f". {left} {'hunk is' if left == 1 else 'hunks are'} left" if left else ""
    doubts = f". It needs a look: {result['needs_review']}" if result["needs_review"] else ""
    return f"applied: {_files(result['files'])}{more}{doubts}"


def undone(result: Mapping[str, Any], title: str) -> str:
    """`result` is that of undo_apply, `title` its task's: at one place there may be results of several."""
    return f"taken back of “{titles.short(title)}”: {_files(result['files'])}"


def _files(files: Iterable[Mapping[str, Any]]) -> str:
    """Each file with where it was changed."""
    told = [f"{file['path']} {_done(file)}" for file in files]
    return ", ".join(told) or "nothing to be changed"


def _done(file: Mapping[str, Any]) -> str:
    if file["unchanged"]:
        return "as it was already"
    return "removed" if file["removed"] else _PLACES[file["place"]]


def conflicts(conflicts: Sequence[Conflict]) -> str:
    """All sides of each, to be read; what the person has comes first."""
    head = "Nothing was written: two sides changed the same.\n"
    return "\n".join([head, *map(_conflict, conflicts)])


def _conflict(conflict: Conflict) -> str:
    line = f", line {conflict.first_line}" if conflict.first_line else ""
    parts = [f"{conflict.path}{line}: {conflict.reason}"]
    for whose, text in (("yours", conflict.yours), ("before", conflict.base), ("the task's", conflict.theirs)):
        parts += [f"--- {whose}", text.rstrip("\r\n")]
    return "\n".join(parts) + "\n"
