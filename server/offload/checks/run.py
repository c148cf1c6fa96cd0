"""Runs one check in a folder, with a time limit and a bounded memory of what it prints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from offload.domain.check import Check, CheckResult
from offload.processes import Processes


class ShellChecks:
    """Fits `core.ports.Checks`."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    async def run(self, folder: Path, check: Check, environment: Mapping[str, str]) -> CheckResult:
        raise NotImplementedError
