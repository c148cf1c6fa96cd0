"""Which worker, agent and model a turn is given to, and which really ran."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Route:
    """A route as asked for, or as the worker reported it; an empty part means "the default" or "not reported".

    `worker` is a registered name ("opencode"); `agent` is the worker's own profile ("build"); `model` is
    "PROVIDER/MODEL" as the worker lists it; `variant` is a named set of model options ("high").
    """

    worker: str
    agent: str = ""
    model: str = ""
    variant: str = ""


def differences(asked: Route, ran: Route) -> tuple[str, ...]:
    """Sentences about each part that was asked for and was not what ran; parts left open never differ."""
    return tuple(
        f"asked for {name} {wanted}, ran {got or 'unknown'}"
        for name, wanted, got in (
            ("agent", asked.agent, ran.agent),
            ("model", asked.model, ran.model),
            ("variant", asked.variant, ran.variant),
        )
        if wanted and wanted != got
    )
