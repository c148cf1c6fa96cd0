"""How git is called: the user's, to ask what they have set, and ours, which reads no configuration but our own.

Ours never runs what a repository or a worker can write down: no hooks, no file system monitor, no filters, no external
diff, no textconv. A filter or a diff driver is a command in a configuration file, and ours reads none of theirs.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, overload

from offload.domain.errors import EnvironmentFailure, GitFailed, NotAWorkspace, StorageFailed
from offload.processes import Completed, OutputTooLarge, Processes, TookTooLong, without

Settings = Mapping[str, str]
Result = TypeVar("Result")
Other = TypeVar("Other")

OUTPUT_LIMIT = 256 << 20
NO_SPACE = (b"No space left on device", b"Disk quota exceeded")
FULL = (errno.ENOSPC, errno.EDQUOT)
NOTHING_RUNS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
OURS = {
    "core.quotePath": "false",
    "core.safecrlf": "false",
    "core.splitIndex": "false",
    "core.untrackedCache": "false",
    "gc.auto": "0",
    "index.sparse": "false",
    "init.defaultBranch": "main",
    "maintenance.auto": "false",
}
IDENTITY = {"name": "offload", "email": "offload@localhost"}


class Git:
    """Calls git with argument lists and a cleaned environment, bounded in time, output and number."""

    def __init__(self, processes: Processes, environment: Mapping[str, str]) -> None:
        self._processes = processes
        self._users = without(environment, "GIT_") | {
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "LANGUAGE": "C",
            "LC_ALL": "C",
        }
        self._ours = self._users | {
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_AUTHOR_EMAIL": IDENTITY["email"],
            "GIT_AUTHOR_NAME": IDENTITY["name"],
            "GIT_COMMITTER_EMAIL": IDENTITY["email"],
            "GIT_COMMITTER_NAME": IDENTITY["name"],
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    async def users(self, cwd: Path, *arguments: str) -> Completed:
        """Ask git as the user has it set up. Only for commands that read settings and names, never files."""
        return await self._run(["git", *NOTHING_RUNS, *arguments], cwd, self._users)

    async def ours(
        self,
        git_dir: Path,
        *arguments: str | Path,
        settings: Settings | None = None,
        work_tree: Path | None = None,
        index: Path | None = None,
        stdin: bytes | None = None,
        output_limit: int = OUTPUT_LIMIT,
        accepted: Sequence[int] = (0,),
    ) -> Completed:
        """Run git on a directory of ours. Raises `GitFailed` for any exit status that is not `accepted`."""
        environment = self._ours | {"GIT_DIR": str(git_dir)}
        if work_tree is not None:
            environment["GIT_WORK_TREE"] = str(work_tree)
        if index is not None:
            environment["GIT_INDEX_FILE"] = str(index)
        options = [part for name, value in (OURS | dict(settings or {})).items() for part in ("-c", f"{name}={value}")]
        command: list[str | Path] = ["git", *options, *NOTHING_RUNS, *arguments]
        done = await self._run(command, work_tree or git_dir, environment, stdin, output_limit)
        if done.returncode not in accepted:
            raise _failure(str(arguments[0]), done)
        return done

    async def init(self, folder: Path, object_format: str, *options: str) -> None:
        """Make an empty repository that holds nothing of the user's templates."""
        arguments: list[str | Path] = [
            "init",
            "--quiet",
            "--template=",
            f"--object-format={object_format}",
            *options,
            folder,
        ]
        command: list[str | Path] = ["git", "-c", "init.defaultBranch=main", *arguments]
        done = await self._run(command, folder.parent, self._ours)
        if done.returncode != 0:
            raise _failure("init", done)

    async def _run(
        self,
        command: Sequence[str | Path],
        cwd: Path,
        environment: Mapping[str, str],
        stdin: bytes | None = None,
        output_limit: int = OUTPUT_LIMIT,
    ) -> Completed:
        try:
            return await self._processes.run(
                command, cwd=cwd, environment=environment, stdin=stdin, time_limit_s=120, output_limit=output_limit
            )
        except OSError as problem:
            if problem.filename is not None and Path(problem.filename) == cwd:
                raise NotAWorkspace(
                    f"The folder {cwd} is not there any more; put it back, or start a new task."
                ) from problem
            raise GitFailed(
                f"git could not be started ({problem}); see that git is installed and on PATH."
            ) from problem
        except (TookTooLong, OutputTooLarge) as problem:
            raise GitFailed(f"{problem}; the folder may hold more files than can be copied.") from problem


def _failure(command: str, done: Completed) -> EnvironmentFailure:
    """A full disk is told apart: what failed by it is worth another try."""
    if any(sign in done.stderr for sign in NO_SPACE):
        return StorageFailed(f"The disk is full, so git {command} failed: free some space.")
    return GitFailed(f"git {command} failed: {reason(done)}")


@contextmanager
def full_disk_told() -> Iterator[None]:
    """The same for what is written without git."""
    try:
        yield
    except OSError as problem:
        if problem.errno not in FULL:
            raise
        what = problem.filename or "a file"  # a write knows no name
        raise StorageFailed(f"The disk is full, so {what} was not written: free some space.") from problem


@overload
async def together(
    first: Coroutine[None, None, Result], second: Coroutine[None, None, Other], /
) -> tuple[Result, Other]: ...


@overload
async def together(*work: Coroutine[None, None, Result]) -> tuple[Result, ...]: ...


async def together(*work: Coroutine[None, None, object]) -> tuple[object, ...]:
    """All results in order; the first error ends the rest and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each) for each in work]
    except ExceptionGroup as problems:
        raise problems.exceptions[0] from None
    return tuple(task.result() for task in tasks)


def literal(path: str) -> str:
    """A path as git must be told it, so that "*" and ":" in it mean themselves."""
    return f":(top,literal){path}"


def reason(done: Completed) -> str:
    """What git said, in one line."""
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return (
        "; ".join(line.removeprefix("fatal: ").removeprefix("error: ") for line in said) or f"status {done.returncode}"
    )
