"""What a task's folder gets of the user's ignored files, what it never gets, and that none of it counts as work."""

import json
import logging
import os
import socket
import sys

import pytest

from offload.domain.errors import GitFailed, StorageFailed
from offload.processes import Processes
from offload.workspace import GitWorkspaces, carry
from offload.workspace.repository import Repository
from tests.workspace.repositories import commit_all, fingerprint, git


@pytest.fixture
def root(root):
    """With ignored folders, as a project in work has them."""
    (root / ".gitignore").write_text("node_modules\n.venv/\nbuild/\n*.local\n.env*\n*.key\n")
    commit_all(root)
    for name in ("node_modules/left pad/index.js", "node_modules/.bin/tool", ".venv/lib/a.py", "build/deep/out.o"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\n")
    (root / "node_modules" / ".bin" / "tool").chmod(0o755)
    (root / "settings.local").write_text("local\n")
    (root / ".env").write_text("TOKEN=1\n")
    return root


@pytest.fixture
def opened(workspace, root):
    async def open_now(*patterns, never_send=(), where=root, task="t1"):
        base = (await workspace.snapshot(where, {}, never_send)).base
        return await workspace.open_folder(task, where, base, patterns, never_send), base

    return open_now


def below(folder):
    """The ignored files in a task's folder, folders that hold none with them."""
    listed = git(folder, "ls-files", "-z", "--others", "--ignored", "--exclude-standard")
    return {path for path in listed.split("\0") if path}


async def test_nothing_that_is_ignored_comes_along_without_being_named(root, opened):
    folder, _ = await opened()

    assert below(folder) == set()
    assert not (folder / "node_modules").exists()


async def test_named_folders_come_along_whole_with_their_modes_times_and_links(root, opened):
    (root / "node_modules" / ".bin" / "link").symlink_to("../left pad/index.js")
    (root / "node_modules" / "gone").symlink_to("/no/such/place")
    os.utime(root / ".venv" / "lib" / "a.py", (1e9, 1e9))
    before = fingerprint(root)
    folder, _ = await opened("node_modules", "/.venv/")

    assert (folder / "node_modules" / "left pad" / "index.js").read_text() == "node_modules/left pad/index.js\n"
    assert os.access(folder / "node_modules" / ".bin" / "tool", os.X_OK)
    assert str((folder / "node_modules" / ".bin" / "link").readlink()) == "../left pad/index.js"
    assert str((folder / "node_modules" / "gone").readlink()) == "/no/such/place"
    assert (folder / ".venv" / "lib" / "a.py").stat().st_mtime == 1e9
    assert not (folder / "build").exists()
    assert fingerprint(root) == before


async def test_a_worker_cannot_write_to_the_users_files_through_what_was_carried(root, opened):
    (root / "node_modules" / "inward").symlink_to(root / "src")
    folder, _ = await opened("node_modules")
    (folder / "node_modules" / "left pad" / "index.js").write_text("worker\n")

    assert (root / "node_modules" / "left pad" / "index.js").read_text() == "node_modules/left pad/index.js\n"
    assert {path.name for path in (folder / "node_modules").iterdir()} == {"left pad", ".bin"}


async def test_a_pattern_finds_files_inside_of_an_ignored_folder(root, opened):
    folder, _ = await opened("build/deep", "*.local")

    assert below(folder) == {"build/deep/out.o", "settings.local"}


async def test_a_folder_that_holds_nothing_but_ignored_files_is_looked_through_once(root, opened):
    for name in ("out/a.local", "out/deep/b.local", "mixed/a.local", "mixed/new.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    (root / "out" / "token.key").write_text("key\n")
    folder, _ = await opened("out", "*.local")
    carried = (folder.parents[2] / "repositories").glob("*/tasks/t1.carried.json")

    assert below(folder) == {"settings.local", "out/a.local", "out/deep/b.local", "mixed/a.local"}
    assert [sorted(json.loads(path.read_text())) for path in carried] == [["mixed/a.local", "out", "settings.local"]]


async def test_a_folder_without_git_has_its_ignored_files_carried_too(opened, tmp_path):
    plain = tmp_path / "plain"
    (plain / "build").mkdir(parents=True)
    (plain / ".gitignore").write_text("build\n")
    (plain / "build" / "out").write_text("x\n")
    folder, _ = await opened("build", where=plain)

    assert below(folder) == {"build/out"}


async def test_what_must_never_be_sent_is_not_carried_wherever_it_lies(root, opened):
    (root / "node_modules" / "left pad" / ".env.production").write_text("TOKEN=2\n")
    (root / "node_modules" / "left pad" / "server.KEY").write_text("key\n")
    (root / "build" / "private").mkdir()
    (root / "build" / "private" / "x").write_text("private\n")
    folder, _ = await opened("*", never_send=["build/private"])

    assert below(folder) == {
        "node_modules/left pad/index.js",
        "node_modules/.bin/tool",
        ".venv/lib/a.py",
        "build/deep/out.o",
        "settings.local",
    }


async def test_what_a_project_never_sends_stays_out_of_its_snapshots_too(workspace, root, opened):
    (root / "customers").mkdir()
    (root / "customers" / "list.csv").write_text("x\n")
    (root / "src" / "dump.sql").write_text("x\n")
    (root / "new.py").write_text("x\n")
    folder, _ = await opened(never_send=["customers", "*.SQL"])
    snapshot = await workspace.snapshot(root, {"customers/new.csv": "unsaved\n"}, ["customers", "*.sql"])
    other = await workspace.snapshot(root, {})

    assert (folder / "new.py").exists()
    assert not (folder / "customers").exists()
    assert not (folder / "src" / "dump.sql").exists()
    assert snapshot.notes == (
        "Left out, because they may hold secrets: customers/list.csv, src/dump.sql.",
        "The unsaved text is not in the copy, because the file is ignored, secret or elsewhere: customers/new.csv.",
    )
    assert await workspace.read(root, other.base, "customers/list.csv") == b"x\n"


async def test_a_pattern_with_a_path_is_for_the_workspace_and_a_name_is_for_the_whole_repository(root, opened):
    (root / "src" / "build").mkdir()
    (root / "src" / "build" / "a").write_text("x\n")
    folder, _ = await opened("/build", "node_modules", where=root / "src")

    assert below(folder.parent) == {"node_modules/left pad/index.js", "node_modules/.bin/tool", "src/build/a"}


async def test_repositories_pipes_and_sockets_are_not_carried(root, opened, monkeypatch):
    (root / "build" / "inner").mkdir()
    git(root / "build" / "inner", "init", "-q")
    (root / "build" / "inner" / "file").write_text("x\n")
    (root / "build" / "empty").mkdir()
    os.mkfifo(root / "build" / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(root / "build")  # a socket's path must be short
        listening.bind("socket")
        folder, _ = await opened("build")

    assert below(folder) == {"build/deep/out.o", "build/inner/file"}
    assert (folder / "build" / "empty").is_dir()


async def test_what_was_carried_is_never_collected_whatever_the_worker_does_to_the_ignore_files(
    workspace, root, opened
):
    for odd in ("a [b]*?.local", "trailing .local ", "new\nline.local", "ü\\.local", os.fsdecode(b"\xff.local")):
        (root / odd).write_text("x\n")
    (root / ".gitignore").write_text("node_modules\n.venv/\nbuild/\n*local*\n")
    (root / "locals").mkdir()
    (root / "locals" / "x").write_text("x\n")
    folder, base = await opened("*")
    assert (folder / "trailing .local ").exists()
    assert git(folder, "status", "--porcelain") == ""
    (folder / ".gitignore").write_text("# nothing\n")
    (folder / ".venv" / "lib" / "new.py").write_text("installed\n")
    (folder / "build" / "deep" / "out.o").write_text("built again\n")
    git(folder / ".venv", "init", "-q")
    (folder / "b.txt").write_text("worker\n")
    assert git(folder, "status", "--porcelain", "-uall").splitlines() == ["M .gitignore", " M b.txt"]
    (folder / ".git" / "info" / "exclude").write_text("")
    changes = await workspace.collect("t1", root, base)

    assert [one.path for one in changes.files] == [".gitignore", "b.txt"]


async def test_what_an_ignore_file_no_longer_names_is_collected_when_it_was_not_carried(workspace, root, opened):
    folder, base = await opened("node_modules")
    (folder / ".gitignore").write_text("")
    (folder / "x.local").write_text("x\n")
    changes = await workspace.collect("t1", root, base)

    assert [one.path for one in changes.files] == [".gitignore", "x.local"]


async def test_thousands_of_files_come_along(root, opened):
    for number in range(5000):
        folder = root / "node_modules" / f"p{number // 50}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.js").write_text("x\n")
    for number in range(carry.AT_ONCE + 1):
        (root / f"{number}.local").write_text("x\n")
    folder, _ = await opened("node_modules", "*.local")

    assert len(below(folder)) == 5000 + 2 + carry.AT_ONCE + 2


async def test_a_pattern_that_names_nothing_is_told_and_no_failure(root, opened, caplog):
    folder, _ = await opened("vendor", "*.local")

    assert below(folder) == {"settings.local"}
    assert [record.levelno for record in caplog.records if "['vendor']" in record.getMessage()] == [logging.WARNING]


@pytest.mark.parametrize(("limit", "value"), [("MOST_FILES", 1), ("MOST_BYTES", 40)])
async def test_too_much_to_be_carried_is_refused_by_name(root, opened, monkeypatch, limit, value):
    monkeypatch.setattr(carry, limit, value)

    with pytest.raises(GitFailed, match=r"node_modules was the last\); name less of it in carry"):
        await opened("node_modules")


async def test_what_is_in_the_way_in_the_snapshot_is_kept(workspace, root):
    base = (await workspace.snapshot(root, {})).base
    (root / "src" / "a.py").unlink()
    (root / "src").rmdir()
    (root / "src").symlink_to("build")
    linked = (await workspace.snapshot(root, {})).base
    (root / "src").unlink()
    (root / "src").mkdir()
    (root / "src" / "x.local").write_text("x\n")
    folder = await workspace.open_folder("t1", root, linked, ["*.local"])
    assert (folder / "src").readlink().name == "build"
    assert below(folder) == {"settings.local"}
    folder = await workspace.open_folder("t2", root, base, ["*.local"])
    assert below(folder) == {"settings.local", "src/x.local"}


async def test_a_folder_that_is_opened_again_gets_nothing_anew(workspace, root, opened):
    folder, base = await opened("*.local")
    (folder / "settings.local").unlink()
    await workspace.open_folder("t1", root, base, ["*.local"])

    assert below(folder) == set()


@pytest.mark.parametrize("command", [(), ("sh", "-c", 'cp -R "$1" "$3"; exit 1', "cp")])
async def test_without_a_command_that_copies_all_is_copied_plainly(root, opened, monkeypatch, command):
    """Another system, or a `cp` that does not know the options or stopped half-way."""
    monkeypatch.setattr(carry, "COPY", {sys.platform: command} if command else {})
    (root / "node_modules" / ".bin" / "link").symlink_to("../left pad/index.js")
    (root / "x.local").symlink_to("settings.local")
    folder, _ = await opened("node_modules", "*.local")

    assert os.access(folder / "node_modules" / ".bin" / "tool", os.X_OK)
    assert (folder / "node_modules" / ".bin" / "link").is_symlink()
    assert (folder / "x.local").is_symlink()
    assert below(folder) == {
        "node_modules/left pad/index.js",
        "node_modules/.bin/tool",
        "node_modules/.bin/link",
        "settings.local",
        "x.local",
    }


async def test_a_file_that_goes_away_while_it_is_copied_stays_out_and_is_logged(root, opened, monkeypatch, caplog):
    vanish = ("sh", "-c", 'rm "$1"; exit 1', "cp")
    monkeypatch.setattr(carry, "COPY", {sys.platform: vanish})
    folder, _ = await opened("*.local")

    assert below(folder) == set()
    assert [record.levelno for record in caplog.records if "Not all of" in record.getMessage()] == [logging.WARNING]


async def test_a_full_disk_while_copying_is_worth_another_try(root, opened, monkeypatch):
    full = ("sh", "-c", "echo 'cp: error writing: No space left on device' >&2; exit 1")
    monkeypatch.setattr(carry, "COPY", {sys.platform: full})

    with pytest.raises(StorageFailed, match="free some space"):
        await opened("*.local")


async def test_copying_without_end_is_an_error(root, opened, monkeypatch):
    monkeypatch.setattr(carry, "COPY", {sys.platform: ("sh", "-c", "exec sleep 60")})
    monkeypatch.setattr(carry, "COPY_LIMIT_S", 0.1)

    with pytest.raises(GitFailed, match="did not end within"):
        await opened("*.local")


async def test_what_was_carried_goes_with_the_folder(workspace, root, opened, tmp_path):
    await opened("node_modules")
    await workspace.release("t1", root)

    assert not (tmp_path / "state" / "tasks" / "t1").exists()
    assert not list((tmp_path / "state").glob("repositories/*/tasks/*"))
    assert (root / "node_modules" / ".bin" / "tool").exists()


async def test_our_own_folder_inside_of_the_users_is_not_carried(root):
    """A home folder kept by git."""
    async with GitWorkspaces(root / ".local" / "state", Processes(), os.environ) as workspace:
        (root / ".local").mkdir()
        (root / ".local" / "kept.local").write_text("x\n")
        base = (await workspace.snapshot(root, {})).base
        folder = await workspace.open_folder("t1", root, base, [".local", "*.local"])

        assert below(folder) == {".local/kept.local", "settings.local"}


def test_what_goes_away_before_it_is_looked_at_stays_out(root, tmp_path):
    load = carry.select(Repository(tmp_path / "private", root, root), ["gone"], carry.Wanted(["gone"], [], tmp_path))

    assert (load.entries, load.files) == ([], 0)
