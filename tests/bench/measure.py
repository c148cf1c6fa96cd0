"""Small tools of the bench: talk to a server over its pipes, take times, keep rows."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, Any

import psutil


@dataclass
class Row:
    """One figure with its samples; `goal` is the most that `ratio` may be, both against the row named `against`."""

    name: str
    unit: str
    samples: list[float]
    against: str = ""
    ratio: float | None = None
    goal: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def p95(self) -> float:
        ordered = sorted(self.samples)
        return ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]

    @property
    def met(self) -> bool | None:
        return None if self.goal is None or self.ratio is None else self.ratio <= self.goal

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "median": self.median, "p95": self.p95, "met": self.met}


@dataclass
class Rows:
    rows: dict[str, Row] = field(default_factory=dict)

    def add(
        self, name: str, unit: str, samples: Sequence[float], *, against: str = "", goal: float | None = None
    ) -> None:
        """A ratio compares medians of two rows of this same run."""
        row = Row(name, unit, list(samples), against, goal=goal)
        if against:
            row.ratio = row.median / self.rows[against].median
        self.rows[name] = row

    def bound(self, name: str, unit: str, samples: Sequence[float], most: float) -> None:
        """A figure with a fixed bound instead of a comparison."""
        row = Row(name, unit, list(samples), f"{most:g} {unit}", goal=1.0)
        row.ratio = row.median / most
        self.rows[name] = row


class Frames:
    """Messages of the Language Server Protocol: a header with the length, then the body."""

    opening = ("initialize", {"processId": None, "rootUri": None, "capabilities": {}})

    @staticmethod
    def write(pipe: IO[bytes], message: Mapping[str, Any]) -> None:
        body = json.dumps(message).encode()
        pipe.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        pipe.flush()

    @staticmethod
    def read(pipe: IO[bytes]) -> Any:
        length = 0
        while (line := pipe.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(pipe.read(length))


class Lines:
    """Messages of MCP over stdio: a line each."""

    opening = (
        "initialize",
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}},
    )

    @staticmethod
    def write(pipe: IO[bytes], message: Mapping[str, Any]) -> None:
        pipe.write(json.dumps(message).encode() + b"\n")
        pipe.flush()

    @staticmethod
    def read(pipe: IO[bytes]) -> Any:
        return json.loads(pipe.readline())


Framing = type[Frames] | type[Lines]


class Server:
    """A program that speaks over its pipes."""

    def __init__(self, command: Sequence[str], framing: Framing, environment: Mapping[str, str]) -> None:
        self.framing = framing
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(environment)
        )
        self._ids = 0

    def call(self, method: str, params: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._ids += 1
        self.framing.write(self.process.stdin, {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        while (message := self.framing.read(self.process.stdout)).get("id") != self._ids or "method" in message:
            pass
        assert "result" in message, message
        return message["result"]

    def notify(self, method: str, params: Any) -> None:
        assert self.process.stdin is not None
        self.framing.write(self.process.stdin, {"jsonrpc": "2.0", "method": method, "params": params})

    def resident_mb(self) -> float:
        """Of the process and its children."""
        own = psutil.Process(self.process.pid)
        return sum(each.memory_info().rss for each in (own, *own.children(recursive=True))) / 1e6

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def connect(command: Sequence[str], framing: Framing, environment: Mapping[str, str]) -> tuple[float, float]:
    """Milliseconds from the start of the program to the answer of its first request, and its memory then in MB."""
    begun = time.perf_counter()
    server = Server(command, framing, environment)
    try:
        server.call(*framing.opening)
        took = (time.perf_counter() - begun) * 1000
        return took, server.resident_mb()
    finally:
        server.end()


def alternate(
    times: int, measures: Mapping[str, Callable[[], tuple[float, float]]]
) -> dict[str, list[tuple[float, float]]]:
    """Each measure in turn, round by round, so that a slow moment of the machine meets all of them; one round is not counted."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in measures}
    for number in range(times + 1):
        for name, measure in measures.items():
            sample = measure()
            if number:
                taken[name].append(sample)
    return taken


def clean_environment(**more: str) -> dict[str, str]:
    """What a host passes on: little."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ} | more
