"""What an editor sees and does, on a whole core."""

import sys

import pytest

from offload.domain.anchor import LineRange
from offload.domain.task import Phase
from offload.lsp.marks import PAUSE_S
from offload.lsp.requests import REQUESTS
from offload.lsp.server import make_server
from offload.source.tree_sitter import TreeSitterSource
from tests.lsp.client import NO_ANSWER, Refused
from tests.lsp.conftest import EVERYTHING

SHOP = """def price(amount, rate):
    return amount * rate


class Cart:
    def total(self):
        return 0
"""
START, CANCEL, ANSWER, APPLY = "offload.start", "offload.cancel", "offload.answer", "offload.apply"


@pytest.fixture
def shop(house):
    return house.root / "shop.py"


async def delegated(editor, shop, brief, line=5):
    """The id of a tests task for the block at the line."""
    *_, (_, command, argument) = [
        action for action in await editor.actions(shop, (line, 0)) if action[0] == "Delegate tests for this block"
    ]
    return (await editor.command(command, argument | {"brief": brief}))["task_id"]


async def paused(house):
    """The pause in which changes are gathered is over."""
    await house.clock.naps(PAUSE_S)
    house.clock.advance(PAUSE_S)


# -- the main way ------------------------------------------------------------------------------------------------------


async def test_a_block_is_delegated_applied_and_closed_from_the_cursor(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    task_id = await delegated(editor, shop, "::write tests/test_shop.py x = 1")
    task = await house.rested(task_id)
    assert (task.spec.anchor.block.symbol, task.spec.recipe, task.spec.workspace) == (
        "Cart.total",
        "tests",
        str(house.root),
    )
    assert await editor.lenses(shop) == [
        (5, "offload: tests — ready: 1 file +1 -0, not checked", "offload.show"),
        (5, "apply", APPLY),
        (5, "diff", "offload.showDiff"),
        (5, "close", "offload.close"),
    ]
    assert "Apply 1 file +1 -0: tests for Cart.total" in [title for title, *_ in await editor.actions(shop, (6, 0))]
    assert len(await editor.actions(shop, (0, 0))) == 2  # another block: only what can be started
    assert (await editor.command(APPLY, {"task_id": task_id}))["paths"] == ["tests/test_shop.py"]
    assert editor.of("window/showMessage")[-1]["message"] == "offload: applied: tests/test_shop.py on disk"
    assert (house.root / "tests" / "test_shop.py").read_text() == "x = 1"
    assert [title for _, title, _ in await editor.lenses(shop)] == [
        "offload: tests — applied: 1 file +1 -0, not checked",
        "undo",
        "diff",
        "close",
    ]
    await editor.command("offload.close", {"task_id": task_id})
    assert await editor.lenses(shop) == []


async def test_what_is_announced_is_what_is_there(connect):
    """Zed hides commands that are not listed."""
    editor = await connect(initialize=False)
    capabilities = await editor.initialize()
    assert sorted(capabilities["executeCommandProvider"]["commands"]) == [
        "offload.answer",
        "offload.apply",
        "offload.cancel",
        "offload.check",
        "offload.close",
        "offload.continue",
        "offload.integrate",
        "offload.reject",
        "offload.resume",
        "offload.show",
        "offload.showDiff",
        "offload.start",
        "offload.undo",
    ]
    assert capabilities["textDocumentSync"] == {"change": 2, "openClose": True, "save": False}
    assert capabilities["codeActionProvider"] == {"codeActionKinds": ["refactor.offload"]}
    assert capabilities["codeLensProvider"] == {"resolveProvider": False}


@pytest.mark.parametrize(
    ("offered", "chosen", "column"),
    [(["utf-8", "utf-16"], "utf-8", 9), (["utf-32"], "utf-32", 3), (["utf-16"], "utf-16", 5), (None, "utf-16", 5)],
)
async def test_edits_after_an_emoji_land_right_in_every_encoding(house, connect, offered, chosen, column):
    """An edit that counts columns in another unit lands wrong without a word; "bogus" encodings are passed over."""
    editor = await connect(initialize=False)
    offered = offered and ["bogus", *offered]
    assert (await editor.initialize(encodings=offered, folders=[house.root]))["positionEncoding"] == chosen
    path = house.root / "e.py"
    editor.open(path, "#😋😋x\n")
    editor.change(path, 2, ((0, column), (0, column + 1), "y"))
    await editor.result("offload/listTasks")
    assert house.delegation.documents.text(path) == "#😋😋y\n"


async def test_every_open_change_and_close_reaches_core_before_the_next_request(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    editor.change(shop, 2, ((0, 0), (0, 0), "# one\n"), ((0, 2), (0, 5), "two"))
    task_id = (await editor.result("offload/startTask", {"brief": "::text hi"}))["task_id"]
    task = await house.rested(task_id)
    assert task.spec.buffers == {"shop.py": "# two\n" + SHOP}
    (document,) = house.delegation.documents.below(house.root)["shop.py"]
    assert (document.editor, document.version) == ("lsp-1", 2)
    editor.close(shop)
    await editor.result("offload/listTasks")
    assert house.delegation.documents.below(house.root) == {}


async def test_an_editor_that_goes_away_takes_its_texts_along_and_leaves_its_tasks(house, connect, shop):
    """Closing an editor never ends a task; a new editor sees it."""
    editor = await connect()
    editor.open(shop)
    task_id = await delegated(editor, shop, "::gate work\n::text done")
    await editor.next("$/progress")
    await editor.disconnect()
    await editor.served
    assert house.delegation.documents.below(house.root) == {}
    assert house.delegation.get(task_id).live
    second = await connect(name="lsp-2")
    second.open(shop)
    house.worker.gate("work").open()
    await house.rested(task_id)
    assert [title for _, title, _ in await second.lenses(shop)] == ["offload: tests — ready: no change", "close"]


async def test_documents_without_a_file_are_left_alone(house, connect, shop):
    editor = await connect()
    for uri in ("untitled:Untitled-1", "vscode-notebook-cell:/a#1", "file:///a%00b", "http://[", "file:relative"):
        editor.open(shop, uri=uri)
        identifier = {"uri": uri, "version": 2}
        editor.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": "x"}]})
        editor.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    assert await editor.lenses(shop) == []
    assert await editor.actions(shop, (0, 0)) == []
    assert house.delegation.documents.below(house.root) == {}


# -- who asks ----------------------------------------------------------------------------------------------------------


async def test_a_task_belongs_to_the_workspace_folder_that_holds_its_file(house, connect, tmp_path):
    inner, outside = house.root / "packages" / "inner", tmp_path / "outside"
    for folder in (inner, outside):
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("def a():\n    return 1\n")
    editor = await connect(folders=[house.root, inner], clientInfo={"name": "Neovim"})
    for folder, workspace in ((inner, inner), (outside, outside)):
        editor.open(folder / "a.py")
        task = house.delegation.get(await delegated(editor, folder / "a.py", "::text hi", line=0))
        assert task.spec.workspace == str(workspace)
        assert task.spec.caller == "Neovim"


async def test_without_folders_the_root_and_then_the_start_folder_count(house, connect, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for options, workspace in (({"root": other.as_uri()}, other), ({}, house.root)):
        editor = await connect(folders=[], **options)
        status = await editor.result("offload/startTask", {"brief": "::text hi"})
        assert house.delegation.get(status["task_id"]).spec.workspace == str(workspace)


# -- code actions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "# offload: retry on timeouts",
        "x = 1  // Offload:  retry on timeouts",
        "-- offload: retry on timeouts",
        "/* offload: retry on timeouts */",
        " * offload: retry on timeouts",
    ],
)
async def test_a_comment_says_what_to_do_with_its_block(house, connect, shop, line):
    editor = await connect()
    editor.open(shop, SHOP.replace("        return 0", f"        {line}\n        return 0"))
    (title, command, argument), *_ = await editor.actions(shop, (7, 4))
    assert (title, command) == ("Delegate: retry on timeouts", START)
    assert argument == {
        "file": str(shop),
        "symbol": "Cart.total",
        "lines": "6-8",
        "brief": "retry on timeouts",
    }


async def test_a_comment_above_a_block_is_about_the_block(connect, shop):
    editor = await connect()
    editor.open(shop, "# offload: round it\n\n" + SHOP)
    assert [action[2]["symbol"] for action in await editor.actions(shop, (0, 4))] == ["price"] * 3
    editor.change(shop, 2, "# offload: round it\n" + SHOP)
    assert "Delegate: round it" in [title for title, *_ in await editor.actions(shop, (2, 4))]


async def test_a_comment_without_a_block_is_about_its_line(connect, shop):
    editor = await connect()
    editor.open(shop, "# offload: write a parser\n")
    assert [(title, argument["lines"]) for title, _, argument in await editor.actions(shop, (0, 0))] == [
        ("Delegate: write a parser", "1-1")
    ]


async def test_selected_lines_are_delegated_as_they_are(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    actions = await editor.actions(shop, (0, 3), (1, 5))
    assert [(argument["symbol"], argument["lines"]) for _, _, argument in actions] == [("", "1-2")] * 2
    status = await editor.command(START, actions[0][2] | {"brief": "::text hi"})
    task = await house.rested(status["task_id"])
    assert task.spec.anchor.text == "def price(amount, rate):\n    return amount * rate\n"


@pytest.mark.parametrize(
    ("only", "offered"), [([], 2), (["refactor"], 2), (["refactor.offload"], 2), (["quickfix"], 0)]
)
async def test_an_editor_gets_only_the_kinds_of_action_that_it_wants(connect, shop, only, offered):
    editor = await connect()
    editor.open(shop)
    assert len(await editor.actions(shop, (5, 0), only=only)) == offered


async def test_outside_of_any_block_there_is_nothing_to_delegate(connect, shop):
    editor = await connect()
    editor.open(shop, "\n\n" + SHOP)
    assert await editor.actions(shop, (0, 0)) == []


async def test_a_recipe_is_offered_for_its_languages_only(house, connect, shop):
    editor = await connect()
    notes = house.root / "notes.txt"
    editor.open(notes, "def x():\n    1\n")
    recipes = house.delegation.recipes.all()
    wanted = [recipe.title for recipe in recipes if not recipe.needs_brief and not recipe.languages]
    assert [title for title, *_ in await editor.actions(notes, (0, 0), (1, 0))] == wanted


async def test_what_can_be_done_with_a_task_follows_its_state(house, connect, shop):
    editor = await connect()
    editor.open(shop, SHOP.replace("        return 0", "        return 0  # offload: say why"))
    task_id = await delegated(editor, shop, "::question Which one?\n::shell make\n::gate work\n::write test_a.py x")

    async def offered():
        titles = [title for title, *_ in await editor.actions(shop, (5, 0))]
        return [title for title in titles if not title.startswith("Delegate")]

    await house.until(task_id, lambda task: task.asks)
    assert await offered() == [
        "Answer Red: Colour: Which one?",
        "Answer Blue: Colour: Which one?",
        "Cancel: tests for Cart.total",
    ]
    assert [title for _, title, _ in await editor.lenses(shop)][1:] == ["cancel"]
    await editor.command(ANSWER, {"task_id": task_id, "choice": "Red"})
    await house.until(task_id, lambda task: [ask.detail for ask in task.asks.values()] == ["make"])
    assert await offered() == [
        "Answer allow: bash: make",
        "Answer always: bash: make",
        "Answer deny: bash: make",
        "Cancel: tests for Cart.total",
    ]
    assert [title for _, title, _ in await editor.lenses(shop)][1:] == ["allow", "always", "deny", "cancel"]
    await editor.command(ANSWER, {"task_id": task_id, "choice": "deny"})
    await house.worker.gate("work").reached.wait()
    house.worker.gate("work").open()
    await house.rested(task_id)
    assert await offered() == [
        "Apply 1 file +1 -0: tests for Cart.total",
        "Show the diff: tests for Cart.total",
        "Run the checks: tests for Cart.total",
        "Send back “say why”: tests for Cart.total",
        "Bring up to date with your files and send back: tests for Cart.total",
        "Close: tests for Cart.total",
    ]
    *_, argument = next(action for action in await editor.actions(shop, (5, 0)) if action[0].startswith("Send back"))
    await editor.command("offload.continue", argument)
    task = await house.rested(task_id)
    assert task.turn.brief == "say why"
    await editor.command(APPLY, {"task_id": task_id})
    assert await offered() == [
        "Undo apply: tests for Cart.total",
        "Show the diff: tests for Cart.total",
        "Run the checks: tests for Cart.total",
        "Send back “say why”: tests for Cart.total",
        "Close: tests for Cart.total",
    ]


async def test_a_task_that_did_not_end_well_is_resumed(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    task_id = await delegated(editor, shop, "::fail it broke")
    await house.rested(task_id)
    offered = [action for action in await editor.actions(shop, (5, 0)) if not action[0].startswith("Delegate")]
    assert [title for title, *_ in offered] == ["Resume: tests for Cart.total", "Close: tests for Cart.total"]
    await editor.command("offload.resume", offered[0][-1])
    assert len((await house.rested(task_id)).turns) == 2


async def test_a_task_that_is_being_stopped_offers_nothing(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    house.worker.stubborn = True
    task_id = await delegated(editor, shop, "::gate work")
    await house.worker.gate("work").reached.wait()
    await editor.command(CANCEL, {"task_id": task_id})
    await house.until(task_id, lambda task: task.phase is Phase.CANCELLING)
    assert [title for title, *_ in await editor.actions(shop, (5, 0))][-1] == "Delegate tests for this block"
    assert len(await editor.lenses(shop)) == 1
    house.worker.gate("work").open()
    await house.rested(task_id)


# -- commands and requests ---------------------------------------------------------------------------------------------


async def test_a_command_answers_while_its_task_goes_on(house, connect, shop):
    """Emacs freezes until executeCommand is answered."""
    editor = await connect()
    editor.open(shop)
    task_id = await delegated(editor, shop, "::gate work")
    assert house.delegation.get(task_id).live
    house.worker.gate("work").open()


@pytest.mark.parametrize(
    ("command", "argument", "code", "data"),
    [
        (CANCEL, {"task_id": "nope"}, -32803, "unknown_task"),
        (CANCEL, {"task": "x"}, -32602, "invalid_request"),
        (CANCEL, None, -32602, "invalid_request"),
        (START, {"file": "missing.py", "lines": "1-2", "brief": "b"}, -32602, "invalid_request"),
        (START, [], -32602, "invalid_request"),
    ],
)
async def test_a_command_that_is_refused_says_so_twice(connect, command, argument, code, data):
    """Most editors drop the error answer of a command."""
    editor = await connect()
    error = await editor.error("workspace/executeCommand", {"command": command, "arguments": [argument]})
    assert (error["code"], error["data"]["code"]) == (code, data)
    (message,) = editor.of("window/showMessage")
    assert message == {"type": 1, "message": f"offload: {error['message']}"}


async def test_a_command_without_arguments_is_refused(connect):
    editor = await connect()
    assert (await editor.error("workspace/executeCommand", {"command": CANCEL}))["code"] == -32602


async def test_every_operation_of_editors_is_a_request(house, connect, shop):
    editor = await connect()
    assert sorted(REQUESTS) == [
        "offload/answerTask",
        "offload/applyTask",
        "offload/cancelTask",
        "offload/cleanTasks",
        "offload/closeTask",
        "offload/continueTask",
        "offload/getChanges",
        "offload/getTask",
        "offload/getTaskResult",
        "offload/getTaskStatus",
        "offload/integrateTasks",
        "offload/listAgents",
        "offload/listTasks",
        "offload/rejectTask",
        "offload/resumeTask",
        "offload/runChecks",
        "offload/showTasks",
        "offload/startTask",
        "offload/trustWorkspace",
        "offload/undoApply",
        "offload/waitForTasks",
    ]
    start = {"file": "shop.py", "symbol": "price", "recipe": "tests", "brief": "::text hello", "wait_s": 45}
    status = await editor.result("offload/startTask", start)
    assert status["state"] == "completed"
    assert (await editor.result("offload/getTask", {"task_id": status["task_id"]}))["anchor"]["symbol"] == "price"
    assert (await editor.result("offload/listAgents"))["default_worker"] == "fake"
    error = await editor.error("offload/startTask", {"brief": 1, "extra": True})
    assert error["code"] == -32602
    assert "brief: Input should be a valid string" in error["message"]
    assert "extra" in error["message"]


async def test_a_tasks_state_and_diff_can_be_shown(house, connect, shop):
    shown = []
    editor = await connect()

    def show(message):
        shown.append(message["params"]["uri"])
        return {"success": True}

    editor.handlers["window/showDocument"] = show
    editor.open(shop)
    task_id = await delegated(editor, shop, "::write a.txt new")
    await house.rested(task_id)
    await editor.command("offload.show", {"task_id": task_id})
    assert "tests for Cart.total — completed" in editor.of("window/showMessage")[-1]["message"]
    for _ in range(2):
        assert "+new" in (await editor.command("offload.showDiff", {"task_id": task_id}))["patch"]
    assert len(set(shown)) == 1
    assert shown[0].endswith(f"{task_id}.diff")


async def test_an_editor_that_shows_no_documents_gets_the_diff_as_a_message(house, connect, shop):
    for capabilities in ({}, EVERYTHING):
        editor = await connect(capabilities)

        def refuse(message):
            raise Refused(-32601, "no")

        editor.handlers["window/showDocument"] = refuse
        editor.open(shop)
        task_id = await delegated(editor, shop, "::write a.txt new")
        await house.rested(task_id)
        await editor.command("offload.showDiff", {"task_id": task_id})
        assert "+new" in editor.of("window/showMessage")[-1]["message"]


async def test_a_file_with_unsaved_text_is_not_written_over(house, connect, shop):
    """The result of a worker never wins over what the person has typed and not saved."""
    editor = await connect()
    editor.open(shop)
    task_id = await delegated(editor, shop, "::write shop.py theirs")
    await house.rested(task_id)
    editor.change(shop, 2, ((0, 0), (0, 0), "# typed\n"))
    error = await editor.error("workspace/executeCommand", {"command": APPLY, "arguments": [{"task_id": task_id}]})
    assert error["data"]["code"] == "apply_refused"
    assert "shop.py" in error["data"]["reasons"][0]
    assert shop.read_text() == SHOP


# -- news --------------------------------------------------------------------------------------------------------------


async def test_an_editor_is_told_of_every_change_of_the_tasks_of_its_folders(house, connect, tmp_path):
    editor = await connect()
    task = await house.start("::text hello")
    await house.rested(task.id)
    last = await editor.until(lambda: [t for t in editor.of("offload/taskChanged") if t["phase"] == "ready"])
    assert last[-1]["task_id"] == task.id
    other = tmp_path / "other"
    other.mkdir()
    told = len(editor.of("offload/taskChanged"))
    foreign = await house.start("::text hello", workspace=str(other))
    await house.rested(foreign.id)
    await editor.result("offload/listTasks")
    assert len(editor.of("offload/taskChanged")) == told
    (other / "a.py").write_text("x = 1\n")
    editor.open(other / "a.py")
    await editor.result("offload/listTasks")
    await house.delegation.close(house.caller, foreign.id)
    assert (await editor.next("offload/taskChanged", told))["closed"] is True


async def test_an_editor_that_says_nothing_yet_is_told_nothing(house, connect):
    editor = await connect(initialize=False)
    task = await house.start("::text hello")
    await house.rested(task.id)
    await editor.initialize(folders=[house.root])
    await editor.result("offload/listTasks")
    assert editor.log == []


async def test_code_lenses_are_refreshed_once_for_all_that_changed_together(house, connect, shop):
    editor = await connect()
    for _ in range(3):
        await house.rested((await house.start("::text hello")).id)
    await paused(house)
    await editor.next("workspace/codeLens/refresh")
    await editor.result("offload/listTasks")
    assert len(editor.of("workspace/codeLens/refresh")) == 1


async def test_an_editor_that_never_answers_a_refresh_gets_no_second_one(house, connect):
    editor = await connect()
    editor.handlers["workspace/codeLens/refresh"] = lambda message: NO_ANSWER
    await house.rested((await house.start("::text hello")).id)
    await paused(house)
    await editor.next("workspace/codeLens/refresh")
    await house.rested((await house.start("::text hello")).id)
    house.clock.advance(PAUSE_S)
    await editor.result("offload/listTasks")
    assert len(editor.of("workspace/codeLens/refresh")) == 1


@pytest.mark.parametrize(
    ("capabilities", "options"),
    [
        ({"textDocument": {"codeLens": {}}}, None),
        (EVERYTHING, {"offload": {"marks": "client"}}),
        ({}, {"offload": {"marks": "client"}}),
    ],
)
async def test_refreshes_and_diagnostics_are_for_those_who_want_them(house, connect, shop, capabilities, options):
    """One mark per line and client: no lens where a client of ours draws, no diagnostic where there are lenses."""
    editor = await connect(capabilities, options=options)
    editor.open(shop)
    await house.rested((await house.start(file="shop.py", symbol="price", recipe="tests")).id)
    await paused(house)
    await house.rested((await house.start("::text hello")).id)
    await paused(house)
    assert len(await editor.lenses(shop)) == (0 if options else 2)
    assert {message["method"] for message in editor.log} == {"offload/taskChanged"}


async def test_an_editor_without_lenses_gets_the_state_as_a_diagnostic(house, connect, shop):
    """Push diagnostics are the only mark at a line that is live in every editor."""
    editor = await connect({})
    editor.open(shop, "def é😋(): pass\n")
    task = await house.start(file="shop.py", lines=None, recipe="tests", brief="::gate work\n::text hi")
    await house.worker.gate("work").reached.wait()
    await paused(house)
    published = await editor.next("textDocument/publishDiagnostics")
    assert published["uri"] == shop.as_uri()
    (diagnostic,) = published["diagnostics"]
    assert diagnostic["severity"] == 3
    assert diagnostic["message"].startswith("offload: tests — working")
    assert diagnostic["range"] == {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 15}}
    await house.rested((await house.start("::text hello")).id)  # about no file: nothing to publish
    await paused(house)
    house.worker.gate("work").open()
    await house.rested(task.id)
    await paused(house)
    assert "ready" in (await editor.next("textDocument/publishDiagnostics", 1))["diagnostics"][0]["message"]
    editor.close(shop)
    assert (await editor.next("textDocument/publishDiagnostics", 2))["diagnostics"] == []
    editor.open(shop)
    editor.close(shop)
    await editor.result("offload/listTasks")
    assert len(editor.of("textDocument/publishDiagnostics")) == 3


# -- places ------------------------------------------------------------------------------------------------------------


async def lens_lines(editor, shop):
    return sorted({line for line, *_ in await editor.lenses(shop)})


async def test_the_mark_moves_with_its_block(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    await house.rested(await delegated(editor, shop, "::text hi"))
    editor.change(shop, 2, ((0, 0), (0, 0), "# one\n# two\n"))
    assert await lens_lines(editor, shop) == [7]
    editor.change(shop, 3, ((7, 0), (7, 0), "    # right above it\n"))
    assert await lens_lines(editor, shop) == [8]
    editor.change(shop, 4, ((0, 0), (2, 0), ""))
    assert await lens_lines(editor, shop) == [6]
    editor.change(shop, 5, ((7, 8), (7, 8), "\n        "), ((9, 0), (9, 0), "below\n"))
    assert await lens_lines(editor, shop) == [6]


async def test_the_mark_is_found_again_by_name_when_typing_pauses(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    await house.rested(await delegated(editor, shop, "::text hi"))
    await paused(house)
    head, cart = SHOP.split("\n\n\n")
    editor.change(shop, 2, f"{cart}\n\n{head}\n")
    await editor.result("offload/listTasks")
    await paused(house)
    await editor.next("workspace/codeLens/refresh", 1)
    assert await lens_lines(editor, shop) == [1]
    editor.change(shop, 3, "x = 1\n")
    await editor.result("offload/listTasks")
    await paused(house)
    assert await lens_lines(editor, shop) == [0]


async def test_a_file_that_was_closed_meanwhile_is_not_looked_at(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    task = await house.start(file="shop.py", symbol="price", recipe="tests")
    await house.rested(task.id)
    editor.change(shop, 2, ((0, 0), (0, 0), "\n\n"))
    editor.close(shop)
    await editor.result("offload/listTasks")
    await paused(house)
    editor.open(shop)
    assert await lens_lines(editor, shop) == [0]


# -- progress ----------------------------------------------------------------------------------------------------------


def kinds(editor):
    return [params["value"]["kind"] for params in editor.of("$/progress")]


async def ended_progress(editor):
    await editor.until(lambda: kinds(editor)[-1:] == ["end"])
    assert kinds(editor).count("begin") == 1
    assert kinds(editor).count("end") == 1
    assert len({params["token"] for params in editor.of("$/progress")}) == 1
    return editor.of("$/progress")[-1]["value"]["message"]


@pytest.mark.parametrize(
    ("brief", "message"),
    [("::text hello", "ready: no change"), ("::fail it broke", "failed: it broke")],
)
async def test_progress_begins_once_and_ends_once(house, connect, shop, brief, message):
    """A spinner that never ends is what people report most."""
    editor = await connect()
    editor.open(shop)
    task_id = await delegated(editor, shop, f"::gate work\n{brief}")
    await house.worker.gate("work").reached.wait()
    begin = (await editor.next("$/progress"))["value"]
    assert (begin["kind"], begin["title"], begin["cancellable"]) == ("begin", "offload: tests for Cart.total", True)
    house.worker.gate("work").open()
    await house.rested(task_id)
    assert await ended_progress(editor) == message


async def test_cancelling_the_progress_stops_the_task_once(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    task_id = await delegated(editor, shop, "::gate work")
    await house.worker.gate("work").reached.wait()
    token = (await editor.next("$/progress"))["token"]
    for wrong in ("not ours", token, token):
        editor.notify("window/workDoneProgress/cancel", {"token": wrong})
    task = await house.rested(task_id)
    assert task.phase is Phase.CANCELLED
    assert await ended_progress(editor) == "cancelled"
    events = (await house.journal.read())[task.id]
    assert [type(event).__name__ for event in events].count("StopRequested") == 1


async def test_ten_tasks_have_ten_tokens(house, connect, shop):
    editor = await connect()
    for _ in range(10):
        await editor.result("offload/startTask", {"brief": "::gate all"})
    await editor.until(lambda: len(kinds(editor)) >= 10)
    house.worker.gate("all").open()
    await editor.until(lambda: kinds(editor).count("end") == 10)
    assert kinds(editor).count("begin") == 10
    assert len({params["token"] for params in editor.of("$/progress")}) == 10


async def test_the_end_of_the_connection_ends_the_progress_and_not_the_task(house, connect, shop):
    editor = await connect()
    editor.open(shop)
    task_id = await delegated(editor, shop, "::gate work")
    await house.worker.gate("work").reached.wait()
    await editor.next("$/progress")
    editor.notify("exit")
    await editor.ended.wait()
    assert "working" in await ended_progress(editor)
    assert house.delegation.get(task_id).live
    house.worker.gate("work").open()


async def test_a_task_that_was_continued_while_it_is_shown_is_shown_once(house, connect, shop):
    editor = await connect()
    editor.handlers["window/workDoneProgress/create"] = lambda message: NO_ANSWER
    status = await editor.result("offload/startTask", {"brief": "::text hello", "wait_s": 0})
    await editor.next("window/workDoneProgress/create")
    await house.rested(status["task_id"])
    await editor.result("offload/continueTask", {"task_id": status["task_id"], "brief": "::text again"})
    await house.rested(status["task_id"])
    assert len(editor.of("window/workDoneProgress/create")) == 1


@pytest.mark.parametrize("capabilities", [{}, EVERYTHING])
async def test_an_editor_that_takes_no_progress_gets_none(house, connect, capabilities):
    editor = await connect(capabilities)

    def refuse(message):
        raise Refused(-32601, "no")

    editor.handlers["window/workDoneProgress/create"] = refuse
    status = await editor.result("offload/startTask", {"brief": "::text hello"})
    await house.rested(status["task_id"])
    await editor.result("offload/startTask", {"brief": "::text hello", "wait_s": 45})
    assert editor.of("$/progress") == []


# -- what can go wrong -------------------------------------------------------------------------------------------------


@pytest.fixture
async def broken_parser():
    source = TreeSitterSource(command=(sys.executable, "-c", "pass"))
    yield source
    await source.aclose()


async def test_a_parser_that_does_not_work_leaves_lines_and_tasks(broken_parser, house, connect, shop, caplog):
    house.delegation.source = broken_parser
    editor = await connect()
    editor.open(shop, "# offload: round it\n" + SHOP)
    task = await house.start(file="shop.py", recipe="tests", lines=LineRange(1, 3))
    await house.rested(task.id)
    await paused(house)
    titles = [title for title, *_ in await editor.actions(shop, (0, 0))]
    assert titles[0] == "Delegate: round it"
    assert titles[-1].startswith("Close")
    assert "no block for code actions" in caplog.text


async def test_a_parser_that_does_not_work_leaves_the_marks_where_they_are(broken_parser, house, connect, shop):
    editor = await connect()
    editor.open(shop)
    await house.rested(await delegated(editor, shop, "::text hi"))
    await paused(house)
    house.delegation.source = broken_parser
    editor.change(shop, 2, ((0, 0), (0, 0), "\n"))
    await editor.result("offload/listTasks")
    await paused(house)
    assert await lens_lines(editor, shop) == [6]
    editor.change(shop, 3, ((0, 0), (0, 0), "\n"))
    await editor.result("offload/listTasks")
    await paused(house)
    assert await lens_lines(editor, shop) == [7]


async def test_what_ends_after_the_connection_is_not_shown(house):
    _, editor = make_server(house.delegation, house.caller)
    task = await house.start("::gate work")
    editor.leave()
    editor.show_progress(task.id)
    house.worker.gate("work").open()
    await house.rested(task.id)
