"""The rules of a session, by the way OpenCode reads them: the last that matches wins, the session's after the agent's."""

from fnmatch import fnmatchcase

import pytest

from offload.workers.opencode.permissions import action, rule, session_rules

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
