"""What becomes of tasks that were live when the last hub ended.

A queued one waits again, and one that was being checked is checked once more: its worker's part is over and recorded. Of every
other it is said at once that its work is being looked for, and its turn is run again in resume mode: the worker meets it where it
is, collects what it finished meanwhile, or says that nobody works on it any more.
"""

from __future__ import annotations

from collections.abc import Mapping

from offload.core.ledger import Ledger
from offload.core.turns.supervisor import Supervisor
from offload.domain.events import WorkLost
from offload.domain.task import Phase

REASON = "the hub ended while this turn ran"


async def recover(ledger: Ledger, supervisor: Supervisor, environment: Mapping[str, str]) -> None:
    """To be called once, before the first front is served. `environment` is the hub's own: a caller's is never stored.

    Those that were at work come first, so that no queued one takes their place.
    """
    live = [task for task in ledger.all() if task.live]
    for task in [task for task in live if task.phase is not Phase.QUEUED]:
        if task.phase is not Phase.RECOVERING and task.turn.changes is None:
            lost = WorkLost(at=ledger.clock.now(), turn=task.turn.id, reason=REASON)
            task = await ledger.record(task.id, lost)  # noqa: PLW2901 - the same task, later
        supervisor.launch(task, environment)
    for task in [task for task in live if task.phase is Phase.QUEUED]:
        supervisor.launch(task, environment)
