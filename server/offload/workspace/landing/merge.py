"""Three texts into one: what the user has now and what the worker made, by what both began from.

git compares and merges; line ends are made equal for it and put back after.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.workspace.git import Git, together
from offload.workspace.landing.text import Text, form_of, read

MOST_CONFLICTS = 127
BASE, LIVE, RESULT = "base", "live", "result"
# As `git merge-file` compares. One line of context, because without any git leaves out what both texts end with first, and
# may then see another line as the changed one.
COMPARE = (
    *("diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color", "--text"),
    *("--diff-algorithm=myers", "--no-indent-heuristic", "--unified=1"),
)
HEADER = re.compile(rb"@@ -(\d+)\S* \+(\d+)\S* @@")


@dataclass(frozen=True, slots=True)
class Clash:
    """A place that both sides changed. `first_line` is 1-based in the live text; `base_lines` are the places of its lines in
    the base, counted from 0."""

    first_line: int
    yours: str
    base: str
    theirs: str
    base_lines: range


@dataclass(frozen=True, slots=True)
class _Lines:
    """A text's lines as git compares them, and the ends that they have."""

    plain: Sequence[str]
    ends: Sequence[str]

    def shown(self, lines: range) -> str:
        return "".join(self.plain[at] for at in lines)

    def own(self, at: int) -> str:
        return self.plain[at].removesuffix("\n") + self.ends[at]


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines of the base and what another text has in their place, both counted from 0."""

    old: range
    new: range


@dataclass(frozen=True, slots=True)
class _Region:
    """Where a side differs from the base: its lines on all three, and which sides differ."""

    base: range
    live: range
    result: range
    ours: bool
    theirs: bool


async def merge(
    git: Git, private: Path, base: Text, live: Text, result: Text, *, exact: bool = False, keep_ends: bool = False
) -> str | tuple[Clash, ...]:
    """The merged text, or where the sides clash.

    Line ends are those of the live text, unless only the worker changed them and not `keep_ends`. Where they are mixed, in
    the live text or with `exact` among all three, each line keeps its own.
    """
    texts = (base, live, result)
    with tempfile.TemporaryDirectory() as scratch:
        files = {name: Path(scratch, name) for name in (BASE, LIVE, RESULT)}
        end, merged = await asyncio.to_thread(_begun, files, texts, exact, keep_ends)
        if end is not None and merged is None and await _merge_file(git, private, files):
            # Read where git has written it: through a pipe it takes a good part of the time of the merge.
            merged = files[LIVE]
        if end is not None and merged is not None:
            return await asyncio.to_thread(_ended, merged, end)
        await asyncio.to_thread(files[LIVE].write_bytes, live.plain)
        ours, theirs = await together(
            git.ours(private, *COMPARE, files[BASE], files[LIVE], accepted=(0, 1)),
            git.ours(private, *COMPARE, files[BASE], files[RESULT], accepted=(0, 1)),
        )
    return await asyncio.to_thread(_by_line, ours.stdout, theirs.stdout, texts, keep_ends)


def _begun(
    files: dict[str, Path], texts: tuple[Text, Text, Text], exact: bool, keep_ends: bool
) -> tuple[str | None, bytes | Path | None]:
    """The end that every line of the merged text has, None where they differ; and the merged text where no merge is needed,
    else the three are written out."""
    plain = [text.plain for text in texts]
    end, merged = _one_end(*texts, exact, keep_ends), _at_once(*plain)
    if end is None or merged is None:
        for file, content in zip(files.values(), plain, strict=True):
            file.write_bytes(content)
    return end, merged


class NotText(Exception):
    """One of the three is binary."""


async def merge_bytes(
    git: Git, private: Path, base: bytes, live: bytes, result: bytes, *, exact: bool = False
) -> bytes | tuple[Clash, ...]:
    """The same for what files hold, in whichever encoding. Raises `NotText`, and `UnicodeEncodeError` where the merged text does
    not fit into the file's encoding."""
    before, mine, made = await asyncio.to_thread(lambda: [read(content) for content in (base, live, result)])
    if before is None or mine is None or made is None:
        raise NotText
    merged = await merge(git, private, before, mine, made, exact=exact)
    if not isinstance(merged, str):
        return merged
    return await asyncio.to_thread(form_of(before, mine, made).holding(merged).encoded)


def _at_once(base: bytes, live: bytes, result: bytes) -> bytes | None:
    """What needs no merge."""
    if live == base:
        return result
    return live if result in (base, live) else None


def _one_end(base: Text, live: Text, result: Text, exact: bool, keep_ends: bool) -> str | None:
    """The end that every line of the merged text has, None where lines have different ones."""
    before, mine, theirs = base.kinds, live.kinds, result.kinds
    if len(mine) > 1 or (exact and not keep_ends and len(before | mine | theirs) > 1) or (not mine and len(theirs) > 1):
        return None
    if len(theirs) == 1 and (not mine or (mine == before and not keep_ends)):
        return next(iter(theirs))
    return next(iter(mine), "\n")


def _ended(merged: bytes | Path, end: str) -> str:
    content = merged.read_bytes() if isinstance(merged, Path) else merged
    return content.decode("utf-8", "surrogatepass").replace("\n", end)


async def _merge_file(git: Git, private: Path, files: dict[str, Path]) -> bool:
    """Whether there was no conflict; the first file holds what came of it."""
    texts = (files[LIVE], files[BASE], files[RESULT])
    done = await git.ours(private, "merge-file", "--quiet", *texts, accepted=range(MOST_CONFLICTS + 1))
    return done.returncode == 0


def _by_line(ours: bytes, theirs: bytes, texts: tuple[Text, Text, Text], keep_ends: bool) -> str | tuple[Clash, ...]:
    base, live, result = (_lines(text) for text in texts)
    regions = list(_regions(list(_hunks(ours)), list(_hunks(theirs))))
    clashes = tuple(
        Clash(region.live.start + 1, yours, base.shown(region.base), made, region.base)
        for region in regions
        if region.ours and region.theirs and (yours := live.shown(region.live)) != (made := result.shown(region.result))
    )
    return clashes or "".join(_woven(regions, base, live, result, keep_ends))


def _lines(text: Text) -> _Lines:
    # Not `splitlines`, which takes more for line ends than git does.
    *lines, last = text.plain.decode("utf-8", "surrogatepass").split("\n")
    return _Lines([*(f"{line}\n" for line in lines), *([last] if last else [])], text.ends)


def _hunks(output: bytes) -> Iterator[_Hunk]:
    """The hunks of a diff of one file, without their context."""
    old = new = since_old = since_new = 0
    for line in output[output.find(b"\n@@ ") + 1 :].split(b"\n") if output else ():
        if line.startswith(b"-"):
            old += 1
        elif line.startswith(b"+"):
            new += 1
        elif not line.startswith(b"\\"):  # which says of the line before that it has no end
            if (old, new) != (since_old, since_new):
                yield _Hunk(range(since_old, old), range(since_new, new))
            header = HEADER.match(line)
            # A side without lines is said to begin at 0.
            old, new = (max(int(start) - 1, 0) for start in header.groups()) if header else (old + 1, new + 1)
            since_old, since_new = old, new


def _regions(ours: Sequence[_Hunk], theirs: Sequence[_Hunk]) -> Iterator[_Region]:
    """Where either side differs. Hunks that touch are one region, as in git's own merge."""
    waiting = sorted([*((hunk, True) for hunk in ours), *((hunk, False) for hunk in theirs)], key=_place)
    shift = {True: 0, False: 0}  # how far each side's lines are from those of the base
    while waiting:
        taken = [waiting.pop(0)]
        start, stop = taken[0][0].old.start, taken[0][0].old.stop
        while waiting and waiting[0][0].old.start <= stop:
            taken.append(waiting.pop(0))
            stop = max(stop, taken[-1][0].old.stop)
        before = dict(shift)
        for hunk, own in taken:
            shift[own] += len(hunk.new) - len(hunk.old)
        live, result = (range(start + before[own], stop + shift[own]) for own in (True, False))
        sides = {own for _, own in taken}
        yield _Region(range(start, stop), live, result, True in sides, False in sides)


def _place(one: tuple[_Hunk, bool]) -> tuple[int, int]:
    return one[0].old.start, one[0].old.stop


def _woven(regions: Sequence[_Region], base: _Lines, live: _Lines, result: _Lines, keep_ends: bool) -> Iterator[str]:
    """Every line with its own end: the worker's where it changed the line, or its end alone."""
    end = _Region(_after(base), _after(live), _after(result), ours=True, theirs=False)
    at = (0, 0, 0)
    for region in (*regions, end):
        stops = (region.base.start, region.live.start, region.result.start)
        for old, mine, made in zip(*map(range, at, stops), strict=True):
            follows = live.ends[mine] == base.ends[old] and not keep_ends
            yield result.own(made) if follows else live.own(mine)
        for line in region.live if region.ours else region.result:
            yield (live if region.ours else result).own(line)
        at = (region.base.stop, region.live.stop, region.result.stop)


def _after(text: _Lines) -> range:
    return range(len(text.plain), len(text.plain))
