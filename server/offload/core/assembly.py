"""Core put together: ports in, a `Delegation` out. The composition root and the tests' house both come through here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from offload.core.briefing import Briefing
from offload.core.delegation import Delegation
from offload.core.documents import Documents
from offload.core.feed import Feed
from offload.core.ledger import Ledger
from offload.core.limits import Limits
from offload.core.ports import Checks, Clock, Journal, Projects, Recipes, Source, Workspace
from offload.core.turns.recovery import recover
from offload.core.turns.supervisor import Supervisor
from offload.core.worker import Worker
from offload.domain.ask import ModelApply
from offload.domain.errors import UnknownWorker
from offload.domain.profile import Profile
from offload.domain.route import Route


@asynccontextmanager
async def open_core(
    *,
    journal: Journal,
    workspace: Workspace,
    workers: Mapping[str, Worker],
    source: Source,
    recipes: Recipes,
    projects: Projects,
    checks: Checks,
    clock: Clock,
    limits: Limits,
    default_route: Route,
    default_profile: Profile = Profile.WORKSPACE_WRITE,
    mcp_apply: ModelApply = ModelApply.ASK,
    environment: Mapping[str, str],
    defect: Callable[[str, BaseException], None],
    real_path: Callable[[Path], Path] = lambda path: path,
) -> AsyncIterator[Delegation]:
    """What becomes of live tasks is being found out from entering on; on leaving, turns that run are let go of, not cancelled:
    the next hub finds them.

    `default_route` names the worker, agent and model of a start that names none; `mcp_apply` says whether models may apply;
    `environment` is what recovered turns run with. `real_path` follows links. `defect` is told what should not happen.
    """

    def worker(name: str) -> Worker:
        if name not in workers:
            raise UnknownWorker(f"the worker {name!r} is not there any more; there are {', '.join(workers)}")
        return workers[name]

    documents = Documents(real_path)
    unsaved = Briefing(workspace, source, documents).unsaved
    async with (
        Ledger(journal, Feed(), clock) as ledger,
        Supervisor(ledger, workspace, worker, checks, unsaved, limits, defect) as supervisor,
    ):
        await recover(ledger, supervisor, environment)
        yield Delegation(
            ledger,
            supervisor,
            workspace,
            source,
            recipes,
            projects,
            documents,
            workers,
            default_route,
            default_profile,
            limits,
            mcp_apply,
        )
