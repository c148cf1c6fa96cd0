"""The claim of docs/CONTRIBUTING.md that lines of isolated children are counted."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import counted

SCRIPT = """
import sys
try:
    import rich
except ModuleNotFoundError:
    print(sys.argv[1:], sys.flags.isolated, sys.flags.no_site, __name__)
"""


def test_an_isolated_script_runs_as_it_would_for_a_user(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    answer = subprocess.run(
        counted.command(script, "one", "two"), env=counted.environment(), capture_output=True, text=True, check=True
    )
    assert answer.stdout == "['one', 'two'] 1 1 __main__\n"


@pytest.mark.parametrize("ending", ["pass", "os._exit(0)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_the_lines_of_an_isolated_script_are_counted_however_it_ends(tmp_path, ending):
    """Run in a coverage of its own, with the project's patches, from another working folder."""
    source = tmp_path / "source"
    source.mkdir()
    script = source / "script.py"
    script.write_text(f"import os, signal\nreached = True\n{ending}\n")
    (tmp_path / "coverage.toml").write_text(
        '[tool.coverage.run]\nbranch = true\nparallel = true\nsource = ["source"]\ndata_file = "counts"\n'
        'patch = ["subprocess", "_exit"]\nsigterm = true\n'
    )
    (tmp_path / "outer.py").write_text(
        "import subprocess\nfrom tests.support import counted\n"
        f"subprocess.run(counted.command({str(script)!r}), env=counted.environment(), cwd='/', check=False)\n"
    )
    alone = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    alone["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])

    def coverage(action, *arguments):
        words = [sys.executable, "-m", "coverage", action, "--rcfile=coverage.toml", *arguments]
        subprocess.run(words, cwd=tmp_path, env=alone, check=True, capture_output=True)

    coverage("run", "outer.py")
    coverage("combine")
    coverage("json", "-o", "counts.json")
    (lines,) = json.loads((tmp_path / "counts.json").read_text())["files"].values()
    assert lines["executed_lines"] == [1, 2, 3]
