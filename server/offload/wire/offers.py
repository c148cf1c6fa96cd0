"""What a task can be given to, as views: workers with their agents and models, and recipes."""

from __future__ import annotations

from collections.abc import Sequence

from offload.core.worker import ModelInfo, WorkerInfo
from offload.domain.recipe import Recipe
from offload.wire.results import ListAgentsResult
from offload.wire.views import AgentView, ModelView, RecipeView, WorkerView


def agents(
    workers: Sequence[WorkerInfo], recipes: Sequence[Recipe], default_worker: str, search: str = ""
) -> ListAgentsResult:
    """What a task can be given to; `search` keeps the models whose id contains all of its words, in any case."""
    words = search.lower().split()
    return ListAgentsResult(
        workers=[_worker(worker, words) for worker in workers],
        recipes=[RecipeView(name=recipe.name, title=recipe.title) for recipe in recipes],
        default_worker=default_worker,
    )


def _worker(worker: WorkerInfo, words: Sequence[str]) -> WorkerView:
    return WorkerView(
        name=worker.name,
        version=worker.version,
        agents=[AgentView(name=agent.name, description=agent.description) for agent in worker.agents],
        models=[_model(model) for model in worker.models if all(word in model.id.lower() for word in words)],
        default_model=worker.default_model,
        profiles=list(worker.profiles),
        problem=worker.problem,
        note=worker.note,
    )


def _model(model: ModelInfo) -> ModelView:
    return ModelView(
        id=model.id,
        name=model.name,
        variants=list(model.variants),
        input_price=model.input_price,
        output_price=model.output_price,
    )
