"""Workspaces by where they lie, whose they are, and what other repositories are about."""

from __future__ import annotations

import os
from pathlib import Path

from tests.workspace.repositories import commit_all, git
from tests.workspace.shapes.made import Shape, dirty, project

OTHER_USER = 12345


def submodules(home: Path) -> Shape:
    root = project(home)
    inner = project(home, "inner")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
    commit_all(root, "submodule")
    (root / "sub" / "b.txt").write_text("dirty in the submodule\n")
    dirty(root)
    return Shape(root, missing=("sub",), notes=("Submodules are not in the copy",))


def a_submodule_as_workspace(home: Path) -> Shape:
    """Its `.git` is a file, and its git directory says by `core.worktree` where the files are."""
    outer = submodules(home).root
    assert git(outer / "sub", "config", "core.worktree")
    return Shape(outer / "sub")


def embedded_repositories(home: Path) -> Shape:
    root = project(home)
    for name in ("inner", "vendor/deep"):
        (root / name).mkdir(parents=True)
        git(root / name, "init", "-q")
        (root / name / "file.py").write_text("inner\n")
    commit_all(root / "inner")
    return Shape(root, missing=("inner", "vendor/deep"), notes=("inner/, vendor/deep/",))


def a_work_tree_inside_of_the_main_one(home: Path) -> Shape:
    root = project(home)
    git(root, "worktree", "add", "-q", "trees/feature")
    return Shape(root, missing=("trees",), notes=("repositories of their own: trees/feature/",))


def symlinked_root(home: Path) -> Shape:
    (home / "linked").symlink_to(project(home, "real"))
    return Shape(home / "linked")


def below_a_symlink(home: Path) -> Shape:
    """A folder above the workspace is a link."""
    project(home / "real place")
    (home / "short").symlink_to("real place")
    return Shape(home / "short" / "project")


def linked_work_tree(home: Path) -> Shape:
    root = home / "other tree"
    git(project(home), "worktree", "add", "-q", "-b", "feature", str(root))
    dirty(root)
    return Shape(root)


def work_tree_of_a_bare_repository(home: Path) -> Shape:
    git(home, "clone", "-q", "--bare", str(project(home)), "store/.bare")
    (home / "store" / ".git").write_text("gitdir: ./.bare\n")
    git(home / "store", "worktree", "add", "-q", "main")
    dirty(home / "store" / "main")
    return Shape(home / "store" / "main")


def sub_folder(home: Path) -> Shape:
    root = project(home)
    (root / "src" / "untracked ü.py").write_text("x\n")
    return Shape(root / "src", file="a.py", top=root)


def sub_folder_without_files(home: Path) -> Shape:
    root = project(home)
    (root / "new").mkdir()
    return Shape(root / "new", file="", top=root)


def of_another_owner(home: Path) -> Shape:
    root = project(home)
    for path in (root, *root.rglob("*")):
        os.chown(path, OTHER_USER, OTHER_USER, follow_symlinks=False)
    return Shape(root, refused="git does not accept .*project: detected dubious ownership")


def of_another_owner_called_safe(home: Path) -> Shape:
    shape = of_another_owner(home)
    (home / ".gitconfig").write_text(f"[safe]\n\tdirectory = {shape.root}\n")
    return Shape(shape.root)


def without_git(home: Path) -> Shape:
    root = home / "plain"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\n")
    (root / ".gitignore").write_text("build\n")
    (root / "build").mkdir()
    (root / "build" / "out").write_text("x\n")
    return Shape(root, missing=("build",))


def bare_repository(home: Path) -> Shape:
    git(home, "clone", "-q", "--bare", str(project(home)), "bare.git")
    return Shape(home / "bare.git", refused=r"bare\.git is a folder of git's own", at_once=True)


def inside_of_dot_git(home: Path) -> Shape:
    return Shape(project(home) / ".git", refused=r"\.git is a folder of git's own", at_once=True)


def deep_inside_of_dot_git(home: Path) -> Shape:
    return Shape(project(home) / ".git" / "objects", refused=r"\.git is a folder of git's own", at_once=True)


def a_line_break_in_the_roots_name(home: Path) -> Shape:
    return Shape(project(home, "line\nbreak"), refused="line break in its path", at_once=True)


def a_dot_git_that_leads_nowhere(home: Path) -> Shape:
    root = home / "broken"
    root.mkdir()
    (root / ".git").write_text("gitdir: /no/such/place\n")
    return Shape(root, refused="git does not accept .*broken: not a git repository: /no/such/place")


def a_configuration_that_cannot_be_read(home: Path) -> Shape:
    root = project(home)
    (root / ".git" / "config").write_text("[core\n")
    return Shape(root, refused="git does not accept .*project: bad config line 1")


def odd_root(home: Path) -> Shape:
    return Shape(project(home, os.fsdecode("50% ü 'of' \"all\" $(it) -- \\ 日本".encode())))


def root_that_is_not_utf8(home: Path) -> Shape:
    return Shape(project(home, os.fsdecode(b"caf\xe9")))


def root_that_begins_with_a_dash(home: Path) -> Shape:
    return Shape(project(home, "-project"))


def separate_git_directory(home: Path) -> Shape:
    root = project(home)
    git(root, "init", "-q", "--separate-git-dir", str(home / "elsewhere"))
    assert (root / ".git").is_file()
    return Shape(root)


def core_worktree(home: Path) -> Shape:
    root = project(home)
    git(root, "config", "core.worktree", str(root))
    return Shape(root)


def core_worktree_elsewhere(home: Path) -> Shape:
    """The files that this repository keeps are not those around it."""
    root = project(home)
    (home / "files").mkdir()
    git(root, "config", "core.worktree", str(home / "files"))
    return Shape(root, refused="keeps the files of .*project in .*files")
