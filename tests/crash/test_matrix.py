"""The crash matrix: whatever is killed at whichever moment, no task is lost, no prompt is sent twice and no status lies.

Its rule is the table of moments in docs/RELIABILITY.md. OFFLOAD_CRASH_SCHEDULES is how many schedules are run, of the seeds from 0
on; OFFLOAD_CRASH_SEED runs that one alone.
"""

import asyncio
import os

import pytest

from tests.crash.plans import HUB_LABELS, SERVER_LABELS, plan
from tests.crash.schedule import Run

SCHEDULES = int(os.environ.get("OFFLOAD_CRASH_SCHEDULES", "240"))
BLOCK = 20
AT_ONCE = 5
SEEDS = [int(os.environ["OFFLOAD_CRASH_SEED"])] if "OFFLOAD_CRASH_SEED" in os.environ else [*range(SCHEDULES)]


# A hub that is killed closes nothing that it holds, and neither does one that is made to look so.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("first", SEEDS[::BLOCK], ids=lambda first: f"from-{first}")
async def test_whatever_is_killed_no_task_is_lost_no_prompt_is_sent_twice_and_no_status_lies(tmp_path, first, figures):
    places = asyncio.Semaphore(AT_ONCE)

    async def one(seed):
        async with places:
            return await Run(seed, tmp_path / str(seed)).to_the_end()

    verdicts = await asyncio.gather(*(one(seed) for seed in SEEDS if first <= seed < first + BLOCK))
    for verdict in verdicts:
        figures(verdict)
    assert [verdict for verdict in verdicts if verdict.lost or verdict.duplicates or verdict.wrong] == []


def test_a_schedule_is_the_same_each_time_and_all_moments_have_their_turn():
    assert plan(7) == plan(7)
    labels = {kill.label for seed in range(240) for kill in plan(seed).kills}
    assert labels == {*HUB_LABELS, *SERVER_LABELS}
