"""Recipe files: those that ship with offload, and a person's own in the configuration folder."""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from offload.domain.errors import InvalidRequest, UnknownRecipe
from offload.domain.recipe import Recipe

_RECIPE = TypeAdapter(Recipe)


class RecipeFiles:
    """The built-in recipes and those of `folder` (`NAME.toml`); a person's own one takes the place of a built-in one.

    Raises `InvalidRequest` naming the file and what is wrong with it.
    """

    def __init__(self, folder: Path | None = None) -> None:
        built_in = importlib.resources.files(__name__)
        shipped = [
            (entry.name, entry.read_text("utf-8")) for entry in built_in.iterdir() if entry.name.endswith(".toml")
        ]
        own = sorted(folder.glob("*.toml")) if folder else []
        texts = [*sorted(shipped), *((str(path), path.read_text("utf-8")) for path in own)]
        self._recipes = {recipe.name: recipe for recipe in _read(texts)}

    def all(self) -> Sequence[Recipe]:
        return list(self._recipes.values())

    def get(self, name: str) -> Recipe:
        if name not in self._recipes:
            raise UnknownRecipe(f"there is no recipe {name!r}; there are {', '.join(self._recipes)}")
        return self._recipes[name]


def _read(texts: Iterable[tuple[str, str]]) -> Iterable[Recipe]:
    for name, text in texts:
        try:
            values: dict[str, Any] = tomllib.loads(text)
            commands = tuple(values.pop("commands", {}).items())
            yield _RECIPE.validate_python({"name": Path(name).stem, "commands": commands, **values})
        except (tomllib.TOMLDecodeError, ValidationError, AttributeError) as error:
            raise InvalidRequest(f"the recipe file {name} cannot be used: {error}") from None
