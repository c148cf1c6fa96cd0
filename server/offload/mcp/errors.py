"""Errors as a model reads them: what happened, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError

from offload.domain.errors import OffloadError
from offload.wire import convert
from offload.wire.params import Params
from offload.wire.views import ConflictView

_MOST_REASONS = 20
_LONGEST = 1000
_MOST_CONFLICTS = 5
_LONGEST_SIDE = 400

HINTS: Mapping[str, str] = {
    "error": "Read the message.",
    "caller_error": "Change the arguments and call again.",
    "invalid_request": "Change the arguments and call again.",
    "unknown_task": "Call list_tasks for the ids.",
    "unknown_ask": "Call get_task_status for the open asks.",
    "unknown_symbol": "Look into the file for the block's name, or give lines.",
    "unknown_worker": "Call list_agents for the workers.",
    "unknown_agent": "Call list_agents for the worker's agents.",
    "unknown_model": "Call list_agents, with search, for the worker's models.",
    "unknown_recipe": "Call list_agents for the recipes.",
    "unsupported_profile": "Call list_agents for the profiles that each worker can enforce.",
    "budget_spent": "Tell the user which limit was reached; continue_task can raise those of a task.",
    "wrong_phase": "Call get_task_status for what can be done now.",
    "key_reused": "Use another key for another task.",
    "not_a_workspace": "Give the absolute folder of the project as workspace.",
    "apply_refused": "Tell the user what is in the way. Where it was an apply, continue_task with onto=files lets the agent bring its "
    "work up to date with it.",
    "apply_forbidden": "Tell the user, who can apply it: in the editor, or with `offload apply`.",
    "nothing_to_undo": "Nothing of this task stands applied; get_changes shows the state of each hunk.",
    "worker_refused": "Do the work yourself; what is missing, say in your last words.",
    "version_mismatch": "Ask the user to restart this host, so that it starts the offload that is installed now.",
    "worker_error": "Tell the user; another worker may do, see list_agents.",
    "worker_missing": "Tell the user what to install; another worker may do, see list_agents.",
    "worker_broken": "Tell the user; another worker may do, see list_agents.",
    "turn_lost": "Call resume_task to take the task up again.",
    "environment_failure": "Tell the user what is wrong with the machine; the tasks themselves are kept.",
    "git_failed": "Tell the user what git said.",
    "storage_failed": "Tell the user; nothing was started. Try again once it is mended.",
    "hub_unavailable": "Tell the user; `offload doctor` says what is wrong.",
    "defect": "This is a fault of offload; tasks go on. Tell the user the message.",
}


def error_text(error: OffloadError) -> str:
    """The code, the message, one line per reason, and what to do."""
    view = convert.error(error)
    message = _short(view.message)
    unsaid = [reason for reason in view.reasons if reason not in message]
    reasons = [f"- {_short(reason)}" for reason in unsaid[:_MOST_REASONS]]
    more = len(unsaid) - len(reasons)
    if more:
        reasons.append(f"- and {more} more")
    return "\n".join((f"{view.code}: {message}", *reasons, *_conflicts(view.conflicts), HINTS[view.code]))


def _conflicts(conflicts: Sequence[ConflictView]) -> Iterator[str]:
    """Both sides of the first few."""
    for each in conflicts[:_MOST_CONFLICTS]:
        place = f" at line {each.first_line}" if each.first_line else ""
        hunk = f" (hunk {each.hunk_id})" if each.hunk_id else ""
        yield f"- conflict in {_short(each.path)}{place}{hunk}"
        for side, text in (("the user has", each.yours), ("the task has", each.theirs)):
            yield f"  {side}: {text[:_LONGEST_SIDE]!r}{'…' if len(text) > _LONGEST_SIDE else ''}"
    more = len(conflicts) - _MOST_CONFLICTS
    if more > 0:
        yield f"- and {more} more conflicts"


def params_text(problem: ValidationError, params: type[Params]) -> str:
    """Every field that does not fit, by name, and the names that exist when one does not."""
    lines = []
    for each in problem.errors(include_url=False, include_input=False, include_context=False):
        field = ".".join(str(part) for part in each["loc"])
        known = f"; there are {', '.join(params.model_fields)}" if each["type"] == "extra_forbidden" else ""
        lines.append(f"- {_short(field)}: {each['msg']}{known}")
    return "\n".join(("invalid_request: the arguments do not fit.", *lines[:_MOST_REASONS], HINTS["invalid_request"]))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
