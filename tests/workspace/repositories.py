"""Users' repositories for tests, made by the real git with nothing of this machine's configuration."""

import hashlib
import os
import subprocess
from pathlib import Path

USER = {
    "GIT_AUTHOR_NAME": "User",
    "GIT_AUTHOR_EMAIL": "user@example.com",
    "GIT_COMMITTER_NAME": "User",
    "GIT_COMMITTER_EMAIL": "user@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str, stdin: bytes | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | USER
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=environment, input=stdin, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return os.fsdecode(done.stdout).strip()


def commit_all(folder: Path, message: str = "commit") -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def fingerprint(folder: Path) -> dict[str, str]:
    """Every byte and mode below a folder, git's own folder with it."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path)] = f"{path.lstat().st_mode:o} {hashlib.sha256(content).hexdigest()}"
    return found


async def apply(workspace, root: Path, changes, buffers=None, *, exact=False):
    """Plan with what the user has now, and write."""
    plan = await workspace.plan(root, changes, buffers or {}, exact=exact)
    await workspace.write(root, plan)
    return plan
