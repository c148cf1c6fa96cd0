from pathlib import Path

import pytest

from offload.domain.ask import AskKind
from offload.workers.opencode.activity import asking, denied, label, permission_ask, question_ask

FOLDER = Path("/home/me/folder")


@pytest.mark.parametrize(
    ("tool", "arguments", "wanted"),
    [
        ("bash", {"command": "python -m pytest"}, "running the test suite"),
        ("bash", {"command": " python -m pytest tests/a.py"}, "running the test suite"),
        ("bash", {"command": "python -m pytest-other"}, "running python -m pytest-other"),
        ("bash", {"command": "make"}, "running make"),
        ("bash", {"command": "cat <<END\n" + "x" * 100}, "running cat <<END " + "x" * 49 + "…"),
        ("bash", {}, "running"),
        ("read", {"filePath": "/home/me/folder/src/a.py"}, "reading src/a.py"),
        ("read", {"filePath": "src/a.py"}, "reading src/a.py"),
        ("edit", {"filePath": "/elsewhere/a.py"}, "editing /elsewhere/a.py"),
        ("write", {}, "editing"),
        ("apply_patch", {}, "editing files"),
        ("grep", {}, "searching"),
        ("task", {}, "asking a sub-agent"),
        ("stub_ping", {}, "using stub_ping"),
    ],
)
def test_what_a_tool_does_is_told_in_plain_english(tool, arguments, wanted):
    assert label(tool, arguments, FOLDER, ("make", "python -m pytest")) == wanted


@pytest.mark.parametrize(
    ("metadata", "detail"),
    [
        ({"command": "rm x"}, "rm x"),
        ({"filepath": "/etc/x"}, "/etc/x"),
        ({"url": "http://x"}, "http://x"),
        (None, "a, b"),
    ],
)
def test_a_permission_says_what_exactly_is_wanted(metadata, detail):
    request = {"id": "per_1", "permission": "bash", "patterns": ["a", "b"], "metadata": metadata}
    assert permission_ask(request).detail == detail


def test_a_question_without_anything_in_it_is_a_question_all_the_same():
    ask = question_ask({"id": "que_1", "questions": []})
    assert (ask.kind, ask.subject, ask.choices) == (AskKind.QUESTION, "question", ())


def test_what_is_asked_for_and_denied_is_told():
    """A status said "running ..." of a command that was only asked for, and of one that had been denied."""
    run = permission_ask({"id": "per_1", "permission": "bash", "metadata": {"command": "rm -r  build"}})
    edit = permission_ask({"id": "per_2", "permission": "edit", "patterns": ["/etc/hosts"]})
    assert (asking(run), denied(run)) == ("asks to run rm -r build", "was denied rm -r build")
    assert (asking(edit), denied(edit)) == ("asks for edit: /etc/hosts", "was denied edit: /etc/hosts")
