"""The settings files of workspaces, as far as a person trusts them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.domain.errors import InvalidRequest
from offload.domain.project import ProjectSettings
from offload.projects.trusted import Trusted

FILE = "offload.toml"
FILE_LIMIT = 256 << 10


@dataclass(frozen=True, slots=True)
class _Found:
    """`place` is the real path, by which the file is trusted."""

    path: Path
    place: Path
    digest: str
    values: dict[str, Any]


class ProjectFiles:
    """Fits `core.ports.Projects`. `state_folder` holds what is trusted."""

    def __init__(self, state_folder: Path) -> None:
        self._trusted = Trusted(state_folder / "trusted.json")
        self._turn = asyncio.Lock()

    async def settings(self, root: Path) -> ProjectSettings:
        return await asyncio.to_thread(self._settings, root)

    async def trust(self, root: Path, *, trusted: bool) -> ProjectSettings:
        async with self._turn:
            await asyncio.to_thread(self._trust if trusted else self._distrust, root)
            return await self.settings(root)

    def _settings(self, root: Path) -> ProjectSettings:
        found = _find(root)
        if found is None:
            return ProjectSettings()
        known = self._trusted.digest(found.place)
        if known == found.digest:
            return _whole(found)
        # A file that nobody trusts stops no task, unless what must never be sent cannot be told.
        secret = _never_send(found)
        try:
            asked = _asked_for(_whole(found))
        except InvalidRequest as error:
            return ProjectSettings(never_send=secret, note=f"{error}; only never_send counts")
        if not asked:
            return ProjectSettings(never_send=secret)
        why = "has changed since it was trusted" if known else "is not trusted"
        again = " again" if known else ""
        note = f"{FILE} asks for {asked} and {why}: run `offload trust` to allow it{again}"
        return ProjectSettings(never_send=secret, note=note)

    def _trust(self, root: Path) -> None:
        found = _find(root)
        if found is None:
            raise InvalidRequest(f"there is no {FILE} in {root} that could be trusted: write one first")
        _whole(found)
        self._trusted.set(found.place, found.digest)

    def _distrust(self, root: Path) -> None:
        self._trusted.set((root / FILE).resolve(), "")


def _find(root: Path) -> _Found | None:
    """The file as it is now, None without one. Raises `InvalidRequest` for one that cannot be read as TOML."""
    path = root / FILE
    try:
        place = path.resolve(strict=True)
        if not place.is_relative_to(root.resolve()):
            raise _unusable(path, "it is a link that leads out of the workspace")
        content = _read(place)
        return _Found(path, place, hashlib.sha256(content).hexdigest(), tomllib.loads(content.decode()))
    except FileNotFoundError:
        if path.is_symlink():
            raise _unusable(path, "it is a link that leads nowhere") from None
        return None
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error
    except (ValueError, RecursionError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise _unusable(path, str(error)) from error


def _read(place: Path) -> bytes:
    descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(FILE_LIMIT + 1)
    if len(content) > FILE_LIMIT:
        raise ValueError(f"it is larger than {FILE_LIMIT >> 10} KiB")
    return content


def _asked_for(settings: ProjectSettings) -> str:
    """What counts only when it is trusted, in words: "commands (setup, checks) and files (carry)"."""
    wanted = {"setup": settings.setup, "format": settings.plan.format, "checks": settings.plan.checks}
    keys = ", ".join(key for key, value in wanted.items() if value)
    commands = f"commands ({keys})" if keys else ""
    return " and ".join(part for part in (commands, "files (carry)" if settings.carry else "") if part)


def _whole(found: _Found) -> ProjectSettings:
    from offload.projects.content import settings_of  # noqa: PLC0415 - most workspaces have no such file, and no front waits for its models

    try:
        return settings_of(found.values)
    except ValueError as error:
        raise _unusable(found.path, str(error)) from None


def _never_send(found: _Found) -> tuple[str, ...]:
    from offload.projects.content import never_send_of  # noqa: PLC0415 - as above

    try:
        return never_send_of(found.values)
    except ValueError as error:
        raise _unusable(found.path, str(error)) from None


def _unusable(path: Path, problem: str) -> InvalidRequest:
    return InvalidRequest(f"the file {path} cannot be used: {problem}")
