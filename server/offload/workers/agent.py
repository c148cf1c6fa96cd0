"""What is known of an agent before it is started: the content of its data file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Agent:
    """`kind` names the adapter; `programs` are looked for on PATH and in `places`; `install` is the command for people;
    `sign_in` is what its program is told to sign in to a provider; `package` and `pinned` are what npm installs; `lines` are the release lines that work."""

    name: str
    title: str
    kind: str
    programs: tuple[str, ...]
    places: tuple[str, ...]
    install: str
    sign_in: str
    package: str
    pinned: str
    lines: tuple[str, ...]
