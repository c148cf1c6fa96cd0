"""Patterns of paths, as .gitignore has them but without "!": which files a task may change, may carry, must never send."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import cache


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Whether one of `patterns` is for `path` or for a folder above it, in any case.

    A pattern without "/" is for a name anywhere ("test_*.py", "tests"), one with "/" for a path from the workspace on
    ("shop/tests", "docs/*.md"); "*" and "?" stand for "/" as well.
    """
    named, placed = _matchers(tuple(patterns))
    parts = path.lower().split("/")
    above = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
    return any(named(part) for part in parts) or any(placed(each) for each in above)


def in_scope(path: str, allowed: Sequence[str]) -> bool:
    """Whether a task with these allowed paths may change `path`; without any it may change all of the workspace."""
    return not allowed or matches(path, allowed)


def overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two lists of allowed paths plainly name something in common: a pattern of one is for a pattern of the other."""
    return any(matches(each.strip("/"), other) for each in one) or any(matches(each.strip("/"), one) for each in other)


@cache
def _matchers(patterns: tuple[str, ...]) -> tuple[Callable[[str], object], Callable[[str], object]]:
    names: list[str] = []
    places: list[str] = []
    for pattern in patterns:
        plain = pattern.lower().strip("/")
        (places if "/" in plain or pattern.startswith("/") else names).append(fnmatch.translate(plain))
    nothing = r"(?!)"
    return re.compile("|".join(names) or nothing).match, re.compile("|".join(places) or nothing).match
