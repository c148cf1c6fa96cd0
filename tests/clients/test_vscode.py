"""The VS Code extension: its types, its own tests in tests/clients/vscode, and the package that is made of it."""

import json
import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from offload.lsp.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "clients" / "vscode"
MANIFEST = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in the extension's folder; its output is what a failure shows."""
    done = subprocess.run(command, cwd=EXTENSION, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module", autouse=True)
def installed():
    run("sh", str(ROOT / "tests" / "clients" / "install"))


def test_the_types_hold():
    run("npm", "run", "--silent", "typecheck")


def test_its_unit_tests_pass():
    done = run("npm", "run", "--silent", "test")
    passed = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert passed is not None
    cases = json.loads((ROOT / "tests" / "clients" / "status_cases.json").read_text(encoding="utf-8"))["cases"]
    assert int(passed.group(1)) > len(cases)


def test_the_package_holds_what_is_listed_and_nothing_else(tmp_path):
    """One command makes it, as its README says: `package` builds what it packs."""
    shutil.rmtree(EXTENSION / "dist", ignore_errors=True)
    run("npm", "run", "--silent", "package", "--", "--out", str(tmp_path / "offload.vsix"))
    with zipfile.ZipFile(tmp_path / "offload.vsix") as package:
        contents = sorted(package.namelist())
        packed = json.loads(package.read("extension/package.json"))
        code = package.read("extension/dist/extension.js").decode()
    assert contents == Path(__file__).with_name("vsix_contents.txt").read_text().splitlines()
    assert packed["main"] == "./dist/extension.js"
    assert packed["contributes"]["configuration"]["properties"]["offload.command"]["default"] == ["offload", "lsp"]
    for command in packed["contributes"]["commands"]:
        assert command["command"] in code


def test_the_palettes_commands_are_those_that_the_code_has():
    written = re.findall(r'^  "(offloadClient\.\w+)":', (EXTENSION / "src" / "commands.ts").read_text(), re.MULTILINE)
    assert [command["command"] for command in MANIFEST["contributes"]["commands"]] == written


def test_no_command_has_a_name_of_the_servers():
    """The language client registers the server's commands itself; an extension that registers one of them too fails."""
    assert [
        name["command"] for name in MANIFEST["contributes"]["commands"] if name["command"].startswith("offload.")
    ] == []


def test_the_servers_commands_that_it_runs_are_there():
    written = re.findall(r'^  "(offload\.\w+)":', (EXTENSION / "src" / "requests.ts").read_text(), re.MULTILINE)
    assert written
    assert set(written) <= set(COMMANDS)


def test_both_clients_serve_the_same_languages():
    events = [event.removeprefix("onLanguage:") for event in MANIFEST["activationEvents"]]
    code = (EXTENSION / "src" / "extension.ts").read_text()
    lua = (ROOT / "clients" / "neovim" / "lsp" / "offload.lua").read_text()
    selected = re.findall(r'"(\w+)"', code[code.index("const LANGUAGES = [") : code.index("];")])
    filetypes = re.findall(r"'(\w+)'", lua[lua.index("filetypes = {") : lua.index("root_markers")])
    assert events == selected == filetypes
