import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload import __version__
from offload.hub import greeting as front
from offload.hub import hello

GOOD = {"protocol": 1, "version": "9", "kind": "lsp", "cwd": "/w", "pid": 7, "client": "vim", "environment": {"A": "b"}}


def line(**changes):
    return json.dumps({**GOOD, **changes}).encode()


def test_a_hello_says_who_connects():
    assert hello.parse(line()) == hello.Hello("lsp", "/w", 7, "9", 1, "vim", {"A": "b"})


def test_what_a_front_sends_is_what_the_hub_reads():
    told = hello.parse(front.greeting("mcp", {"PATH": "/bin", "GIT_DIR": "/x"}, client="codex"))
    assert told == hello.Hello("mcp", os.getcwd(), os.getpid(), __version__, 1, "codex", {"PATH": "/bin"})


def test_a_hello_never_shows_the_environment():
    """It may hold keys, and a repr ends up in logs."""
    assert "secret" not in repr(hello.parse(line(environment={"X_API_KEY": "secret"})))


def test_a_front_whose_folder_is_gone_still_says_hello(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert hello.parse(front.greeting("lsp", {})).cwd == "/"


@pytest.mark.parametrize(
    "bad",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[]", b'"lsp"', b"null", b"Content-Length: 2\r\n"],
    ids=["empty", "cut", "bytes", "deep", "list", "string", "null", "lsp"],
)
def test_what_is_no_object_is_refused(bad):
    with pytest.raises(front.Refusal, match="must be one JSON object") as refused:
        hello.parse(bad)
    assert refused.value.code == "invalid_request"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"protocol": "1"}, "protocol is missing or is not a whole number"),
        ({"protocol": True}, "protocol is missing or is not a whole number"),
        ({"version": None}, "version is missing or is not a string"),
        ({"kind": 3}, "kind is missing or is not a string"),
        ({"cwd": "here"}, "cwd must be an absolute folder"),
        ({"pid": 1.5}, "pid is missing or is not a whole number"),
        ({"client": []}, "client is missing or is not a string"),
        ({"environment": []}, "environment is missing or is not an object"),
        ({"environment": {"A": 1}}, "environment must hold strings only"),
    ],
)
def test_a_field_that_is_not_what_it_must_be_is_named(changes, reason):
    with pytest.raises(front.Refusal, match=reason) as refused:
        hello.parse(line(**changes))
    assert refused.value.code == "invalid_request"


def test_the_client_may_be_unknown_and_more_may_be_said():
    """A newer front may know more; what is not needed is not asked for."""
    body = {name: value for name, value in GOOD.items() if name != "client"}
    assert hello.parse(json.dumps({**body, "later": 1}).encode()).client == ""


def test_another_protocol_is_refused_with_both_versions_and_the_way_out():
    """Case H24."""
    with pytest.raises(front.Refusal) as refused:
        hello.parse(line(protocol=2, version="7.7"))
    assert refused.value.code == "version_mismatch"
    for part in ("7.7", "protocol 2", __version__, "protocol 1", "offload hub stop"):
        assert part in str(refused.value)


def test_a_front_of_an_older_protocol_is_told_to_be_started_anew():
    """An editor that was open while offload was installed runs the older front."""
    with pytest.raises(front.Refusal, match=r"restart the editor or host.*tasks are kept") as refused:
        hello.parse(line(protocol=0))
    with pytest.raises(front.Refusal) as told:
        front.welcome(hello.refused(refused.value))
    assert (told.value.code, told.value.protocol) == ("version_mismatch", front.PROTOCOL)


def test_who_is_behind_a_front_is_learnt_later():
    told = hello.parse(line(client=""))
    told.learn("Neovim")
    assert told.client == "Neovim"


def test_a_control_connection_is_understood_in_every_version():
    """Case H24: an old hub must be stoppable by a new command line, and the other way round."""
    assert hello.parse(line(protocol=2, kind="control")).protocol == 2


@settings(deadline=None)  # how busy the machine is says nothing about this
@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps).map(str.encode)
)
def test_nothing_that_is_sent_does_more_than_be_refused(data):
    with pytest.raises(front.Refusal):
        hello.parse(data)


def test_the_answers_are_read_as_they_were_meant():
    assert front.welcome(hello.accepted()) == (__version__, os.getpid())
    with pytest.raises(front.Refusal, match="no") as refused:
        front.welcome(hello.refused(front.Refusal("invalid_request", "no")))
    assert refused.value.code == "invalid_request"


@pytest.mark.parametrize("answer", [b"", b"{}", b"[]", b"HTTP/1.1 400 Bad Request", b'{"ok": true}', b'{"ok": false}'])
def test_an_answer_that_makes_no_sense_is_no_hub_of_ours(answer):
    with pytest.raises(front.Refusal, match="does not speak its protocol") as refused:
        front.welcome(answer)
    assert refused.value.code == "version_mismatch"


def test_only_what_a_worker_needs_of_an_environment_is_told():
    environ = {
        **dict.fromkeys(
            ("PATH", "HOME", "LC_ALL", "XDG_CONFIG_HOME", "AWS_PROFILE", "OPENCODE_CONFIG", "OFFLOAD_X"), "1"
        ),
        **dict.fromkeys(("OPENROUTER_API_KEY", "GH_TOKEN", "https_proxy", "NVM_DIR"), "1"),
        **dict.fromkeys(("GIT_DIR", "PYTHONPATH", "LD_PRELOAD", "VSCODE_PID", "path"), "1"),
    }
    assert set(front.relevant(environ)) == set(environ) - {"GIT_DIR", "PYTHONPATH", "LD_PRELOAD", "VSCODE_PID", "path"}


def test_an_environment_without_bounds_still_makes_a_hello_within_them():
    """What is known by name goes first, and no single variable takes the place of all others."""
    environ = {f"AWS_{number:03}": "\x01" * 1000 for number in range(500)} | {"PATH": "/bin", "OFFLOAD_X": "x" * 20_000}
    sent = front.greeting("lsp", environ)
    assert len(sent) < front.LIMIT // 2
    told = hello.parse(sent).environment
    assert told["PATH"] == "/bin"
    assert "OFFLOAD_X" not in told
    assert 1 < len(told) < 100
