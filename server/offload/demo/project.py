"""The project that the demo works on: a copy of the sample as a repository of its own, or a person's folder, and what is untested in it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.domain.errors import GitFailed, NotAWorkspace
from offload.source.tree_sitter import TreeSitterSource

SAMPLE = Path(__file__).with_name("sample")
FEWEST_LINES = 3  # shorter ones are hardly worth a test of their own
LARGEST_FILE = 200_000  # bytes; more is data or generated
TEST_FILE = re.compile(r"(^|/)(tests?|specs?|__tests__)/|(^|/)(test_|conftest)|(_test|\.test|\.spec|Test)\.\w+$")

# How a project's own tests are run, by a file at its top; the sample and Python without pytest use the last.
TEST_COMMANDS = (
    ("package.json", ("npm", "test")),
    ("go.mod", ("go", "test", "./...")),
    ("Cargo.toml", ("cargo", "test")),
    ("pom.xml", ("mvn", "-q", "test")),
)


@dataclass(frozen=True, slots=True)
class Untested:
    """A block that no test names. `file` is relative to the project."""

    file: str
    symbol: str
    first_line: int
    last_line: int

    @property
    def name(self) -> str:
        return f"{self.symbol} ({self.file})"


def copy_sample(folder: Path) -> Path:
    """The sample as a repository with one commit. Raises `GitFailed`."""
    project = folder / "shop"
    shutil.copytree(SAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
    _git(project, "init", "--quiet")
    _git(project, "add", "--all")
    # The person's own settings (a signing key, a template's hooks) have no say in a throw-away repository.
    identity = ("-c", "user.name=offload demo", "-c", "user.email=demo@localhost", "-c", "commit.gpgsign=false")
    _git(project, *identity, "commit", "--quiet", "--no-verify", "--message", "The shop as it is")
    return project


def untested(project: Path, limit: int) -> list[Untested]:
    """The first functions and methods that no test file names, in the order of files and lines.

    Raises `NotAWorkspace` when the folder cannot be listed.
    """
    files = sorted(_files(project))
    tests = "\n".join(_text(project / file) for file in files if TEST_FILE.search(file))
    tested = set(re.findall(r"\w+", tests))
    return asyncio.run(_untested(project, [file for file in files if not TEST_FILE.search(file)], tested, limit))


async def _untested(project: Path, files: Sequence[str], tested: set[str], limit: int) -> list[Untested]:
    source = TreeSitterSource()
    found: list[Untested] = []
    try:
        for file in files:
            for block in await source.blocks(file, _text(project / file)) if source.language(file) else ():
                name = block.symbol.rpartition(".")[2]
                is_function = block.kind in {"function", "method"} and not name.startswith("_")
                lines = block.end_line - block.start_line + 1
                if is_function and lines >= FEWEST_LINES and name not in tested:
                    found.append(Untested(file, block.symbol, block.start_line + 1, block.end_line + 1))
            if len(found) >= limit:
                break
    finally:
        await source.aclose()
    return found[:limit]


def _files(project: Path) -> Iterator[str]:
    """Files that git knows or would take; in a folder without git, all that are not hidden."""
    if not project.is_dir():
        raise NotAWorkspace(f"{project} is not a folder; name the project with --path")
    listing = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
    try:
        yield from (name for name in _git(project, *listing).split("\0") if name)
        return
    except GitFailed:
        pass
    for path in project.rglob("*"):
        relative = path.relative_to(project)
        if path.is_file() and not any(part.startswith(".") for part in relative.parts):
            yield relative.as_posix()


def _text(path: Path) -> str:
    """Nothing for what is gone, not text, or too large to be source."""
    try:
        return path.read_text(encoding="utf-8") if path.stat().st_size <= LARGEST_FILE else ""
    except (OSError, UnicodeDecodeError):
        return ""


def test_command(project: Path) -> tuple[str, ...]:
    """The command that runs the project's own tests."""
    for marker, command in TEST_COMMANDS:
        if (project / marker).is_file():
            return command
    python = _project_python(project)
    has_pytest = subprocess.run([python, "-c", "import pytest"], cwd=project, capture_output=True, check=False)
    uses_pytest = has_pytest.returncode == 0 and project.joinpath("tests").is_dir()
    return (python, "-m", "pytest", "-q") if uses_pytest else (python, "-m", "unittest")


def _project_python(project: Path) -> str:
    own = project / ".venv/bin/python"
    return str(own) if own.exists() else (shutil.which("python3") or sys.executable)


def _git(project: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "-C", str(project), *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, check=False)
    except FileNotFoundError as error:
        raise GitFailed("git was not found on PATH; install it, for example with `apt-get install git`") from error
    if done.returncode != 0:
        raise GitFailed(f"git {arguments[0]} failed in {project}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="surrogateescape")
