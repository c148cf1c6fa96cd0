"""Checks that a test writes as functions of the folder: no process is started.

    checks = FakeChecks({"tests": lambda folder: (folder / "good").exists()})

A command that is not among them passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

from offload.domain.check import Check, CheckResult


class FakeChecks:
    """Fits the `Checks` port; `ran` lists the commands that were run, in order. `gates` holds events, by command, that a run waits
    for, and `waiting` is set when one does."""

    def __init__(self, commands: Mapping[str, Callable[[Path], bool]] = {}) -> None:
        self.commands = dict(commands)
        self.ran: list[str] = []
        self.gates = {}
        self.waiting = asyncio.Event()

    async def run(self, folder: Path, check: Check, environment: Mapping[str, str]) -> CheckResult:
        self.ran.append(check.command)
        if check.command in self.gates:
            self.waiting.set()
            await self.gates[check.command].wait()
        passed = self.commands.get(check.command, lambda _: True)(folder)
        code = 0 if passed else 1
        return CheckResult(check.name, passed, 0.1, f"{check.command} ended with {code}", check.command, code)
