"""What a task may use, all its turns together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Budget:
    """`minutes` of work, `turns`, `tokens` of all kinds, `cost` in US dollars; None is no limit.

    Time in the queue, time of waiting for a person and the machine's sleep are no work.
    """

    minutes: float | None = None
    turns: int | None = None
    tokens: int | None = None
    cost: float | None = None

    def over(self, other: Budget) -> Budget:
        """This budget, with the other's limits where it has none."""
        return Budget(
            other.minutes if self.minutes is None else self.minutes,
            other.turns if self.turns is None else self.turns,
            other.tokens if self.tokens is None else self.tokens,
            other.cost if self.cost is None else self.cost,
        )
