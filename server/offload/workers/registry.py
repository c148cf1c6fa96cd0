"""Builds the workers that there are, by name, from one data file per agent and the person's settings."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from offload.core.ports import Clock
from offload.core.worker import Worker
from offload.domain.errors import UnknownWorker
from offload.processes import Processes
from offload.settings import OpenCodeSettings, Settings
from offload.workers.agent import Agent
from offload.workers.opencode.find import Finder, Found, install
from offload.workers.opencode.servers import Attach, Launch
from offload.workers.opencode.worker import OpenCodeWorker


def agents() -> Mapping[str, Agent]:
    """Every agent that offload knows, by name."""
    return {agent.name: agent for agent in _read()}


def _read() -> Iterator[Agent]:
    for file in sorted(files("offload.workers").joinpath("agents").iterdir(), key=lambda entry: entry.name):
        data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
        lists = {key: tuple(value) for key, value in data.items() if isinstance(value, list)}
        yield Agent(**{**data, **lists})


def open_workers(settings: Settings, folder: Path, clock: Clock) -> dict[str, Worker]:
    """A worker per agent; `folder` is theirs to keep things in. Nothing is started before it is needed."""
    return {name: KINDS[agent.kind](agent, settings, folder / name, clock) for name, agent in agents().items()}


def _open_opencode(agent: Agent, settings: Settings, folder: Path, clock: Clock) -> Worker:
    own = settings.opencode
    launch = Launch(folder=folder, user_config=own.config, link_agents=own.agents)
    processes = Processes()
    return OpenCodeWorker(Finder(agent, folder, own.path, processes), launch, clock, processes, attach=_attach(own))


def _attach(own: OpenCodeSettings) -> Attach | None:
    return Attach(own.url, Path(own.password_file) if own.password_file else None, own.user) if own.url else None


KINDS: Mapping[str, Callable[[Agent, Settings, Path, Clock], Worker]] = {"opencode": _open_opencode}


async def install_agent(name: str, folder: Path, environment: Mapping[str, str]) -> tuple[Found, str]:
    """Install an agent into offload's own folder, where it is looked for; returns what is there now, and the command to sign in
    to a provider. `folder` is the one that `open_workers` is given. Raises `UnknownWorker`, `WorkerMissing`, `WorkerBroken`."""
    known = agents()
    if name not in known:
        raise UnknownWorker(f"No agent is called {name!r}; there is {', '.join(known)}.")
    await install(known[name], folder / name, environment, Processes())
    found = await Finder(known[name], folder / name, "", Processes(), only_own=True).find(environment)
    return found, f"{found.path} {known[name].sign_in}"
