"""Recipe files: what ships, what a person adds, and what is said about a broken one."""

import pytest

from offload.domain.errors import InvalidRequest, UnknownRecipe
from offload.domain.recipe import Recipe, of_language
from offload.domain.scope import in_scope
from offload.recipes import RecipeFiles

TITLE = 'title = "Delegate"\n'


def own(folder, name, text):
    """The recipes with one own file of this text."""
    folder.joinpath(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return RecipeFiles(folder)


def test_the_recipes_that_ship_are_there():
    recipes = RecipeFiles()
    assert [recipe.name for recipe in recipes.all()] == ["docs", "instruction", "tests"]
    assert all(recipe.title and recipe.brief for recipe in recipes.all())
    assert recipes.get("tests").needs_block
    assert recipes.get("docs").needs_block
    assert recipes.get("instruction").needs_brief


def test_the_recipe_for_tests_allows_the_test_commands_of_a_language():
    tests = RecipeFiles().get("tests")
    assert "python -m pytest" in tests.commands_for("python")
    assert tests.commands_for("go") == ("go test",)
    assert RecipeFiles().get("docs").commands_for("python") == ()


@pytest.mark.parametrize(
    ("language", "path", "allowed"),
    [
        ("python", "tests/test_shop.py", True),
        ("python", "tests/data/cart.json", True),
        ("python", "shop/test_cart.py", True),
        ("python", "shop/conftest.py", True),
        ("python", "shop/tests.py", True),
        ("python", "shop/cart.py", False),
        ("python", "pyproject.toml", False),
        ("python", "shop/contest.py", False),
        ("javascript", "src/__tests__/cart.js", True),
        ("javascript", "src/cart.test.js", True),
        ("typescriptreact", "src/Cart.spec.tsx", True),
        ("typescript", "src/cart.ts", False),
        ("typescript", "package.json", False),
        ("go", "shop/cart_test.go", True),
        ("go", "shop/testdata/cart.golden", True),
        ("go", "shop/cart.go", False),
        ("java", "src/test/java/shop/Cart.java", True),
        ("java", "src/shop/CartTest.java", True),
        ("java", "src/main/java/shop/Cart.java", False),
        ("lua", "spec/cart_spec.lua", True),
        ("rust", "src/cart.rs", True),
        ("rust", "Cargo.toml", False),
        ("", "test/cart.txt", True),
        ("", "cart.rs", False),
    ],
)
def test_the_recipe_for_tests_may_change_tests_alone(language, path, allowed):
    assert in_scope(path, of_language(RecipeFiles().get("tests").allowed_paths, language)) == allowed


def test_the_recipe_for_docs_may_change_the_file_of_the_block_alone():
    assert of_language(RecipeFiles().get("docs").allowed_paths, "python") == ("$path",)


def test_the_recipe_for_instructions_may_change_everything():
    assert RecipeFiles().get("instruction").allowed_paths == ()


def test_the_recipes_that_ship_run_nothing_over_a_result():
    """What is run is the project's own business, and wants trust."""
    assert [(recipe.checks, recipe.format) for recipe in RecipeFiles().all()] == [((), ())] * 3


@pytest.mark.parametrize("name", ["docs", "instruction", "tests"])
def test_a_recipe_that_ships_leaves_no_placeholder_open(name):
    values = {"brief": "BRIEF", "context": "CONTEXT", "place": "PLACE", "command": "COMMAND"}
    prompt = RecipeFiles().get(name).render(values)
    assert "$" not in prompt
    assert {"BRIEF", "CONTEXT"} <= set(prompt.split())


def test_a_persons_own_file_is_one_recipe_more(tmp_path):
    text = (
        TITLE + 'brief = "$brief"\nneeds_brief = true\nlanguages = ["go"]\n[commands]\n"" = ["make"]\ngo = ["go vet"]\n'
    )
    recipes = own(tmp_path, "review.toml", text)
    assert [recipe.name for recipe in recipes.all()] == ["docs", "instruction", "tests", "review"]
    commands = (("", ("make",)), ("go", ("go vet",)))
    assert recipes.get("review") == Recipe(
        "review", "Delegate", "$brief", needs_brief=True, commands=commands, languages=("go",)
    )


def test_a_persons_own_file_may_say_what_is_changed_and_run_by_language(tmp_path):
    text = """brief = ""
[allowed_paths]
"" = ["docs", "$path"]
[checks]
python = ["ruff check", "pytest"]
go = ["go vet ./..."]
[format]
python = ["ruff format"]
"""
    recipe = own(tmp_path, "own.toml", TITLE + text).get("own")
    assert recipe.allowed_paths == (("", ("docs", "$path")),)
    assert recipe.checks == (("python", ("ruff check", "pytest")), ("go", ("go vet ./...",)))
    assert recipe.format == (("python", ("ruff format",)),)


def test_a_persons_own_file_takes_the_place_of_a_built_in_one(tmp_path):
    recipes = own(tmp_path, "tests.toml", TITLE + 'brief = "Mine."')
    assert [recipe.name for recipe in recipes.all()] == ["docs", "instruction", "tests"]
    assert recipes.get("tests") == Recipe("tests", "Delegate", "Mine.")


def test_other_files_and_a_missing_folder_are_nobodys_business(tmp_path):
    assert len(own(tmp_path, "notes.md", "not a recipe").all()) == 3
    assert len(RecipeFiles(tmp_path / "none").all()) == 3


def test_an_unknown_recipe_is_answered_with_those_that_exist():
    with pytest.raises(UnknownRecipe, match="there is no recipe 'test'; there are docs, instruction, tests"):
        RecipeFiles().get("test")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("title = ", "Invalid value"),
        (b"\xff\xfe", "can't decode byte 0xff"),
        (TITLE, "brief: Field required"),
        (TITLE + "brief = 5", "brief: Input should be a valid string"),
        (TITLE + 'brief = ""\nneeds_blok = true', "needs_blok is not a key of a recipe"),
        (TITLE + 'brief = ""\nname = "other"', "name is not a key of a recipe"),
        (TITLE + 'brief = ""\ncommands = "pytest"', "commands: Input should be a valid tuple"),
        (TITLE + 'brief = ""\n[commands]\npython = "pytest"', "commands: Input should be a valid tuple"),
        (TITLE + 'brief = ""\nallowed_paths = ["tests"]', "allowed_paths: Input should be a valid tuple"),
        (TITLE + 'brief = ""\n[checks]\npython = 5', "checks: Input should be a valid tuple"),
        (TITLE + 'brief = ""\n[format]\npython = [5]', "format: Input should be a valid string"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong_with_it(tmp_path, text, problem):
    with pytest.raises(InvalidRequest) as refused:
        own(tmp_path, "mine.toml", text)
    assert f"the recipe file {tmp_path / 'mine.toml'} cannot be used: " in str(refused.value)
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "mine.toml").mkdir()
    with pytest.raises(InvalidRequest, match=r"mine\.toml cannot be used: .*directory"):
        RecipeFiles(tmp_path)
