"""Who asks: made by an edge from its connection, passed to everything that core does on somebody's behalf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from offload.domain.task import Front


class Delivery:
    """Whether the answer to one call came to its connection. An edge holds it open around the call and the writing of the
    answer, and calls `written` after that; a call that is cancelled, or whose connection ends, leaves it lost."""

    def __init__(self) -> None:
        self.lost = False
        self._written = False

    def __enter__(self) -> Delivery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.lost = not self._written

    def written(self) -> None:
        self._written = True
        self.lost = False

    def lose(self) -> None:
        """The connection has ended with the call still open."""
        self.lost = not self._written


@dataclass(frozen=True, slots=True)
class Caller:
    """`id` names the connection ("lsp-3"), `name` the program behind it ("claude-code", "Neovim"), `workspace` its folder;
    `environment` is what its workers get; it is kept in memory only, because it may hold keys. `delivery` is of this call."""

    front: Front
    id: str
    workspace: Path
    name: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    delivery: Delivery = field(default_factory=Delivery, compare=False)

    @property
    def who(self) -> str:
        """The caller as others are told of him."""
        return (
            self.name or {Front.EDITOR: "an editor", Front.MODEL: "a model", Front.TERMINAL: "a terminal"}[self.front]
        )
