"""`offload doctor`: looks at all that offload needs and says what to do about what is not there."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.text import Text

from offload import __version__
from offload.cli.calling import Connect
from offload.cli.exits import Exit
from offload.cli.output import console, print_json
from offload.domain.errors import OffloadError
from offload.hub import address, run
from offload.wire import words
from offload.wire.results import ListAgentsResult

GIT_NEEDED = (2, 34)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `remedy` is "" when all is well."""

    name: str
    found: str
    remedy: str = ""


def doctor(connect: Connect, *, as_json: bool) -> int:
    """Prints the report; NOT_DONE when there is a problem."""
    findings = [finding for check in (_python, _git, _state_folder, _hub) for finding in check()]
    findings += _workers(connect)
    ok = not any(finding.remedy for finding in findings)
    if as_json:
        print_json({"ok": ok, "checks": [{**asdict(finding), "ok": not finding.remedy} for finding in findings]})
    else:
        out = console()
        for finding in findings:
            sign = Text("problem", style="bold red") if finding.remedy else Text("ok     ", style="green")
            out.print(Text.assemble(sign, f"  {finding.name}: {words.one_line(finding.found)}"))
            if finding.remedy:
                out.print(f"         {words.one_line(finding.remedy)}")
    return Exit.OK if ok else Exit.NOT_DONE


def _python() -> Iterator[Finding]:
    yield Finding("offload", f"{__version__} in {sys.prefix}, Python {sys.version.split()[0]}")


def _git() -> Iterator[Finding]:
    program = shutil.which("git")
    if program is None:
        yield Finding("git", "not found on PATH", "Install git, for example with `apt-get install git`.")
        return
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    numbers = tuple(int(word) for word in said.removeprefix("git version ").split(".")[:2] if word.isdigit())
    wanted = ".".join(map(str, GIT_NEEDED))
    yield Finding("git", f"{said} at {program}", "" if numbers >= GIT_NEEDED else f"Install git {wanted} or newer.")


def _state_folder() -> Iterator[Finding]:
    try:
        folder = address.state_folder(os.environ)
        socket = address.prepare(folder)
    except address.AddressError as error:
        yield Finding("state folder", "cannot be used", str(error))
        return
    mode = stat.S_IMODE(Path(folder).stat().st_mode)
    yield Finding("state folder", f"{folder}, {mode:04o}, {shutil.disk_usage(folder).free // 2**20} MB free")
    yield Finding("socket", socket)


def _hub() -> Iterator[Finding]:
    try:
        found = run.status()
    except OffloadError as error:
        yield Finding("hub", "does not answer", str(error))
        return
    if found is None:
        yield Finding("hub", "was not running")
    elif found["version"] != __version__:
        other = f"version {found['version']}, process {found['pid']}"
        yield Finding("hub", other, f"This is offload {__version__}: end the other hub with `offload hub stop`.")
    else:
        yield Finding("hub", f"version {found['version']}, process {found['pid']}")
        for note in found.get("notes", ()):
            yield Finding("journal", "was damaged", note)


def _workers(connect: Connect) -> Iterator[Finding]:
    """Asks the hub, which is started for it: that it starts is one of the questions."""
    try:
        with connect() as hub:
            answer = ListAgentsResult.model_validate(hub.call("list_agents", {}))
    except OffloadError as error:
        yield Finding("workers", "the hub did not say", str(error))
        return
    for worker in answer.workers:
        models = len(worker.models) + worker.models_left_out
        if worker.problem:
            yield Finding(worker.name, "cannot be used", worker.problem)
            continue
        found = f"{worker.version}, {_counted(models, 'model')}, {_counted(len(worker.agents), 'agent')}"
        if models:
            yield Finding(worker.name, "; ".join(filter(None, (found, worker.note))))
        else:
            yield Finding(
                worker.name, found, worker.note or f"It knows no model: sign in with {worker.name}'s own command."
            )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
