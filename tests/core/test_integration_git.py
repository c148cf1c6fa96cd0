"""Several results made one by the real git, in a real repository, and checked by real commands."""

import os
import random
import re
import sys

import pytest

from offload.checks import ShellChecks
from offload.domain.check import Check, Checked, CheckPlan
from offload.domain.project import ProjectSettings
from offload.domain.task import Phase
from offload.processes import Processes
from offload.workspace import GitWorkspaces
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects
from tests.fakes.worker import FakeWorker
from tests.workspace.repositories import commit_all, fingerprint, git

LINES = "".join(f"line {number}\n" for number in range(1, 41))
FILES = {"long.txt": LINES, "README": "# Shop\n\n## Use\n\nRun it.\n", "shop.py": "def price():\n    return 1\n"}


@pytest.fixture
async def house(tmp_path):
    """A worker that edits by functions: `::do NAME` in a brief calls `house.worker.edits[NAME]` with its folder."""

    async def script(stage):
        await stage.seen()
        for name in re.findall(r"^::do (\w+)$", stage.order.prompt, re.MULTILINE):
            stage.worker.edits[name](stage.order.folder)
        await stage.finish("done")

    worker = FakeWorker(script)
    worker.edits = {}
    root = tmp_path / "project"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    git(root, "init", "-q", "-b", "main")
    commit_all(root)
    processes = Processes()
    async with (
        GitWorkspaces(tmp_path / "state", processes, os.environ | {"HOME": str(tmp_path)}) as workspace,
        open_house(
            tmp_path,
            files={},
            worker=worker,
            workspace=workspace,
            projects=FakeProjects(),
            checks=ShellChecks(processes),
        ) as house,
    ):
        yield house


def replaced(path, old, new):
    """An edit: `old` in the file `path` becomes `new`."""

    def edit(folder):
        text = (folder / path).read_text()
        assert old in text
        (folder / path).write_text(text.replace(old, new))

    return edit


def written(path, text):
    def edit(folder):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)

    return edit


async def made(house, **edits):
    """One result for each edit, all begun from the same files."""
    house.worker.edits |= edits
    tasks = [await house.start(f"::do {name}") for name in edits]
    return [await house.rested(task.id) for task in tasks]


async def integrated(house, *tasks):
    task = await house.delegation.integrate(house.caller, [task.id for task in tasks])
    return await house.rested(task.id)


async def text_of(house, task, path):
    """The file in the union."""
    content = await house.workspace.read(house.root, task.turn.changes.result, path)
    return content.decode()


async def test_two_that_change_places_of_one_file_that_are_apart_go_together(house):
    one, two = await made(
        house, one=replaced("long.txt", "line 3\n", "three\n"), two=replaced("long.txt", "line 30\n", "thirty\n")
    )
    before = fingerprint(house.root)
    task = await integrated(house, one, two)
    assert task.phase is Phase.READY
    assert [(each.paths, each.hunks) for each in task.integration.overlaps] == [(("long.txt",), False)]
    assert task.integration.left_out == ()
    expected = LINES.replace("line 3\n", "three\n").replace("line 30\n", "thirty\n")
    assert await text_of(house, task, "long.txt") == expected
    assert fingerprint(house.root) == before


async def test_places_are_compared_although_the_user_typed_between_the_two_starts(house):
    (one,) = await made(house, one=replaced("long.txt", "line 20\n", "twenty\n"))
    path = house.root / "long.txt"
    path.write_text("typed\n" * 18 + LINES)
    (two,) = await made(house, two=replaced("long.txt", "line 2\n", "two\n"))
    task = await integrated(house, one, two)
    assert [each.hunks for each in task.integration.overlaps] == [False]
    merged = LINES.replace("line 20\n", "twenty\n").replace("line 2\n", "two\n")
    assert await text_of(house, task, "long.txt") == "typed\n" * 18 + merged


async def test_two_sections_at_the_same_place_are_a_conflict_that_keeps_both(house):
    """Elsewhere the second of two such results took the place of the first, and both were called done (overstory 84, opencrabs
    954, hermes-agent-evolution 2424)."""
    one, two = await made(
        house,
        one=replaced("README", "Run it.\n", "Run it.\n\n## Install\n\nCopy it.\n"),
        two=replaced("README", "Run it.\n", "Run it.\n\n## Licence\n\nMIT, as most.\n\nOr not.\n"),
    )
    task = await integrated(house, one, two)
    assert task.integration.order == (one.id,)
    (left,) = task.integration.left_out
    assert (left.task, left.with_tasks) == (two.id, (one.id,))
    assert [each.path for each in left.conflicts] == ["README"]
    assert f"{two.id} was left out" in task.turn.doubts
    await house.delegation.apply(house.caller, task.id)
    assert (house.root / "README").read_text() == await text_of(house, one, "README")
    assert "## Licence" in await text_of(house, two, "README")


async def test_only_those_that_it_conflicts_with_are_named_of_many_that_change_its_file(house):
    one, two, three = await made(
        house,
        one=replaced("long.txt", "line 30\n", "thirty\n"),
        two=replaced("long.txt", "line 3\n", "three\n"),
        three=replaced("long.txt", "line 3\n", "III\nIII\n"),
    )
    task = await integrated(house, one, two, three)
    assert [(left.task, left.with_tasks) for left in task.integration.left_out] == [(three.id, (two.id,))]


async def test_what_was_left_out_is_resolved_by_its_worker_and_goes_in(house):
    one, two = await made(
        house, one=replaced("long.txt", "line 9\n", "nine\n"), two=replaced("long.txt", "line 9\n", "IX\n")
    )
    first = await integrated(house, one, two)
    assert [left.task for left in first.integration.left_out] == [two.id]

    def resolve(folder):
        text = (folder / "long.txt").read_text()
        assert "<<<<<<<" in text
        (folder / "long.txt").write_text(re.sub(r"<{7}.*?>{7}[^\n]*\n", "nine (IX)\n", text, flags=re.DOTALL))

    house.worker.edits["resolve"] = resolve
    await house.delegation.continue_(house.caller, two.id, "::do resolve", onto=first.id)
    await house.rested(two.id)
    second = await integrated(house, one, two)
    assert second.integration.order == (one.id, two.id)
    assert await text_of(house, second, "long.txt") == LINES.replace("line 9\n", "nine (IX)\n")
    await house.delegation.apply(house.caller, second.id)
    assert "nine (IX)" in (house.root / "long.txt").read_text()
    await house.delegation.undo(house.caller, second.id)
    assert (house.root / "long.txt").read_text() == LINES


async def test_lines_that_the_user_has_changed_since_are_the_users(house):
    one, two = await made(
        house, one=replaced("long.txt", "line 9\n", "nine\n"), two=replaced("long.txt", "line 30\n", "thirty\n")
    )
    (house.root / "long.txt").write_text(LINES.replace("line 9\n", "mine\n"))
    task = await integrated(house, one, two)
    assert [(left.task, left.with_tasks) for left in task.integration.left_out] == [(one.id, ())]
    assert [(each.yours, each.theirs) for each in task.integration.left_out[0].conflicts] == [("mine\n", "nine\n")]
    assert "mine\n" in await text_of(house, task, "long.txt")


async def test_a_file_and_a_folder_of_one_name_do_not_go_together(house):
    one, two = await made(house, one=written("lib", "a file\n"), two=written("lib/code.py", "pass\n"))
    task = await integrated(house, one, two)
    (left,) = task.integration.left_out
    assert {left.task, *left.with_tasks} == {one.id, two.id}


async def test_a_file_that_one_renames_and_another_changes_holds_both(house):
    def rename(folder):
        (folder / "long.txt").rename(folder / "renamed.txt")

    one, two = await made(house, one=rename, two=replaced("long.txt", "line 9\n", "nine\n"))
    task = await integrated(house, one, two)
    assert task.integration.left_out == ()
    assert await text_of(house, task, "renamed.txt") == LINES.replace("line 9\n", "nine\n")


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_several_change_is_in_the_union_whole_or_left_out_whole_and_named(house, seed):
    """Nothing may be called merged that is not in the file, and no line that the user typed may go."""
    chance = random.Random(seed)
    edits, marks = {}, {}
    for number in range(5):
        name, lines = f"w{number}", chance.sample(range(1, 41), chance.randint(1, 4))
        marks[name] = [f"{name} at {line}\n" for line in lines]

        def edit(folder, lines=tuple(lines), marks=tuple(marks[name])):
            text = (folder / "long.txt").read_text()
            for line, mark in zip(lines, marks, strict=True):
                text = text.replace(f"line {line}\n", mark, 1)
            (folder / "long.txt").write_text(text)

        edits[name] = edit
    tasks = await made(house, **edits)
    typed = f"line {chance.randint(1, 40)}\n"
    (house.root / "long.txt").write_text(LINES.replace(typed, "typed\n", 1))
    task = await integrated(house, *tasks)
    union = await text_of(house, task, "long.txt")
    assert "typed\n" in union
    assert "<<<<<<<" not in union
    assert set(task.integration.order) | {left.task for left in task.integration.left_out} == {one.id for one in tasks}
    for one, name in zip(tasks, marks, strict=True):
        assert [mark in union for mark in marks[name]] == [one.id in task.integration.order] * len(marks[name])
    for left in task.integration.left_out:
        assert left.conflicts
        assert set(left.with_tasks) <= set(task.integration.order)
        assert left.task in task.turn.doubts


def checked_by(house, code):
    check = Check("tests", f'"{sys.executable}" -c "{code}"')
    house.delegation._projects.now = ProjectSettings(plan=CheckPlan(checks=(check,)))


async def test_a_renamed_function_and_a_new_use_of_it_pass_alone_and_are_named_together(house):
    """The usual way in which two good results make a bad one: git sees no conflict."""
    tasks = await made(
        house,
        other=written("other.py", "import shop\n"),
        rename=replaced("shop.py", "price", "price_of_one"),
        more=replaced("long.txt", "line 9\n", "nine\n"),
        use=written("cart.py", "from shop import price\n"),
        last=written("last.py", "x = 1\n"),
    )
    checked_by(house, "import glob, runpy; [runpy.run_path(name) for name in glob.glob('*.py')]")
    task = await integrated(house, *tasks)
    assert task.integration.left_out == ()
    assert task.turn.checked is Checked.FAILED
    assert set(task.integration.culprits) == {tasks[1].id, tasks[3].id}
    assert "together" in task.turn.doubts
    assert "ImportError" in task.turn.checks[0].tail
    # The folder holds the union again, and nothing that the checks left.
    now = await house.workspace.collect(task.id, house.root, task.base)
    assert (await house.workspace.between(house.root, task.turn.changes.result, now.result)).files == ()


async def test_a_result_that_breaks_the_checks_alone_is_told_from_one_of_the_same_size(house):
    """Python takes its own compiled file for that of a source of the same second and size, whatever the source says."""
    (house.root / "left.py").write_text("value = 1\n")
    (house.root / "right.py").write_text("value = 1\n")
    tasks = await made(
        house,
        good=replaced("right.py", "1", "2"),
        bad=replaced("left.py", "1", "2"),
        more=written("more.py", "value = 1\n"),
    )
    checked_by(house, "import left, right; assert left.value == 1")
    task = await integrated(house, *tasks)
    assert task.integration.culprits == (tasks[1].id,)


async def test_checks_that_failed_before_blame_none_of_the_results(house):
    tasks = await made(house, one=written("one.py", "x = 1\n"), two=written("two.py", "x = 1\n"))
    checked_by(house, "raise SystemExit(1)")
    task = await integrated(house, *tasks)
    assert task.integration.before
    assert task.integration.culprits == ()
    assert task.phase is Phase.READY
