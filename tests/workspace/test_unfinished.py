"""A hub that is killed while it writes to the user's files has written all or nothing, as soon as the next one is there."""

import os
import signal
import sys

from offload.processes import Processes
from offload.workspace import GitWorkspaces
from offload.workspace.landing import disk
from offload.workspace.landing.unfinished import RECORD, take_back
from tests.workspace.repositories import fingerprint

CHANGES = {"open", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink"}


def begun(root):
    """The user's files before the write."""
    (root / "old").mkdir(parents=True)
    (root / "old" / "only").write_text("only\n")
    (root / "changed").write_text("before\n")
    (root / "link").symlink_to("changed")
    return root


def write(root, record, killed_at=0):
    """Write in a process of its own, which is killed before its step of that number; whether it was."""
    child = os.fork()
    if not child:
        left = killed_at

        def heard(event, _):
            nonlocal left
            left -= event in CHANGES
            if event in CHANGES and left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(heard)
        disk.write(root, edits(root), record)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status in (0, signal.SIGKILL)
    return status != 0


def edits(root):
    def edit(path, content, **options):
        return disk.Edit(path, disk.look(root, path), content, **options)

    return [
        edit("old/only", None),
        edit("changed", b"after\n", mode=0o700),
        edit("link", b"old", link=True),
        edit("a new/folder/" + os.fsdecode(b"\xe9"), b"new\n"),
    ]


def held(root):
    return {path.removeprefix(str(root)): what for path, what in fingerprint(root).items()}


def test_a_write_that_is_killed_at_any_step_comes_to_all_of_it_or_nothing(tmp_path):
    before, whole = (begun(tmp_path / name) for name in ("before", "whole"))
    assert not write(whole, tmp_path / RECORD)
    ends = [held(before), held(whole)]
    came_to, step, killed = [], 0, True
    while killed:
        step += 1
        root, record = begun(tmp_path / str(step)), tmp_path / f"{step}.json"
        killed = write(root, record, step)
        taken_back = take_back(record)
        came_to.append((ends.index(held(root)), taken_back))
        assert not record.exists()
    assert set(came_to) == {(0, False), (0, True), (1, True), (1, False)}, "before, in, and after each stage"
    assert came_to == sorted(came_to, key=lambda one: one[0]), "once it is written it stays"


def cut_off(tmp_path):
    """A write of which the first files are in place: what goes, goes first."""
    whole = begun(tmp_path / "whole")
    write(whole, tmp_path / RECORD)
    for step in range(1, 200):
        root, record = begun(tmp_path / str(step)), tmp_path / f"{step}.json"
        write(root, record, step)
        if (root / "changed").read_text() == "after\n":
            return root, record
    raise AssertionError("it never came to that")


def test_what_somebody_changed_since_stays_as_it_is(tmp_path):
    root, record = cut_off(tmp_path)
    (root / "changed").write_text("mine\n")
    (root / "old").mkdir(exist_ok=True)
    (root / "old" / "only").write_text("mine, too\n")
    assert take_back(record)
    assert ((root / "changed").read_text(), (root / "old" / "only").read_text()) == ("mine\n", "mine, too\n")
    assert not [path for path in root.rglob("*") if path.name.startswith(".offload-")]


def test_a_folder_that_is_not_there_now_is_put_back_another_time(tmp_path):
    root, record = cut_off(tmp_path)
    away = root.rename(tmp_path / "away")
    assert not take_back(record)
    away.rename(root)
    assert take_back(record)
    assert held(root) == held(begun(tmp_path / "as it was"))


async def test_the_next_hub_puts_back_what_was_cut_off_where_the_folder_is_there(tmp_path):
    root, record = cut_off(tmp_path)
    private, other = (tmp_path / "state" / "repositories" / name for name in ("0.git", "1.git"))
    for each in (private, other):
        each.mkdir(parents=True)
    elsewhere = record.read_text().replace(str(root), str(tmp_path / "on another disk"))
    (other / RECORD).write_text(elsewhere)
    record.rename(private / RECORD)
    async with GitWorkspaces(tmp_path / "state", Processes(), os.environ):
        assert held(root) == held(begun(tmp_path / "as it was"))
        assert not (private / RECORD).exists()
    assert (other / RECORD).read_text() == elsewhere, "it is kept for another time"
