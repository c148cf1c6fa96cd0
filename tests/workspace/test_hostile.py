"""What a result must never do: everything of it is refused before the first write, and the path is named.

A worker can make any tree that git's objects can say, without asking git whether it is a good one.
"""

import os
import shutil
import socket

import pytest

from offload.domain.change import ChangeSet
from offload.domain.errors import ApplyRefused
from offload.workspace.landing.guard import forbidden
from tests.workspace.repositories import apply, crafted, fingerprint, git, private_of

GIT = "is inside of .git"
UP = '"." or ".." in it'
OUT = "leads out of the workspace or into .git"
BEHIND = "is behind a link"
IN_THE_WAY = "is a folder or a device"
FILES = [
    (b"/etc/passwd", "is not a relative path"),
    (b"../outside", UP),
    (b"src/../../outside", UP),
    (b"./x", UP),
    (b"src/./x", UP),
    (b".git/hooks/pre-commit", GIT),
    (b".git", GIT),
    (b".GIT/config", GIT),
    (b".GiT/config", GIT),
    (b"sub/.git/config", GIT),
    (b"git~1/config", GIT),
    (b"GIT~1/config", GIT),
    (b".git /config", GIT),
    (b".git ./config", GIT),
    (b".git.../config", GIT),
    (b".git::$INDEX_ALLOCATION/config", GIT),
    (b".git:stream", GIT),
    (".g\u200cit/config".encode(), GIT),
    ("\ufeff.git/config".encode(), GIT),
    (".gi\u202et/config".encode(), GIT),
    (b"a\\.git\\config", GIT),
    (b".git\\hooks\\x", GIT),
    (b"out/x", BEHIND),
    (b"in/new", BEHIND),
    (b"in/deep/new", BEHIND),
    (b"b.txt/x", "a file where its folder should be"),
    (b"src", IN_THE_WAY),
    (b"pipe", IN_THE_WAY),
    (b"socket", IN_THE_WAY),
]
LINKS = [
    (b"link", b"/etc/passwd"),
    (b"link", b"../outside"),
    (b"link", b".."),
    (b"src/link", b"../../outside"),
    (b"link", b"src/../../outside"),
    (b"link", b"src/.."),
    (b"link", b".git/config"),
    (b"link", b".GIT"),
    (b"link", b"./git~1/hooks"),
    (b"link", b"out/x"),
    (b"link", b"out"),
    (b"link", b"in/away/x"),
    (b"link", b"store"),
    (b"link", b"absolute/x"),
]


@pytest.fixture
async def base(root, opened, tmp_path, monkeypatch):
    """The snapshot of a workspace with links of the user's own, a pipe and a socket in it."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_text("not yours\n")
    (root / "out").symlink_to(tmp_path / "elsewhere")
    (root / "absolute").symlink_to(root / "out")
    (root / "src" / "away").symlink_to("../out")
    (root / "in").symlink_to("src")
    (root / "store").symlink_to(".git")
    _, base = await opened()
    os.mkfifo(root / "pipe")
    monkeypatch.chdir(root)  # an address is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    return base


@pytest.fixture
def refused(workspace, root, tmp_path):
    """Tries a result that must be refused: gives the reasons, and sees that nothing has changed."""

    async def try_it(changes, buffers=None):
        before = fingerprint(root) | fingerprint(tmp_path / "elsewhere")
        with pytest.raises(ApplyRefused) as refused:
            await apply(workspace, root, changes, buffers)
        assert fingerprint(root) | fingerprint(tmp_path / "elsewhere") == before
        assert not (tmp_path / "outside").exists()
        return dict(refused.value.reasons)

    return try_it


@pytest.fixture
def private(base, tmp_path):
    return private_of(tmp_path / "state")


@pytest.mark.parametrize(("path", "reason"), FILES)
async def test_a_file_where_none_may_be_is_refused(base, private, refused, path, reason):
    name = os.fsdecode(path)
    changes = crafted(private, base, ("100644", path, b"x\n"))
    assert reason in (await refused(changes))[name]
    assert reason in (await refused(changes, {name: "x\n"}))[name]


@pytest.mark.parametrize(("path", "reason"), FILES)
async def test_a_result_that_deletes_one_there_is_refused_as_well(base, private, refused, path, reason):
    given = crafted(private, base, ("100644", path, b"x\n"))
    assert reason in (await refused(ChangeSet(given.result, base)))[os.fsdecode(path)]


@pytest.mark.parametrize(("path", "target"), LINKS)
async def test_a_link_that_leads_away_is_refused(base, private, refused, path, target):
    """Public trouble report: a patch made a link, and the next write went through it (H30)."""
    changes = crafted(private, base, ("120000", path, target))
    assert OUT in (await refused(changes))[os.fsdecode(path)]


async def test_a_link_that_leads_away_through_another_one_of_the_result_is_refused(base, private, refused):
    changes = crafted(private, base, ("120000", b"one", b"."), ("120000", b"two", b"one/out/x"))
    assert OUT in (await refused(changes))["two"]


async def test_a_file_below_a_link_of_the_same_result_is_refused(base, private, refused):
    """Public trouble report: a patch made a link, and the next write went through it (H30)."""
    changes = crafted(private, base, ("120000", b"a", b"src"), ("100644", b"a/b", b"x\n"))
    assert "is below a, which the result makes a file or a link" in (await refused(changes))["a/b"]


@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        (("120000", b"A", b"src"), ("100644", b"a/b", b"x\n"), "is below A, which the result makes a file or a link"),
        (("100644", b"README", b"x\n"), ("100644", b"readme", b"y\n"), "is one file with README on this disk"),
        (
            ("100644", "caf\u00e9".encode(), b"x\n"),
            ("100644", "cafe\u0301".encode(), b"y\n"),
            "is one file with caf\u00e9 on this disk",
        ),
    ],
)
async def test_two_names_that_are_one_on_this_disk_are_refused(
    workspace, root, opened, tmp_path, refused, one, other, reason
):
    """As the user's git says of the disk (`core.ignoreCase`)."""
    (tmp_path / "elsewhere").mkdir()
    git(root, "config", "core.ignoreCase", "true")
    _, base = await opened()
    changes = crafted(private_of(tmp_path / "state"), base, one, other)
    assert reason in (await refused(changes)).values()
    git(root, "config", "core.ignoreCase", "false")
    await workspace.snapshot(root, {})
    if one[0] == "100644":
        assert {path.name for path in root.iterdir()} == {".git", "src", "b.txt"}
        await apply(workspace, root, changes)
        assert {os.fsencode(path.name) for path in root.iterdir()} == {b".git", one[1], other[1]}


async def test_one_path_twice_is_refused(base, private, refused):
    changes = crafted(private, base, ("100644", b"x", b"1\n"), ("100755", b"x", b"2\n"))
    assert "is one file with x on this disk" in (await refused(changes))["x"]


async def test_a_submodule_pointer_is_refused_whether_it_comes_moves_or_goes(base, private, refused):
    changes = crafted(private, base, ("160000", b"sub", b""))
    assert "is a submodule" in (await refused(changes))["sub"]
    assert "is a submodule" in (await refused(ChangeSet(changes.result, base)))["sub"]
    file = crafted(private, base, ("100644", b"sub", b"x\n"))
    assert "is a submodule" in (await refused(ChangeSet(file.result, changes.result)))["sub"]


async def test_gits_own_folder_is_safe_wherever_it_is(workspace, tmp_path, opened):
    """Public trouble report: a store in an odd place was written to (H30)."""
    root = tmp_path / "odd"
    root.mkdir()
    git(root, "init", "-q", "--separate-git-dir", str(root / "store"))
    (root / "b.txt").write_text("b\n")
    git(root, "add", "b.txt")
    git(root, "commit", "-q", "-m", "commit")
    _, base = await opened(where=root)
    private = private_of(tmp_path / "state")
    before = fingerprint(root)
    for entry in (("100755", b"store/hooks/pre-commit", b"x\n"), ("120000", b"link", b"store/hooks")):
        changes = crafted(private, base, entry)
        with pytest.raises(ApplyRefused) as refused:
            await apply(workspace, root, changes)
        assert ".git" in dict(refused.value.reasons)[os.fsdecode(entry[1])]
    assert fingerprint(root) == before


async def test_links_of_a_result_that_lead_to_each_other_lead_nowhere(workspace, root, opened):
    folder, base = await opened()
    (folder / "a").symlink_to("b")
    (folder / "b").symlink_to("a")
    await apply(workspace, root, await workspace.collect("t1", root, base))
    assert (str((root / "a").readlink()), str((root / "b").readlink())) == ("b", "a")


@pytest.mark.parametrize("target", ["b.txt", "src", "src/a.py", "missing", "in", "inside", "in/a.py"])
async def test_a_link_that_stays_inside_is_applied(workspace, root, opened, target):
    (root / "in").symlink_to("src")
    (root / "inside").symlink_to(root / "src")
    folder, base = await opened()
    (folder / "link").symlink_to(target)
    await apply(workspace, root, await workspace.collect("t1", root, base))

    assert str((root / "link").readlink()) == target


async def test_a_file_with_another_name_elsewhere_is_never_written_through(workspace, root, opened, tmp_path):
    """Public trouble report: a write went through a hard link (H30)."""
    for name in ("b.txt", "src/a.py"):
        (tmp_path / "other").mkdir(exist_ok=True)
        os.link(root / name, tmp_path / "other" / name.rpartition("/")[2])
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    (folder / "src" / "a.py").chmod(0o755)
    other = fingerprint(tmp_path / "other")
    plan = await apply(workspace, root, await workspace.collect("t1", root, base))

    assert (root / "b.txt").read_text() == "worker\n"
    assert (root / "src" / "a.py").stat().st_mode & 0o100
    assert fingerprint(tmp_path / "other") == other
    await apply(workspace, root, await workspace.between(root, plan.after, plan.before), exact=True)
    assert fingerprint(tmp_path / "other") == other


async def test_a_device_that_comes_into_the_way_after_the_plan_is_not_written_to(workspace, root, opened):
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    plan = await workspace.plan(root, await workspace.collect("t1", root, base), {})
    (root / "b.txt").unlink()
    os.mkfifo(root / "b.txt")
    with pytest.raises(ApplyRefused, match=r"b\.txt: could not be written"):
        await workspace.write(root, plan)
    assert (root / "b.txt").is_fifo()


async def test_a_folder_that_becomes_a_link_after_the_plan_is_not_written_through(workspace, root, opened, tmp_path):
    folder, base = await opened()
    (folder / "src" / "a.py").write_text("worker\n")
    (folder / "src" / "new.py").write_text("worker\n")
    plan = await workspace.plan(root, await workspace.collect("t1", root, base), {})
    shutil.move(root / "src", tmp_path / "moved")
    (root / "src").symlink_to(tmp_path / "moved")
    before = fingerprint(tmp_path / "moved")
    with pytest.raises(ApplyRefused, match="could not be written"):
        await workspace.write(root, plan)
    assert fingerprint(tmp_path / "moved") == before


@pytest.mark.parametrize("path", ["/etc/x", "a//b", "a/", ""])
def test_a_path_that_git_itself_would_not_print_is_forbidden_too(path):
    assert forbidden(path) == "is not a relative path"


async def test_names_that_only_look_alike_are_fine(workspace, root, opened):
    folder, base = await opened()
    names = [".github/x", ".gitignore", "git", "git~2", "a.git/x", "...", "..x", ".gitmodules.txt"]
    for name in names:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("#\n")
    changes = await workspace.collect("t1", root, base)
    await apply(workspace, root, changes)
    assert [(root / name).read_text() for name in names] == ["#\n"] * len(names)
