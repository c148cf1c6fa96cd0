"""The words about an integration, where there is more of something than anybody reads."""

from functools import reduce

from offload.core.integration.culprits import Found
from offload.core.integration.overlaps import Result
from offload.core.integration.report import CONFLICTS, LINE, PAIRS, PATHS, cause, report, reservations
from offload.domain.change import ChangeSet, Conflict, FileChange, FileStatus
from offload.domain.check import CheckResult
from offload.domain.events import Admitted, Created, Integrated, TurnEnded, TurnSeen
from offload.domain.integration import Integration, LeftOut, Overlap
from offload.domain.lifecycle import advance, begin
from offload.domain.route import Route
from offload.domain.task import TaskSpec

CHANGES = ChangeSet("a", "b", (FileChange("x", FileStatus.MODIFIED, "", "", 2, 1),))


def result(name):
    spec = TaskSpec("/w", f"title of {name}", "do it", "do it", Route("fake"), "instruction")
    return Result(begin(name, Created(at=1.0, turn="turn", spec=spec)), CHANGES, CHANGES)


def told(*conflicts, overlaps=(), with_tasks=("a",)):
    made = Integration(order=("a",), overlaps=overlaps, left_out=(LeftOut("b", with_tasks, conflicts),))
    return report("id", made, [result("a"), result("b")]), reservations(made, [result("a"), result("b")])


def test_a_few_of_many_conflicts_are_told_and_the_others_counted():
    text, why = told(*(Conflict(f"file{number}", "both changed it") for number in range(CONFLICTS + 3)))
    assert text.count("both changed it") == CONFLICTS
    assert "  and 3 more\n" in text
    assert why.startswith("b was left out: it conflicts with a in file0, file1")
    assert "3 more" in why


def test_a_few_of_many_pairs_and_of_their_files_are_told():
    names = tuple(f"f{number}" for number in range(PATHS + 2))
    text, _ = told(overlaps=(Overlap("a", "b", names),) * (PAIRS + 4))
    assert text.count("* a and b: f0") == PAIRS
    assert text.count("f4, 2 more") == PAIRS
    assert "* and 4 more pairs" in text


def test_a_side_without_lines_and_one_with_long_ones_fit_into_a_line():
    text, _ = told(Conflict("x", "one deleted it", first_line=3, yours="\n", theirs="y" * 500))
    (line,) = [line for line in text.splitlines() if "one deleted it" in line]
    assert "x, line 3: " in line
    assert "there it is nothing, in this result “" in line
    assert len(line) < 100 + LINE


def test_more_than_one_opponent_is_named():
    assert "conflicts with a and c" in told(Conflict("x", "both"), with_tasks=("a", "c"))[1]


def test_what_an_integration_had_left_out_is_no_doubt_once_it_is_in():
    left = (LeftOut("b", ("a",), (Conflict("x", "both"),)), LeftOut("c", (), (Conflict("y", "both"),)))
    inner = Integration(order=("a",), left_out=left)
    events = [
        TurnSeen(at=2.0, turn="turn"),
        Integrated(at=3.0, turn="turn", integration=inner),
        TurnEnded(at=4.0, turn="turn", text="", changes=CHANGES, needs_review=reservations(inner, [])),
    ]
    united = reduce(advance, [Admitted(at=1.5, turn="turn"), *events], result("i").task)
    results = [Result(united, CHANGES, CHANGES)]
    assert reservations(Integration(order=("i", "b")), results) == (
        "i: c was left out: it conflicts with your own files in y"
    )
    assert reservations(Integration(order=("i", "b", "c")), results) == ""


def test_a_cause_names_every_check_that_failed():
    failing = [CheckResult("tests", passed=False, seconds=1.0), CheckResult("lint", passed=False, seconds=1.0)]
    found = Found(culprits=("a",))
    assert cause(found, failing, str) == "tests, lint: fails with a alone, and passes without any of the results"
