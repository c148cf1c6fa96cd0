"""The composition root: ties core's ports to their adapters, and hands the hub a serve function for each kind of front.

The edges and the workers are imported when they are first needed, so that the hub listens before it knows pygls or the MCP SDK.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import secrets
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from itertools import count
from pathlib import Path

from offload.checks import ShellChecks
from offload.core.assembly import open_core
from offload.core.caller import Caller
from offload.core.delegation import Delegation
from offload.core.housekeeping import Cleaned, keep_tidy
from offload.core.limits import Limits
from offload.core.ports import Clock
from offload.core.worker import Worker
from offload.domain.budget import Budget
from offload.domain.route import Route
from offload.domain.task import Front, Phase, TaskId
from offload.hub import address, run
from offload.hub.clock import SystemClock
from offload.hub.hello import Hello
from offload.hub.services import Serve, Services
from offload.processes import Processes
from offload.projects import ProjectFiles
from offload.recipes import RecipeFiles
from offload.settings import Settings, config_folder, load
from offload.source.tree_sitter import TreeSitterSource
from offload.storage.journal import SqliteJournal
from offload.workspace.workspaces import GitWorkspaces

logger = logging.getLogger(__name__)


def run_hub() -> int:
    """`offload hub run`: be the hub until it ends; gives the exit status."""
    # The modules of pygls and the MCP SDK make many objects that stay; looking through them again and again while they are
    # imported would cost the first front 50 ms. `warm` takes it up again.
    gc.disable()
    return run.main(lambda: open_services(os.environ))


@asynccontextmanager
async def open_services(environ: Mapping[str, str]) -> AsyncIterator[Services]:
    """Everything that the hub serves, by the settings of `environ`. Raises `EnvironmentFailure` when it cannot be opened."""
    settings = load(environ)
    state = Path(address.state_folder(environ))
    clock = SystemClock()
    processes = Processes()
    workers = open_workers(settings, state, clock)
    left = asyncio.Event()
    async with (
        at_work(workers, left),
        aclosing(TreeSitterSource()) as source,
        aclosing(SqliteJournal(state / "journal.sqlite3")) as journal,
        GitWorkspaces(state, processes, environ) as workspace,
        open_core(
            journal=journal,
            workspace=workspace,
            workers=workers,
            source=source,
            recipes=RecipeFiles(config_folder(environ) / "recipes"),
            projects=ProjectFiles(state),
            checks=ShellChecks(processes),
            clock=clock,
            limits=Limits(
                tasks_per_workspace=settings.max_tasks,
                ask_timeout_s=settings.ask_timeout_s,
                budget=Budget(settings.max_minutes, settings.max_turns, settings.max_tokens, settings.max_cost),
                daily_cost=settings.max_daily_cost,
                stall_after_s=settings.stall_after_s,
                keep_days=settings.keep_days or None,
            ),
            default_route=Route(settings.worker, settings.agent, settings.model),
            default_profile=settings.profile,
            mcp_apply=settings.mcp_apply,
            environment=environ,
            real_path=lambda path: Path(os.path.realpath(path)),
            defect=log_defect,
        ) as delegation,
        tidied(delegation, environ, clock, settings.keep_days),
        told_in_log(delegation),
    ):
        yield Services(
            serve=serve_functions(delegation),
            busy=lambda: bool(delegation.tasks(live=True)),
            status=lambda: {**task_counts(delegation), "notes": list(journal.notes)},
            warm=warm,
            leave=left.set,
        )


def open_workers(settings: Settings, state: Path, clock: Clock) -> dict[str, Worker]:
    from offload.workers.registry import open_workers  # noqa: PLC0415 - brings httpx, which no front waits for

    return open_workers(settings, state / "workers", clock)


@asynccontextmanager
async def at_work(workers: Mapping[str, Worker], left: asyncio.Event) -> AsyncIterator[None]:
    """The workers of the hub, with what an earlier one left of them. They end after core has let go of its turns, which would
    take their end for a loss otherwise; with `left` set they go on for the next hub, which finds them as after a crash."""
    for worker in workers.values():
        await worker.adopt()
    try:
        yield
    finally:
        if not left.is_set():
            for worker in workers.values():
                await worker.aclose()


@asynccontextmanager
async def told_in_log(delegation: Delegation) -> AsyncIterator[None]:
    """The log says what becomes of each task: ids and phases, nothing of what it is about."""
    telling = asyncio.create_task(tell_log(delegation), name="log of tasks")
    try:
        yield
    finally:
        telling.cancel()
        await asyncio.wait([telling])


async def tell_log(delegation: Delegation) -> None:
    phases: dict[TaskId, Phase] = {}
    async for task in delegation.watch():
        if phases.get(task.id) is not task.phase:
            phases[task.id] = task.phase
            logger.info("task", extra={"task": task.id, "phase": task.phase.value, "turn": len(task.turns)})


@asynccontextmanager
async def tidied(delegation: Delegation, environ: Mapping[str, str], clock: Clock, days: float) -> AsyncIterator[None]:
    """The hub cleans up by itself what is older than so many days and was decided; with 0 it never does."""
    hub = Caller(Front.TERMINAL, "hub", Path("/"), "hub", environ)
    if not days:
        yield
        return
    cleaning = keep_tidy(lambda: delegation.clean(hub, days), clock, log_cleaned, log_defect)
    tidying = asyncio.create_task(cleaning, name="tidying")
    try:
        yield
    finally:
        tidying.cancel()
        await asyncio.wait([tidying])


def serve_functions(delegation: Delegation) -> dict[str, Serve]:
    """One function per kind of hello."""
    numbers = count(1)

    def caller(hello: Hello) -> Caller:
        front = Front(hello.kind)
        name = f"{hello.kind}-{next(numbers)}"
        return Caller(front, name, Path(hello.cwd), hello.client, hello.environment)

    async def lsp(reader: StreamReader, writer: StreamWriter, hello: Hello) -> None:
        from offload.lsp.server import serve_editor  # noqa: PLC0415

        await serve_editor(delegation, caller(hello), reader, writer, hello.learn)

    async def mcp(reader: StreamReader, writer: StreamWriter, hello: Hello) -> None:
        from offload.mcp.server import serve_model  # noqa: PLC0415

        await serve_model(delegation, caller(hello), reader, writer, named=hello.learn)

    async def rpc(reader: StreamReader, writer: StreamWriter, hello: Hello) -> None:
        from offload.rpc.serve import serve  # noqa: PLC0415

        await serve(reader, writer, caller(hello), delegation)

    return {"lsp": lsp, "mcp": mcp, "rpc": rpc}


def warm() -> None:
    """What the first connection of each kind will want."""
    try:
        import offload.lsp.server  # noqa: PLC0415
        import offload.mcp.server  # noqa: PLC0415
        import offload.rpc.serve  # noqa: F401, PLC0415
    finally:
        gc.freeze()
        gc.enable()


def task_counts(delegation: Delegation) -> dict[str, int]:
    tasks = delegation.tasks(closed=True)
    return {"tasks": len(tasks), "live_tasks": sum(1 for task in tasks if task.live)}


def log_cleaned(cleaned: Cleaned) -> None:
    """So that nobody wonders where a task has gone."""
    logger.info("cleaned", extra={"tasks": [looked.task.id for looked in cleaned.removed]})


def log_defect(what: str, error: BaseException) -> None:
    """What "cannot happen" is logged with a key, so that a report can name it, and survived."""
    key = secrets.token_hex(4)
    logger.error("defect", extra={"key": key, "what": what}, exc_info=error)
