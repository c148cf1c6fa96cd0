"""A result reviewed in an editor: hunk by hunk, applied into buffers and files, undone, rejected, checked, sent back."""

import pytest

from offload.core.caller import Caller
from offload.domain.check import Check, CheckPlan
from offload.domain.errors import ApplyForbidden, ApplyRefused
from offload.domain.project import ProjectSettings
from offload.domain.review import Selection
from offload.domain.task import Front
from offload.lsp import telling
from tests.fakes.house import open_house
from tests.fakes.projects import FakeProjects
from tests.lsp.conftest import EVERYTHING
from tests.lsp.screen import Screen

LINES = [f"value_{number} = {number}\n" for number in range(40)]
BASE = "".join(LINES)
CAN_EDIT = {
    **EVERYTHING,
    "workspace": {**EVERYTHING["workspace"], "applyEdit": True, "workspaceEdit": {"documentChanges": True}},
}


def changed(*numbers, more=()):
    """The file with these lines changed, and others put after the first of them."""
    lines = list(LINES)
    for number in numbers:
        lines[number] = f"changed_{number} = 0\n"
    return "".join([*lines[: numbers[0] + 1], *more, *lines[numbers[0] + 1 :]])


@pytest.fixture
def projects():
    return FakeProjects()


@pytest.fixture
async def house(tmp_path, projects):
    async with open_house(tmp_path, projects=projects) as house:
        yield house


@pytest.fixture
def file(house):
    file = house.root / "values.py"
    file.write_text(BASE)
    return file


@pytest.fixture
def write(house):
    """A task, about no block, whose worker writes these files."""

    async def write(files, **request):
        async def script(stage):
            await stage.seen()
            for path, text in files.items():
                stage.write(path, text)
            await stage.finish("Done.")

        house.worker.script = script
        return await house.rested((await house.start("tidy up", **request)).id)

    return write


async def offered(editor, file, first, last=None):
    """The actions on a line that are about tasks, by title."""
    actions = await editor.actions(file, (first, 0), None if last is None else (last, 0))
    return {title: (command, argument) for title, command, argument in actions if command != "offload.start"}


def said(editor):
    return [message["message"].removeprefix("offload: ") for message in editor.of("window/showMessage")]


def hunks(task):
    return [hunk.id for file in task.turn.changes.files for hunk in file.hunks]


# -- at the cursor -----------------------------------------------------------------------------------------------------


async def test_a_hunk_is_offered_at_its_lines_and_a_little_around(connect, file, write):
    """The lines are those of the start of the task, and the person has typed since."""
    task = await write({"values.py": changed(10, 30)})
    first, second = hunks(task)
    start, end = task.turn.changes.files[0].hunks[0].old_start - 1, task.turn.changes.files[0].hunks[0].old_start + 5
    editor = await connect()
    editor.open(file)
    for line in (start - 3, 10, end + 3):
        assert await offered(editor, file, line) == {
            "Apply this hunk: tidy up": ("offload.apply", {"task_id": task.id, "hunks": [first]}),
            "Reject this hunk: tidy up": ("offload.reject", {"task_id": task.id, "hunks": [first]}),
            "Apply values.py of tidy up": ("offload.apply", {"task_id": task.id, "paths": ["values.py"]}),
            "Apply 1 file +2 -2: tidy up": ("offload.apply", {"task_id": task.id}),
            "Show the diff: tidy up": ("offload.showDiff", {"task_id": task.id}),
        }
    assert await offered(editor, file, start - 4) == await offered(editor, file, end + 4) == {}
    both = await offered(editor, file, 10, 30)
    assert both["Apply these 2 hunks: tidy up"][1] == {"task_id": task.id, "hunks": [first, second]}
    assert "Apply values.py of tidy up" not in both


async def test_a_hunk_is_found_where_it_is_in_the_result_too(connect, file, write):
    """What was applied of the other hunks has moved it there."""
    task = await write({"values.py": changed(2, 30, more=["more\n"] * 20)})
    editor = await connect()
    editor.open(file, changed(2, more=["more\n"] * 20))
    for line in (30, 50):
        assert "Apply this hunk: tidy up" in await offered(editor, file, line)
    assert await offered(editor, file, 40) == {}
    assert len(hunks(task)) == 2


async def test_what_is_accepted_or_not_is_not_offered_again(house, connect, file, write):
    task = await write({"values.py": changed(10)})
    editor = await connect()
    editor.open(file)
    await house.delegation.reject(house.caller, task.id, Selection(), "no", send_back=False)
    assert list(await offered(editor, file, 10)) == ["Show the diff: tidy up"]
    await editor.command("offload.apply", {"task_id": task.id, "paths": ["values.py"]})
    assert list(await offered(editor, file, 10)) == ["Undo apply: tidy up", "Show the diff: tidy up"]


async def test_the_words_of_a_comment_go_back_with_the_hunk(house, connect, file, write):
    task = await write({"values.py": changed(10)})
    editor = await connect()
    editor.open(file)
    editor.change(file, 2, ((10, 0), (10, 0), "# offload: keep the name\n"))
    command, argument = (await offered(editor, file, 10))["Send this hunk back “keep the name”: tidy up"]
    assert argument == {"task_id": task.id, "hunks": hunks(task), "reason": "keep the name", "send_back": True}
    await editor.command(command, argument)
    task = await house.rested(task.id)
    assert len(task.turns) == 2
    assert "The reason: keep the name" in task.turn.prompt
    assert [rejection.units for rejection in task.rejections] == [tuple(hunks(task))]


async def test_files_elsewhere_and_tasks_without_a_change_offer_nothing(house, connect, file, write, tmp_path):
    await write({"other.py": "x = 1\n"})
    await house.rested((await house.start("::text nothing to do")).id)
    outside = tmp_path / "values.py"
    outside.write_text(BASE)
    editor = await connect()
    for path in (file, outside):
        editor.open(path)
        assert await offered(editor, path, 10) == {}


async def test_all_that_a_block_has_to_offer_comes_in_one_order(house, connect, file, write):
    task = await write(
        {"values.py": changed(10, 30), "tests/test_a.py": "x\n"}, file="values.py", allowed_paths=("*.py",)
    )
    editor = await connect()
    editor.open(file)
    titles = [title.removesuffix(": tidy up") for title in await offered(editor, file, 10)]
    assert titles == [
        "Apply this hunk",
        "Reject this hunk",
        "Apply values.py of tidy up",
        "Apply 2 files +3 -2",
        "Show the diff",
        "Run the checks",
        "Bring up to date with your files and send back",
        "Close",
    ]
    await editor.command("offload.reject", {"task_id": task.id, "paths": ["values.py"]})
    titles = [title.removesuffix(": tidy up") for title in await offered(editor, file, 10)]
    assert titles[0] == "Apply the rest"


async def test_what_is_outside_of_its_paths_is_offered_apart(house, connect, file, write):
    task = await write({"values.py": changed(10), "b.txt": "x\n"}, file="values.py", allowed_paths=("values.py",))
    editor = await connect()
    editor.open(file)
    actions = await offered(editor, file, 0)
    assert "Apply 1 file +1 -1: tidy up" in actions
    command, argument = actions["Apply what is outside of its paths too: tidy up"]
    await editor.command(command, argument)
    assert said(editor) == ["applied: b.txt on disk, values.py on disk"]
    assert (house.root / "b.txt").exists()
    titles = [title.removesuffix(": tidy up") for title in await offered(editor, file, 0)]
    assert titles == ["Undo apply", "Show the diff", "Run the checks", "Close"]
    assert house.delegation.get(task.id).landings[0].units


# -- applied, undone ---------------------------------------------------------------------------------------------------


async def test_an_open_file_is_changed_in_its_buffer_and_others_on_disk(house, connect, file, write):
    task = await write({"values.py": changed(10), "b.py": "x\n"})
    editor = await connect(CAN_EDIT)
    screen = Screen(editor)
    screen.show(file, BASE)
    await editor.command("offload.apply", {"task_id": task.id})
    assert said(editor) == ["applied: b.py on disk, values.py in the buffer (not saved)"]
    assert (screen.text(file), file.read_text()) == (changed(10), BASE)
    await editor.command("offload.undo", {"task_id": task.id})
    assert said(editor)[1:] == ["taken back of “tidy up”: b.py removed, values.py in the buffer (not saved)"]
    assert (screen.text(file), file.read_text()) == (BASE, BASE)
    assert not (house.root / "b.py").exists()


async def test_a_result_without_a_last_line_end_comes_into_neovims_buffer_and_goes_again(connect, file, write):
    """The buffer goes on ending as it did, which counts as the result."""
    task = await write({"values.py": changed(39).rstrip("\n")})
    editor = await connect(CAN_EDIT, clientInfo={"name": "Neovim"})
    screen = Screen(editor)
    screen.show(file, BASE)
    await editor.command("offload.apply", {"task_id": task.id})
    assert screen.text(file) == changed(39)
    await editor.command("offload.undo", {"task_id": task.id})
    assert screen.text(file) == BASE


async def test_what_is_left_and_what_was_there_is_said(house, connect, file, write):
    task = await write({"values.py": changed(10), "b.py": "x\n", "c.py": "x\n"})
    file.write_text(changed(10))
    editor = await connect()
    await editor.command("offload.apply", {"task_id": task.id, "paths": ["values.py", "b.py"]})
    await editor.command("offload.apply", {"task_id": task.id})
    assert said(editor) == [
        "applied: b.py on disk, values.py as it was already. 1 hunk is left",
        "applied: c.py on disk",
    ]


async def test_several_hunks_that_are_left_are_counted(connect, file, write):
    task = await write({"a.py": "x\n", "b.py": "x\n", "c.py": "x\n"})
    editor = await connect()
    await editor.command("offload.apply", {"task_id": task.id, "paths": ["a.py"]})
    assert said(editor) == ["applied: a.py on disk. 2 hunks are left"]


@pytest.mark.parametrize("shows", [True, False])
async def test_a_conflict_is_shown_with_both_sides_and_nothing_is_written(house, connect, file, write, shows):
    task = await write({"values.py": changed(10)})
    editor = await connect(CAN_EDIT if shows else {"workspace": {"applyEdit": True}})
    shown = []

    def show(message):
        shown.append(message["params"]["uri"])
        return {"success": True}

    editor.handlers["window/showDocument"] = show
    screen = Screen(editor)
    screen.show(file, BASE)
    screen.type(file, "# typed\n")
    error = await editor.error(
        "workspace/executeCommand", {"command": "offload.apply", "arguments": [{"task_id": task.id}]}
    )
    assert error["data"]["code"] == "apply_refused"
    assert error["data"]["conflicts"][0]["path"] == "values.py"
    assert said(editor)[-1] == error["message"]
    assert screen.text(file) == "# typed\n" + BASE
    assert file.read_text() == BASE
    if shows:
        assert shown[0].endswith("conflicts.txt")
        assert len(said(editor)) == 1
    else:
        head, *text = said(editor)[0].splitlines()
        assert head.endswith("conflicts.txt")
        assert text[:5] == [
            "Nothing was written: two sides changed the same.",
            "",
            "values.py, line 1: was changed by you as well",
            "--- yours",
            "# typed",
        ]


def test_the_way_out_of_a_conflict_is_named_as_the_editor_shows_it():
    error = ApplyRefused("Nothing was written. Let continue_task with onto=files send it back to the worker.", (), ())
    told = "Let the code action “Bring up to date with your files and send back” send it back to the worker."
    assert telling.refused(error) == f"Nothing was written. {told}"


async def test_a_refusal_without_a_conflict_is_only_said(connect, file, write):
    task = await write({"values.py": changed(10)})
    editor = await connect({})
    editor.open(file, "# typed\n" + BASE)
    await editor.error("workspace/executeCommand", {"command": "offload.apply", "arguments": [{"task_id": task.id}]})
    assert len(said(editor)) == 1
    assert "values.py" in said(editor)[0]


async def test_a_result_is_brought_up_to_date_by_its_worker(house, connect, file, write):
    task = await write({"values.py": changed(10)}, file="values.py")
    editor = await connect()
    editor.open(file)
    command, argument = (await offered(editor, file, 10))["Bring up to date with your files and send back: tidy up"]
    assert argument == {"task_id": task.id, "onto": "files"}
    await editor.command(command, argument)
    task = await house.rested(task.id)
    assert (len(task.turns), task.turn.onto) == (2, "files")


# -- checks, integrations, consents ------------------------------------------------------------------------------------


async def test_checks_are_run_from_the_cursor_and_their_outcome_is_said(house, projects, connect, file, write):
    task = await write({"values.py": changed(10)}, file="values.py")
    plan = CheckPlan(checks=(Check("tests", "make test"),), rounds=0)
    editor = await connect()
    editor.open(file)
    projects.now = ProjectSettings(plan=plan, trusted=True)
    command, argument = (await offered(editor, file, 10))["Run the checks: tidy up"]
    assert command == "offload.check"
    await editor.command(command, argument)
    await house.rested(task.id)
    assert (await editor.lenses(file))[0][1] == "offload: tidy up — ready: 1 file +1 -1, checked"
    await editor.command("offload.show", {"task_id": task.id})
    assert said(editor)[-1].startswith("tidy up — completed. tests: passed. Review it with ")


async def test_results_are_integrated_by_a_command(house, connect, file, write):
    tasks = [await write({name: "x\n"}) for name in ("a.py", "b.py")]
    editor = await connect()
    status = await editor.command("offload.integrate", {"task_ids": [task.id for task in tasks]})
    task = await house.rested(status["task_id"])
    assert said(editor) == [f"begun: {task.spec.title}"]
    assert [change.path for change in task.turn.changes.files] == ["a.py", "b.py"]
    editor.open(house.root / "a.py", "# offload: words for a worker\n")
    actions = await offered(editor, house.root / "a.py", 0)
    assert [title for title, (_, argument) in actions.items() if argument["task_id"] == task.id] == [
        f"Apply this hunk: {task.spec.title}",
        f"Reject this hunk: {task.spec.title}",
        f"Apply 2 files +2 -0: {task.spec.title}",
        f"Show the diff: {task.spec.title}",
    ]


async def test_a_model_that_wants_to_apply_is_answered_where_the_change_is(house, connect, file, write):
    model = Caller(Front.MODEL, "mcp-1", house.root, "claude")
    house.caller = model
    task = await write({"values.py": changed(10)}, file="values.py")
    with pytest.raises(ApplyForbidden):
        await house.delegation.apply(model, task.id)
    editor = await connect()
    editor.open(file)
    lenses = [title for _, title, _ in await editor.lenses(file)]
    assert lenses == [
        "offload: tidy up — waits for you: apply: 1 file, +1 -1", "allow", "deny", "apply", "diff", "close",
    ]  # fmt: skip
    actions = await offered(editor, file, 10)
    assert list(actions)[:2] == ["Answer allow: apply: 1 file, +1 -1", "Answer deny: apply: 1 file, +1 -1"]
    await editor.command(*actions["Answer allow: apply: 1 file, +1 -1"])
    assert file.read_text() == changed(10)
    assert not house.delegation.get(task.id).asks


async def test_a_conflict_of_what_a_model_may_apply_is_shown_too(house, connect, file, write):
    model = Caller(Front.MODEL, "mcp-1", house.root, "claude")
    house.caller = model
    task = await write({"values.py": changed(10)})
    with pytest.raises(ApplyForbidden):
        await house.delegation.apply(model, task.id)
    file.write_text("mine\n")
    editor = await connect({})
    allow = {"task_id": task.id, "choice": "allow"}
    await editor.error("workspace/executeCommand", {"command": "offload.answer", "arguments": [allow]})
    assert "--- yours\nmine\n" in said(editor)[0]
    assert file.read_text() == "mine\n"


async def test_a_model_without_a_block_is_answered_at_the_changed_lines(house, connect, file, write):
    model = Caller(Front.MODEL, "mcp-1", house.root, "claude")
    house.caller = model
    task = await write({"values.py": changed(10)})
    with pytest.raises(ApplyForbidden):
        await house.delegation.apply(model, task.id)
    editor = await connect()
    editor.open(file)
    assert next(iter(await offered(editor, file, 10))) == "Answer allow: apply: 1 file, +1 -1"
