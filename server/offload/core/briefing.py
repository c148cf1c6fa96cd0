"""From what a front asks for to what a worker is told: the file, the block, the recipe's words."""

from __future__ import annotations

import difflib
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from offload.core.caller import Caller
from offload.core.documents import Documents
from offload.core.ports import Recipes, Source, Workspace
from offload.domain.anchor import Anchor, Block, LineRange
from offload.domain.budget import Budget
from offload.domain.check import FORMAT, Check, CheckPlan
from offload.domain.errors import InvalidRequest, UnknownSymbol
from offload.domain.profile import Profile
from offload.domain.project import ProjectSettings
from offload.domain.recipe import Recipe, of_language
from offload.domain.route import Route
from offload.domain.task import Task, TaskId, TaskSpec
from offload.domain.text import split_lines

TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A start as a front asks for it. `file` is absolute or relative to the workspace; `workspace` "" is the caller's; no
    `profile`, and a limit of `budget` that is not given, are those of the settings."""

    brief: str = ""
    file: str = ""
    symbol: str = ""
    lines: LineRange | None = None
    workspace: str = ""
    recipe: str = "instruction"
    route: Route = Route("")
    key: str = ""
    profile: Profile | None = None
    budget: Budget = Budget()
    allowed_paths: tuple[str, ...] = ()
    after: tuple[TaskId, ...] = ()


class Briefing:
    """Turns a request into a `TaskSpec`. Raises `InvalidRequest` and `UnknownSymbol`."""

    def __init__(self, workspace: Workspace, source: Source, documents: Documents) -> None:
        self._workspace = workspace
        self._source = source
        self._documents = documents

    async def spec(
        self,
        caller: Caller,
        request: StartRequest,
        root: Path,
        recipe: Recipe,
        route: Route,
        project: ProjectSettings,
    ) -> TaskSpec:
        """`project` is what the workspace says of itself, as far as it is trusted."""
        brief = request.brief.strip()
        anchor = await self._anchor(caller, request, root)
        if recipe.needs_block and anchor is None:
            raise InvalidRequest(f"the recipe {recipe.name!r} is about a block of code: give file, and symbol or lines")
        if not brief and (recipe.needs_brief or anchor is None):
            raise InvalidRequest("brief is empty: say what is to be done")
        language = self._source.language(anchor.path) if anchor else ""
        return TaskSpec(
            workspace=str(root),
            title=_title(recipe, brief, anchor),
            brief=brief,
            prompt=_prompt(recipe, brief, anchor, recipe.commands_for(language)),
            route=route,
            recipe=recipe.name,
            anchor=anchor,
            commands=recipe.commands_for(language),
            buffers=await self.unsaved(root, caller.id),
            front=caller.front,
            caller=caller.name,
            key=request.key,
            profile=request.profile or Profile.WORKSPACE_WRITE,
            budget=request.budget,
            allowed_paths=request.allowed_paths or _allowed_paths(recipe, language, anchor),
            paths_named=bool(request.allowed_paths),
            setup=project.setup,
            plan=self.plan(recipe, anchor, project),
            carry=project.carry,
            never_send=project.never_send,
            after=request.after,
            warnings=(project.note,) if project.note else (),
        )

    def plan(self, recipe: Recipe, anchor: Anchor | None, project: ProjectSettings) -> CheckPlan:
        """The recipe's checks, then the project's; the project's formatter goes before the recipe's."""
        language = self._source.language(anchor.path) if anchor else ""
        formats = of_language(recipe.format, language)
        own = tuple(Check(command, command) for command in of_language(recipe.checks, language))
        formatter = project.plan.format or (Check(FORMAT, formats[0]) if formats else None)
        return CheckPlan(formatter, own + project.plan.checks, project.plan.rounds)

    def plan_together(self, recipes: Recipes, tasks: Iterable[Task], project: ProjectSettings) -> CheckPlan:
        """That of several tasks' results as one: each check of their recipes once, then the project's as it is trusted now. What a
        task was started with does not count, because the trust may have been taken back."""
        known = {recipe.name: recipe for recipe in recipes.all()}
        plans = [
            self.plan(known[task.spec.recipe], task.spec.anchor, project) for task in tasks if task.spec.recipe in known
        ]
        formatter = next((plan.format for plan in plans if plan.format), project.plan.format)
        own = dict.fromkeys(check for plan in plans for check in plan.checks if check not in project.plan.checks)
        return CheckPlan(formatter, (*own, *project.plan.checks), project.plan.rounds)

    async def _anchor(self, caller: Caller, request: StartRequest, root: Path) -> Anchor | None:
        if not request.file:
            if request.symbol or request.lines:
                raise InvalidRequest("symbol and lines name a place in a file: give file too")
            return None
        path = relative_path(root, request.file)
        text = self._documents.text(root / path, caller.id)
        if text is None:
            text = await self._workspace.read_live(root, path)
        lines = split_lines(text)
        block = await self._block(request, path, text, len(lines))
        return Anchor(path, block, "".join(lines[block.start_line : block.end_line + 1]))

    async def _block(self, request: StartRequest, path: str, text: str, count: int) -> Block:
        wanted = request.lines
        if wanted is not None and not 1 <= wanted.first <= wanted.last <= count:
            raise InvalidRequest(f"lines {wanted.first}-{wanted.last} are not in {path}, which has {count} lines")
        if request.symbol:
            blocks = await self._source.blocks(path, text)
            return _named(path, blocks, request.symbol, wanted)
        if wanted is not None:
            return Block("", "lines", wanted.first - 1, wanted.last - 1)
        return Block("", "file", 0, max(count - 1, 0))

    async def unsaved(self, root: Path, editor: str = "") -> dict[str, str]:
        """Texts of open documents that are not what is on disk; of a file that `editor` has open, its text alone counts."""
        unsaved: dict[str, str] = {}
        for path, documents in self._documents.below(root).items():
            own = [document for document in documents if document.editor == editor]
            try:
                saved = await self._workspace.read_live(root, path)
            except InvalidRequest:  # Not on disk yet, or not readable as text: the editor's text is all there is.
                saved = None
            differing = [document.text for document in own or documents if document.text != saved]
            if differing:
                unsaved[path] = differing[-1]
        return unsaved


def asks_for_the_same(spec: TaskSpec, request: StartRequest, route: Route) -> bool:
    """Whether `request` is the one that `spec` was made of; the files may have changed since, so they are not looked at."""
    said = (request.brief.strip(), request.recipe, route, request.profile, request.budget, request.after)
    if (spec.brief, spec.recipe, spec.route, spec.profile, spec.budget, spec.after) != said:
        return False
    if request.allowed_paths and spec.allowed_paths != request.allowed_paths:
        return False
    if spec.anchor is None or not request.file:
        return spec.anchor is None and not request.file
    block = spec.anchor.block
    if spec.anchor.path != relative_path(Path(spec.workspace), request.file):
        return False
    if request.symbol:
        return f".{block.symbol}".endswith(f".{request.symbol}")
    if request.lines:
        return block.kind == "lines" and LineRange(block.start_line + 1, block.end_line + 1) == request.lines
    return block.kind == "file"


def relative_path(root: Path, file: str) -> str:
    """`file` relative to `root` with "/". Raises `InvalidRequest` for one outside."""
    path = PurePath(posixpath.normpath((root / file).as_posix()))
    if not path.is_relative_to(root) or path == root:
        raise InvalidRequest(f"{file} is not a file in the workspace {root}")
    return path.relative_to(root).as_posix()


def _named(path: str, blocks: Sequence[Block], symbol: str, lines: LineRange | None) -> Block:
    matches = [block for block in blocks if block.symbol == symbol]
    matches = matches or [block for block in blocks if block.symbol.endswith("." + symbol)]
    meant = [
        block
        for block in matches
        if lines is None or (block.start_line < lines.last and lines.first <= block.end_line + 1)
    ]
    if len(meant) == 1:
        return meant[0]
    if matches:
        places = ", ".join(f"{block.symbol} in lines {block.start_line + 1}-{block.end_line + 1}" for block in matches)
        raise UnknownSymbol(f"{path} has {symbol!r} as {places}; give lines that are in one of them alone")
    near = difflib.get_close_matches(symbol, [block.symbol for block in blocks], n=3, cutoff=0.4)
    hint = f"; did you mean {', '.join(near)}?" if near else "; give lines instead"
    raise UnknownSymbol(f"{path} has no block {symbol!r}{hint}")


def _allowed_paths(recipe: Recipe, language: str, anchor: Anchor | None) -> tuple[str, ...]:
    """The recipe's patterns; "$path" stands for the block's own file."""
    own = "/" + re.sub(r"([*?[])", r"[\1]", anchor.path) if anchor else ""
    patterns = of_language(recipe.allowed_paths, language)
    return tuple(own if pattern == "$path" else pattern for pattern in patterns if own or pattern != "$path")


def _title(recipe: Recipe, brief: str, anchor: Anchor | None) -> str:
    place = (anchor.block.symbol or anchor.path) if anchor else ""
    return shortened(brief.splitlines()[0] if recipe.needs_brief or not place else f"{recipe.name} for {place}")


def shortened(line: str) -> str:
    """A title."""
    return line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"


def _prompt(recipe: Recipe, brief: str, anchor: Anchor | None, commands: Sequence[str]) -> str:
    values = {"brief": brief, "context": "", "command": commands[0] if commands else "the project's own test command"}
    if anchor is not None:
        block = anchor.block
        place = f"{anchor.path}, lines {block.start_line + 1}-{block.end_line + 1}"
        place = f"{block.symbol} ({place})" if block.symbol else place
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", anchor.text)), default=0))
        values |= {
            "path": anchor.path,
            "symbol": block.symbol or place,
            "place": place,
            "block": anchor.text,
            "context": f"This is about {place}:\n\n{fence}\n{anchor.text.rstrip()}\n{fence}\n",
        }
    return recipe.render(values)
