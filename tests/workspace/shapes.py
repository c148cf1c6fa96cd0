"""Users' folders in every shape that git knows, and some that it does not: what each is like, and what becomes of it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.workspace.repositories import USER, commit_all, git

OTHER_USER = 12345
ODD_NAMES = (
    b"a b",
    b"100%",
    b"%2e%2e",
    "ü é/日本".encode(),
    "e\u0301".encode(),
    b"new\nline",
    b"tab\there",
    b'"quoted"',
    b"it's",
    b"-rf",
    b"--",
    b"*",
    b"[a]?",
    b":(top)x",
    b"back\\slash",
    b" leading",
    b"trailing ",
    b"#hash",
    b"!bang",
    b"~tilde",
    b"$HOME",
    b"\xff\xfe",
)


@dataclass
class Shape:
    """`root` is the workspace. `missing` are paths of the user's that the copy lacks (all below them with them), `differing`
    those that it has otherwise than they are on disk; `notes` are words that the snapshot's notes hold.

    `refused` is a pattern of what is said when it does not work; `file` is one that the worker changes, `new` what a new
    file of its own holds at the user's.
    """

    root: Path
    file: str = "src/a.py"
    new: bytes = b"new\n"
    top: Path | None = None
    missing: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    refused: str = ""
    at_once: bool = False  # refused before anything is recorded: `locate` does it
    environment: dict[str, str] = field(default_factory=dict)


def project(home: Path, name: str = "project", *options: str) -> Path:
    """A repository with a packed history and something of everything uncommitted."""
    root = home / name
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (root / "b.txt").write_text("b\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("src/a.py")
    git(root, "init", "-q", "-b", "main", *options)
    commit_all(root, "first")
    (root / "b.txt").write_text("b\nb\n")
    commit_all(root, "second")
    git(root, "tag", "v1")
    git(root, "gc", "-q")
    dirty(root)
    return root


def dirty(root: Path) -> None:
    (root / "b.txt").write_text("b\nb\ndirty\n")
    (root / "staged.py").write_text("staged\n")
    git(root, "add", "staged.py")
    (root / "untracked.py").write_text("untracked\n")


def plain(home: Path) -> Shape:
    return Shape(project(home))


def without_a_commit(home: Path) -> Shape:
    root = home / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\n")
    git(root, "init", "-q")
    (root / "staged.py").write_text("staged\n")
    git(root, "add", "staged.py")
    return Shape(root)


def without_any_file(home: Path) -> Shape:
    root = home / "project"
    root.mkdir()
    git(root, "init", "-q")
    return Shape(root, file="")


def detached(home: Path) -> Shape:
    root = project(home)
    git(root, "checkout", "-q", "--detach", "HEAD~0")
    return Shape(root)


def _diverged(home: Path) -> Path:
    """Two branches that changed the same line."""
    root = home / "project"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_text("one\ntwo\nthree\n")
    (root / "other.py").write_text("x\n")
    git(root, "init", "-q", "-b", "main")
    commit_all(root, "first")
    git(root, "checkout", "-q", "-b", "other")
    (root / "src" / "a.py").write_text("one\nTHEIRS\nthree\n")
    commit_all(root, "theirs")
    git(root, "checkout", "-q", "main")
    (root / "src" / "a.py").write_text("one\nOURS\nthree\n")
    commit_all(root, "ours")
    return root


def _stopped(root: Path, *arguments: str) -> Shape:
    """In the middle of an operation of git's that met a conflict: the index holds several stages of a file."""
    environment = {**os.environ, **USER}
    subprocess.run(["git", *arguments], cwd=root, env=environment, capture_output=True, check=False)
    assert len(git(root, "ls-files", "--unmerged").splitlines()) == 3
    (root / "untracked.py").write_text("untracked\n")
    return Shape(root, file="other.py")


def during_a_rebase(home: Path) -> Shape:
    return _stopped(_diverged(home), "rebase", "other")


def during_a_merge(home: Path) -> Shape:
    return _stopped(_diverged(home), "merge", "other")


def during_a_cherry_pick(home: Path) -> Shape:
    return _stopped(_diverged(home), "cherry-pick", "other")


def during_a_revert(home: Path) -> Shape:
    root = _diverged(home)
    (root / "src" / "a.py").write_text("one\nLATER\nthree\n")
    commit_all(root, "later")
    return _stopped(root, "revert", "--no-edit", "HEAD~1")


def during_a_bisect(home: Path) -> Shape:
    root = project(home)
    commit_all(root, "third")
    git(root, "bisect", "start", "HEAD", "HEAD~2")
    return Shape(root)


def shallow(home: Path) -> Shape:
    root = home / "shallow"
    git(home, "clone", "-q", "--depth=1", f"file://{project(home)}", str(root))
    dirty(root)
    return Shape(root)


def _with_parts(home: Path) -> Path:
    root = project(home)
    for part in ("in", "out", "deep/out"):
        (root / part).mkdir(parents=True)
        (root / part / "file.py").write_text(f"{part}\n")
    commit_all(root, "parts")
    return root


def sparse_cone(home: Path) -> Shape:
    root = _with_parts(home)
    git(root, "sparse-checkout", "set", "--cone", "in", "src")
    dirty(root)
    return Shape(root)


def sparse_patterns(home: Path) -> Shape:
    root = _with_parts(home)
    git(root, "sparse-checkout", "set", "--no-cone", "/*", "!/out/", "!/deep/")
    dirty(root)
    return Shape(root)


def sparse_index(home: Path) -> Shape:
    root = _with_parts(home)
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "in", "src")
    assert "deep/\n" in git(root, "ls-files", "--sparse") + "\n"
    dirty(root)
    return Shape(root)


def partial(home: Path) -> Shape:
    """Blobs of earlier commits are not there."""
    root = home / "partial"
    origin = _with_parts(home)
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(home, "clone", "-q", "--filter=blob:none", f"file://{origin}", str(root))
    assert "?" in git(root, "rev-list", "--objects", "--missing=print", "--all")
    dirty(root)
    return Shape(root, notes=("partial clone",))


def partial_and_sparse(home: Path) -> Shape:
    """Blobs of the very commit that is checked out are not there, and the place that they would come from has gone."""
    origin = _with_parts(home)
    git(origin, "config", "uploadpack.allowFilter", "true")
    root = home / "partial"
    git(home, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{origin}", str(root))
    git(root, "sparse-checkout", "set", "--cone", "in", "src")
    git(root, "checkout", "-q", "main")
    assert "?" in git(root, "rev-list", "--objects", "--missing=print", "HEAD", "--max-count=1")
    dirty(root)
    origin.rename(home / "gone")
    return Shape(root, notes=("partial clone",))


def sha256(home: Path) -> Shape:
    return Shape(project(home, "project", "--object-format=sha256"))


def split_index(home: Path) -> Shape:
    root = project(home)
    git(root, "update-index", "--split-index")
    (root / "more.py").write_text("more\n")
    git(root, "add", "more.py")
    assert list((root / ".git").glob("sharedindex.*"))
    return Shape(root)


def index_of_version_4_with_untracked_cache(home: Path) -> Shape:
    root = project(home)
    git(root, "update-index", "--index-version", "4", "--force-untracked-cache")
    git(root, "config", "core.untrackedCache", "true")
    git(root, "status")
    return Shape(root)


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


def lfs_without_git_lfs(home: Path) -> Shape:
    """What git-lfs would have left: a pointer in the index, the contents on disk, and filters that cannot be run."""
    root = project(home)
    (root / "image.bin").write_bytes(b"contents" * 100)
    os.utime(root / "image.bin", (1e9, 1e9))  # so that git need not look whether it is as new as the index
    (root / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    git(root, "-c", "filter.lfs.clean=echo a pointer", "add", "-A")
    git(root, "commit", "-q", "-m", "large file")
    for part, command in {"clean": "clean", "smudge": "smudge", "process": "filter-process"}.items():
        git(root, "config", f"filter.lfs.{part}", f"git-lfs-is-not-here {command}")
    git(root, "config", "filter.lfs.required", "true")
    return Shape(root, differing=("image.bin",), notes=("Git LFS are pointers",))


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


def odd_names(home: Path) -> Shape:
    root = project(home)
    for name in ODD_NAMES:
        path = Path(os.fsdecode(os.fsencode(root) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name + b"\n")
    commit_all(root, "odd names")
    for name in ODD_NAMES[::2]:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(b"dirty\n")
    for name in ODD_NAMES:
        Path(os.fsdecode(os.fsencode(root) + b"/src/" + name.replace(b"/", b" "))).write_bytes(b"new\n")
    return Shape(root, file=os.fsdecode(b"\xff\xfe"))


def odd_root(home: Path) -> Shape:
    return Shape(project(home, os.fsdecode("50% ü 'of' \"all\" $(it) -- \\ 日本".encode())))


def root_that_is_not_utf8(home: Path) -> Shape:
    return Shape(project(home, os.fsdecode(b"caf\xe9")))


def root_that_begins_with_a_dash(home: Path) -> Shape:
    return Shape(project(home, "-project"))


LINES = {
    "crlf.txt": b"one\r\ntwo\r\n",
    "lf.txt": b"one\ntwo\n",
    "mixed.txt": b"one\r\ntwo\nthree\r\n",
    "none.txt": b"end",
}


def _with_lines(home: Path, *settings: str, attributes: str = "") -> Path:
    root = home / "project"
    root.mkdir()
    git(root, "init", "-q")
    for name, content in LINES.items():
        (root / name).write_bytes(content)
    commit_all(root, "as they are")
    for name, value in zip(settings[::2], settings[1::2], strict=True):
        git(root, "config", name, value)
    if attributes:
        (root / ".gitattributes").write_text(attributes)
        commit_all(root, "attributes")
    for name, content in LINES.items():
        (root / f"new {name}").write_bytes(content)
    return root


def line_ends_as_they_are(home: Path) -> Shape:
    return Shape(_with_lines(home), file="mixed.txt")


def line_ends_by_autocrlf(home: Path) -> Shape:
    """Files with LF or with both ends come out with CRLF alone, as they would for the user by git's own rules."""
    root = _with_lines(home, "core.autocrlf", "true")
    return Shape(root, file="crlf.txt", new=b"new\r\n", differing=("lf.txt", "new lf.txt", "new mixed.txt"))


def line_ends_by_autocrlf_input(home: Path) -> Shape:
    root = _with_lines(home, "core.autocrlf", "input")
    return Shape(root, file="lf.txt", differing=("new crlf.txt", "new mixed.txt"))


def line_ends_by_attributes(home: Path) -> Shape:
    root = _with_lines(home, attributes="* text=auto eol=crlf\nlf.txt eol=lf\nmixed.txt -text\n")
    return Shape(root, file="lf.txt", new=b"new\r\n", differing=("new lf.txt", "new mixed.txt", ".gitattributes"))


def encoding_by_attributes(home: Path) -> Shape:
    root = project(home)
    (root / ".gitattributes").write_text("*.utf16 working-tree-encoding=UTF-16LE-BOM eol=crlf\n")
    (root / "text.utf16").write_bytes(b"\xff\xfe" + "é\r\n".encode("utf-16-le"))
    commit_all(root, "encoded")
    (root / "text.utf16").write_bytes(b"\xff\xfe" + "é\r\nü\r\n".encode("utf-16-le"))
    return Shape(root)


def modes(home: Path) -> Shape:
    root = project(home)
    (root / "run.sh").chmod(0o644)
    (root / "src" / "a.py").chmod(0o755)
    (root / "b.txt").chmod(0o600)
    (root / "dangling").symlink_to("/no/such/place")
    (root / "out").symlink_to("..")
    (root / "folder").symlink_to("src")
    return Shape(root)


def modes_that_do_not_count(home: Path) -> Shape:
    root = project(home)
    git(root, "config", "core.fileMode", "false")
    (root / "src" / "a.py").chmod(0o755)
    return Shape(root, differing=("src/a.py",))


def binary_and_empty_files(home: Path) -> Shape:
    root = project(home)
    (root / "binary").write_bytes(bytes(range(256)) * 10)
    (root / "empty").write_bytes(b"")
    (root / "nul.txt").write_bytes(b"text\0text\r\n")
    commit_all(root, "binary")
    (root / "binary").write_bytes(bytes(range(255, -1, -1)) * 10)
    (root / "new empty").write_bytes(b"")
    return Shape(root, file="binary")


def a_huge_file(home: Path) -> Shape:
    root = project(home)
    (root / "huge.bin").write_bytes(os.urandom(1 << 20) * 60)
    commit_all(root, "huge")
    (root / "huge.txt").write_bytes(b"a line of text\n" * (4 << 20))
    return Shape(root)


def pipes_and_sockets(home: Path) -> Shape:
    root = project(home)
    os.mkfifo(root / "pipe")
    os.mknod(root / "socket", stat.S_IFSOCK | 0o600)
    return Shape(root, missing=("pipe", "socket"))


def alternates(home: Path) -> Shape:
    """Objects that are borrowed over two steps."""
    root = home / "borrower"
    git(home, "clone", "-q", "--shared", str(project(home)), "middle")
    (home / "middle" / "c.txt").write_text("c\n")
    commit_all(home / "middle", "third")
    git(home, "clone", "-q", "--shared", "middle", str(root))
    dirty(root)
    return Shape(root)


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


def files_that_git_shall_not_look_at(home: Path) -> Shape:
    """`--skip-worktree` and `--assume-unchanged`: what the user changed there is theirs alone, and stays out."""
    root = project(home)
    git(root, "update-index", "--skip-worktree", "run.sh")
    git(root, "update-index", "--assume-unchanged", "src/a.py")
    (root / "run.sh").write_text("#!/bin/sh\nmy own\n")
    (root / "src" / "a.py").write_text("my own\n")
    return Shape(root, file="b.txt", differing=("run.sh", "src/a.py"))


def a_folder_that_became_a_link(home: Path) -> Shape:
    root = project(home)
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to("moved")
    return Shape(root, file="moved/a.py")


def a_file_that_became_a_folder(home: Path) -> Shape:
    root = project(home)
    (root / "b.txt").unlink()
    (root / "b.txt").mkdir()
    (root / "b.txt" / "inner.py").write_text("inner\n")
    return Shape(root)


def replaced_objects(home: Path) -> Shape:
    root = project(home)
    git(root, "replace", git(root, "rev-parse", "HEAD:b.txt"), git(root, "rev-parse", "HEAD~1:b.txt"))
    return Shape(root)


def many_branches(home: Path) -> Shape:
    """References that are packed, loose, symbolic and far from each other."""
    root = project(home)
    head = git(root, "rev-parse", "HEAD")
    orders = "".join(f"create refs/heads/topic/{number} {head}\n" for number in range(300))
    git(root, "update-ref", "--stdin", stdin=orders.encode())
    git(root, "pack-refs", "--all")
    git(root, "branch", "loose")
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(root, "stash")
    dirty(root)
    return Shape(root)


SHAPES: tuple[Callable[[Path], Shape], ...] = (
    plain,
    without_a_commit,
    without_any_file,
    detached,
    during_a_rebase,
    during_a_merge,
    during_a_cherry_pick,
    during_a_revert,
    during_a_bisect,
    shallow,
    sparse_cone,
    sparse_patterns,
    sparse_index,
    partial,
    partial_and_sparse,
    sha256,
    split_index,
    index_of_version_4_with_untracked_cache,
    submodules,
    a_submodule_as_workspace,
    lfs_without_git_lfs,
    embedded_repositories,
    a_work_tree_inside_of_the_main_one,
    symlinked_root,
    below_a_symlink,
    linked_work_tree,
    work_tree_of_a_bare_repository,
    sub_folder,
    sub_folder_without_files,
    of_another_owner,
    of_another_owner_called_safe,
    without_git,
    bare_repository,
    inside_of_dot_git,
    deep_inside_of_dot_git,
    a_line_break_in_the_roots_name,
    a_dot_git_that_leads_nowhere,
    a_configuration_that_cannot_be_read,
    odd_names,
    odd_root,
    root_that_is_not_utf8,
    root_that_begins_with_a_dash,
    line_ends_as_they_are,
    line_ends_by_autocrlf,
    line_ends_by_autocrlf_input,
    line_ends_by_attributes,
    encoding_by_attributes,
    modes,
    modes_that_do_not_count,
    binary_and_empty_files,
    a_huge_file,
    pipes_and_sockets,
    alternates,
    separate_git_directory,
    core_worktree,
    core_worktree_elsewhere,
    variables_of_git,
    locks_of_others,
    hooks_and_monitor,
    configuration_of_a_work_tree,
    configuration_by_includes,
    files_that_git_shall_not_look_at,
    a_folder_that_became_a_link,
    a_file_that_became_a_folder,
    replaced_objects,
    many_branches,
)
