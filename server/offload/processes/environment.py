"""The environment that a child gets: always given in full, never inherited by accident."""

from __future__ import annotations

from collections.abc import Mapping


def without(environment: Mapping[str, str], *beginnings: str) -> dict[str, str]:
    """A copy of `environment` that lacks every variable whose name begins with one of `beginnings` ("GIT_")."""
    return {name: value for name, value in environment.items() if not name.startswith(beginnings)}
