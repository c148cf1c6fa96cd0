"""offload as another version of it would be: a copy of the package that calls itself so and speaks another protocol.

python tests/support/other_version.py FOLDER front KIND HUB…       the copy's front; HUB is the command that starts its hub
python tests/support/other_version.py FOLDER run SCRIPT…           any script, with the copy in place of the package
"""

import runpy
import shutil
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "server" / "offload"


def make(folder, version, protocol):
    """The folder of a copy that imports as `offload`."""
    copy = Path(folder, version)
    shutil.copytree(PACKAGE, copy / "offload", ignore=shutil.ignore_patterns("__pycache__", "demo"))
    for name, line in (("__init__.py", "__version__ = "), ("hub/greeting.py", "PROTOCOL = ")):
        file = copy / "offload" / name
        lines = file.read_text().split("\n")
        (number,) = [number for number, text in enumerate(lines) if text.startswith(line)]
        lines[number] = line + repr(version if name == "__init__.py" else protocol)
        file.write_text("\n".join(lines))
    return copy


def command(copy, *words):
    """The command line of this script for a copy."""
    return (sys.executable, "-E", __file__, str(copy), *map(str, words))


if __name__ == "__main__":
    copy, what, *words = sys.argv[1:]
    sys.path.insert(0, copy)
    if what == "front":
        from offload.hub import forward

        kind, *hub = words
        sys.exit(forward.main(kind, command=hub))
    sys.argv = words
    runpy.run_path(words[0], run_name="__main__")
