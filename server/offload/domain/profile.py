"""What a worker may do in a task, as a person names it."""

from __future__ import annotations

import enum


class Profile(enum.StrEnum):
    """Never more than the worker's own configuration lets it do, whatever the profile."""

    READ_ONLY = "read-only"  # reads the task's folder; no edit, no command, no network
    WORKSPACE_WRITE = "workspace-write"  # edits in its folder; asks for each command that was not declared
    NO_NETWORK = "no-network"  # as workspace-write, and nothing that it runs reaches a network
    FULL = "full"  # all that the worker's own configuration lets it do without asking
