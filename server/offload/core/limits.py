"""The numbers that core works by; seconds and counts. They come from the settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """`tasks_per_workspace` work at a time, the others wait; an ask that nobody answers is denied after `ask_timeout_s`;
    `live_text` characters of a running turn's text are kept for showing; a cleaning leaves tasks alone that have changed in the
    last `keep_days`, all of them for None."""

    tasks_per_workspace: int = 5
    ask_timeout_s: float = 300.0
    live_text: int = 4000
    keep_days: float | None = None
