"""In every shape of a user's folder results can be taken apart, merged, and put back into the task's folder."""

import os

import pytest

from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.workspace import shapes
from tests.workspace.test_shapes import NEEDS_ROOT, by_name, contents

REFUSED = (
    shapes.of_another_owner,
    shapes.bare_repository,
    shapes.inside_of_dot_git,
    shapes.deep_inside_of_dot_git,
    shapes.a_line_break_in_the_roots_name,
    shapes.a_dot_git_that_leads_nowhere,
    shapes.a_configuration_that_cannot_be_read,
    shapes.core_worktree_elsewhere,
)
WORKING = [build for build in shapes.SHAPES if build not in REFUSED]


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


@pytest.mark.parametrize("shape", WORKING, indirect=True, ids=by_name)
async def test_a_result_is_taken_apart_merged_and_put_back(shape, workspace, tmp_path):
    root = shape.root
    base = (await workspace.snapshot(root, {})).base
    folder = await workspace.open_folder("t1", root, base)
    clone = folder if shape.top is None else folder.parent
    new = {"new file.py": b"new\n", "one more.py": b"other\n"}
    if shape.file:
        new[shape.file] = (folder / shape.file).read_bytes() + b"the worker's\n"
    for path, content in new.items():
        (folder / path).write_bytes(content)
    changes = await workspace.collect("t1", root, base)
    made = contents(clone)

    part = await workspace.select(root, changes, [file.id for file in changes.files if file.path != "one more.py"])
    assert {file.path for file in part.files} == {*new} - {"one more.py"}
    merged = await workspace.merge(root, part.result, changes)
    assert merged.conflicts == ()
    assert (await workspace.between(root, changes.result, merged.commit)).files == ()

    (folder / "left by checks.txt").write_bytes(b"left\n")
    (folder / "new file.py").unlink()
    await workspace.reset_folder("t1", root, base, changes.result)
    name = (folder / "new file.py").relative_to(clone).as_posix()
    assert contents(clone) == made | {name: ("file", shape.new)}  # written anew as git writes files here
    assert (await workspace.collect("t1", root, base)).files == changes.files
    await workspace.reset_folder("t1", root, base, base)
    assert (await workspace.collect("t1", root, base)).files == ()
    assert not (folder / "one more.py").exists()
