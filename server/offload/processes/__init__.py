"""Starting and ending other programs: bounded short commands, long-running processes, and the trees below them.

An adapter for the other adapters. It knows nothing of git, of agents or of tasks, and it lets `OSError` through when a
program cannot be started: only the caller can say which program that is and how to install it.
"""

from offload.processes.environment import without
from offload.processes.facts import moment
from offload.processes.spawn import Completed, OutputTooLarge, Process, Processes, Tailed, TookTooLong
from offload.processes.strays import MARKER, Ended, Origin, Stray, end_strays, strays
from offload.processes.tree import Identity, alive, identify, stop, tree

__all__ = [
    "MARKER",
    "Completed",
    "Ended",
    "Identity",
    "Origin",
    "OutputTooLarge",
    "Process",
    "Processes",
    "Stray",
    "Tailed",
    "TookTooLong",
    "alive",
    "end_strays",
    "identify",
    "moment",
    "stop",
    "strays",
    "tree",
    "without",
]
