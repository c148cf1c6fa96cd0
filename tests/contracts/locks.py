"""Holds the lock files to two rules: they name no host, and they hold every requirement of pyproject.toml.

Run by `make check` and, rule by rule, by the tests beside it.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PINNED = re.compile(r"^([a-z0-9][a-z0-9-]*)==([^ ]+)", re.MULTILINE)
HOST = re.compile(r"https?://|file:/|--(extra-)?index-url|--find-links")


def npm_locks() -> list[Path]:
    """Every npm lock that belongs to the project; installed packages bring their own, which are not ours."""
    found = ROOT.glob("tests/*/package-lock.json"), ROOT.glob("clients/*/package-lock.json")
    return sorted(path for group in found for path in group)


def named_hosts() -> Iterator[str]:
    """Lines of a lock that tie an installation to one host or one machine."""
    for path in (ROOT / "requirements.lock", ROOT / "requirements-dev.lock"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if HOST.search(line):
                yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
    for path in npm_locks():
        # A package's funding or home page address is the author's text; `resolved` is where npm would download from.
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if '"resolved"' in line:
                yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def unmet_requirements() -> Iterator[str]:
    """Requirements of pyproject.toml that a lock leaves out or pins to a version outside their range."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"]
    for name, texts in (
        ("requirements.lock", wanted),
        ("requirements-dev.lock", wanted + project["optional-dependencies"]["dev"]),
    ):
        pinned = dict(PINNED.findall((ROOT / name).read_text()))
        for requirement in map(Requirement, texts):
            version = pinned.get(requirement.name)
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                yield f"{name}: {requirement} is pinned to {version}; run: make lock"


def main() -> int:
    """Prints what breaks a rule; exits 1 if anything does."""
    broken = [*named_hosts(), *unmet_requirements()]
    for line in broken:
        print(line, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
