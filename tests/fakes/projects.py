"""Projects without files: what a test says is what the workspace says of itself, and what is trusted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from offload.domain.project import ProjectSettings


class FakeProjects:
    """Fits the `Projects` port; `now` may be set anew at any time."""

    def __init__(self, now: ProjectSettings = ProjectSettings()) -> None:
        self.now = now

    async def settings(self, root: Path) -> ProjectSettings:
        return self.now

    async def trust(self, root: Path, *, trusted: bool) -> ProjectSettings:
        self.now = replace(self.now, trusted=trusted)
        return self.now
