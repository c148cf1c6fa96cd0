"""docs/CONTRIBUTING.md says what is so."""

import re
from pathlib import Path

from tests import lanes

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/CONTRIBUTING.md").read_text()


def test_the_page_lists_every_lane_with_its_budget():
    listed = re.findall(r"^\| `(\w+)` \| .+ \| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert listed == [(lane.name, f"{lane.minutes:g}") for lane in lanes.LANES]


def test_the_page_names_only_targets_of_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b(?= +#|`)", PAGE)) <= targets


def test_every_file_with_excluded_lines_is_listed_with_its_reason():
    sources = sorted((ROOT / "server/offload").rglob("*.py"))
    excluded = [path for path in sources if "pragma: no" in path.read_text()]
    unlisted = [path.name for path in excluded if f"`{path.relative_to(ROOT / 'server/offload')}`" not in PAGE]
    assert unlisted == []


def test_a_pragma_gives_its_reason_on_its_own_line():
    bare = re.compile(r"#\s*pragma: no (cover|branch)\s*$", re.MULTILINE)
    assert [path.name for path in (ROOT / "server/offload").rglob("*.py") if bare.search(path.read_text())] == []
