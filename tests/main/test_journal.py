"""The real hub on a journal that is damaged, and what it does by itself with old tasks."""

import asyncio
import logging
import os
import tempfile
from pathlib import Path

import pytest

from offload.app import tidied
from offload.core.housekeeping import AFTER_START_S, DAY_S
from offload.hub import run
from offload.hub.client import connect
from tests.fakes.house import open_house


@pytest.fixture
def environ(tmp_path):
    """A hub of our own, in a short folder: a path that is too long for a socket gets one elsewhere."""
    with tempfile.TemporaryDirectory(prefix="hub-") as state:
        environ = {**os.environ, "OFFLOAD_STATE_DIR": state, "OFFLOAD_CONFIG_DIR": str(tmp_path)}
        yield environ
        run.stop(environ)


def test_the_hub_starts_on_a_damaged_journal_and_says_so_until_the_note_is_removed(environ):
    journal = Path(environ["OFFLOAD_STATE_DIR"], "journal.sqlite3")
    journal.write_bytes(b"damaged" * 1000)
    for _ in range(2):  # the second hub finds nothing wrong, and still says what the first one did
        with connect(environ) as hub:
            assert hub.call("list_tasks", {})["tasks"] == []
        (note,) = run.status(environ)["notes"]
        run.stop(environ)
    (old,) = [file for file in journal.parent.glob("*.damaged-*") if file.suffix != ".txt"]
    assert old.read_bytes() == b"damaged" * 1000
    assert str(old) in note
    assert note in Path(environ["OFFLOAD_STATE_DIR"], "hub.log").read_text()
    old.with_name(f"{old.name}.txt").unlink()
    with connect(environ):
        assert run.status(environ)["notes"] == []


async def test_the_hub_cleans_by_itself_and_logs_what_has_gone(tmp_path, caplog):
    async with open_house(tmp_path) as house, asyncio.timeout(20):
        task = await house.rested((await house.start("::text only words")).id)
        with caplog.at_level(logging.INFO):
            async with tidied(house.delegation, {}, house.clock, 30):
                await house.clock.naps(AFTER_START_S)
                house.clock.advance(30 * DAY_S)
                await house.clock.naps(DAY_S)
        assert house.delegation.tasks(closed=True) == []
        assert [record.tasks for record in caplog.records if record.message == "cleaned"] == [[task.id]]


async def test_with_0_days_the_hub_never_cleans(tmp_path):
    async with open_house(tmp_path) as house:
        task = await house.rested((await house.start("::text only words")).id)
        async with tidied(house.delegation, {}, house.clock, 0):
            house.clock.advance(1000 * DAY_S)
        assert [one.id for one in house.delegation.tasks()] == [task.id]
