"""What a workspace says of itself in its `offload.toml`, and what of it counts."""

from __future__ import annotations

from dataclasses import dataclass

from offload.domain.check import CheckPlan


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """`setup` is a shell command that readies a new task folder, "" for none; `carry` are patterns of ignored files that a
    folder needs; `never_send` are patterns of files that no worker ever gets.

    All but `never_send` counts only once the file is trusted, by its path and content; `trusted` says whether it is, and
    `note` is what a person should be told, "" for nothing.
    """

    setup: str = ""
    plan: CheckPlan = CheckPlan()
    carry: tuple[str, ...] = ()
    never_send: tuple[str, ...] = ()
    trusted: bool = False
    note: str = ""
