"""Who asks: made by an edge from its connection, passed to everything that core does on somebody's behalf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from offload.domain.task import Front


@dataclass(frozen=True, slots=True)
class Caller:
    """`id` names the connection ("lsp-3"), `name` the program behind it ("claude-code", "Neovim"), `workspace` its folder;
    `environment` is what its workers get; it is kept in memory only, because it may hold keys."""

    front: Front
    id: str
    workspace: Path
    name: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
