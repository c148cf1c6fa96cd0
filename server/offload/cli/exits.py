"""The exit codes, in one table: every command ends with one of these. docs/COMMANDS.md shows it."""

from __future__ import annotations

import enum

from offload.domain import errors


class Exit(enum.IntEnum):
    """`Exit.X.meaning` is the sentence of the documentation."""

    OK = 0, "done"
    NOT_DONE = (
        1,
        "a task failed or is not done in time, a check of `doctor` found a problem, or the demo did not succeed",
    )
    USAGE = 2, "the command line is wrong"
    REFUSED = 3, "what was asked for cannot be done: unknown task, wrong phase, a conflict, and the like"
    WORKER = 4, "the worker is missing or broken"
    MACHINE = 5, "git or the disk failed"
    NO_HUB = 69, "no hub answers and none could be started"
    DEFECT = 70, "a defect of offload"
    INTERRUPTED = 130, "ended with Ctrl-C; tasks go on"
    NO_READER = 141, "whoever read the output went away, as `head` does"

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member


# The most exact class of an error's ancestry counts.
BY_ERROR: dict[type[errors.OffloadError], Exit] = {
    errors.CallerError: Exit.REFUSED,
    errors.WorkerError: Exit.WORKER,
    errors.EnvironmentFailure: Exit.MACHINE,
    errors.HubUnavailable: Exit.NO_HUB,
    errors.VersionMismatch: Exit.NO_HUB,
    errors.OffloadError: Exit.DEFECT,
}


def exit_for(error: errors.OffloadError) -> Exit:
    return next(BY_ERROR[ancestor] for ancestor in type(error).__mro__ if ancestor in BY_ERROR)
