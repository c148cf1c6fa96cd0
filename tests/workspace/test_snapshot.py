"""What a snapshot holds, what it leaves out, and that the user's repository never notices."""

import asyncio
import logging
import os
import shutil
from pathlib import Path

import pytest

from offload.domain.errors import GitFailed, NotAWorkspace
from offload.processes import Processes
from offload.workspace import GitWorkspaces, index
from tests.workspace.repositories import apply, commit_all, fingerprint, git


def names(folder):
    found = (
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()
    )
    return {name for name in found if not name.startswith(".git/")}


async def test_the_users_repository_is_untouched_by_everything_but_apply(workspace, root, opened):
    (root / "src" / "a.py").write_text("dirty\n")
    (root / "b.txt").write_text("staged\n")
    git(root, "add", "b.txt")
    (root / "new.py").write_text("new\n")
    before = fingerprint(root)
    folder, base = await opened(buffers={"b.txt": "unsaved\n"})
    (folder / "b.txt").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)
    await workspace.diff(root, changes)
    await workspace.release("t1", root)

    assert fingerprint(root) == before


async def test_committed_staged_unstaged_deleted_and_untracked_files_are_all_in_the_copy(root, opened):
    (root / "staged.py").write_text("staged\n")
    git(root, "add", "staged.py")
    (root / "src" / "a.py").write_text("unstaged\n")
    (root / "new name.py").write_text("untracked\n")
    (root / "later.py").write_text("intended\n")
    git(root, "add", "-N", "later.py")
    (root / "b.txt").unlink()
    folder, _ = await opened()

    assert names(folder) == {"staged.py", "src/a.py", "new name.py", "later.py"}
    assert (folder / "src" / "a.py").read_text() == "unstaged\n"
    assert (folder / "later.py").read_text() == "intended\n"


async def test_a_merge_that_is_not_finished_is_copied_as_it_is_on_disk(root, opened):
    git(root, "checkout", "-q", "-b", "other")
    (root / "b.txt").write_text("theirs\n")
    commit_all(root)
    git(root, "checkout", "-q", "main")
    (root / "b.txt").write_text("ours\n")
    commit_all(root)
    with pytest.raises(AssertionError):
        git(root, "merge", "-q", "other")
    folder, _ = await opened()

    assert (folder / "b.txt").read_text() == (root / "b.txt").read_text()
    assert "<<<<<<<" in (folder / "b.txt").read_text()


async def test_what_is_ignored_in_any_of_three_places_stays_out(root, opened, tmp_path):
    """A rule in info/exclude or in the user's own file that was not honoured would send secrets to a model."""
    (root / ".gitignore").write_text("build/\n")
    (root / ".git" / "info" / "exclude").write_text("*.local\n")
    (tmp_path / "my ignores").write_text("*.mine\n")
    (tmp_path / ".gitconfig").write_text("[core]\n\texcludesFile = ~/my ignores\n")
    (root / "build").mkdir()
    for name in ("build/out", "a.local", "a.mine", "kept"):
        (root / name).write_text("x\n")
    folder, _ = await opened()

    assert names(folder) == {".gitignore", "src/a.py", "b.txt", "kept"}


async def test_the_ignore_file_where_git_looks_by_default_is_honoured(root, opened, tmp_path):
    (tmp_path / ".config" / "git").mkdir(parents=True)
    (tmp_path / ".config" / "git" / "ignore").write_text("*.mine\n")
    (root / "a.mine").write_text("x\n")
    folder, _ = await opened()

    assert "a.mine" not in names(folder)


async def test_an_ignore_file_that_is_missing_is_named(workspace, root):
    git(root, "config", "core.excludesFile", "/no/such/file")
    snapshot = await workspace.snapshot(root, {})

    assert snapshot.notes == ("The ignore file /no/such/file (core.excludesFile) does not exist.",)


async def test_untracked_secrets_stay_out_and_are_named_but_tracked_ones_are_the_users_choice(workspace, root, opened):
    (root / ".env").write_text("committed\n")
    commit_all(root)
    (root / ".env.d").mkdir()
    for name in ("src/.env.local", ".env.d/prod", "server.PEM", "id_rsa", "id_ed25519.pub"):
        (root / name).write_text("secret\n")
    (root / "x.pem.py").write_text("no secret\n")
    folder, _ = await opened()
    snapshot = await workspace.snapshot(root, {})

    assert names(folder) == {".env", "src/a.py", "b.txt", "x.pem.py"}
    note = "Left out, because they may hold secrets: .env.d/prod, id_ed25519.pub, id_rsa, server.PEM, src/.env.local."
    assert snapshot.notes == (note,)


async def test_many_left_out_files_are_counted_instead_of_named(workspace, root):
    for number in range(7):
        (root / f"{number}.key").write_text("secret\n")
    (note,) = (await workspace.snapshot(root, {})).notes

    assert note.endswith("0.key, 1.key, 2.key, 3.key, 4.key and 2 more.")


async def test_repositories_inside_the_repository_are_left_out_and_named(workspace, root, opened):
    (root / "inner").mkdir()
    git(root / "inner", "init", "-q")
    (root / "inner" / "file").write_text("x\n")
    folder, _ = await opened()

    assert names(folder) == {"src/a.py", "b.txt"}
    assert "repositories of their own: inner/." in (await workspace.snapshot(root, {})).notes[0]


async def test_limits_of_the_copy_are_said_before_the_start(workspace, root, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    commit_all(other)
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    (root / ".gitattributes").write_text("*.bin filter=lfs\n")
    git(root, "config", "filter.lfs.clean", "git-lfs clean")
    git(root, "config", "extensions.partialClone", "origin")
    notes = (await workspace.snapshot(root, {})).notes

    assert [note.split(":")[0] for note in notes] == [
        "This is a partial clone",
        "Submodules are not in the copy",
        "Files kept by Git LFS are pointers in the copy.",
    ]


async def test_unsaved_text_replaces_the_file_and_keeps_its_mode(root, opened):
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    folder, _ = await opened(buffers={"run.sh": "#!/bin/sh\necho é\n", "b.txt": "b\n"})

    assert (folder / "run.sh").read_text() == "#!/bin/sh\necho é\n"
    assert os.access(folder / "run.sh", os.X_OK)


async def test_unsaved_text_of_a_file_that_must_stay_out_stays_out(workspace, root, opened, tmp_path):
    (root / ".gitignore").write_text("*.local\n")
    (root / "a.local").write_text("x\n")
    (root / "inner").mkdir()
    git(root / "inner", "init", "-q")
    (tmp_path / "outside").mkdir()
    (root / "out").symlink_to(tmp_path / "outside")
    hidden = ["a.local", ".env", "inner/x", "../outside/y", "out/z", ".git/config"]
    folder, _ = await opened(buffers=dict.fromkeys(hidden, "unsaved\n") | {"b.txt": "unsaved\n"})
    notes = (await workspace.snapshot(root, dict.fromkeys(hidden, "unsaved\n"))).notes

    assert names(folder) == {".gitignore", "src/a.py", "b.txt", "out"}
    assert (folder / "b.txt").read_text() == "unsaved\n"
    assert notes[-1].endswith("elsewhere: ../outside/y, .env, .git/config, a.local, inner/x and 1 more.")


async def test_a_folder_in_whose_place_the_user_put_a_link_is_a_link_in_the_copy(root, opened):
    (root / "src").rename(root / "moved")
    (root / "src").symlink_to("moved")
    folder, _ = await opened()

    assert names(folder) == {"src", "moved/a.py", "b.txt"}


async def test_unsaved_text_behind_a_link_inside_the_repository_goes_to_the_real_file(root, opened):
    (root / "link").symlink_to("src")
    folder, _ = await opened(buffers={"link/a.py": "unsaved\n"})

    assert (folder / "src" / "a.py").read_text() == "unsaved\n"


async def test_an_open_file_in_another_encoding_is_not_rewritten(root, opened):
    (root / "latin.txt").write_bytes("é\n".encode("latin-1"))
    (root / "bom.txt").write_bytes("é\n".encode("utf-8-sig"))
    folder, _ = await opened(buffers={"latin.txt": "é\n", "bom.txt": "é\n"})

    assert (folder / "latin.txt").read_bytes() == b"\xe9\n"
    assert (folder / "bom.txt").read_bytes() == b"\xef\xbb\xbf\xc3\xa9\n"


async def test_names_that_need_quoting_survive(workspace, root, opened):
    odd = ["a b", "100%", "ü/é", "new\nline", "*", ":(top)x", "-n", '"', "\\"]
    (root / "ü").mkdir()
    for name in odd:
        (root / name).write_text("x\n")
    folder, base = await opened(buffers={"*": "unsaved\n", ":(top)x": "unsaved\n", ":(exclude)new": "unsaved\n"})
    assert names(folder) == {"src/a.py", "b.txt", ":(exclude)new", *odd}
    assert (folder / "*").read_text() == "unsaved\n"
    assert (folder / "src" / "a.py").read_text() == "one\ntwo\nthree\n"
    for name in odd:
        (folder / name).write_text("worker\n")
    changes = await workspace.collect("t1", root, base)

    assert {one.path for one in changes.files} == set(odd)
    assert await workspace.read(root, changes.result, "*") == b"worker\n"
    assert (await workspace.diff(root, changes, ["*"])).count("diff --git") == 1


async def test_a_name_that_is_not_utf8_survives(workspace, root, opened):
    raw = os.fsdecode(b"\xff\xfe")
    (root / raw).write_text("x\n")
    folder, base = await opened()
    (folder / raw).write_text("worker\n")
    changes = await workspace.collect("t1", root, base)

    assert [one.path for one in changes.files] == [raw]
    assert (await apply(workspace, root, changes)).paths == (raw,)
    assert (root / raw).read_text() == "worker\n"


async def test_line_ends_are_those_that_the_user_has_set(workspace, root, opened):
    git(root, "config", "core.autocrlf", "true")
    (root / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
    commit_all(root)
    folder, base = await opened()
    assert (folder / "crlf.txt").read_bytes() == b"one\r\ntwo\r\n"
    (folder / "crlf.txt").write_bytes(b"one\r\nTWO\r\n")
    (folder / "new.txt").write_bytes(b"new\r\n")
    changes = await workspace.collect("t1", root, base)
    await apply(workspace, root, changes)

    assert (root / "crlf.txt").read_bytes() == b"one\r\nTWO\r\n"
    assert (root / "new.txt").read_bytes() == b"new\r\n"
    assert await workspace.read(root, base, "crlf.txt") == b"one\r\ntwo\r\n"


async def test_a_sparse_checkout_keeps_what_it_leaves_out(workspace, root, opened):
    git(root, "sparse-checkout", "set", "--cone", "--sparse-index", "other")
    assert not (root / "src").exists()
    (root / "b.txt").write_text("dirty\n")
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)

    assert names(folder) == {"b.txt"}
    assert await workspace.read(root, base, "src/a.py") == b"one\ntwo\nthree\n"
    assert [one.path for one in changes.files] == ["b.txt"]


async def test_a_shallow_clone_is_copied(workspace, root, opened, tmp_path):
    (root / "b.txt").write_text("second\n")
    commit_all(root)
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{root}", str(shallow))
    folder, _ = await opened(where=shallow)

    assert git(folder, "log", "--format=%s").splitlines() == ["Your files as they were", "commit"]


async def test_a_folder_without_git_honours_its_ignore_files(workspace, tmp_path, opened):
    plain = tmp_path / "plain"
    (plain / "build").mkdir(parents=True)
    (plain / ".gitignore").write_text("build\n")
    (plain / "build" / "out").write_text("x\n")
    (plain / "a.py").write_text("a\n")
    folder, _ = await opened(where=plain)
    assert names(folder) == {".gitignore", "a.py"}
    (plain / ".gitignore").write_text("a.py\n")
    folder, _ = await opened("t2", where=plain)

    assert names(folder) == {".gitignore", "build/out"}


@pytest.mark.parametrize(("limit", "value"), [("MOST_FILES", 2), ("MOST_BYTES", 3)])
async def test_a_folder_that_holds_too_much_is_refused_with_the_way_out(workspace, tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(index, limit, value)
    plain = tmp_path / "plain"
    plain.mkdir()
    for number in range(3):
        (plain / str(number)).write_text("xx")

    with pytest.raises(NotAWorkspace, match=r"that git does not know, more than .*\.gitignore"):
        await workspace.snapshot(plain, {})


async def test_a_listing_without_end_is_refused(workspace, tmp_path, monkeypatch):
    monkeypatch.setattr("offload.workspace.index.LISTING_LIMIT", 10)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a long enough name").write_text("x")

    with pytest.raises(GitFailed, match="more files than can be copied"):
        await workspace.snapshot(plain, {})


def test_a_file_that_goes_away_while_it_is_measured_is_no_problem(tmp_path):
    assert index.too_much(tmp_path, ["gone"]) == ""


async def test_what_the_users_git_refuses_is_refused(workspace, root, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / ".git").write_text("gitdir: /no/such/place\n")
    (root / "line\nbreak").mkdir()
    git(root / "line\nbreak", "init", "-q")

    with pytest.raises(NotAWorkspace, match="work tree"):
        await workspace.snapshot(root / ".git", {})
    with pytest.raises(NotAWorkspace, match="not a git repository"):
        await workspace.snapshot(tmp_path / "broken", {})
    with pytest.raises(NotAWorkspace, match="line break"):
        await workspace.snapshot(root / "line\nbreak", {})


async def test_a_missing_git_is_said_plainly(root, tmp_path):
    async with GitWorkspaces(tmp_path / "state", Processes(), {"PATH": "/nowhere"}) as workspace:
        with pytest.raises(GitFailed, match="installed and on PATH"):
            await workspace.snapshot(root, {})


async def test_variables_that_point_git_elsewhere_are_not_inherited(root, tmp_path):
    hostile = {"GIT_DIR": "/nowhere", "GIT_INDEX_FILE": "/nowhere", "GIT_CONFIG_COUNT": "1", "PATH": os.environ["PATH"]}
    async with GitWorkspaces(tmp_path / "state", Processes(), hostile) as workspace:
        assert (await workspace.snapshot(root, {})).base


async def start(workspace, root, task, base=""):
    """As core does it; with a `base` that nobody knows it fails after the snapshot."""
    taken = await workspace.snapshot(root, {})
    return await workspace.open_folder(task, root, base or taken.base), taken.base


@pytest.fixture
def tracking(root, tmp_path):
    """A clone on a branch that has an upstream, with a change in it."""
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(root), str(clone))
    git(clone, "checkout", "-q", "-b", "topic", "--track", "origin/main")
    (clone / "b.txt").write_text("dirty\n")
    return clone


async def test_sixteen_starts_at_once_on_a_branch_with_an_upstream_get_a_folder_each(workspace, tracking):
    """Public trouble report: of 16 parallel `git worktree add` 10 failed on a lock, yet all 16 branches were there (PA01, H19)."""
    before = fingerprint(tracking)
    started = await asyncio.gather(*(start(workspace, tracking, f"t{n}") for n in range(16)))
    for folder, _ in started:
        (folder / "b.txt").write_text(f"{folder}\n")
    results = await asyncio.gather(*(workspace.collect(f"t{n}", tracking, base) for n, (_, base) in enumerate(started)))

    assert len({folder for folder, _ in started}) == 16
    assert len({base for _, base in started}) == 1
    assert len({result.result for result in results}) == 16
    assert {git(folder, "for-each-ref") for folder, _ in started} == {""}
    assert fingerprint(tracking) == before


async def test_starts_that_fail_among_others_leave_no_branch_no_lock_and_no_folder(workspace, tracking, tmp_path):
    """PA01, H19: the losers of the race left orphan branches."""
    before = fingerprint(tracking)
    bases = ["", "1" * 40] * 8
    tried = await asyncio.gather(
        *(start(workspace, tracking, f"t{n}", base) for n, base in enumerate(bases)), return_exceptions=True
    )
    for number in range(1, 16, 2):
        await workspace.release(f"t{number}", tracking)

    assert [isinstance(one, GitFailed) for one in tried] == [False, True] * 8
    assert fingerprint(tracking) == before
    assert len(list((tmp_path / "state" / "tasks").iterdir())) == 8
    (private,) = (tmp_path / "state" / "repositories").iterdir()
    assert len(list((private / "tasks").glob("*.json"))) == 8


async def test_a_snapshot_is_never_older_than_its_call(workspace, root):
    first = asyncio.create_task(workspace.snapshot(root, {}))
    await asyncio.sleep(0)
    second = asyncio.create_task(workspace.snapshot(root, {"b.txt": "unsaved\n"}))
    bases = [(await first).base, (await second).base]

    assert await workspace.read(root, bases[0], "b.txt") == b"b\n"
    assert await workspace.read(root, bases[1], "b.txt") == b"unsaved\n"


async def test_a_caller_that_gives_up_does_not_take_the_snapshot_from_others(workspace, root):
    first, second = (asyncio.create_task(workspace.snapshot(root, {})) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()

    assert (await second).base


async def test_the_copy_outlives_the_users_git_tidying_up(root, tmp_path):
    """Borrowed objects go away with `gc --prune`: what a snapshot needs is packed into the private directory."""
    (root / "b.txt").write_text("dirty\n")
    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace:
        bases = [(await workspace.snapshot(root, {})).base]
        (root / "b.txt").write_text("dirtier\n")
        bases.append((await workspace.snapshot(root, {})).base)
    git(root, "checkout", "-q", "--orphan", "empty")
    git(root, "rm", "-rfq", ".")
    git(root, "branch", "-D", "main")
    git(root, "reflog", "expire", "--expire=now", "--all")
    git(root, "gc", "-q", "--prune=now")
    shutil.rmtree(root / ".git" / "objects")
    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace:
        folder = await workspace.open_folder("t1", root, bases[0])
        (folder / "src" / "a.py").write_text("worker\n")
        changes = await workspace.collect("t1", root, bases[0])

        assert (folder / "b.txt").read_text() == "dirty\n"
        assert await workspace.read(root, bases[1], "b.txt") == b"dirtier\n"
        assert "+worker" in await workspace.diff(root, changes)


async def test_a_snapshot_that_could_not_be_packed_is_logged_and_still_good(root, tmp_path, caplog):
    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ) as workspace:
        base = (await workspace.snapshot(root, {})).base
        (private,) = (tmp_path / "state" / "repositories").iterdir()
        shutil.rmtree(private / "objects" / "pack", ignore_errors=True)
        (private / "objects" / "pack").write_text("in the way")
        assert await workspace.read(root, base, "b.txt") == b"b\n"

    assert [record.levelno for record in caplog.records] == [logging.WARNING]


async def test_a_folder_that_became_a_repository_keeps_its_earlier_tasks(workspace, tmp_path, opened):
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.py").write_text("a\n")
    folder, base = await opened(where=plain)
    git(plain, "init", "-q")
    commit_all(plain)
    await workspace.snapshot(plain, {})
    (folder / "a.py").write_text("worker\n")
    changes = await workspace.collect("t1", plain, base)

    assert [one.path for one in changes.files] == ["a.py"]
    assert (await apply(workspace, plain, changes)).paths == ("a.py",)


async def test_what_the_user_sets_otherwise_counts_in_the_very_next_snapshot(workspace, root, opened, tmp_path):
    await opened()
    (root / "a.mine").write_text("x\n")
    (tmp_path / "ignores").write_text("*.mine\n")
    git(root, "config", "core.excludesFile", str(tmp_path / "ignores"))
    folder, _ = await opened("t2")
    assert "a.mine" not in names(folder)
    (root / ".git" / "info" / "exclude").write_text("*.own\n")
    (root / "b.own").write_text("x\n")
    git(root, "config", "--unset", "core.excludesFile")
    folder, _ = await opened("t3")
    assert {"a.mine", "b.own"} & names(folder) == {"a.mine"}
    commit_all(root, "mine")
    folder, _ = await opened("t4")
    assert git(folder, "log", "--format=%s", "-2").splitlines() == ["Your files as they were", "mine"]


async def test_rules_are_whole_whenever_a_collection_beside_a_snapshot_reads_them(workspace, root, opened, tmp_path):
    """They are not written while they stay the same, and replaced by one step when they change."""
    rules = root / ".git" / "info" / "exclude"
    rules.parent.mkdir(exist_ok=True)
    rules.write_text("*.own\n")
    await opened()
    (private,) = (tmp_path / "state" / "repositories").iterdir()
    kept = [private / name for name in ("info/exclude", "objects/info/alternates", "offload.json")]
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in kept]
    await opened("t2")
    assert [(path.stat().st_ino, path.stat().st_mtime_ns) for path in kept] == before
    with kept[0].open() as opened_before:
        rules.write_text("*.other\n")
        await opened("t3")
        assert opened_before.read() == "*.own\n"
    assert kept[0].read_text() == "*.other\n"


async def test_a_repository_that_goes_away_or_breaks_between_two_snapshots_is_what_it_is_then(workspace, root, opened):
    await opened()
    (root / ".git").rename(root.parent / "kept")
    folder, _ = await opened("t2")
    assert (folder / "b.txt").read_text() == "b\n"
    (root.parent / "kept").rename(root / ".git")
    await opened("t3")
    good = (root / ".git" / "index").read_bytes()
    (root / ".git" / "index").write_bytes(b"no index")
    with pytest.raises(GitFailed, match="index file smaller than expected"):
        await workspace.snapshot(root, {})
    (root / ".git" / "index").write_bytes(good)
    assert (await workspace.snapshot(root, {})).base
    root.rename(root.parent / "moved")
    with pytest.raises(NotAWorkspace, match="is not a folder that can be read"):
        await workspace.snapshot(root, {})


async def test_a_folder_in_a_repository_belongs_to_the_whole_of_it(workspace, root, tmp_path):
    assert await workspace.locate(root / "src") == root
    assert await workspace.locate(tmp_path) == tmp_path


async def test_the_whole_machine_is_no_workspace(workspace):
    """A program whose own folder was removed stands at "/": nobody means to hand that over."""
    with pytest.raises(NotAWorkspace, match="whole machine"):
        await workspace.locate(Path("/"))
