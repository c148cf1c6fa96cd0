"""Runs a script in an isolated Python (`-I -S`) and counts its lines, which coverage cannot do by itself there.

The forwarders are started without `site`, so the .pth file by which coverage enters other child processes is never read. A test that
wants their lines counted puts this file before the script; everything else stays as it is for a user: the flags, a module
search path without site-packages, argv and __main__.

    python -I -S tests/support/counted.py SCRIPT [ARGUMENTS...]

`command()` builds that line. Without a coverage run around it the script is simply run.
"""

import os
import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

SITE = "OFFLOAD_TEST_COVERAGE_SITE"


def command(script, *arguments):
    """The command line that starts `script` as the forwarders are started; its environment must be `environment()`."""
    return [sys.executable, "-I", "-S", __file__, str(script), *map(str, arguments)]


def environment(base=None):
    """`base`, or this process's environment, with what a counted child needs to find coverage."""
    import coverage

    wanted = {SITE: str(Path(coverage.__file__).parents[1])}
    if config := os.environ.get("COVERAGE_PROCESS_CONFIG"):
        wanted["COVERAGE_PROCESS_CONFIG"] = config
    return {**(os.environ if base is None else base), **wanted}


class OnlyCoverage:
    """Finds coverage and nothing else of site-packages: a script that leans on a third party must still fail."""

    def __init__(self, site):
        self.site = site

    def find_spec(self, name, path=None, target=None):
        return PathFinder.find_spec(name, path or [self.site]) if name.partition(".")[0] == "coverage" else None


if __name__ == "__main__":
    if "COVERAGE_PROCESS_CONFIG" in os.environ:
        sys.meta_path.append(OnlyCoverage(os.environ[SITE]))
        import coverage

        coverage.process_startup()
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")
