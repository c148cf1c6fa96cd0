"""What tools leave in a task's folder without being asked to is no part of what the worker changed."""

import pytest

from tests.workspace.repositories import commit_all, git


def put(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("x\n")


async def collected(workspace, root, base):
    return [file.path for file in (await workspace.collect("t1", root, base)).files]


@pytest.mark.parametrize(
    "dropped",
    [
        ["__pycache__/a.cpython-311.pyc", "src/deep/__pycache__/b.txt"],
        ["module.pyc"],
        ["node_modules/left-pad/index.js", "web/node_modules/.package-lock.json"],
        ["target/CACHEDIR.TAG", "target/debug/shop", ".cache/tool/CACHEDIR.TAG", ".cache/tool/v/x"],
        [".coverage", "src/.DS_Store"],
    ],
)
async def test_what_tools_leave_behind_is_not_collected(workspace, root, opened, dropped):
    folder, base = await opened()
    put(folder, *dropped, "src/new.py")
    assert await collected(workspace, root, base) == ["src/new.py"]


async def test_what_only_sounds_like_it_is_collected(workspace, root, opened):
    folder, base = await opened()
    paths = ["CACHEDIR.TAG", "__pycache__.py", "node_modules.md", "pyc", "src/target/a.py", "src/targets/CACHEDIR.TAGS"]
    put(folder, *paths)
    assert await collected(workspace, root, base) == paths


async def test_where_the_user_keeps_such_things_they_are_work(workspace, root, opened):
    put(root, "node_modules/vendored/a.js", "target/notes.txt")
    commit_all(root)
    folder, base = await opened()
    put(folder, "node_modules/vendored/b.js", "target/CACHEDIR.TAG", "target/more.txt", "web/node_modules/c.js")
    (folder / "node_modules/vendored/a.js").write_text("changed\n")
    assert await collected(workspace, root, base) == [
        "node_modules/vendored/a.js",
        "node_modules/vendored/b.js",
        "target/CACHEDIR.TAG",
        "target/more.txt",
    ]


async def test_what_is_left_out_is_not_counted_as_too_much(workspace, root, opened, monkeypatch):
    folder, base = await opened()
    monkeypatch.setattr("offload.workspace.index.MOST_FILES", 1)
    put(folder, "node_modules/a.js", "node_modules/b.js", "new.py")
    assert await collected(workspace, root, base) == ["new.py"]


async def test_a_repository_that_a_tool_left_there_is_not_collected(workspace, root, opened):
    folder, base = await opened()
    put(folder, "node_modules/a/index.js", "made/__pycache__/x.pyc", "made/new.py")
    for inner in ("node_modules/a", "made"):
        git(folder / inner, "init", "-q")
        commit_all(folder / inner)
    assert await collected(workspace, root, base) == ["made/new.py"]
