"""Users' repositories for tests, made by the real git with nothing of this machine's configuration."""

import hashlib
import os
import subprocess
from pathlib import Path

from offload.domain.change import ChangeSet

USER = {
    "GIT_AUTHOR_NAME": "User",
    "GIT_AUTHOR_EMAIL": "user@example.com",
    "GIT_COMMITTER_NAME": "User",
    "GIT_COMMITTER_EMAIL": "user@example.com",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(folder: Path, *arguments: str, stdin: bytes | None = None, **variables: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | USER | variables
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


def private_of(state: Path) -> Path:
    (private,) = (state / "repositories").iterdir()
    return private


def crafted(private: Path, base: str, *entries: tuple[str, bytes, bytes]) -> ChangeSet:
    """A result that no honest git would write: entries (mode, path, content) as given, in trees made byte by byte."""
    split = [(mode, [path] if path.startswith(b"/") else path.split(b"/"), content) for mode, path, content in entries]
    tree = _crafted_tree(private, base, split)
    return ChangeSet(base, git(private, "commit-tree", tree, "-m", "crafted"))


def _crafted_tree(private: Path, base: str, entries: list[tuple[str, list[bytes], bytes]]) -> str:
    raw = []
    folders: dict[bytes, list[tuple[str, list[bytes], bytes]]] = {}
    for mode, (name, *rest), content in entries:
        if rest:
            folders.setdefault(name, []).append((mode, rest, content))
        else:
            id_ = base if mode == "160000" else git(private, "hash-object", "-w", "--stdin", stdin=content)
            raw.append(mode.encode() + b" " + name + b"\0" + bytes.fromhex(id_))
    for name, inner in folders.items():
        raw.append(b"40000 " + name + b"\0" + bytes.fromhex(_crafted_tree(private, base, inner)))
    return git(private, "hash-object", "-t", "tree", "--literally", "-w", "--stdin", stdin=b"".join(raw))
