"""From what a front asks for to what a worker is told."""

from dataclasses import replace

import pytest

from offload.core.caller import Caller
from offload.core.delegation import StartRequest
from offload.core.documents import Document
from offload.domain.anchor import Anchor, Block, LineRange
from offload.domain.check import Check, CheckPlan
from offload.domain.errors import InvalidRequest, UnknownRecipe, UnknownSymbol
from offload.domain.project import ProjectSettings
from offload.domain.scope import in_scope
from offload.domain.task import Front
from offload.recipes import RecipeFiles
from tests.fakes.house import SHOP, open_house
from tests.fakes.projects import FakeProjects

TOTAL = Anchor("shop.py", Block("Cart.total", "function", 5, 6), "    def total(self):\n        return 0\n")
TWICE = """class Box:
    def total(self):
        return 1


class Cart:
    def total(self):
        return 2
"""


@pytest.fixture
async def house(tmp_path):
    files = {"shop.py": SHOP, "twice.py": TWICE, "notes.txt": "a\nb\n", "empty.py": "", "sub/deep.py": "x = 1\n"}
    async with open_house(tmp_path, files=files) as house:
        yield house


async def spec(house, brief="Do it.", **request):
    return (await house.start(brief, **request)).spec


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"brief": " \n "}, "brief is empty: say what is to be done"),
        ({"brief": "", "file": "shop.py"}, "brief is empty"),
        ({"recipe": "tests"}, "the recipe 'tests' is about a block of code: give file, and symbol or lines"),
        ({"symbol": "total"}, "symbol and lines name a place in a file: give file too"),
        ({"lines": LineRange(1, 2)}, "symbol and lines name a place in a file: give file too"),
        ({"file": "../other.py"}, "../other.py is not a file in the workspace"),
        ({"file": "/etc/hosts"}, "/etc/hosts is not a file in the workspace"),
        ({"file": "sub/.."}, "sub/.. is not a file in the workspace"),
        ({"file": "none.py"}, "none.py"),
        ({"file": "shop.py", "lines": LineRange(0, 2)}, "lines 0-2 are not in shop.py, which has 7 lines"),
        ({"file": "shop.py", "lines": LineRange(3, 2)}, "lines 3-2 are not in shop.py"),
        ({"file": "shop.py", "lines": LineRange(7, 8)}, "lines 7-8 are not in shop.py"),
        ({"file": "empty.py", "lines": LineRange(1, 1)}, "lines 1-1 are not in empty.py, which has 0 lines"),
    ],
)
async def test_a_request_that_cannot_be_done_says_how_to_ask(house, request_, problem):
    with pytest.raises(InvalidRequest) as refused:
        await house.start(**{"brief": "Do it.", **request_})
    assert problem in str(refused.value)
    assert house.delegation.tasks() == []


async def test_an_unknown_recipe_is_refused(house):
    with pytest.raises(UnknownRecipe, match="there is no recipe 'test'"):
        await house.start("Do it.", recipe="test")


@pytest.mark.parametrize(
    ("symbol", "problem"),
    [
        ("Cart.totl", "shop.py has no block 'Cart.totl'; did you mean Cart.total"),
        ("zzz", "shop.py has no block 'zzz'; give lines instead"),
        ("otal", "shop.py has no block 'otal'"),
    ],
)
async def test_an_unknown_symbol_is_answered_with_those_that_are_near(house, symbol, problem):
    with pytest.raises(UnknownSymbol) as refused:
        await house.start(file="shop.py", symbol=symbol)
    assert problem in str(refused.value)


@pytest.mark.parametrize("symbol", ["Cart.total", "total"])
@pytest.mark.parametrize("absolute", [False, True])
async def test_a_block_is_named_by_its_symbol_or_the_end_of_it(house, symbol, absolute):
    file = str(house.root / "shop.py") if absolute else "shop.py"
    assert (await spec(house, file=file, symbol=symbol)).anchor == TOTAL


async def test_several_blocks_of_one_name_are_named_with_their_lines(house):
    places = "Box.total in lines 2-5, Cart.total in lines 7-8; give lines that are in one of them alone"
    for lines in (None, LineRange(1, 8), LineRange(6, 6)):
        with pytest.raises(UnknownSymbol, match=f"twice.py has 'total' as {places}"):
            await house.start(file="twice.py", symbol="total", lines=lines)


@pytest.mark.parametrize(("lines", "symbol"), [((3, 3), "Box.total"), ((1, 2), "Box.total"), ((8, 8), "Cart.total")])
async def test_lines_say_which_of_several_blocks_is_meant(house, lines, symbol):
    anchor = (await spec(house, file="twice.py", symbol="total", lines=LineRange(*lines))).anchor
    assert anchor.block.symbol == symbol


async def test_lines_alone_are_the_block(house):
    anchor = (await spec(house, file="shop.py", lines=LineRange(1, 2))).anchor
    assert anchor == Anchor("shop.py", Block("", "lines", 0, 1), "def price(amount, rate):\n    return amount * rate\n")


@pytest.mark.parametrize(("file", "block", "text"), [("notes.txt", (0, 1), "a\nb\n"), ("empty.py", (0, 0), "")])
async def test_a_file_alone_is_meant_as_a_whole(house, file, block, text):
    anchor = (await spec(house, file=file)).anchor
    assert anchor == Anchor(file, Block("", "file", *block), text)


async def test_a_task_without_a_file_has_no_place(house):
    made = await spec(house, "  Do it.\n")
    assert (made.anchor, made.brief, made.prompt, made.commands) == (None, "Do it.", "Do it.\n", ())


async def test_the_unsaved_text_of_the_caller_wins(house):
    """An orchestrator and an editor have their own callers; an editor that asks means what is on its screen."""
    documents, file = house.delegation.documents, house.root / "shop.py"
    documents.put(Document("rpc-1", file, "def mine():\n    pass\n", 3))
    documents.put(Document("lsp-2", file, "def other():\n    pass\n", 1))
    made = await spec(house, file="shop.py", symbol="mine")
    assert made.anchor.text == "def mine():\n    pass\n"
    assert made.buffers == {"shop.py": "def mine():\n    pass\n"}


async def test_the_unsaved_text_of_another_editor_counts_where_the_caller_has_none(house):
    documents, file = house.delegation.documents, house.root / "shop.py"
    documents.put(Document("lsp-2", file, "def other():\n    pass\n", 1))
    documents.put(Document("lsp-3", house.root / "notes.txt", "a\nb\n", 1))
    made = await spec(house, file="shop.py", symbol="other")
    assert made.buffers == {"shop.py": "def other():\n    pass\n"}


async def test_of_several_editors_the_one_with_unsaved_text_counts(house):
    documents, file = house.delegation.documents, house.root / "shop.py"
    documents.put(Document("lsp-2", file, "x = 1\n", 7))
    documents.put(Document("lsp-3", file, SHOP, 1))
    assert (await spec(house)).buffers == {"shop.py": "x = 1\n"}


async def test_a_document_that_is_not_on_disk_yet_goes_along(house):
    house.delegation.documents.put(Document("rpc-1", house.root / "new.py", "x = 1\n", 1))
    house.delegation.documents.put(Document("rpc-1", house.root.parent / "outside.py", "y = 1\n", 1))
    assert (await spec(house)).buffers == {"new.py": "x = 1\n"}


@pytest.mark.parametrize(
    ("request_", "title"),
    [
        ({"brief": "\nMake it fast.\nAnd small."}, "Make it fast."),
        ({"brief": "x" * 60}, "x" * 60),
        ({"brief": "x" * 61}, "x" * 59 + "…"),
        ({"brief": "Make it fast.", "file": "shop.py", "symbol": "Cart"}, "Make it fast."),
        ({"brief": "", "file": "shop.py", "symbol": "total", "recipe": "tests"}, "tests for Cart.total"),
        ({"brief": "all", "file": "shop.py", "lines": LineRange(1, 2), "recipe": "docs"}, "docs for shop.py"),
    ],
)
async def test_a_title_is_one_short_line(house, request_, title):
    assert (await spec(house, **request_)).title == title


async def test_a_prompt_holds_the_brief_the_place_and_the_block(house):
    made = await spec(house, "Make it fast.", file="shop.py", symbol="total")
    assert made.prompt == (
        "Make it fast.\n\nThis is about Cart.total (shop.py, lines 6-7):\n\n"
        "```\n    def total(self):\n        return 0\n```\n"
    )
    made = await spec(house, "Make it fast.", file="shop.py", lines=LineRange(1, 2))
    assert "This is about shop.py, lines 1-2:" in made.prompt


async def test_a_recipe_brings_its_commands_for_the_language(house):
    made = await spec(house, "", file="shop.py", symbol="total", recipe="tests")
    assert made.commands[0] == "python3 -m pytest"
    assert "Run the tests with `python3 -m pytest`" in made.prompt
    assert "Write tests for Cart.total (shop.py, lines 6-7)" in made.prompt
    made = await spec(house, "", file="notes.txt", lines=LineRange(1, 1), recipe="tests")
    assert made.commands == ()
    assert "Run the tests with `the project's own test command`" in made.prompt


OWN = """title = "Own"
brief = "Do it."
[allowed_paths]
"" = ["$path", "docs"]
python = ["*.pyi"]
[checks]
"" = ["make check"]
python = ["ruff check"]
[format]
python = ["ruff format", "isort ."]
"""


@pytest.fixture
async def own_house(tmp_path):
    """A house with one more recipe, `own`, and a project whose settings a test may change in `projects.now`."""
    folder = tmp_path / "recipes"
    folder.mkdir()
    (folder / "own.toml").write_text(OWN)
    projects = FakeProjects()
    files = {"shop.py": SHOP, "notes.txt": "a\n", "odd/a[1]*.py": SHOP}
    async with open_house(tmp_path, files=files, projects=projects) as house:
        house.delegation.recipes = RecipeFiles(folder)
        house.projects = projects
        yield house


async def test_a_recipe_says_what_a_task_may_change_in_this_language(own_house):
    assert (await spec(own_house, recipe="own")).allowed_paths == ("docs",)
    assert (await spec(own_house, recipe="own", file="notes.txt")).allowed_paths == ("/notes.txt", "docs")
    assert (await spec(own_house, recipe="own", file="shop.py")).allowed_paths == ("/shop.py", "docs", "*.pyi")
    assert (await spec(own_house, file="shop.py")).allowed_paths == ()


async def test_what_the_caller_allows_goes_before_the_recipe(own_house):
    made = await spec(own_house, recipe="own", file="shop.py", allowed_paths=("src",))
    assert made.allowed_paths == ("src",)


async def test_the_file_of_a_block_is_meant_by_its_name_whatever_is_in_it(own_house):
    allowed = (await spec(own_house, recipe="docs", file="odd/a[1]*.py", symbol="total")).allowed_paths
    assert in_scope("odd/a[1]*.py", allowed)
    assert not in_scope("odd/a1x.py", allowed)
    assert not in_scope("other/odd/a[1]*.py", allowed)


async def test_a_recipes_checks_go_before_the_projects(own_house):
    own_house.projects.now = ProjectSettings(
        "npm ci", CheckPlan(None, (Check("tests", "pytest", 5),), 7), ("node_modules",), ("keys",), trusted=True
    )
    made = await spec(own_house, recipe="own", file="shop.py")
    checks = (Check("make check", "make check"), Check("ruff check", "ruff check"), Check("tests", "pytest", 5))
    assert made.plan == CheckPlan(Check("format", "ruff format"), checks, 7)
    assert (made.setup, made.carry, made.never_send) == ("npm ci", ("node_modules",), ("keys",))
    assert (await spec(own_house, file="shop.py")).plan == CheckPlan(None, checks[2:], 7)


async def test_the_projects_formatter_takes_the_place_of_the_recipes(own_house):
    own_house.projects.now = ProjectSettings(plan=CheckPlan(Check("format", "black .", 9)), trusted=True)
    assert (await spec(own_house, recipe="own", file="shop.py")).plan.format == Check("format", "black .", 9)
    assert (await spec(own_house, recipe="own", file="notes.txt")).plan.format == Check("format", "black .", 9)


async def test_a_project_without_settings_leaves_the_recipe_its_own(own_house):
    assert (await spec(own_house, recipe="own", file="notes.txt")).plan == CheckPlan(
        None, (Check("make check", "make check"),), 2
    )
    assert not (await spec(own_house, file="notes.txt")).plan


async def test_what_a_person_should_know_of_the_project_is_a_warning_of_the_task(own_house):
    assert (await spec(own_house)).warnings == ()
    own_house.projects.now = ProjectSettings(note="offload.toml is not trusted")
    assert (await spec(own_house, "Do that.")).warnings == ("offload.toml is not trusted",)


async def test_a_fence_is_longer_than_any_in_the_block(house):
    for ticks in (2, 3, 6):
        fence = "`" * ticks
        (house.root / "notes.txt").write_text(f"{fence}\n$code\n{fence}\n")
        prompt = (await spec(house, "Tell $brief.", file="notes.txt")).prompt
        outer = "`" * max(3, ticks + 1)
        assert prompt.endswith(
            f"Tell $brief.\n\nThis is about notes.txt, lines 1-3:\n\n{outer}\n{fence}\n$code\n{fence}\n{outer}\n"
        )


async def test_a_spec_says_who_asked(house):
    caller = Caller(Front.MODEL, "mcp-7", house.root, "claude-code", {"SECRET": "never stored"})
    task = await house.delegation.start(caller, StartRequest(brief="Do it.", key="k1"))
    assert (task.spec.front, task.spec.caller, task.spec.key) == (Front.MODEL, "claude-code", "k1")
    assert "never stored" not in repr(await house.journal.read())


@pytest.mark.parametrize("workspace", ["sub", "./sub/", "sub/../sub"])
async def test_a_workspace_is_named_from_the_callers_folder(house, workspace):
    made = await spec(house, workspace=workspace, file="deep.py")
    assert (made.workspace, made.anchor.path) == (str(house.root / "sub"), "deep.py")
    again = await spec(house, workspace=str(house.root / "sub"), file="deep.py")
    assert replace(again, warnings=()) == made  # the second is told of the first
