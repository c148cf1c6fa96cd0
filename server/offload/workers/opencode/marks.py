"""One small file per session, beside the database that holds it: which server kept it, and what was sent to it.

By it the next hub finds the server of a session, whatever its own environment is, and knows whether that server has ended since.
It knows nothing of servers but their folders.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from offload.processes import Identity

FOLDER = "sessions"


@dataclass(frozen=True, slots=True)
class Mark:
    """The process that kept the session when it was used last; `prompt` is the last one that may have been sent."""

    pid: int
    started: float
    prompt: str = ""

    @property
    def server(self) -> Identity:
        return Identity(self.pid, self.started)


def keep(folder: Path, session: str, server: Identity, prompt: str = "") -> None:
    """Written whole or not at all, so that a hub that is killed meanwhile leaves no half of it."""
    path = _path(folder, session)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(asdict(Mark(server.pid, server.started, prompt))), encoding="utf-8")
    part.replace(path)


def read(folder: Path, session: str) -> Mark | None:
    """None for a session that is not kept there."""
    try:
        return Mark(**json.loads(_path(folder, session).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def find(servers: Path, session: str) -> str:
    """The name of the folder below `servers` that keeps the session, "" for none."""
    kept = next((path for path in servers.glob(f"*/{FOLDER}/*") if path.name == session), None)
    return kept.parent.parent.name if kept is not None else ""


def forget(folder: Path, session: str) -> None:
    _path(folder, session).unlink(missing_ok=True)


def _path(folder: Path, session: str) -> Path:
    return folder / FOLDER / Path(session).name
