"""Runs a project's checks over a result, and reads what they report. Knows nothing of tasks."""

from offload.checks.run import ShellChecks

__all__ = ["ShellChecks"]
