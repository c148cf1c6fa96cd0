"""Places and lines."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack

from hypothesis import given, settings
from hypothesis import strategies as st

from offload.core.turns.admission import Admission


class Crowd:
    """Tasks that come, hold their place until they are told to go, and write down when they were let in."""

    def __init__(self, limit=5):
        self.moved = []
        self.when_moved = {}
        self.admission = Admission(limit, self._moved)
        self.inside = []
        self.let_in = []
        self._leave = {}
        self._tasks = {}

    async def come(self, name, workspace="/w"):
        self._leave[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._stay(name, workspace))
        await settle()

    def _moved(self, name):
        self.moved.append(name)
        self.when_moved.get(name, lambda: None)()

    async def _stay(self, name, workspace):
        async with self.admission.place(workspace, name):
            self.let_in.append(name)
            self.inside.append(name)
            try:
                await self._leave[name].wait()
            finally:
                self.inside.remove(name)

    def tell_to_leave(self, name):
        self._leave[name].set()

    def cancel(self, name):
        self._tasks[name].cancel()

    async def leave(self, name):
        self.tell_to_leave(name)
        await settle()

    def positions(self, workspace="/w"):
        found = {name: self.admission.position(workspace, name) for name in self._tasks}
        return {name: place for name, place in found.items() if place is not None}

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_five_tasks_work_at_a_time_and_the_others_know_their_place():
    async with Crowd() as crowd:
        for name in "abcdefgh":
            await crowd.come(name)
        assert crowd.inside == list("abcde")
        assert crowd.positions() == {"f": 1, "g": 2, "h": 3}


async def test_places_are_given_out_in_the_order_of_asking():
    async with Crowd(1) as crowd:
        for name in "abcd":
            await crowd.come(name)
        for name in "abc":
            await crowd.leave(name)
        assert crowd.let_in == list("abcd")
        assert crowd.positions() == {}


async def test_those_whose_place_changed_are_told_and_no_others():
    async with Crowd(1) as crowd:
        for name in "abc":
            await crowd.come(name)
        assert crowd.moved == ["b", "c"]
        await crowd.come("d")
        assert crowd.moved == ["b", "c", "d"]
        await crowd.leave("a")
        assert crowd.moved == ["b", "c", "d", "c", "d"]


async def test_another_workspace_is_not_affected():
    async with Crowd(1) as crowd:
        await crowd.come("a")
        await crowd.come("b")
        await crowd.come("x", "/other")
        assert crowd.inside == ["a", "x"]
        await crowd.leave("x")
        assert crowd.inside == ["a"]
        assert crowd.positions("/other") == {}


async def test_one_that_is_cancelled_while_it_waits_leaves_the_line():
    async with Crowd(1) as crowd:
        for name in "abc":
            await crowd.come(name)
        crowd.cancel("b")
        await settle()
        assert crowd.positions() == {"c": 1}
        await crowd.leave("a")
        assert crowd.inside == ["c"]


async def test_one_that_is_cancelled_in_the_moment_of_its_admission_gives_its_place_to_the_next():
    async with Crowd(1) as crowd:
        for name in "abc":
            await crowd.come(name)
        crowd.when_moved["c"] = lambda: crowd.cancel("b")  # which was admitted just now, and is not yet awake
        await crowd.leave("a")
        assert crowd.let_in == ["a", "c"]


async def test_a_task_that_asks_again_while_its_first_asking_is_still_ending_gets_a_place():
    """A queued task that is cancelled and continued at once: the old entry must not take the new one along."""
    async with Crowd(1) as crowd, AsyncExitStack() as stack:
        await crowd.come("a")
        first = asyncio.create_task(stack.enter_async_context(crowd.admission.place("/w", "b")))
        await settle()
        await crowd.come("b")
        first.cancel()
        await crowd.leave("a")
        assert crowd.inside == ["b"]


async def test_a_place_is_free_again_when_what_was_done_in_it_is_cancelled():
    async with Crowd(1) as crowd:
        await crowd.come("a")
        crowd.cancel("a")
        await crowd.come("b")
        assert crowd.inside == ["b"]


@settings(max_examples=80, deadline=None)
@given(
    limit=st.integers(1, 3),
    steps=st.lists(
        st.tuples(st.sampled_from(["come", "leave", "cancel"]), st.integers(0, 9), st.booleans()), max_size=40
    ),
)
def test_whatever_happens_no_place_is_lost_or_given_twice_and_nobody_is_overtaken(limit, steps):
    """The line is held against the list of those who came: whoever was let in came before all who wait."""

    async def play():
        async with Crowd(limit) as crowd:
            came, gone = [], Counter()
            for what, number, at_once in steps:
                if what == "come":
                    came.append(f"task {len(came)}")
                    await crowd.come(came[-1])
                elif number < len(came):
                    name = came[number]
                    crowd.cancel(name) if what == "cancel" else crowd.tell_to_leave(name)
                    gone[name] += 1
                    if not at_once:
                        await settle()
                assert len(crowd.inside) <= limit
            await settle()
            waiting = sorted(crowd.positions(), key=crowd.positions().get)
            assert list(crowd.positions().values()) == list(range(1, len(waiting) + 1))
            assert len(crowd.inside) == limit or not waiting
            assert all(came.index(inside) < came.index(behind) for inside in crowd.let_in for behind in waiting)
            assert waiting == sorted(waiting, key=came.index)
            assert {name for name in came if not gone[name]} == {
                name for name in (*crowd.inside, *waiting) if not gone[name]
            }

    asyncio.run(play())
