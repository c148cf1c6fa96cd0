"""Patterns of paths, as .gitignore has them but without "!": which files a task may change, may carry, must never send."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import cache


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Whether one of `patterns` is for `path` or for a folder above it, in any case.

    A pattern without "/" is for a name anywhere ("test_*.py", "tests"), one with "/" for a path from the workspace on
    ("shop/tests", "docs/*.md", "./shop"); "*" and "?" stand for "/" as well. "**/" is for any folders or none, "." for all of it.
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
    return any(matches(_plain(each), other) for each in one) or any(matches(_plain(each), one) for each in other)


@cache
def _matchers(patterns: tuple[str, ...]) -> tuple[Callable[[str], object], Callable[[str], object]]:
    names: list[str] = []
    places: list[str] = []
    for pattern in patterns:
        plain = "**" if pattern == "." else _plain(pattern)
        floating = plain.startswith("**/")
        plain = plain.removeprefix("**/")
        if "/" not in plain and (floating or not pattern.startswith(("/", "./"))):
            names.append(_expression(plain))
        else:
            places.append(("(?s:.*/)?" if floating else "") + _expression(plain))
    nothing = r"(?!)"
    return re.compile("|".join(names) or nothing).fullmatch, re.compile("|".join(places) or nothing).fullmatch


def _plain(pattern: str) -> str:
    return pattern.lower().removeprefix("./").strip("/")


def _expression(plain: str) -> str:
    # What `translate` ends with is the end of the text, which a part need not reach.
    return "/(?s:.*/)?".join(fnmatch.translate(part)[:-2] for part in plain.split("/**/"))
