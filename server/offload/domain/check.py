"""The outcome of a command that was run over a result to see whether it holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckResult:
    """`seconds` is the wall time; `tail` holds the last lines that the command printed."""

    name: str
    passed: bool
    seconds: float
    tail: str = ""
