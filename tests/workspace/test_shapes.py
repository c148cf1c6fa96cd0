"""Every shape of a user's folder works, from the snapshot to the applied result, or is refused by name; and in git's own
folders nothing moves: not a byte, not a mode, not a time (but that of objects that a snapshot relies on, by which git sees
that somebody does)."""

import os
from pathlib import Path

import pytest

from offload.domain.errors import NotAWorkspace
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.workspace import shapes
from tests.workspace.repositories import apply

NEEDS_ROOT = (shapes.of_another_owner, shapes.of_another_owner_called_safe)


def seen(folder: Path, *, git_only: bool = False) -> dict[str, tuple]:
    """All that there is below a folder, with its modes and times, and the times of folders: a lock that came and went shows."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if git_only and not _of_git(folder, path):
            continue
        status = path.lstat()
        content = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        changed = 0 if "objects" in path.parts and path.is_file() else status.st_mtime_ns
        found[str(path)] = (status.st_mode, changed, status.st_size, content)
    return found


def _of_git(home: Path, path: Path) -> bool:
    """Whether it is inside of a git directory, whatever that is called."""
    above = [each for each in (path, *path.parents) if each.is_relative_to(home)]
    return any(each.name == ".git" or ((each / "HEAD").is_file() and (each / "objects").is_dir()) for each in above)


def contents(folder: Path) -> dict[str, tuple[str, bytes]]:
    """Files and links by their path; git's own are not among them."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if ".git" in name.split("/"):
            continue
        if path.is_symlink():
            found[name] = ("link", os.fsencode(path.readlink()))
        elif not path.is_dir():
            mode = "executable" if path.lstat().st_mode & 0o100 else "file"
            found[name] = (mode, path.read_bytes() if path.is_file() else b"")
    return found


def below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def by_name(build) -> str:
    return build.__name__.replace("_", " ")


@pytest.fixture
def shape(request, tmp_path):
    if request.param in NEEDS_ROOT and os.geteuid() != 0:
        pytest.skip("only root can make such a folder")
    (tmp_path / "home").mkdir()
    return request.param(tmp_path / "home")


@pytest.fixture
async def workspace(shape, tmp_path):
    environment = os.environ | {"HOME": str(tmp_path / "home")} | shape.environment
    async with GitWorkspaces(tmp_path / "state", Processes(), environment) as workspace:
        yield workspace


@pytest.mark.parametrize("shape", shapes.SHAPES, indirect=True, ids=by_name)
async def test_it_works_or_is_refused_by_name_and_the_users_repository_is_untouched(shape, workspace, tmp_path):
    home = tmp_path / "home"
    before, git_before = seen(home), seen(home, git_only=True)
    if shape.refused:
        with pytest.raises(NotAWorkspace, match=shape.refused):
            await (workspace.locate(shape.root) if shape.at_once else workspace.snapshot(shape.root, {}))
        assert seen(home) == before
        return

    root = shape.root
    await workspace.locate(root)
    snapshot = await workspace.snapshot(root, {})
    folder = await workspace.open_folder("t1", root, snapshot.base)
    top, clone = shape.top or root, folder if shape.top is None else folder.parent
    users, copied = contents(top), contents(clone)
    assert {path for path in users if not below(path, shape.missing)} == {*copied}
    differing = {path for path in copied if copied[path] != users[path]}
    assert differing == {*shape.differing}
    for word in shape.notes:
        assert word in " ".join(snapshot.notes)

    new = {"new file.py": b"new\n"}
    if shape.file:
        new[shape.file] = (folder / shape.file).read_bytes() + b"the worker's\n"
    for path, content in new.items():
        (folder / path).write_bytes(content)
    changes = await workspace.collect("t1", root, snapshot.base)
    assert {one.path for one in changes.files} == {*new}
    assert await workspace.diff(root, changes)
    assert seen(home) == before

    planned = await apply(workspace, root, changes)
    assert {*planned.paths} == {*new}
    assert {path: (root / path).read_bytes() for path in new} == new | {"new file.py": shape.new}
    await workspace.release("t1", root)
    later = await workspace.snapshot(root, {})
    assert {one.path for one in (await workspace.between(root, snapshot.base, later.base)).files} == {*new}
    assert seen(home, git_only=True) == git_before
    assert not (home / "canary").exists()
