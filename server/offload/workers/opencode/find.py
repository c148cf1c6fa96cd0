"""Finds the OpenCode program of a caller, says which version it is, and installs one where it will be found."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from offload.domain.errors import WorkerBroken, WorkerMissing
from offload.processes import OutputTooLarge, Processes, TookTooLong
from offload.workers.agent import Agent
from offload.workers.opencode.login_shell import LIMIT_S, LoginShell, shell_of

VERSION_LIMIT_S = 30.0  # the first run after an install reads 185 MB from a cold disk
INSTALL_LIMIT_S = 600.0
# A build for newer processors dies at once on an older one, so the first that answers is the right one.
VARIANTS = ("", "-baseline", "-musl", "-baseline-musl")
MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Found:
    path: Path
    version: str


class Finder:
    """Looks in this order: `path` alone if it is given; the caller's PATH; the known places; `folder`, where `install` puts it;
    the PATH of the caller's login shell, which a program that a desktop has started does not have."""

    def __init__(
        self,
        agent: Agent,
        folder: Path,
        path: str,
        processes: Processes,
        *,
        only_own: bool = False,
        shell_limit_s: float = LIMIT_S,
    ) -> None:
        self.agent = agent
        self._folder = folder
        self._path = path
        self._processes = processes
        self._only_own = only_own
        self._shell = LoginShell(processes, shell_limit_s)
        self._versions: dict[tuple[Path, int, int], str] = {}

    async def find(self, environment: Mapping[str, str]) -> Found:
        """Raises `WorkerMissing` naming every place, `WorkerBroken` for a program that does not run or is of another line."""
        unfit: list[WorkerBroken] = []
        places = dict.fromkeys(self._places(environment))
        if found := await self._first(places, unfit):
            return found
        searched = ", ".join(map(str, places))
        if not self._path and not self._only_own:
            more = dict.fromkeys(Path(part) for part in await self._shell.path(environment))
            if found := await self._first([place for place in more if place not in places], unfit):
                return found
            shell = shell_of(environment)
            names = ", ".join(str(place) for place in more if place not in places)
            searched += f", and in what the login shell {shell} has on its PATH beside them ({names or 'nothing'})"
        if unfit:
            raise unfit[0]
        raise WorkerMissing(f"{self.agent.title} was not found; run `{self.agent.install}`. It is not in {searched}.")

    async def _first(self, places: Iterable[Path], unfit: list[WorkerBroken]) -> Found | None:
        """The first program that can be used; why others cannot goes into `unfit`."""
        for place in places:
            for program in _programs(place, self.agent):
                version = await self._version(program)
                try:
                    self.check(version, str(program))
                except WorkerBroken as error:
                    unfit.append(error)
                else:
                    return Found(program, version)
        return None

    def check(self, version: str, where: str) -> None:
        """Raises `WorkerBroken` for a version whose interface may be another one, and for none at all."""
        if not version:
            raise WorkerBroken(
                f"{self.agent.title} at {where} does not run: `--version` gave no version; run `{self.agent.install}`."
            )
        if not any(version.startswith(f"{line}.") for line in self.agent.lines):
            known = ", ".join(f"{line}.x" for line in self.agent.lines)
            raise WorkerBroken(
                f"{self.agent.title} {version} at {where} is not of a version that offload knows ({known}); "
                f"run `{self.agent.install}`."
            )

    def _places(self, environment: Mapping[str, str]) -> Iterator[Path]:
        """Files, or folders that may hold the program."""
        if self._path:
            yield Path(self._path).expanduser()
            return
        if not self._only_own:
            home = environment.get("HOME", "")
            yield from (Path(part) for part in environment.get("PATH", "").split(":") if part)
            if prefix := environment.get("npm_config_prefix"):
                yield Path(prefix, "bin")
            for place in self.agent.places:
                if home or not place.startswith("~"):
                    yield Path(place.replace("~", home, 1))
        yield from platform_programs(self._folder)

    async def _version(self, program: Path) -> str:
        """Empty for a program that does not say one."""
        stat = program.stat()  # noqa: ASYNC240 - one look at a local file
        key = program, stat.st_mtime_ns, stat.st_size
        if key not in self._versions:
            # A home of its own, because even --version lays out its folders there.
            home = self._folder / "version-home"
            home.mkdir(parents=True, exist_ok=True)
            try:
                done = await self._processes.run(
                    [program, "--version"],
                    cwd=home,
                    environment={"HOME": str(home), "PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin"},
                    time_limit_s=VERSION_LIMIT_S,
                    output_limit=1 << 20,
                )
            except (OSError, TookTooLong, OutputTooLarge):
                return ""
            said = re.search(rb"\d+\.\d+\.\d+\S*", done.stdout)
            self._versions[key] = said[0].decode() if said and done.returncode == 0 else ""
        return self._versions[key]


def _programs(place: Path, agent: Agent) -> Iterator[Path]:
    """The programs at a place, those for this platform before a script that would only start one of them."""
    for candidate in (place, *(place / name for name in agent.programs)):
        if candidate.is_file() and os.access(candidate, os.X_OK):
            for parent in candidate.resolve().parents:
                if parent.name == "node_modules":
                    beside = (*platform_programs(parent.parent), *platform_programs(parent / agent.package))
                    yield from (program for program in beside if program.is_file())
            yield candidate


def platform_programs(folder: Path) -> Iterator[Path]:
    """Where npm puts the program for this platform when it installs below `folder`."""
    machine = platform.machine().lower()
    name = f"opencode-{platform.system().lower()}-{MACHINES.get(machine, machine)}"
    for variant in VARIANTS:
        yield folder / "node_modules" / f"{name}{variant}" / "bin" / "opencode"


async def install(
    agent: Agent,
    folder: Path,
    environment: Mapping[str, str],
    processes: Processes,
    *,
    limit_s: float = INSTALL_LIMIT_S,
) -> None:
    """Let npm install the pinned version below `folder`. Raises `WorkerMissing` without npm, `WorkerBroken` when it fails."""
    npm = shutil.which("npm", path=environment.get("PATH", ""))
    if npm is None:
        raise WorkerMissing("npm was not found on PATH; install Node.js 20 or later, which brings it, and try again.")
    folder.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - one local folder
    # Install scripts stay off: the only one replaces a launcher, and the platform's program is started directly.
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    command = [npm, "install", "--prefix", str(folder), *flags, f"{agent.package}@{agent.pinned}"]
    try:
        done = await processes.run(command, cwd=folder, environment=environment, time_limit_s=limit_s)
    except TookTooLong:
        raise WorkerBroken(f"npm did not finish within {limit_s:g} seconds; try again.") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-2000:]
        raise WorkerBroken(f"npm could not install {agent.package} {agent.pinned}: {said}")
