"""What the composition root does by itself: it logs, and lets workers end or go on with the hub."""

import asyncio
import logging
from itertools import pairwise

from offload.app import at_work, log_defect, told_in_log
from tests.fakes.house import open_house
from tests.fakes.worker import FakeWorker


class Logged(logging.Handler):
    """Tells of each record as it comes."""

    def __init__(self):
        super().__init__()
        self.records = []
        self.more = asyncio.Event()

    def emit(self, record):
        self.records.append(record)
        self.more.set()


class Leavable(FakeWorker):
    """Remembers whether it was ended."""

    ended = False

    async def aclose(self):
        self.ended = True


async def test_the_log_says_each_phase_of_a_task_once_and_nothing_of_what_it_is_about(tmp_path):
    logger, logged = logging.getLogger("offload.app"), Logged()
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(logged)
    try:
        async with open_house(tmp_path) as house, asyncio.timeout(20), told_in_log(house.delegation):
            task = await house.rested((await house.start("::text secret words")).id)
            while not [record for record in logged.records if record.phase == task.phase.value]:
                logged.more.clear()
                await logged.more.wait()
    finally:
        logger.removeHandler(logged)
        logger.setLevel(level)
    phases = [record.phase for record in logged.records]
    assert {record.task for record in logged.records} == {task.id}
    assert all(one != other for one, other in pairwise(phases))
    assert "secret" not in str([vars(record) for record in logged.records])


async def test_workers_end_with_the_hub_unless_it_leaves_them_to_the_next():
    worker, left = Leavable(), asyncio.Event()
    async with at_work({"fake": worker}, left):
        left.set()
    assert not worker.ended
    left.clear()
    async with at_work({"fake": worker}, left):
        assert not worker.ended
    assert worker.ended


def test_a_defect_is_logged_with_a_key_by_which_a_report_can_name_it(caplog):
    log_defect("a turn", ValueError("odd"))
    (record,) = caplog.records
    assert (record.what, len(record.key)) == ("a turn", 8)
    assert str(record.exc_info[1]) == "odd"
