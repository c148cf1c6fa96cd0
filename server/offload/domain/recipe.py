"""A named kind of task: what the worker is told, and which command it may run without asking."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template


@dataclass(frozen=True, slots=True)
class Recipe:
    """`brief` is a `string.Template` with $brief (the caller's words), $path, $symbol, $place ("Cart.total (shop.py, lines
    3-9)"), $block (the text), $context (place and block in words, "" without a block) and $command (the first of the
    recipe's commands).

    `title` is what an editor offers ("Delegate tests for this block"). `commands` maps a language ("python") to the shell
    commands that belong to the recipe (["python -m pytest"]); these run without asking, "" applies to every language.
    `languages` are those that it is offered for; empty means all. `allowed_paths` maps languages, as `commands` does, to the
    patterns of the files that a task may change ("$path" is the block's own file), `checks` to the shell commands that are run
    over a result; `format` is run before them.
    """

    name: str
    title: str
    brief: str
    needs_block: bool = False
    needs_brief: bool = False
    commands: tuple[tuple[str, tuple[str, ...]], ...] = ()
    languages: tuple[str, ...] = ()
    allowed_paths: tuple[tuple[str, tuple[str, ...]], ...] = ()
    checks: tuple[tuple[str, tuple[str, ...]], ...] = ()
    format: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def commands_for(self, language: str) -> tuple[str, ...]:
        return of_language(self.commands, language)

    def render(self, values: dict[str, str]) -> str:
        """The worker's prompt; an unknown placeholder stays as it stands, so that `$` in code is harmless."""
        return Template(self.brief).safe_substitute(values).strip() + "\n"


def of_language(table: tuple[tuple[str, tuple[str, ...]], ...], language: str) -> tuple[str, ...]:
    """The entries of one of a recipe's tables that are for `language` or for all."""
    return tuple(entry for name, entries in table if name in ("", language) for entry in entries)
