"""The small values: usage, routes, changes, recipes."""

from hypothesis import given
from hypothesis import strategies as st

from offload.domain.change import ChangeSet, FileChange, FileStatus
from offload.domain.recipe import Recipe
from offload.domain.route import Route, differences
from offload.domain.usage import Usage

COUNT = st.integers(0, 10**9)
USAGES = st.builds(Usage, COUNT, COUNT, COUNT, COUNT, COUNT, st.none() | st.integers(0, 10**6).map(float))


def test_all_tokens_are_counted_once():
    assert Usage(1, 20, 300, 4000, 50000).total_tokens == 54321
    assert Usage().total_tokens == 0


@given(USAGES, USAGES)
def test_usage_adds_up_part_by_part(one, other):
    both = one + other
    assert both.total_tokens == one.total_tokens + other.total_tokens
    assert both == other + one
    for part in ("input_tokens", "output_tokens", "reasoning_tokens", "cache_read_tokens", "cache_write_tokens"):
        assert getattr(both, part) == getattr(one, part) + getattr(other, part)


@given(USAGES, USAGES)
def test_a_cost_is_unknown_only_when_no_part_of_it_is_known(one, other):
    """A known part is shown: it is a lower bound."""
    known = [usage.cost for usage in (one, other) if usage.cost is not None]
    assert (one + other).cost == (sum(known) if known else None)


def test_a_sum_over_no_turns_is_nothing():
    assert sum([], Usage()) == Usage()


def test_a_route_that_ran_as_asked_differs_in_nothing():
    route = Route("opencode", "build", "p/m", "high")
    assert differences(route, route) == ()


def test_parts_that_were_left_open_never_differ():
    assert differences(Route("opencode"), Route("opencode", "plan", "p/other", "low")) == ()


def test_each_part_that_was_asked_for_and_did_not_run_is_a_sentence():
    assert differences(Route("opencode", "build", "p/m", "high"), Route("opencode", "plan", "p/other")) == (
        "asked for agent build, ran plan",
        "asked for model p/m, ran p/other",
        "asked for variant high, ran unknown",
    )


def test_a_change_set_counts_the_lines_of_its_files():
    files = (
        FileChange("a.py", FileStatus.MODIFIED, "100644", "100644", 3, 1),
        FileChange("b.py", FileStatus.ADDED, "", "100644", 10, 0),
        FileChange("c.png", FileStatus.ADDED, "", "100644", 0, 0, binary=True),
    )
    changes = ChangeSet("base", "result", files)
    assert (changes.added_lines, changes.removed_lines) == (13, 1)
    assert (ChangeSet("base", "base").added_lines, ChangeSet("base", "base").removed_lines) == (0, 0)


def test_a_recipe_puts_the_values_in_place():
    recipe = Recipe("tests", "Tests", "\nTest $place with `$command`.\n\n$context\n")
    assert recipe.render({"place": "f", "command": "pytest", "context": ""}) == "Test f with `pytest`.\n"


def test_a_dollar_in_code_is_harmless():
    recipe = Recipe("any", "Any", "$brief costs $5, not ${unknown} or $other $")
    assert recipe.render({"brief": "say $place and ${x} and $$"}) == (
        "say $place and ${x} and $$ costs $5, not ${unknown} or $other $\n"
    )


def test_commands_are_those_of_the_language_and_those_of_every_language():
    recipe = Recipe(
        "any", "Any", "", commands=(("python", ("pytest", "nox")), ("", ("make test",)), ("go", ("go test",)))
    )
    assert recipe.commands_for("python") == ("pytest", "nox", "make test")
    assert recipe.commands_for("go") == ("make test", "go test")
    assert recipe.commands_for("") == ("make test",)
    assert Recipe("none", "None", "").commands_for("python") == ()
