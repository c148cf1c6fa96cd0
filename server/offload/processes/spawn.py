"""Start programs: `run` for short commands whose output is wanted whole, `run_tail` for those that take their time and of whose
output the end is wanted, `start` for those that stay.

Every program gets an argument list, a whole environment, no input unless it is given some, and a session of its own, so
that it can be ended together with what it starts and so that a key pressed in our terminal does not reach it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, TypeVar, cast

from offload.processes.tree import Identity, alive, identify, stop, stop_session

CHUNK = 1 << 16
LINE_LIMIT = 1 << 20
"""The longest line that can be read from a process that stays, in bytes."""

Pipe = TypeVar("Pipe", asyncio.StreamReader, asyncio.StreamWriter)


class TookTooLong(Exception):
    """A command ran into its time limit and was killed, with all that it had started."""


class OutputTooLarge(Exception):
    """A command wrote more than was allowed and was killed, with all that it had started."""


@dataclass(frozen=True, slots=True)
class Completed:
    """`returncode` is negative for a command that a signal ended."""

    returncode: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Tailed:
    """`output` is the end of what a command wrote, `whole` says that nothing came before it. `returncode` is None for a command
    that ran into its time limit, negative for one that a signal ended."""

    returncode: int | None
    output: bytes
    whole: bool


@dataclass(frozen=True, slots=True)
class Process:
    """A program that stays. Its output, with the errors in it, is `output`; reading it is the owner's business."""

    identity: Identity
    output: asyncio.StreamReader
    _child: asyncio.subprocess.Process

    async def wait(self) -> int:
        """The exit status, once it has ended."""
        return await self._child.wait()

    def alive(self) -> bool:
        return alive(self.identity)

    async def stop(self, grace_s: float = 5.0) -> tuple[Identity, ...]:
        """End it and its tree; returns those that could not be ended."""
        survivors = await stop(self.identity, grace_s)
        await _close(self._child)
        return survivors


class Processes:
    """Starts programs, as many short commands at a time as there are processors."""

    def __init__(self, at_once: int | None = None) -> None:
        self._places = asyncio.Semaphore(at_once or os.cpu_count() or 1)

    async def run(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stdin: bytes | None = None,
        time_limit_s: float = 60.0,
        output_limit: int = 64 << 20,
    ) -> Completed:
        """Run a short command to its end. `output_limit` bounds each of both outputs, in bytes.

        Raises `TookTooLong`, `OutputTooLarge`, and `OSError` when it cannot be started.
        """
        async with self._places:
            child = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=environment,
                stdin=DEVNULL if stdin is None else PIPE,
                stdout=PIPE,
                stderr=PIPE,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(time_limit_s), asyncio.TaskGroup() as group:
                    stdout = group.create_task(_read(child, _pipe(child.stdout), output_limit))
                    stderr = group.create_task(_read(child, _pipe(child.stderr), output_limit))
                    if stdin is not None:
                        group.create_task(_feed(_pipe(child.stdin), stdin))
                    returncode = await child.wait()
            except TimeoutError:
                _kill(child)
                raise TookTooLong(f"{command[0]} did not end within {time_limit_s:g} seconds") from None
            finally:
                if child.returncode is None:
                    _kill(child)
                await _close(child)
        if max(len(stdout.result()), len(stderr.result())) > output_limit:
            raise OutputTooLarge(f"{command[0]} wrote more than {output_limit} bytes")
        return Completed(returncode, stdout.result(), stderr.result())

    async def run_tail(
        self,
        command: Sequence[str | Path],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        time_limit_s: float,
        keep: int,
        grace_s: float = 2.0,
    ) -> Tailed:
        """Run a command to its end or its time limit, and keep the last `keep` bytes of what it writes to both outputs. What is
        left of its session has ended when this returns, or is cancelled; it is asked first and has `grace_s` to comply.

        Raises `OSError` when it cannot be started.
        """
        stream = asyncio.StreamReader()
        near, far = _open_pipe()
        with far:
            # A pipe of our own, since asyncio tells of a child's end only once nobody holds those that it makes.
            transport, _ = await asyncio.get_running_loop().connect_read_pipe(
                partial(asyncio.StreamReaderProtocol, stream), near
            )
            with contextlib.closing(transport):
                async with self._places:
                    child = await asyncio.create_subprocess_exec(
                        *command,
                        cwd=cwd,
                        env=environment,
                        stdin=DEVNULL,
                        stdout=far,
                        stderr=STDOUT,
                        start_new_session=True,
                    )
                far.close()
                async with asyncio.TaskGroup() as group:
                    reading = group.create_task(_read_end(stream, keep))
                    returncode = await _within(child, time_limit_s, grace_s)
                    # A stranger that got away may still hold the other end.
                    await asyncio.wait([reading], timeout=1)
                    transport.close()
        output, whole = reading.result()
        return Tailed(returncode, output, whole)

    async def start(self, command: Sequence[str | Path], *, cwd: Path, environment: Mapping[str, str]) -> Process:
        """Start a program that stays. Raises `OSError` when it cannot be started."""
        async with self._places:
            child = await asyncio.create_subprocess_exec(
                *command,
                cwd=cwd,
                env=environment,
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=STDOUT,
                start_new_session=True,
                limit=LINE_LIMIT,
            )
        return Process(identify(child.pid), _pipe(child.stdout), child)


async def _read(child: asyncio.subprocess.Process, stream: asyncio.StreamReader, limit: int) -> bytes:
    """All of a stream; more than `limit` bytes for one that is too long, whose writer is killed."""
    parts, size = [], 0
    while chunk := await stream.read(CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            _kill(child)
            break
    return b"".join(parts)


def _open_pipe() -> tuple[BinaryIO, BinaryIO]:
    near, far = os.pipe()
    return os.fdopen(near, "rb", 0), os.fdopen(far, "wb", 0)


async def _read_end(stream: asyncio.StreamReader, keep: int) -> tuple[bytes, bool]:
    """The last `keep` bytes of a stream, and whether these are all."""
    end, size = b"", 0
    while chunk := await stream.read(CHUNK):
        end = (end + chunk)[-keep:]
        size += len(chunk)
    return end, size <= keep


async def _within(child: asyncio.subprocess.Process, time_limit_s: float, grace_s: float) -> int | None:
    """The status of a child, None when it did not end in time. All of its session is over then."""
    leader = identify(child.pid)
    try:
        async with asyncio.timeout(time_limit_s):
            return await child.wait()
    except TimeoutError:
        return None
    except asyncio.CancelledError:
        _kill(child)  # at once: what follows may be cancelled as well
        raise
    finally:
        await stop_session(leader, grace_s)
        await _close(child)


async def _feed(stream: asyncio.StreamWriter, content: bytes) -> None:
    # A command that needs no more input closes its end; what it made of it shows in its exit status.
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(content)
        await stream.drain()
    stream.close()


def _kill(child: asyncio.subprocess.Process) -> None:
    """End whatever is left of the child's session. While any of it is left, the number is nobody else's."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


async def _close(child: asyncio.subprocess.Process) -> None:
    """Take the exit status, and let go of the pipes even if a stranger still holds their other ends."""
    # Some versions of asyncio end this wait only when the pipes are closed, and closing them takes the exit status away
    # from a wait that has not seen it yet.
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(1):
            await child.wait()
    child._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio has no public way
    await child.wait()


def _pipe(stream: Pipe | None) -> Pipe:
    """The stream that was asked for when the child was started."""
    return cast(Pipe, stream)
