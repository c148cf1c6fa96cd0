"""The page on checks shows files that are right, and names every key."""

import re
import tomllib
from pathlib import Path

import pytest

from offload.projects.content import _Content, settings_of
from offload.recipes import RecipeFiles

PAGE = (Path(__file__).parents[2] / "docs" / "CHECKS.md").read_text()
EXAMPLES = re.findall(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
RECIPES = [text for text in EXAMPLES if text.startswith("title")]


@pytest.mark.parametrize("text", [text for text in EXAMPLES if text not in RECIPES])
def test_an_example_can_be_used_as_it_stands(text):
    assert settings_of(tomllib.loads(text)).plan


def test_every_key_has_its_row():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert rows == list(_Content.model_fields)


def test_the_example_of_a_recipe_can_be_used_as_it_stands(tmp_path):
    (text,) = RECIPES
    (tmp_path / "types.toml").write_text(text)
    assert RecipeFiles(tmp_path).get("types").checks == (("python", ("python3 -m mypy .",)),)
