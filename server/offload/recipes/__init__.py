"""Recipe files: those that ship with offload, and a person's own in the configuration folder."""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from offload.domain.errors import InvalidRequest, UnknownRecipe
from offload.domain.recipe import Recipe

_RECIPE = TypeAdapter(Recipe)
_TABLES = ("commands", "allowed_paths", "checks", "format")  # by language
_KEYS = {field.name for field in fields(Recipe)} - {"name"}  # a recipe is named by its file


class RecipeFiles:
    """The built-in recipes and those of `folder` (`NAME.toml`); a person's own one takes the place of a built-in one.

    Raises `InvalidRequest` naming the file and what is wrong with it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        shipped = [entry for entry in importlib.resources.files(__name__).iterdir() if entry.name.endswith(".toml")]
        own = folder.glob("*.toml") if folder else ()
        files: list[Path | Traversable] = [*sorted(shipped, key=lambda entry: entry.name), *sorted(own)]
        self._recipes = {recipe.name: recipe for recipe in map(_read, files)}

    def all(self) -> Sequence[Recipe]:
        return list(self._recipes.values())

    def get(self, name: str) -> Recipe:
        if name not in self._recipes:
            raise UnknownRecipe(f"there is no recipe {name!r}; there are {', '.join(self._recipes)}")
        return self._recipes[name]


def _read(file: Path | Traversable) -> Recipe:
    try:
        values: dict[str, Any] = tomllib.loads(file.read_text("utf-8"))
        for key in _TABLES:
            if isinstance(table := values.get(key), dict):
                values[key] = tuple(table.items())
        recipe = _RECIPE.validate_python({**values, "name": Path(file.name).stem})
    except ValidationError as error:
        problem = "; ".join(f"{each['loc'][0]}: {each['msg']}" for each in error.errors())
    except (OSError, ValueError) as error:
        problem = str(error)
    else:
        unknown = sorted(values.keys() - _KEYS)
        if not unknown:
            return recipe
        problem = f"{', '.join(unknown)} is not a key of a recipe"
    raise InvalidRequest(f"the recipe file {file} cannot be used: {problem}")
