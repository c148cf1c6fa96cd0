"""`offload demo`: five "write tests for this block" tasks in parallel, one sent back, all made one result, what conflicts resolved
by its worker, that applied as one step, and the project's tests run.

With the scripted model a hub of its own does the work, in a private state folder and with a configuration that knows no other
model; with a real model it is the person's own hub. Either way all goes through the same rpc as every other command.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.prompt import Confirm
from rich.text import Text

from offload import settings
from offload.demo import keys, project
from offload.demo.model import MODEL, PROVIDER, opencode_config, scripted_model
from offload.demo.project import Untested
from offload.demo.table import Screen
from offload.domain.errors import EnvironmentFailure, InvalidRequest, OffloadError
from offload.hub import address, client
from offload.hub import run as hub_run
from offload.processes import Processes
from offload.wire import words
from offload.wire.results import ApplyTaskResult, TaskResult, WaitForTasksResult
from offload.wire.views import TaskState, TaskStatus
from offload.workers.opencode.find import Finder
from offload.workers.registry import agents

TASKS = 5
REFRESH_S = 0.5
TESTS_TIMEOUT_S = 300
INTEGRATIONS = 3  # the first finds what conflicts, the next has it resolved; more is for a real model

SCRIPTED = (
    "The language model is scripted: it ships with offload, needs no key and no network, and derives its tests from the "
    "block that it is sent. Everything else is real: OpenCode and its tools, the hub, git, the tests. With --model "
    "PROVIDER/MODEL a real model does the work."
)

# The scripted model needs no catalogue of models, no updates and no plugins: nothing leaves the machine.
OFFLINE = {
    f"OPENCODE_DISABLE_{name}": "1"
    for name in (
        "MODELS_FETCH",
        "AUTOUPDATE",
        "DEFAULT_PLUGINS",
        "LSP_DOWNLOAD",
        "SHARE",
        "CLAUDE_CODE",
        "EXTERNAL_SKILLS",
    )
}


class Hub(Protocol):
    """A connection to the hub."""

    def call(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the demo plays; the defaults are those of the sample.

    `model` is PROVIDER/MODEL, `tests` the command of the project's own tests; the result for the block `sent_back`, or the
    first if that is "", gets the follow-up. `trusted` says that the project's checks may run: the sample is ours.
    """

    folder: Path
    model: str
    environment: Mapping[str, str]
    tests: tuple[str, ...] = (sys.executable, "-m", "unittest")
    sent_back: str = "price"
    follow_up: str = "Also cover negative amounts."
    trusted: bool = True


def demo(path: Path | None, model: str, *, yes: bool, keep: bool, pace_s: float) -> int:
    """Runs the demo and gives the exit code: 0 only when all results were applied and the project's tests are green."""
    console = Console(highlight=False, markup=False, emoji=False)
    if path is not None and not model:
        raise InvalidRequest("a project of yours needs a real model: give --model PROVIDER/MODEL, see `offload agents`")
    with ExitStack() as stack:
        temporary = stack.enter_context(_temporary(console, keep=keep))
        if model:
            stage = _own(path.resolve(), model) if path else Stage(project.copy_sample(temporary), model, os.environ)
            say(console, f"Model: {model}. Everything is real: the model, OpenCode, the hub and git.")
        else:
            stage = stack.enter_context(_scripted(temporary, pace_s))
            say(console, SCRIPTED)
        hub = stack.enter_context(client.connect(stage.environment))
        return Demo(console, hub, stage, yes=yes).run()


class Demo:
    """The demo's steps, one after another."""

    def __init__(self, console: Console, hub: Hub, stage: Stage, *, yes: bool) -> None:
        self._console = console
        self._hub = hub
        self._stage = stage
        self._yes = yes

    def run(self) -> int:
        blocks = project.untested(self._stage.folder, TASKS)
        if not blocks:
            raise InvalidRequest(f"every function in {self._stage.folder} is named in a test: there is nothing to show")
        self._say(f"\nProject: {self._stage.folder}. Without tests: {', '.join(block.symbol for block in blocks)}.")
        if self._stage.trusted:
            asked = self._hub.call("trust_workspace", {"workspace": str(self._stage.folder)})
            self._say(f"Checks of every result, by its offload.toml: {', '.join(asked['checks'])}")
        tasks = {self._start(block): block.symbol for block in blocks}
        good = self._summarise(tasks, self._follow(tasks))
        applied = self._apply(self._integrate(tasks, good)) if good else 0
        green = bool(applied) and self._run_tests()
        return self._verdict(len(blocks), applied, green=green)

    def _start(self, block: Untested) -> str:
        params = {
            "recipe": "tests",
            "workspace": str(self._stage.folder),
            "file": block.file,
            "symbol": block.symbol,
            "lines": f"{block.first_line}-{block.last_line}",
            "model": self._stage.model,
        }
        return str(self._hub.call("start_task", params)["task_id"])

    def _follow(self, tasks: Mapping[str, str], *, send_back: bool = True) -> Sequence[TaskStatus]:
        """Shows the tasks until all rest; one good result is sent back, while the others go on."""
        sent_back = not send_back
        revisions: dict[str, int] | None = None
        with keys.unheard(), Screen(self._console, tasks) as screen:
            while True:
                wanted = {"task_ids": list(tasks), "timeout_s": REFRESH_S, "after_revision": revisions}
                waited = WaitForTasksResult.model_validate(self._hub.call("wait_for_tasks", wanted))
                revisions = waited.after_revision
                screen.show(waited.tasks)
                back = [task for task in waited.tasks if self._to_be_sent_back(task, tasks[task.task_id])]
                if back and not sent_back:
                    sent_back = True
                    self._hub.call("continue_task", {"task_id": back[0].task_id, "brief": self._stage.follow_up})
                    self._say(f"Sent back {tasks[back[0].task_id]}: {self._stage.follow_up}")
                elif waited.done:
                    return waited.tasks

    def _to_be_sent_back(self, task: TaskStatus, symbol: str) -> bool:
        return task.state is TaskState.COMPLETED and self._stage.sent_back in ("", symbol)

    def _summarise(self, tasks: Mapping[str, str], over: Sequence[TaskStatus]) -> list[str]:
        """Prints what each task brought; gives the ids of those that can be applied."""
        self._say("\nResults:")
        good = []
        for task in over:
            answer = self._hub.call("get_task_result", {"task_id": task.task_id})
            result = TaskResult.model_validate(answer)
            files = result.changes.files if result.changes else []
            changed = ", ".join(f"{file.path} +{file.added_lines} -{file.removed_lines}" for file in files)
            if result.state is TaskState.COMPLETED and files:
                good.append(task.task_id)
            else:
                changed = result.failure.message if result.failure else "no change"
            used = f"{words.seconds(task.elapsed_s)}, {words.count(task.total_tokens)} tokens"
            checks = "; ".join(task.checks) or "not checked"
            self._say(f"  {tasks[task.task_id]}: {words.one_line(changed)} ({used}; {words.one_line(checks)})")
            doubt = f"needs a look: {result.needs_review}" if result.needs_review else ""
            for line in filter(None, (doubt, result.text)):
                self._say(f"    {words.one_line(line)[:200]}")
        return good

    def _integrate(self, tasks: Mapping[str, str], good: Sequence[str]) -> TaskResult:
        """One result of all; a worker whose result conflicts with the others' is sent it back, with the places marked."""
        made = self._integration(tasks, good)
        for _ in range(INTEGRATIONS - 1):
            left_out = made.integration.left_out if made.integration else []
            back = [left.task_id for left in left_out if left.with_tasks]
            if not back or made.state is not TaskState.COMPLETED:
                break
            for task_id in back:
                self._hub.call("continue_task", {"task_id": task_id, "onto": made.task_id})
                self._say(f"Sent back {tasks[task_id]}, with its conflicts marked in the files.")
            self._summarise(tasks, self._follow({task_id: tasks[task_id] for task_id in back}, send_back=False))
            made = self._integration(tasks, good)
        return made

    def _integration(self, tasks: Mapping[str, str], good: Sequence[str]) -> TaskResult:
        self._say(f"\nIntegration of {len(good)} results:")
        task_id = str(self._hub.call("integrate_tasks", {"task_ids": list(good)})["task_id"])
        self._follow({task_id: "all together"}, send_back=False)
        made = TaskResult.model_validate(self._hub.call("get_task_result", {"task_id": task_id}))
        for part in told(made, tasks):
            self._say(f"  {words.one_line(part)}")
        return made

    def _apply(self, made: TaskResult) -> int:
        """Writes the one result into the project, if that is wanted; gives how many tasks' are in it."""
        count = len(made.integration.order) if made.integration else 0
        if made.state is not TaskState.COMPLETED or not count:
            return 0
        if not self._yes and not self._confirmed(count):
            return 0
        try:
            applied = ApplyTaskResult.model_validate(self._hub.call("apply_task", {"task_id": made.task_id}))
        except OffloadError as error:
            self._say(f"Not applied. {words.one_line(str(error))}")
            return 0
        self._say(f"Applied as one step ({applied.apply_id}): {words.one_line(', '.join(applied.paths))}")
        return count

    def _confirmed(self, count: int) -> bool:
        """Whoever cannot be asked has not agreed."""
        if not sys.stdin.isatty():
            self._say(
                "Nothing was applied, because nobody can be asked here; `offload demo --yes` applies without asking."
            )
            return False
        keys.forget()
        results = "1 result" if count == 1 else f"{count} results"
        if Confirm.ask(f"Apply {results} to {self._stage.folder}?", console=self._console):
            return True
        self._say("Nothing was applied, as you wish.")
        return False

    def _run_tests(self) -> bool:
        command = " ".join(self._stage.tests)
        self._say(f"\nThe project's own tests: {command}")
        try:
            done = subprocess.run(
                self._stage.tests,
                cwd=self._stage.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=TESTS_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._say(f"They could not be run: {error}")
            return False
        self._say(words.harmless(done.stdout.decode(errors="replace")[-2000:].strip()))
        return done.returncode == 0

    def _verdict(self, wanted: int, applied: int, *, green: bool) -> int:
        tests = "the project's tests are green" if green else "the project's tests are not green"
        self._say(f"\n{applied} of {wanted} results applied; {tests if applied else 'the tests were not run'}.")
        return 0 if applied == wanted and green else 1

    def _say(self, text: str) -> None:
        say(self._console, text)


def told(made: TaskResult, tasks: Mapping[str, str]) -> Iterator[str]:
    """What an integration found, with the blocks' names in place of ids."""
    found = made.integration
    if found is None or made.failure is not None:
        yield f"failed: {made.failure.message if made.failure else 'there is no result'}"
        return
    for overlap in found.overlaps:
        names = " and ".join(tasks[task_id] for task_id in overlap.task_ids)
        yield f"overlap: {names} both change {', '.join(overlap.paths)}"
    yield f"merged, in this order: {', '.join(tasks[task_id] for task_id in found.order)}"
    for left in found.left_out:
        paths = ", ".join(sorted({conflict.path for conflict in left.conflicts}))
        others = " and ".join(tasks[task_id] for task_id in left.with_tasks) or "your own files"
        yield f"left out: {tasks[left.task_id]}, which conflicts with {others} in {paths}"
    yield "; ".join(check.told for check in made.checks) or "not checked"
    if found.culprits:
        yield f"the checks fail with {' and '.join(tasks[task_id] for task_id in found.culprits)}"


def say(console: Console, text: str) -> None:
    """In a terminal broken between words, else as it is."""
    console.print(Text(text), soft_wrap=not console.is_terminal)


def _own(folder: Path, model: str) -> Stage:
    tests = project.test_command(folder)
    follow_up = "Also cover the edges that are still missing: empty input, extreme values, wrong arguments."
    return Stage(folder, model, os.environ, tests, sent_back="", follow_up=follow_up, trusted=False)


@contextmanager
def _temporary(console: Console, *, keep: bool) -> Iterator[Path]:
    """A folder that is gone afterwards, or kept and named."""
    folder = Path(tempfile.mkdtemp(prefix="offload-demo-")).resolve()
    try:
        yield folder
    finally:
        if keep:
            say(console, f"Kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


async def find_opencode(environ: Mapping[str, str]) -> str:
    """The program that the person's own hub would start. Raises `WorkerMissing`, `WorkerBroken`."""
    try:
        folder = Path(address.state_folder(environ), "workers", "opencode")
    except address.AddressError as error:
        raise EnvironmentFailure(str(error)) from error
    finder = Finder(agents()["opencode"], folder, settings.load(environ).opencode.path, Processes())
    return str((await finder.find(environ)).path)


@contextmanager
def _scripted(temporary: Path, pace_s: float) -> Iterator[Stage]:
    """A stage of its own: sample, model, and a hub that ends with it."""
    opencode = asyncio.run(find_opencode(os.environ))
    folder = project.copy_sample(temporary)
    with scripted_model(pace_s) as url:
        config = temporary / "opencode.json"
        config.write_text(json.dumps(opencode_config(url)))
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("OFFLOAD_", "OPENCODE_"))},
            **OFFLINE,
            # The worker's shell runs the tests with `python3`: the one that runs this, wherever it came from.
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
            "OFFLOAD_STATE_DIR": str(temporary / "state"),
            "OFFLOAD_CONFIG_DIR": str(temporary / "config"),
            "OFFLOAD_OPENCODE": opencode,
            "OFFLOAD_OPENCODE_CONFIG": str(config),
            "OFFLOAD_OPENCODE_AGENTS": "false",
        }
        try:
            yield Stage(folder, f"{PROVIDER}/{MODEL}", environment)
        finally:
            hub_run.stop(environment)
