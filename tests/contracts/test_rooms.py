"""The plan's rooms, held as tests: contracts in pyproject.toml, one folder of tests per room."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "server" / "offload"
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def test_every_import_contract_holds():
    """docs/ARCHITECTURE.md: imports point inwards, edges are siblings, each outside library has one room."""
    linter = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as run; run()",
        "--no-cache",
        "--no-logo",
    ]
    result = subprocess.run(linter, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_no_layer_is_optional_and_a_new_room_must_be_placed():
    """An optional layer would let a room vanish or be misspelt without a word."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract for contract in contracts if contract["type"] == "layers")
    assert layers["exhaustive"] is True
    assert not [layer for layer in layers["layers"] if "(" in layer]


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_has_its_own_folder_of_tests(room):
    assert list((ROOT / "tests" / room).rglob("test_*.py")), f"tests/{room} holds no test"
