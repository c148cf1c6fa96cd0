"""What an apply did is taken back exactly, however it came there and wherever the file is now."""

import codecs
import itertools
import stat
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from offload.domain.change import ChangeSet
from offload.domain.errors import ApplyRefused
from offload.workspace.kept import File, Objects
from tests.workspace.repositories import apply, fingerprint, private_of

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
@settings(max_examples=400, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
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
        assert state(folder) == before
        return
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
