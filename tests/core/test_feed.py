"""Watchers get what changes, the latest state only."""

import asyncio
from dataclasses import replace

from offload.core.feed import Feed
from offload.domain.task import Phase, TaskId
from tests.domain.events import task_in

TASK = task_in(Phase.QUEUED)


def revision(number, name="task"):
    return replace(TASK, id=TaskId(name), revision=number)


async def test_a_watcher_waits_for_a_change():
    feed = Feed()
    with feed.watching() as watcher:
        waiting = asyncio.create_task(watcher.changes())
        await asyncio.sleep(0)
        assert not waiting.done()
        feed.publish(revision(2))
        assert await waiting == [revision(2)]


async def test_a_slow_watcher_gets_the_latest_state_of_each_task_only():
    feed = Feed()
    with feed.watching() as slow:
        for number in range(2, 500):
            feed.publish(revision(number))
            feed.publish(revision(number, "other"))
        assert await slow.changes() == [revision(499), revision(499, "other")]


async def test_every_watcher_gets_every_change_from_its_beginning_to_its_end():
    feed = Feed()
    with feed.watching() as early:
        feed.publish(revision(2))
        with feed.watching() as late:
            feed.publish(revision(3))
            assert await late.changes() == [revision(3)]
        feed.publish(revision(4))
        assert await early.changes() == [revision(4)]
    feed.publish(revision(5))
    leftover = asyncio.create_task(late.changes())
    await asyncio.sleep(0)
    assert not leftover.done()
    leftover.cancel()


async def test_watching_goes_on_from_change_to_change():
    feed, seen = Feed(), []

    async def watch():
        async for task in feed.watch():
            seen.append(task.revision)
            if task.revision == 4:
                return

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    feed.publish(revision(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    feed.publish(revision(3))
    feed.publish(revision(4))
    async with asyncio.timeout(5):
        await watching
    assert seen == [2, 4]
