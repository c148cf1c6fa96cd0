"""When which turn ran on a server, so that a process that works outside of every task's folder can be told to be of one turn.

It can when that turn alone ran when the process was started. With several at once nobody can say, and it is left alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

from offload.domain.turn import TurnId
from offload.processes import moment

ROUGHLY_S = 0.02
"""The start of a process is known to a hundredth of a second."""


class Turns:
    """Those that run now, and those that ran beside them."""

    def __init__(self) -> None:
        self._times: dict[TurnId, tuple[float, float]] = {}

    @contextmanager
    def running(self, turn: TurnId, *, resumed: bool) -> Iterator[None]:
        """Nobody knows when one that is met again was begun."""
        if not self.running_now:
            self._times.clear()
        began = -math.inf if resumed else moment() - ROUGHLY_S
        self._times[turn] = began, math.inf
        try:
            yield
        finally:
            self._times[turn] = began, moment()

    @property
    def running_now(self) -> int:
        return sum(1 for _, ended in self._times.values() if ended == math.inf)

    def alone(self, turn: TurnId, moment: float) -> bool:
        """Whether this turn ran at the moment, and no other."""
        return [each for each, (began, ended) in self._times.items() if began <= moment <= ended] == [turn]
