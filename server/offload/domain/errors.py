"""Every error that offload tells somebody about, split by who must act.

    OffloadError
    ├── CallerError           the one who asked: ask differently
    │   ├── InvalidRequest        params that do not fit, a malformed message
    │   ├── UnknownTask           no task has this id (or several have this prefix)
    │   ├── UnknownAsk            the task has no such open ask, or it was answered already
    │   ├── UnknownSymbol         the file has no such block
    │   ├── UnknownWorker         no worker of this name is registered
    │   ├── UnknownAgent          the worker has no such agent
    │   ├── UnknownModel          the worker has no such model or variant
    │   ├── UnknownRecipe         no recipe of this name
    │   ├── UnsupportedProfile    the worker cannot enforce this profile
    │   ├── BudgetSpent           nothing is left of a limit of the task or of the workspace
    │   ├── WrongPhase            the task is not in a phase in which this can be done
    │   ├── KeyReused             the same key came with another body
    │   ├── NotAWorkspace         the folder is missing, unreadable or refused
    │   ├── ApplyRefused          nothing was written: a conflict, a path outside the workspace, an editor that says no
    │   ├── ApplyForbidden        a model may not apply this, or not before a person has agreed
    │   ├── NothingToUndo         no apply of this task stands that could be taken back
    │   ├── WorkerRefused         a worker's own process may not use offload
    │   └── VersionMismatch       front and hub speak different protocols
    ├── WorkerError           the worker or its set-up
    │   ├── WorkerMissing         the program was not found; says where it was looked for
    │   ├── WorkerBroken          the program is there but does not work
    │   └── TurnLost              the worker went away, or never began
    ├── EnvironmentFailure    the machine
    │   ├── GitFailed             a git command failed
    │   ├── StorageFailed         the journal cannot be read or written (rights, damage), or the disk is full
    │   └── HubUnavailable        no hub, and none could be started
    └── Defect                us: "cannot happen" happened

Each class has a `code`, the snake_case word that every edge sends beside the message.
"""

from __future__ import annotations

from typing import ClassVar

from offload.domain.change import Conflict


class OffloadError(Exception):
    """Base of all errors that are shown to somebody. `str(error)` is one plain sentence that says what to do."""

    code: ClassVar[str] = "error"


class CallerError(OffloadError):
    code = "caller_error"


class InvalidRequest(CallerError):
    code = "invalid_request"


class UnknownTask(CallerError):
    code = "unknown_task"


class UnknownAsk(CallerError):
    code = "unknown_ask"


class UnknownSymbol(CallerError):
    code = "unknown_symbol"


class UnknownWorker(CallerError):
    code = "unknown_worker"


class UnknownAgent(CallerError):
    code = "unknown_agent"


class UnknownModel(CallerError):
    code = "unknown_model"


class UnknownRecipe(CallerError):
    code = "unknown_recipe"


class UnsupportedProfile(CallerError):
    code = "unsupported_profile"


class BudgetSpent(CallerError):
    code = "budget_spent"


class WrongPhase(CallerError):
    code = "wrong_phase"


class KeyReused(CallerError):
    code = "key_reused"


class NotAWorkspace(CallerError):
    code = "not_a_workspace"


class ApplyRefused(CallerError):
    """Raised before the first write. `reasons` holds one (path, reason) pair per refused file, `conflicts` the places where
    two sides changed the same, with both."""

    code = "apply_refused"

    def __init__(
        self, message: str, reasons: tuple[tuple[str, str], ...] = (), conflicts: tuple[Conflict, ...] = ()
    ) -> None:
        super().__init__(message)
        self.reasons = reasons
        self.conflicts = conflicts


class ApplyForbidden(CallerError):
    code = "apply_forbidden"


class NothingToUndo(CallerError):
    code = "nothing_to_undo"


class WorkerRefused(CallerError):
    code = "worker_refused"


class VersionMismatch(CallerError):
    code = "version_mismatch"


class WorkerError(OffloadError):
    code = "worker_error"


class WorkerMissing(WorkerError):
    code = "worker_missing"


class WorkerBroken(WorkerError):
    code = "worker_broken"


class TurnLost(WorkerError):
    code = "turn_lost"


class EnvironmentFailure(OffloadError):
    code = "environment_failure"


class GitFailed(EnvironmentFailure):
    code = "git_failed"


class StorageFailed(EnvironmentFailure):
    code = "storage_failed"


class HubUnavailable(EnvironmentFailure):
    code = "hub_unavailable"


class Defect(OffloadError):
    code = "defect"


def all_errors(root: type[OffloadError] = OffloadError) -> tuple[type[OffloadError], ...]:
    """The whole tree, parents before children; edges hold their mapping tables against it."""
    found: list[type[OffloadError]] = [root]
    for child in root.__subclasses__():
        found.extend(all_errors(child))
    return tuple(found)
