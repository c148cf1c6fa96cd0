"""The environment of an OpenCode server: the caller's, less what is only of his terminal, with offload's own state beside it.

The user's providers, keys and sign-ins are honoured and never written; everything that OpenCode keeps goes into `folder`.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from offload.processes import MARKER

PLUGIN = "@opencode-ai/plugin"
TEMPORARY = "tmp"

# What tells one terminal from another and means nothing to a worker: with it every window would get a server of its own.
TERMINAL = frozenset({"_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "PS1", "WINDOWID", "DISPLAY", "WAYLAND_DISPLAY",
                      "DBUS_SESSION_BUS_ADDRESS", "INVOCATION_ID", "JOURNAL_STREAM", "EDITOR", "VISUAL", "PAGER",
                      "STARSHIP_SESSION_KEY", "MCP_TIMEOUT"})  # fmt: skip
TERMINAL_PREFIXES = ("TERM", "COLORTERM", "TMUX", "STY", "SSH_", "XDG_SESSION_", "XDG_RUNTIME_DIR", "VSCODE_", "NVIM",
                     "VIM", "KITTY_", "ALACRITTY_", "WEZTERM_", "ITERM_", "ZED_", "LC_TERMINAL", "GIT_", "OFFLOAD_",
                     "CLAUDECODE", "CLAUDE_CODE_", "CODEX_", "CURSOR_", "ELECTRON_", "COVERAGE_")  # fmt: skip
# A host may be an OpenCode itself: its own server's settings are not ours. What a person switched off stays off.
OPENCODE_KEPT = ("OPENCODE_DISABLE_", "OPENCODE_API_KEY", "OPENCODE_MODELS_")

CONTENT: Mapping[str, object] = {"snapshot": False, "autoupdate": False, "share": "disabled"}


def relevant(environment: Mapping[str, str]) -> dict[str, str]:
    """What a worker needs of the caller's environment."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if name not in TERMINAL
        and not name.startswith(TERMINAL_PREFIXES)
        and (not name.startswith("OPENCODE") or name.startswith(OPENCODE_KEPT))
    }


def user_config(environment: Mapping[str, str], given: str = "") -> Path | None:
    """The user's own configuration file: the one that is set, else the global one."""
    if named := given or environment.get("OPENCODE_CONFIG", ""):
        return Path(named)
    folder = user_folder(environment)
    if folder is None:
        return None
    return next((folder / name for name in ("opencode.json", "opencode.jsonc") if (folder / name).is_file()), None)


def user_folder(environment: Mapping[str, str]) -> Path | None:
    """Where the user's OpenCode keeps its configuration and agents."""
    if base := environment.get("XDG_CONFIG_HOME"):
        return Path(base, "opencode")
    home = environment.get("HOME")
    return Path(home, ".config", "opencode") if home else None


def digest(*parts: object) -> str:
    """A short name for everything that a server is started with; nothing can be read back from it."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def server_environment(
    environment: Mapping[str, str],
    *,
    folder: Path,
    config: Path | None,
    content: Mapping[str, object],
    password: str,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of a server that keeps its state in `folder`."""
    whole = {
        **relevant(environment),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "XDG_STATE_HOME": str(folder / "state"),
        "OPENCODE_DB": str(folder / "opencode.db"),
        # OpenCode unpacks libraries at each start and leaves them. TMPDIR stays the user's: the sockets that tools make there
        # would have too long a path here.
        "BUN_TMPDIR": str(folder / TEMPORARY),
        # Else every test run adds files to what the worker changed.
        "PYTHONDONTWRITEBYTECODE": "1",
        # Until the workspace is trusted, nothing that the project holds configures the worker or runs inside of it.
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        # No `permission` here: it would turn a user's "deny" into "ask". Rules are given with each session.
        "OPENCODE_CONFIG_CONTENT": json.dumps({**CONTENT, **content}),
        "OPENCODE_SERVER_PASSWORD": password,
        MARKER: digest(folder),
        **instead_of_home(environment, folder),
        **extra,
    }
    if config is not None:
        whole["OPENCODE_CONFIG"] = str(config)
    return whole


def instead_of_home(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Folders of ours for those of the user's home that cannot be written, without which OpenCode does not start; the user's
    sign-ins are still read."""
    home = environment.get("HOME", "")
    data = environment.get("XDG_DATA_HOME") or (home and f"{home}/.local/share")
    cache = environment.get("XDG_CACHE_HOME") or (home and f"{home}/.cache")
    variables = {}
    if home and not _can_write(Path(home)) and not os.path.isdir(home):  # noqa: PTH112 - as below
        variables["HOME"] = str(folder / "home")
        (folder / "home").mkdir(parents=True, exist_ok=True)
    if data and not _can_write(Path(data, "opencode")):
        variables["XDG_DATA_HOME"] = str(folder / "data")
        link = folder / "data" / "opencode" / "auth.json"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(Path(data, "opencode", "auth.json"))
    if cache and not _can_write(Path(cache, "opencode")):
        variables["XDG_CACHE_HOME"] = str(folder / "cache")
    return variables


def _can_write(path: Path) -> bool:
    """Whether a folder is there to write in, or can be made."""
    there = next(place for place in (path, *path.parents) if os.path.exists(place))  # noqa: PTH110 - `Path.exists` raises where nothing may be read
    return there.is_dir() and os.access(there, os.W_OK)


def prepare(folder: Path, version: str, agents: Path | None) -> None:
    """Lay out a server's folder. The configuration folder looks as if its plugin package was installed, because OpenCode would
    install it from the network otherwise; `agents` is the user's OpenCode folder, whose agents are linked, or None."""
    home = folder / "config" / "opencode"
    (home / "node_modules").mkdir(parents=True, exist_ok=True)
    (folder / "state").mkdir(exist_ok=True)
    empty_temporary(folder)
    (folder / TEMPORARY).mkdir()
    folder.chmod(0o700)
    wanted = {"dependencies": {PLUGIN: version}}
    (home / "package.json").write_text(json.dumps(wanted), encoding="utf-8")
    lock = {"lockfileVersion": 3, "packages": {"": wanted}}
    (home / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    for name in ("agent", "agents"):
        link = home / name
        link.unlink(missing_ok=True)
        if agents is not None and (agents / name).is_dir():
            link.symlink_to(agents / name)


def empty_temporary(folder: Path) -> None:
    """Remove what a server that has ended left in its own temporary folder."""
    shutil.rmtree(folder / TEMPORARY, ignore_errors=True)
