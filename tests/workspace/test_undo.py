"""What an apply did is taken back exactly, however it came there and wherever the file is now."""

import codecs
import itertools
import stat
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from offload.core.ports import BufferChange
from offload.domain.change import ChangeSet
from offload.domain.errors import ApplyRefused
from offload.workspace.kept import File, Objects, permissions
from tests.workspace.repositories import apply, fingerprint, git, private_of

FORMS = {
    "utf-8": b"",
    "utf-8-sig": codecs.BOM_UTF8,
    "latin-1": b"",
    "utf-16-le": codecs.BOM_UTF16_LE,
}
LINES = ("a", "b", "c", "", "é")
MODES = (0o644, 0o755, 0o600, 0o744)

lines = st.lists(st.sampled_from(LINES), max_size=6)
edits = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 1), st.lists(st.sampled_from(LINES), max_size=1)), max_size=2
)


def edited(before, changes):
    after = list(before)
    for at, gone, come in changes:
        after[at : at + gone] = come
    return after


@dataclass
class Case:
    """One file: what the task was given, made of it, and what the user has; None is no file."""

    base: list[str] | None
    result: list[str] | None
    live: list[str] | None
    form: str
    end: str
    mode: int
    flipped: bool
    place: str
    saved: bool

    def text(self, lines):
        return "".join(f"{line}{self.end}" for line in lines)

    def bytes(self, text):
        return FORMS[self.form] + text.encode(self.form.removesuffix("-sig"))

    def file(self, lines, flipped):
        executable = bool(self.mode & 0o100) != flipped
        return File("100755" if executable else "100644", self.bytes(self.text(lines)))


@st.composite
def cases(draw):
    base = draw(st.one_of(st.none(), lines, lines, lines))
    result = draw(st.sampled_from([None, *[edited(base or [], draw(edits))] * 4]))
    live = draw(st.sampled_from([base, base, edited(base, draw(edits)) if base is not None else None]))
    return Case(
        base,
        result,
        live,
        draw(st.sampled_from(list(FORMS))),
        draw(st.sampled_from(["\n", "\r\n", "\r"])),
        draw(st.sampled_from(MODES)),
        draw(st.booleans()),
        draw(st.sampled_from(["disk", "disk", "open", "typed in"])),
        draw(st.booleans()),
    )


def put(target, content, mode):
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(mode)


def state(folder):
    return fingerprint(folder) if folder.exists() else {}


class Made:
    """Change sets without a worker: both commits as they are said."""

    def __init__(self, private):
        self._objects = Objects(private, "sha1")

    def changes(self, base, result):
        return ChangeSet(*(self._objects.commit("made", "", files) for files in (base, result)))


@pytest.fixture
async def made(workspace, root, tmp_path):
    await workspace.snapshot(root, {})
    return Made(private_of(tmp_path / "state"))


numbers = itertools.count()


@pytest.mark.timeout(600)
@settings(
    max_examples=400, deadline=None, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(chosen=st.lists(cases(), min_size=1, max_size=3))
async def test_apply_then_undo_is_the_identity(workspace, root, made, chosen):
    folder = root / f"{next(numbers)}"
    files = {f"{folder.name}/{number}.txt": case for number, case in enumerate(chosen)}
    buffers = {}
    for path, case in files.items():
        if case.place == "typed in" and case.base is not None and case.live is not None:
            put(root / path, case.bytes(case.text(case.base)), case.mode)
            buffers[path] = case.text(case.live)
        elif case.live is not None:
            put(root / path, case.bytes(case.text(case.live)), case.mode)
            if case.place == "open":
                buffers[path] = case.text(case.live)
    changes = made.changes(
        {path: case.file(case.base, flipped=False) for path, case in files.items() if case.base is not None},
        {path: case.file(case.result, case.flipped) for path, case in files.items() if case.result is not None},
    )
    before, typed = state(folder), dict(buffers)
    try:
        plan = await apply(workspace, root, changes, buffers)
    except ApplyRefused:
        event("refused")
        assert state(folder) == before
        return
    event(f"{bool(plan.buffers)} in editors, {bool(plan.before)} at all")
    went = {change.path: change for change in plan.buffers}
    buffers |= {path: change.after for path, change in went.items()}
    shut = [path for path in went if files[path].saved]
    for path in shut:  # saved and closed; the other documents stay open
        put(root / path, files[path].bytes(buffers.pop(path)), stat.S_IMODE((root / path).stat().st_mode))
    if not plan.before:
        assert state(folder) == before
        return
    back = await workspace.between(root, plan.after, plan.before)
    undone = await apply(workspace, root, back, buffers, exact=True)

    buffers |= {change.path: change.after for change in undone.buffers}
    assert buffers == {path: text for path, text in typed.items() if path not in shut}
    for path in shut:
        assert (root / path).read_bytes() == files[path].bytes(typed[path])
        put(root / path, b"", 0o644)
    for path in shut:
        before.pop(str(root / path))
    now = {path: line for path, line in state(folder).items() if path not in {str(root / one) for one in shut}}
    assert now == before


HEAD = ["h1", "h2", "h3", "h4"]


@pytest.mark.timeout(600)
@settings(
    max_examples=150, deadline=None, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(case=cases(), open_now=st.booleans())
async def test_undo_takes_back_what_was_applied_and_leaves_what_was_typed_since(workspace, root, made, case, open_now):
    path = f"later-{next(numbers)}.txt"
    base, result, live = ([*HEAD, *(lines or [])] for lines in (case.base, case.result, case.live))
    put(root / path, case.bytes(case.text(live)), case.mode)
    try:
        plan = await apply(
            workspace,
            root,
            made.changes({path: case.file(base, flipped=False)}, {path: case.file(result, case.flipped)}),
        )
    except ApplyRefused:
        return
    now = (root / path).read_bytes().removeprefix(FORMS[case.form]).decode(case.form.removesuffix("-sig"))
    typed = now.replace("h1", f"h1, changed{case.end}and more", 1)
    wanted = case.text(live).replace("h1", f"h1, changed{case.end}and more", 1)
    if not open_now:
        put(root / path, case.bytes(typed), stat.S_IMODE((root / path).stat().st_mode))
    if not plan.before:
        return
    back = await workspace.between(root, plan.after, plan.before)
    undone = await apply(workspace, root, back, {path: typed} if open_now else {}, exact=True)
    if open_now:
        assert [change.after for change in undone.buffers] in ([wanted], [] if typed == wanted else [wanted])
    else:
        assert (root / path).read_bytes() == case.bytes(wanted)
    assert stat.S_IMODE((root / path).stat().st_mode) == case.mode


TWENTY = "".join(f"{number}\n" for number in range(1, 21))


@pytest.fixture
async def landed(workspace, root, opened):
    """One apply that changes a file in two places, adds one, deletes one and makes one a link: `plan, back`."""
    (root / "twenty.txt").write_text(TWENTY)
    (root / "private").write_text("kept from others\n")
    (root / "private").chmod(0o600)
    folder, base = await opened()
    (folder / "twenty.txt").write_text(TWENTY.replace("\n5\n", "\nfive\n").replace("\n15\n", "\n"))
    (folder / "src" / "new.py").write_text("new\n")
    (folder / "private").unlink()
    (folder / "b.txt").unlink()
    (folder / "b.txt").symlink_to("src")
    plan = await apply(workspace, root, await workspace.collect("t1", root, base))
    return plan, await workspace.between(root, plan.after, plan.before)


async def test_files_links_and_permissions_come_back(workspace, root, landed):
    _, back = landed
    await apply(workspace, root, back, exact=True)

    assert (root / "twenty.txt").read_text() == TWENTY
    assert (root / "b.txt").read_text() == "b\n"
    assert not (root / "b.txt").is_symlink()
    assert not (root / "src" / "new.py").exists()
    assert (root / "private").read_text() == "kept from others\n"
    assert stat.S_IMODE((root / "private").stat().st_mode) == 0o600


async def test_what_was_edited_elsewhere_since_stays(workspace, root, landed):
    _, back = landed
    (root / "twenty.txt").write_text("zero\n" + (root / "twenty.txt").read_text().replace("\n10\n", "\nten\n"))
    await apply(workspace, root, back, exact=True)
    assert (root / "twenty.txt").read_text() == "zero\n" + TWENTY.replace("\n10\n", "\nten\n")


async def test_what_a_later_apply_changed_elsewhere_stays(workspace, root, opened, landed):
    _, back = landed
    folder, base = await opened("t2")
    (folder / "twenty.txt").write_text((folder / "twenty.txt").read_text() + "twenty-one\n")
    later = await apply(workspace, root, await workspace.collect("t2", root, base))
    await apply(workspace, root, back, exact=True)
    assert (root / "twenty.txt").read_text() == TWENTY + "twenty-one\n"
    await apply(workspace, root, await workspace.between(root, later.after, later.before), exact=True)
    assert (root / "twenty.txt").read_text() == TWENTY


async def test_a_place_that_was_edited_since_refuses_all_of_it_and_shows_both_sides(workspace, root, landed):
    _, back = landed
    (root / "twenty.txt").write_text((root / "twenty.txt").read_text().replace("five\n", "FIVE\n"))
    (root / "src" / "new.py").write_text("new\nmine\n")
    before = fingerprint(root)
    with pytest.raises(ApplyRefused) as refused:
        await apply(workspace, root, back, exact=True)

    told = {(one.path, one.first_line, one.yours, one.base, one.theirs) for one in refused.value.conflicts}
    assert told == {("twenty.txt", 5, "FIVE\n", "five\n", "5\n"), ("src/new.py", 1, "new\nmine\n", "new\n", "")}
    units = {unit for file in back.files for unit in file.units}
    assert {one.unit for one in refused.value.conflicts} <= units
    assert fingerprint(root) == before


async def test_what_went_to_disk_is_taken_back_in_an_editor_that_has_it_open_now(workspace, root, landed):
    _, back = landed
    now = (root / "twenty.txt").read_text()
    plan = await apply(workspace, root, back, {"twenty.txt": "typed\n" + now}, exact=True)
    assert plan.buffers == (BufferChange("twenty.txt", "typed\n" + now, "typed\n" + TWENTY),)
    assert (root / "twenty.txt").read_text() == now


async def test_an_undo_can_be_taken_back_itself(workspace, root, landed):
    _, back = landed
    after = {path: line for path, line in fingerprint(root).items() if ".git" not in path}
    undo = await apply(workspace, root, back, exact=True)
    await apply(workspace, root, await workspace.between(root, undo.after, undo.before), exact=True)
    assert {path: line for path, line in fingerprint(root).items() if ".git" not in path} == after


async def test_an_undo_twice_does_nothing_the_second_time(workspace, root, landed):
    _, back = landed
    await apply(workspace, root, back, exact=True)
    again = await apply(workspace, root, back, exact=True)
    assert (sorted(again.unchanged), again.before) == (sorted(again.paths), "")


async def test_both_commits_hold_the_touched_files_alone_and_are_kept(workspace, root, landed, tmp_path):
    plan, _ = landed
    private = private_of(tmp_path / "state")
    held = [git(private, "ls-tree", "-r", commit).splitlines() for commit in (plan.before, plan.after)]
    assert [[line.partition("\t")[2] for line in one] for one in held] == [
        ["b.txt", "private", "twenty.txt"],
        ["b.txt", "src/new.py", "twenty.txt"],
    ]
    assert [one[0].split(" ")[0] for one in held] == ["100644", "120000"]
    git(private, "fsck", "--strict", "--no-dangling")
    refs = git(private, "for-each-ref", "--format=%(refname)").splitlines()
    assert {f"refs/offload/{plan.before}", f"refs/offload/{plan.after}"} <= set(refs)


async def test_a_plan_that_is_not_written_leaves_nothing_behind(workspace, root, opened, tmp_path):
    folder, base = await opened()
    (folder / "b.txt").write_text("worker\n")
    changes = await workspace.collect("t1", root, base)
    private = private_of(tmp_path / "state")
    before = git(private, "count-objects")
    plan = await workspace.plan(root, changes, {"b.txt": "b\n"})
    assert (plan.before, plan.after, git(private, "count-objects")) == ("", "", before)


async def test_what_was_landed_can_be_taken_back_after_other_things_were_forgotten(workspace, root, landed, opened):
    plan, back = landed
    _, base = await opened("t2")
    for task in ("t1", "t2"):
        await workspace.release(task, root)
    await workspace.forget(root, {base}, {plan.before, plan.after})
    await apply(workspace, root, back, exact=True)
    assert (root / "twenty.txt").read_text() == TWENTY


async def test_a_part_of_an_apply_is_taken_back_by_itself(workspace, root, landed):
    """Of a chosen part the permissions are those that git knows."""
    _, back = landed
    (twenty,) = (file for file in back.files if file.path == "twenty.txt")
    part = await workspace.select(root, back, [twenty.units[1]])
    await apply(workspace, root, part, exact=True)
    assert (root / "twenty.txt").read_text() == TWENTY.replace("\n5\n", "\nfive\n")
    assert (root / "b.txt").is_symlink()


async def test_a_text_with_mixed_line_ends_gets_each_of_them_back(workspace, root, opened):
    mixed = b"1\r\n2\n3\r4\n5\r\n6\n7\n8\r\n"
    (root / "mixed").write_bytes(mixed)
    folder, base = await opened()
    (folder / "mixed").write_bytes(mixed.replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    plan = await apply(workspace, root, await workspace.collect("t1", root, base))
    (root / "mixed").write_bytes((root / "mixed").read_bytes().replace(b"4\n", b"four\n"))
    await apply(workspace, root, await workspace.between(root, plan.after, plan.before), exact=True)
    assert (root / "mixed").read_bytes() == mixed.replace(b"4\n", b"four\n")


async def test_a_renamed_file_comes_back_under_the_name_that_a_document_still_has(workspace, root, opened):
    (root / "old.txt").write_text(TWENTY)
    folder, base = await opened()
    (folder / "old.txt").rename(folder / "new.txt")
    plan = await apply(workspace, root, await workspace.collect("t1", root, base), {"old.txt": TWENTY})
    back = await workspace.between(root, plan.after, plan.before)
    with pytest.raises(ApplyRefused, match="unsaved text"):
        await apply(workspace, root, back, {"old.txt": TWENTY + "typed\n"}, exact=True)
    await apply(workspace, root, back, {"old.txt": TWENTY}, exact=True)
    assert (root / "old.txt").read_text() == TWENTY
    assert not (root / "new.txt").exists()


async def test_an_undo_in_an_editor_has_the_line_ends_of_the_document(workspace, root, opened):
    (root / "crlf").write_bytes(b"1\r\n2\r\n3\r\n")
    folder, base = await opened()
    (folder / "crlf").write_bytes(b"1\r\n3\r\n")
    plan = await apply(workspace, root, await workspace.collect("t1", root, base))
    back = await workspace.between(root, plan.after, plan.before)
    undone = await apply(workspace, root, back, {"crlf": "1\n3\nfour\n"}, exact=True)
    assert undone.buffers == (BufferChange("crlf", "1\n3\nfour\n", "1\n2\n3\nfour\n"),)


async def test_what_was_no_utf_8_before_comes_back_into_an_open_document(workspace, root, opened):
    """Without its only character that says so, nothing tells the encoding."""
    (root / "text").write_bytes(b"\xe9\n2\n")
    folder, base = await opened()
    (folder / "text").write_bytes(b"e\n2\n")
    plan = await apply(workspace, root, await workspace.collect("t1", root, base))
    back = await workspace.between(root, plan.after, plan.before)
    undone = await apply(workspace, root, back, {"text": "e\n2\nthree\n"}, exact=True)
    assert undone.buffers == (BufferChange("text", "e\n2\nthree\n", "é\n2\nthree\n"),)


def test_permissions_are_read_from_what_keeps_them_alone():
    assert permissions('Title\n\n{"a": 384}\n') == {"a": 0o600}
    assert permissions("Title\n\n[1]\n") == {}
    assert permissions("Title\n") == permissions("") == {}
