"""What is set up around a repository: the environment, configuration, hooks, and others at work in it."""

from __future__ import annotations

from pathlib import Path

from tests.workspace.repositories import git
from tests.workspace.shapes.made import Shape, project


def variables_of_git(home: Path) -> Shape:
    """As a hook of git's, or a command in an interactive rebase, has them."""
    other = project(home, "other")
    environment = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git" / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"),
        "GIT_CEILING_DIRECTORIES": str(home),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.excludesFile",
        "GIT_CONFIG_VALUE_0": "/no/such/file",
        "GIT_EXTERNAL_DIFF": "false",
        "GIT_TRACE": str(home / "trace"),
    }
    return Shape(project(home), environment=environment)


def locks_of_others(home: Path) -> Shape:
    root = project(home)
    for name in ("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock", "refs/heads/main.lock"):
        (root / ".git" / name).write_text("")
    return Shape(root)


def hooks_and_monitor(home: Path) -> Shape:
    """Whatever of these runs leaves a file."""
    root = project(home)
    hooks = home / "hooks"
    hooks.mkdir()
    touch = f"touch '{home / 'canary'}'"
    for name in (
        *("post-checkout", "post-index-change", "pre-commit", "post-commit", "reference-transaction", "pre-auto-gc"),
        *("pre-applypatch", "post-merge", "post-rewrite", "fsmonitor-watchman", "push-to-checkout", "update"),
    ):
        for place in (hooks, root / ".git" / "hooks"):
            place.mkdir(exist_ok=True)
            (place / name).write_text(f"#!/bin/sh\n{touch}\n")
            (place / name).chmod(0o755)
    (root / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "attributes", "--no-verify", "-n")
    (home / "canary").unlink(missing_ok=True)
    git(root, "config", "core.hooksPath", str(hooks))
    for name in ("filter.x.clean", "filter.x.smudge", "diff.x.textconv", "diff.external", "merge.x.driver"):
        git(root, "config", name, f"{touch}; cat")
    for name in ("core.pager", "core.editor", "core.sshCommand", "gpg.program", "core.fsmonitor"):
        git(root, "config", name, touch)
    git(root, "config", "commit.gpgSign", "true")
    (home / "canary").unlink(missing_ok=True)
    return Shape(root)


def configuration_of_a_work_tree(home: Path) -> Shape:
    root = project(home)
    git(root, "config", "extensions.worktreeConfig", "true")
    git(root, "config", "--worktree", "core.excludesFile", str(home / "ignores"))
    (home / "ignores").write_text("*.mine\n")
    (root / "a.mine").write_text("mine\n")
    return Shape(root, missing=("a.mine",))


def configuration_by_includes(home: Path) -> Shape:
    root = project(home)
    (home / "included").write_text(f"[core]\n\texcludesFile = {home / 'ignores'}\n")
    git(root, "config", f"includeIf.gitdir:{root}/.path", str(home / "included"))
    (home / "ignores").write_text("*.mine\n")
    (root / "a.mine").write_text("mine\n")
    return Shape(root, missing=("a.mine",))
