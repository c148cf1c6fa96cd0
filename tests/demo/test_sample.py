"""The project that the demo copies out."""

import shutil
import subprocess
import sys
from pathlib import Path

from offload import demo

SAMPLE = Path(demo.__file__).with_name("sample")


def test_the_sample_is_green_with_nothing_installed(tmp_path):
    """Whoever runs the demo has a Python, perhaps nothing else: -I -S hides every installed package."""
    shutil.copytree(SAMPLE, tmp_path / "sample")
    program = "import sys, unittest; sys.path.insert(0, ''); unittest.main(module=None, argv=['unittest', 'discover'])"
    command = [sys.executable, "-I", "-S", "-c", program]
    done = subprocess.run(command, cwd=tmp_path / "sample", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Ran 3 tests" in done.stderr
