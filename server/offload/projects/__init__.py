"""What a workspace says of itself in its `offload.toml`, and which of these files a person trusts."""

from __future__ import annotations

from pathlib import Path

from offload.domain.project import ProjectSettings


class ProjectFiles:
    """Fits `core.ports.Projects`. `state_folder` holds what is trusted."""

    def __init__(self, state_folder: Path) -> None:
        self._state_folder = state_folder

    async def settings(self, root: Path) -> ProjectSettings:
        return ProjectSettings()

    async def trust(self, root: Path, *, trusted: bool) -> ProjectSettings:
        return ProjectSettings(trusted=trusted)
