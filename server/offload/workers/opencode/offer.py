"""What an OpenCode offers: its agents, models and prices; and whether a route can be had."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from offload.core.worker import AgentInfo, ModelInfo
from offload.domain.errors import UnknownAgent, UnknownModel
from offload.domain.route import Route
from offload.workers.opencode.client import Client

HOSTED = ("opencode", "custom")  # the id and source of the provider that is there without a sign-in


@dataclass(frozen=True, slots=True)
class Offer:
    """`rules` are each agent's own permissions, `default_agent` is the one of a prompt that names none; `signed_in` is false when
    all models are those that OpenCode hosts for everybody."""

    agents: tuple[AgentInfo, ...]
    models: tuple[ModelInfo, ...]
    default_model: str
    default_agent: str
    rules: dict[str, Sequence[Any]]
    signed_in: bool

    def check(self, route: Route) -> None:
        """Raises `UnknownAgent`, `UnknownModel` with the nearest names. OpenCode itself would take the prompt and do nothing."""
        if route.agent:
            names = [agent.name for agent in self.agents]
            if route.agent not in names:
                raise UnknownAgent(f"OpenCode has no agent {route.agent!r}; {_near(route.agent, names)}.")
        if route.model:
            models = {model.id: model for model in self.models}
            if route.model not in models:
                raise UnknownModel(f"OpenCode has no model {route.model!r}; {_near(route.model, models)}.")
        variants = next(
            (model.variants for model in self.models if model.id == (route.model or self.default_model)), ()
        )
        if route.variant and route.variant not in variants:
            known = f"it has {', '.join(variants)}" if variants else "it has none"
            raise UnknownModel(
                f"The model {route.model or self.default_model or '(default)'} has no variant {route.variant!r}; {known}."
            )

    def priced(self, model: str) -> bool:
        """Whether what the model costs is known."""
        return any(known.id == model and known.input_price is not None for known in self.models)


def _near(wanted: str, known: Iterable[str]) -> str:
    names = list(known)
    inside = [name for name in names if wanted.lower() in name.lower()]
    near = list(dict.fromkeys([*difflib.get_close_matches(wanted, names, n=5), *inside]))[:5]
    if near:
        return f"did you mean {', '.join(near)}?".removesuffix("?")
    if not names:
        return "it has none: sign in with `opencode auth login`"
    return f"it has {', '.join(names[:10])}{' and more' if len(names) > 10 else ''}"


async def read_offer(client: Client) -> Offer:
    """Ask the server; the first time in a directory this takes some seconds."""
    agents, providers, config = await client.agents(), await client.providers(), await client.config()
    primary = [agent for agent in agents if agent.get("mode") in ("primary", "all") and not agent.get("hidden")]
    models = tuple(
        _model(provider, model) for provider in providers for model in dict(provider.get("models", {})).values()
    )
    names = [str(agent["name"]) for agent in primary]
    default_agent = str(config.get("default_agent") or "build")
    return Offer(
        agents=tuple(AgentInfo(str(agent["name"]), str(agent.get("description", ""))) for agent in primary),
        models=models,
        default_model=str(config.get("model") or ""),
        default_agent=default_agent if default_agent in names or not names else names[0],
        rules={str(agent["name"]): agent.get("permission", []) for agent in agents},
        signed_in=any((provider["id"], provider.get("source")) != HOSTED for provider in providers),
    )


def _model(provider: Any, model: Any) -> ModelInfo:
    cost = model.get("cost", {})
    prices = (cost.get("input"), cost.get("output"))
    known = any(prices)  # OpenCode gives 0 for a price that nobody has told it
    return ModelInfo(
        id=f"{provider['id']}/{model['id']}",
        name=str(model.get("name", "")),
        variants=tuple(model.get("variants") or ()),
        input_price=prices[0] if known else None,
        output_price=prices[1] if known else None,
    )
