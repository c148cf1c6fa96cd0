"""The rules of a session, by the way OpenCode reads them: the last that matches wins, the session's after the agent's."""

from fnmatch import fnmatchcase

import pytest

from offload.domain.profile import Profile
from offload.workers.opencode.permissions import PROFILES, action, looser, rule, session_rules

BUILT_IN = [
    rule("*", "*", "allow"),
    rule("doom_loop", "*", "ask"),
    rule("external_directory", "*", "ask"),
    rule("read", "*.env", "ask"),
]


def decide(agent, commands, permission, pattern):
    return action([*agent, *session_rules(agent, commands)], permission, pattern)


@pytest.mark.parametrize(
    ("permission", "pattern", "wanted"),
    [
        ("bash", "rm x", "ask"),
        ("bash", "pytest", "allow"),
        ("bash", "pytest -k one", "allow"),
        ("bash", "pytests", "ask"),
        ("bash", "pytest > /etc/passwd", "ask"),
        ("bash", "pytest -k one; rm x", "ask"),
        ("bash", "pytest\nrm x", "ask"),
        ("bash", "pytest 2>&1", "allow"),
        ("edit", "src/a.py", "allow"),
        ("edit", "../a.py", "deny"),
        ("read", "src/a.py", "allow"),
        ("read", ".env", "ask"),
        ("read", ".env.local", "ask"),
        ("grep", "words", "allow"),
        ("webfetch", "http://x", "ask"),
        ("external_directory", "/etc/*", "ask"),
    ],
)
def test_a_worker_may_edit_inside_and_run_what_was_declared_and_asks_for_the_rest(permission, pattern, wanted):
    assert decide(BUILT_IN, ["pytest"], permission, pattern) == wanted


def test_what_a_user_allows_beyond_ours_asks_all_the_same():
    own = [*BUILT_IN, rule("bash", "*", "allow"), rule("external_directory", "*", "allow")]
    assert decide(own, [], "bash", "ls") == "ask"
    assert decide(own, [], "external_directory", "/etc/*") == "ask"


@pytest.mark.parametrize(
    ("own", "permission", "pattern", "wanted"),
    [
        (rule("bash", "*", "deny"), "bash", "pytest", "deny"),
        (rule("bash", "pytest --pdb*", "deny"), "bash", "pytest --pdb", "deny"),
        (rule("bash", "pytest*", "ask"), "bash", "pytest", "ask"),
        (rule("edit", "*", "ask"), "edit", "a.py", "ask"),
        (rule("edit", "*", "deny"), "edit", "a.py", "deny"),
        (rule("webfetch", "*", "deny"), "webfetch", "http://x", "deny"),
        (rule("*", "*", "deny"), "bash", "pytest", "deny"),
    ],
)
def test_what_a_user_denies_or_wants_to_be_asked_about_stays_so(own, permission, pattern, wanted):
    """Measured: `permission` in the configuration turned a user's deny into an ask; session rules would as well."""
    assert decide([*BUILT_IN, own], ["pytest"], permission, pattern) == wanted


def test_a_sub_agent_is_left_with_no_shell_no_web_and_no_edits_outside():
    """Measured: a sub-agent's session gets the denies of its parent's and nothing else."""
    handed_on = [one for one in session_rules(BUILT_IN, ["pytest"]) if one["action"] == "deny"]
    inherited = [*BUILT_IN, *handed_on]
    assert action(inherited, "bash", "pytest") == "deny"
    assert action(inherited, "webfetch", "http://x") == "deny"
    assert action(inherited, "edit", "../x") == "deny"
    assert action(inherited, "edit", "x") == "allow"


def test_where_no_rule_matches_opencode_asks():
    assert action([], "bash", "ls") == "ask"
    assert fnmatchcase("ls -l", "ls *")


ASKS = [*BUILT_IN, rule("bash", "*", "ask")]


@pytest.mark.parametrize(
    ("own", "command", "wanted"),
    [
        (ASKS, "pytest", "ask"),
        ([*ASKS, rule("bash", "pytest*", "allow")], "pytest", "allow"),
        ([*BUILT_IN, rule("*", "pytest --pdb*", "deny")], "pytest --pdb", "deny"),
        ([*BUILT_IN, rule("ba*", "pytest -x", "ask")], "pytest -x", "ask"),
        (
            [*BUILT_IN, rule("bash", "pytest -x*", "deny"), rule("bash", "pytest -x -k*", "ask")],
            "pytest -x -k a",
            "deny",
        ),
        ([], "pytest", "ask"),
    ],
)
def test_a_declared_command_runs_only_where_the_user_allows_it_as_well(own, command, wanted):
    """Our allows, then the asks of both sides, then the denies of both."""
    assert decide(own, ["pytest"], "bash", command) == wanted


@pytest.mark.parametrize(
    ("permission", "pattern", "wanted"),
    [
        ("read", "src/a.py", "allow"),
        ("read", ".env", "ask"),
        ("grep", "words", "allow"),
        ("edit", "src/a.py", "deny"),
        ("bash", "pytest", "deny"),
        ("bash", "ls", "deny"),
        ("webfetch", "http://x", "deny"),
        ("external_directory", "/etc/*", "deny"),
        ("task", "general", "deny"),
        ("a_tool_of_some_server", "*", "deny"),
    ],
)
def test_a_reader_reads_and_does_nothing_else(permission, pattern, wanted):
    rules = session_rules(BUILT_IN, ["pytest"], Profile.READ_ONLY)
    assert action([*BUILT_IN, *rules], permission, pattern) == wanted


def test_a_reader_reads_no_more_than_the_user_lets_it():
    own = [*BUILT_IN, rule("read", "secret/*", "deny"), rule("grep", "*", "ask")]
    rules = session_rules(own, [], Profile.READ_ONLY)
    assert action([*own, *rules], "read", "secret/a") == "deny"
    assert action([*own, *rules], "grep", "words") == "ask"


def test_with_all_rights_the_users_own_rules_stand_as_they_are():
    assert session_rules(BUILT_IN, ["pytest"], Profile.FULL) == []


def test_rules_for_everybody_are_never_looser_than_the_users_own():
    own = [*ASKS, rule("edit", "*.lock", "deny"), rule("webfetch", "*", "deny"), rule("read", "*.pem", "deny")]
    for profile in PROFILES:
        assert looser(own, [], session_rules(own, ["pytest"], profile)) == ""


@pytest.mark.parametrize(
    ("got", "words"),
    [
        ([], "bash * (allow, not ask)"),
        ([rule("*", "*", "allow")], "doom_loop * (allow, not ask)"),
        ([*session_rules(BUILT_IN, []), rule("bash", "rm *", "allow")], "bash rm * (allow, not ask)"),
        ([*session_rules(BUILT_IN, []), rule("edit", "../*", "ask")], "edit ../* (ask, not deny)"),
    ],
)
def test_what_a_session_may_do_beyond_what_was_asked_for_is_named(got, words):
    assert looser(BUILT_IN, session_rules(BUILT_IN, []), got) == words


def test_stricter_rules_than_asked_for_are_fine():
    wanted = session_rules(BUILT_IN, ["pytest"])
    assert looser(BUILT_IN, wanted, wanted) == ""
    assert looser(BUILT_IN, wanted, [*wanted, rule("*", "*", "deny")]) == ""
