"""The settings that a reader copies from the pages about hosts."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from offload.domain.task import Front
from offload.wire.operations import BY_NAME
from offload.wire.params import MAX_WAIT_S

ROOT = Path(__file__).resolve().parents[2]
HOSTS = ROOT / "docs" / "HOSTS.md"
ZED = ROOT / "clients" / "zed" / "README.md"

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
READ = {"json": json.loads, "toml": tomllib.loads}

SNIPPETS = [
    (f"{page.parent.name}/{page.name} {number}", language, text)
    for page in (HOSTS, ZED)
    for number, (language, text) in enumerate(FENCE.findall(page.read_text(encoding="utf-8")), 1)
]


def started(settings):
    """The command lines of all servers that some host's settings name."""
    servers = next(iter(settings.values()))
    for server in servers.values():
        command = server["command"]
        yield command if isinstance(command, list) else [command, *server["args"]]


@pytest.mark.parametrize(("language", "text"), [rest for _, *rest in SNIPPETS], ids=[name for name, *_ in SNIPPETS])
def test_a_snippet_can_be_read_and_starts_offloads_mcp_server(language, text):
    if language == "sh":
        assert shlex.split(text)[-3:] == ["--", "offload", "mcp"]
    else:
        assert list(started(READ[language](text))) == [["offload", "mcp"]]


def test_every_host_that_is_named_has_its_snippet():
    page = HOSTS.read_text(encoding="utf-8")
    sections = re.split(r"^## ", page, flags=re.MULTILINE)[1:]
    assert [section.splitlines()[0] for section in sections] == ["Claude Code", "Codex", "Cursor", "OpenCode", "Zed"]
    assert all(FENCE.search(section) for section in sections)


def test_codex_waits_for_the_tools():
    """A Codex turn may begin without any tools unless the server is required."""
    (settings,) = (tomllib.loads(text) for _, language, text in SNIPPETS if language == "toml")
    server = settings["mcp_servers"]["offload"]
    assert server["required"] is True
    assert server["startup_timeout_sec"] >= 30


def test_the_tools_and_the_wait_that_the_page_names_are_true():
    page = HOSTS.read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:mcp__offload__|offload_)?([a-z]+_[a-z_]+)`", page))
    tools = {name for name, operation in BY_NAME.items() if Front.MODEL in operation.fronts}
    assert named & BY_NAME.keys() == tools
    assert f"No call takes longer than {MAX_WAIT_S} s" in page
