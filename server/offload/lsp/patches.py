"""Patches and conflicts as files, for editors to show: in a folder that only this user can read, and that ends with the connection."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path


class Patches:
    """`remove` must be the last call."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    async def write(self, name: str, text: str) -> Path:
        """The file, new or written again."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="offload-")
        path = Path(self._folder.name) / name
        await asyncio.to_thread(path.write_text, text, encoding="utf-8", errors="replace", newline="")
        return path

    def remove(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
