"""The search for the results that break the checks, on sets of letters in place of files."""

import itertools

import pytest

from offload.core.integration.culprits import Untried, find_culprits


def broken_by(*culprits):
    """Fails with each set of results that holds all of one of `culprits`; `asked` lists what was tried."""
    asked = []

    async def fails(some):
        asked.append("".join(some))
        return any(set(culprit) <= set(some) for culprit in culprits)

    return fails, asked


@pytest.mark.parametrize("size", range(1, 9))
async def test_each_single_culprit_among_up_to_eight_is_found(size):
    order = "abcdefgh"[:size]
    for culprit in order:
        fails, _ = broken_by(culprit)
        found = await find_culprits(order, fails)
        assert found.culprits == (culprit,)
        assert not found.before
        assert not found.doubt


@pytest.mark.parametrize("size", range(2, 9))
async def test_each_pair_among_up_to_eight_is_found_in_the_order_of_merging(size):
    order = "abcdefgh"[:size]
    for pair in itertools.combinations(order, 2):
        fails, _ = broken_by(pair)
        assert (await find_culprits(order, fails)).culprits == pair


async def test_no_set_is_tried_twice_and_each_run_is_counted():
    for pair in itertools.combinations("abcdefgh", 2):
        fails, asked = broken_by(pair)
        found = await find_culprits("abcdefgh", fails)
        assert len({frozenset(some) for some in asked}) == len(asked) == found.probes


async def test_sixteen_results_take_at_most_twelve_runs_to_a_single_or_a_pair():
    """One for the files alone, four to halve, one for the last alone, four to halve again, two to make sure."""
    order = "abcdefghijklmnop"
    for culprit in (*order, *itertools.combinations(order, 2)):
        fails, _ = broken_by(culprit)
        found = await find_culprits(order, fails)
        assert found.culprits == tuple(culprit)
        assert found.probes <= 12


async def test_checks_that_fail_without_any_result_blame_none():
    fails, asked = broken_by("")
    found = await find_culprits("abc", fails)
    assert found.before
    assert found.culprits == ()
    assert asked == [""]


async def test_three_that_fail_only_together_are_not_blamed_on_two():
    fails, _ = broken_by("abc")
    found = await find_culprits("abc", fails)
    assert found.culprits == ()
    assert "since c was merged" in found.doubt


async def test_checks_that_pass_when_they_are_run_again_blame_none():
    async def passes(some):
        return False

    found = await find_culprits("abcd", passes)
    assert found.culprits == ()
    assert "does not always give the same" in found.doubt


async def test_one_that_fails_alone_but_not_with_others_is_in_doubt():
    """With a and b it passes: b mends what a breaks. So c seems to need a, which fails without it."""

    async def fails(some):
        return set(some) in ({"a"}, {"a", "c"}, {"a", "b", "c"})

    found = await find_culprits("bac", fails)
    assert found.culprits == ()
    assert found.doubt


async def test_results_that_do_not_merge_without_the_others_leave_it_open():
    async def fails(some):
        if some and "a" not in some:
            raise Untried
        return "b" in some

    found = await find_culprits("abc", fails)
    assert found.culprits == ()
    assert "cannot be merged without others" in found.doubt
    assert found.probes == 3  # the files alone, a, and a with b
