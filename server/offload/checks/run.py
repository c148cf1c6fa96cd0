"""Runs one check in a folder, with a time limit and a bounded memory of what it prints, and ends all that it started."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from offload.domain.change import digest
from offload.domain.check import Check, CheckResult
from offload.processes import MARKER, Origin, Processes, Tailed, end_strays, moment, without

KEPT_BYTES = 16 << 10
SHOWN = 4000  # characters
CLOCK_STEP_S = 0.1  # the system tells start times in steps that are shorter
# What belongs to whoever started the hub: offload's own variables, a git hook's, a coverage run's.
LEFT_OUT = ("OFFLOAD_", "GIT_", "COVERAGE_")
# Python takes its compiled file for that of any source of the same second and size. A folder that is put to one content after
# another, as in the search for a culprit, would be checked by what it held before.
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}


class ShellChecks:
    """Fits `core.ports.Checks`."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._begun: set[Path] = set()

    async def run(self, folder: Path, check: Check, environment: Mapping[str, str]) -> CheckResult:
        from offload.checks.report import Reports  # noqa: PLC0415 - brings an XML parser, which no front waits for

        loop = asyncio.get_running_loop()
        reports = await asyncio.to_thread(Reports, folder, check.junit)
        # The mark of a worker's own processes: the hub refuses them, and what gets out of its session is found by it.
        mark = f"check-{digest(str(folder))}"
        await self._end_left(folder, mark)
        start, since = loop.time(), moment() - CLOCK_STEP_S
        try:
            done = await self._processes.run_tail(
                ["/bin/sh", "-c", check.command],
                cwd=folder,
                environment={**NO_BYTECODE, **without(environment, *LEFT_OUT), MARKER: mark},
                time_limit_s=check.timeout_s,
                keep=KEPT_BYTES,
            )
        except (OSError, ValueError) as error:  # ValueError: a NUL in the command
            problem = f"could not be started: {error}"
            seconds = loop.time() - start
            return CheckResult(check.name, passed=False, seconds=seconds, command=check.command, problem=problem)
        finally:
            await end_strays(Origin(folder, marker=mark, claims=_whenever_started, since=since))
        seconds = loop.time() - start
        said = _text(done)
        if problem := _problem(done, check):
            result = CheckResult(check.name, passed=False, seconds=seconds, command=check.command, problem=problem)
            return replace(result, tail=_shown(said))
        tests, note = await asyncio.to_thread(reports.read)
        passed = done.returncode == 0 and (tests is None or not tests.failed)
        said = "\n".join(part for part in (said, note) if part)
        return CheckResult(check.name, passed, seconds, _shown(said), check.command, done.returncode, tests=tests)

    async def _end_left(self, folder: Path, mark: str) -> None:
        """A hub that was killed leaves the check that ran; it would go on beside this one, and write when nobody looks."""
        if folder not in self._begun:
            self._begun.add(folder)
            await end_strays(Origin(None, marker=mark, claims=_whenever_started))


def _whenever_started(_: float) -> bool:
    return True  # the mark is this folder's own


def _problem(done: Tailed, check: Check) -> str:
    if done.returncode is None:
        return f"timed out after {check.timeout_s:g} s"
    return f"was ended by signal {-done.returncode}" if done.returncode < 0 else ""


def _text(done: Tailed) -> str:
    """What was printed, from the beginning of a line on, or else of a character."""
    output = done.output
    if not done.whole:
        _, line, rest = output.partition(b"\n")
        output = rest if line and rest else output.lstrip(bytes(range(0x80, 0xC0)))
    return output.decode(errors="replace").rstrip()


def _shown(text: str) -> str:
    """The last lines that are not too long together, or else the end of the last one."""
    if len(text) <= SHOWN:
        return text
    end = text[-SHOWN:]
    _, line, rest = end.partition("\n")
    return rest if line else end
