"""Any edits of a user and of a worker: merged as `git merge-file` merges them, or a conflict; every byte in its place.

Many small cases make one example, because what takes the time are processes: git's own answers come from one shell.
"""

import asyncio
import codecs
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from offload.processes import Processes
from offload.workspace.git import Git
from offload.workspace.landing.merge import merge_bytes

CASES = 50
EXAMPLES = 105
ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": codecs.BOM_UTF8,
    "latin-1": b"",
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
}
ENDS = {"lf": "\n", "crlf": "\r\n", "cr": "\r", "mixed": ""}
LINES = ("a", "b", "c", "", "é", "}", "<<<<<<< live", "=======", "\x85 \x0c\x0b", "ÿ")
"""Few, so that edits meet and lines come twice; some that programs mistake for something else."""
LASTING = {line: ("\r\n", "\n", "\r")[number % 3] for number, line in enumerate(LINES)} | {"": "\r\n"}
"""With mixed ends a line has the same one wherever it is, so that what is right can be said of any merge. An empty line with "\\n"
after a line with "\\r" would be none."""

lines = st.lists(st.sampled_from(LINES), max_size=9)
edit = st.tuples(st.integers(0, 9), st.integers(0, 2), st.lists(st.sampled_from(LINES), max_size=2))
edits = st.lists(edit, max_size=3)


@dataclass(frozen=True)
class Case:
    base: tuple[str, ...]
    live: tuple[str, ...]
    result: tuple[str, ...]
    encoding: str
    ends: str
    open_ends: tuple[bool, bool, bool]
    """Which of them have no end of the last line."""

    def plain(self) -> list[str]:
        pairs = zip((self.base, self.live, self.result), self.open_ends, strict=True)
        return ["\n".join(each) + ("" if not each or without else "\n") for each, without in pairs]

    def written(self, plain: str) -> bytes:
        """A text as the file holds it."""
        *lines, last = plain.split("\n")
        text = "".join(line + (ENDS[self.ends] or LASTING[line]) for line in lines) + last
        return ENCODINGS[self.encoding] + text.encode(self.encoding.removesuffix("-sig"))


def edited(before: list[str], changes: list[tuple[int, int, list[str]]]) -> tuple[str, ...]:
    after = list(before)
    for at, gone, come in changes:
        after[at : at + gone] = come
    return tuple(after)


@st.composite
def cases(draw):
    base = draw(lines)
    return Case(
        tuple(base),
        edited(base, draw(edits)),
        edited(base, draw(edits)),
        draw(st.sampled_from(list(ENCODINGS))),
        draw(st.sampled_from(list(ENDS))),
        draw(st.tuples(st.booleans(), st.booleans(), st.booleans())),
    )


def said_by_git(folder: Path, texts: list[list[str]]) -> list[bytes | None]:
    """What `git merge-file` makes of each base, live and result: one shell asks for all of them."""
    for number, three in enumerate(texts):
        for name, text in zip("blr", three, strict=True):
            (folder / f"{number}{name}").write_bytes(text.encode())
    script = 'i=0; while [ $i -lt "$1" ]; do git merge-file -p -q ${i}l ${i}b ${i}r > ${i}m; echo $?; i=$((i+1)); done'
    done = subprocess.run(["sh", "-c", script, "sh", str(len(texts))], cwd=folder, capture_output=True, check=True)
    statuses = [int(line) for line in done.stdout.split()]
    assert all(0 <= status < 128 for status in statuses)
    return [None if status else (folder / f"{number}m").read_bytes() for number, status in enumerate(statuses)]


@pytest.fixture(scope="module")
def git():
    return Git(Processes(), os.environ)


@pytest.mark.timeout(600)
@settings(
    max_examples=EXAMPLES, deadline=None, phases=[Phase.reuse, Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(chosen=st.lists(cases(), min_size=CASES, max_size=CASES))
async def test_a_merge_is_what_git_merge_file_says_byte_for_byte_or_a_conflict(git, tmp_path, chosen):
    wanted = said_by_git(tmp_path, [case.plain() for case in chosen])
    found = await asyncio.gather(
        *(merge_bytes(git, tmp_path, *map(case.written, case.plain()), exact=case.ends == "mixed") for case in chosen)
    )
    event(f"{round(sum(right is None for right in wanted), -1)} of {CASES} conflict")
    for case, right, ours in zip(chosen, wanted, found, strict=True):
        if right is None:
            assert_conflict(case, ours)
        else:
            assert ours == case.written(right.decode()), case


def assert_conflict(case: Case, clashes) -> None:
    """Each place is shown as it is on all three sides, in order."""
    assert isinstance(clashes, tuple), case
    assert clashes, case
    base, live, result = (text.split("\n") for text in case.plain())
    below = 0
    for clash in clashes:
        first = clash.first_line - 1
        assert first >= below, case
        assert clash.yours != clash.theirs, case
        assert "\n".join(live[first:]).startswith(clash.yours), case
        assert "\n".join(base[clash.base_lines.start :]).startswith(clash.base), case
        assert clash.base.count("\n") <= len(clash.base_lines) <= clash.base.count("\n") + 1, case
        assert clash.theirs in "\n".join(result), case
        below = first + clash.yours.count("\n")
