"""Private copies of the user's files, kept by git: snapshots, task folders, results, and how a result lands on disk.

How it works is written down in `docs/WORKSPACES.md`. Nothing here knows of phases, editors or workers.
"""

from offload.workspace.workspaces import NEVER_SEND, GitWorkspaces

__all__ = ["NEVER_SEND", "GitWorkspaces"]
