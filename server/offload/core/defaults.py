"""What a start that leaves something open is given instead, and whether its worker can do that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from offload.core.briefing import StartRequest
from offload.core.worker import Worker
from offload.domain.budget import Budget
from offload.domain.errors import UnknownWorker, UnsupportedProfile
from offload.domain.profile import Profile
from offload.domain.route import Route


class Defaults:
    """The settings' worker, agent, model, profile and limits, beside the workers that there are."""

    def __init__(self, workers: Mapping[str, Worker], route: Route, profile: Profile, budget: Budget) -> None:
        self._workers = workers
        self._route = route
        self._profile = profile
        self._budget = budget

    def worker(self, name: str) -> Worker:
        """Raises `UnknownWorker`."""
        worker = self._workers.get(name)
        if worker is None:
            raise UnknownWorker(f"there is no worker {name!r}; there are {', '.join(self._workers)}")
        return worker

    def route(self, asked: Route) -> Route:
        """The defaults filled in: agent and model of the settings belong to the default worker only."""
        default = self._route
        worker = asked.worker or default.worker
        self.worker(worker)
        if worker != default.worker:
            return asked
        if asked.model:
            return Route(worker, asked.agent or default.agent, asked.model, asked.variant)
        return Route(worker, asked.agent or default.agent, default.model, asked.variant or default.variant)

    def completed(self, request: StartRequest, route: Route) -> StartRequest:
        """With what the settings say of limits and profile where it says nothing. Raises `UnsupportedProfile`."""
        profile = request.profile or self._profile
        can = self._workers[route.worker].profiles
        if profile not in can:
            known = ", ".join(each for each in Profile if each in can)
            raise UnsupportedProfile(
                f"the worker {route.worker!r} cannot enforce the profile {profile}; it can {known}"
            )
        return replace(request, profile=profile, budget=request.budget.over(self._budget))
