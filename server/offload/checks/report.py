"""Reads the JUnit XML that a check writes. The files come from code that a worker wrote, so nothing about them is trusted."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, BinaryIO
from xml.etree.ElementTree import ElementTree, ParseError, TreeBuilder, XMLParser

from junitparser import TestCase

from offload.domain.check import ReportCounts

FILE_LIMIT = 20 << 20
ELEMENT_LIMIT = 500_000
DEPTH_LIMIT = 100
FILES_LIMIT = 1000
NAMED = 50
TEXT_LIMIT = 300  # characters

Stamp = tuple[int, int, int, int]


class _Unreadable(Exception):
    """Why a report does not count."""


class Reports:
    """The reports that `pattern`, a path or glob relative to `folder`, is for. Those that are there already, as they are, when
    this is made do not count later: they are of an earlier run."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self._folder = folder
        self._pattern = pattern
        self._old = dict(self._found())

    def read(self) -> tuple[ReportCounts | None, str]:
        """What they say together, and why not: one of both is empty. Both are when no report was asked for."""
        if not self._pattern:
            return None, ""
        try:
            counts = self._counts()
        except _Unreadable as error:
            return None, _cut(f"the report {self._pattern} cannot be read: {error}")
        return counts, ""

    def _counts(self) -> ReportCounts:
        if not _leads_inside(self._pattern):
            raise _Unreadable("it is not inside of the task folder")
        new = [path for path, stamp in self._found() if self._old.get(path) != stamp]
        if not new:
            raise _Unreadable("this run did not write it")
        if len(new) > FILES_LIMIT:
            raise _Unreadable(f"these are more than {FILES_LIMIT} files")
        passed = failed = skipped = 0
        failing: list[str] = []
        for case in (case for path in new for case in self._cases(path)):
            if case.is_failure or case.is_error:
                failed += 1
                if failed <= NAMED:
                    failing.append(_name(case))
            elif case.is_skipped:
                skipped += 1
            else:
                passed += 1
        if failed > NAMED:
            failing.append(f"and {failed - NAMED} more")
        return ReportCounts(passed, failed, skipped, tuple(failing))

    def _found(self) -> Iterator[tuple[Path, Stamp]]:
        if not _leads_inside(self._pattern):
            return
        # OSError: gone while we looked. ValueError: no pattern at all.
        with contextlib.suppress(OSError, ValueError):
            for path in sorted(self._folder.glob(self._pattern)):
                known = path.lstat()
                yield path, (known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns)

    def _cases(self, path: Path) -> Iterator[TestCase]:
        name = path.relative_to(self._folder)
        if path.resolve() != self._folder.resolve() / name:
            raise _Unreadable(f"{name} lies behind a link")
        try:
            with _open(path) as file:
                # Not by the parser that junitparser would take, which is lxml's where somebody has that.
                root = ElementTree().parse(file, XMLParser(target=_Builder()))  # noqa: S314 - see _Builder
        except (OSError, ParseError, ValueError, LookupError) as error:  # LookupError: an encoding that there is not
            raise _Unreadable(f"{name}: {error}") from None
        if root.tag not in ("testsuites", "testsuite"):
            raise _Unreadable(f"{name}: it is not JUnit XML")
        yield from map(TestCase.fromelem, root.iter("testcase"))


class _Builder(TreeBuilder):
    """Builds no more than the names and attributes of a document that declares nothing: without declarations there are no
    entities, which could stand for files or for more text than there is memory."""

    def __init__(self) -> None:
        super().__init__()
        self._count = self._depth = 0

    def start(self, tag: Any, attributes: Any, /) -> Any:
        self._count += 1
        self._depth += 1
        if self._count > ELEMENT_LIMIT or self._depth > DEPTH_LIMIT:
            raise ValueError(f"it has more than {ELEMENT_LIMIT} elements, or more than {DEPTH_LIMIT} in each other")
        return super().start(tag, attributes)

    def end(self, tag: str, /) -> Any:
        self._depth -= 1
        return super().end(tag)

    def data(self, data: str, /) -> None:
        """What tests print is not looked at."""

    def doctype(self, name: str, public: str, system: str) -> None:
        raise ValueError("it declares a document type")


def _open(path: Path) -> BinaryIO:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    known = os.fstat(descriptor)
    problem = "it is no regular file" if not stat.S_ISREG(known.st_mode) else ""
    if known.st_size > FILE_LIMIT:
        problem = f"it is larger than {FILE_LIMIT >> 20} MiB"
    if problem:
        file.close()
        raise ValueError(problem)
    return file


def _leads_inside(pattern: str) -> bool:
    place = PurePath(pattern)
    return bool(place.parts) and not place.is_absolute() and ".." not in place.parts


def _name(case: TestCase) -> str:
    return _cut(".".join(part for part in (case.classname, case.name) if part) or "a test without a name")


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"
