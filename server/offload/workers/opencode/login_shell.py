"""The PATH of a person's login shell, for fronts that a desktop has started with a bare one.

The shell reads the person's own start files, which may print, ask, wait or fail: it gets no terminal, no input and little time, and
of its output only what stands between two marks counts.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from offload.processes import OutputTooLarge, Processes, TookTooLong

LIMIT_S = 3.0
OUTPUT_LIMIT = 1 << 20


class LoginShell:
    """Asked once per shell and home; an answer, and that there is none, is kept."""

    def __init__(self, processes: Processes, limit_s: float = LIMIT_S) -> None:
        self._processes = processes
        self._limit_s = limit_s
        self._answers: dict[tuple[str, str], tuple[str, ...]] = {}
        self._lock = asyncio.Lock()

    async def path(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """The folders of its PATH; none when it does not say them in time."""
        shell, home = shell_of(environment), environment.get("HOME", "")
        async with self._lock:
            if (shell, home) not in self._answers:
                self._answers[shell, home] = await self._ask(shell, environment)
            return self._answers[shell, home]

    async def _ask(self, shell: str, environment: Mapping[str, str]) -> tuple[str, ...]:
        mark = secrets.token_hex(8)
        # The shell only has to start a program: fish and csh write a PATH in other ways than sh.
        question = f'/bin/sh -c \'printf "%s\\n" "{mark}:$PATH:{mark}"\''
        try:
            done = await self._processes.run(
                [shell, "-ilc", question],
                cwd=Path("/"),
                environment={**environment, "TERM": "dumb"},
                time_limit_s=self._limit_s,
                output_limit=OUTPUT_LIMIT,
            )
        except (OSError, TookTooLong, OutputTooLarge):
            return ()
        said = re.findall(rf"{mark}:(/[^\n]*):{mark}", os.fsdecode(done.stdout))
        return tuple(part for part in said[-1].split(":") if part.startswith("/")) if said else ()


def shell_of(environment: Mapping[str, str]) -> str:
    """The shell that the environment names, else the one that the person's account has."""
    if shell := environment.get("SHELL", ""):
        return shell
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"
