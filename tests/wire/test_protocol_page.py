"""docs/PROTOCOL.md is true where it repeats what the code says."""

import re
from pathlib import Path

from offload.cli.exits import exit_for
from offload.domain.errors import CallerError, EnvironmentFailure, OffloadError, WorkerError, all_errors
from offload.domain.task import Phase
from offload.hub.greeting import PROTOCOL
from offload.lsp.errors import response_error
from offload.mcp.lines import MAX_LINE
from offload.mcp.progress import EVERY_S
from offload.wire.params import MAX_WAIT_S
from offload.wire.standing import STATES

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "PROTOCOL.md").read_text(encoding="utf-8")
BASES = (OffloadError, CallerError, WorkerError, EnvironmentFailure)


def test_every_error_stands_in_the_table_with_its_codes():
    rows = re.findall(r"^\| `(\w+)` \| .+ \| (-\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    errors = [
        error("x") for error in all_errors() if error not in BASES and error.__module__ == OffloadError.__module__
    ]
    assert rows == [(each.code, str(response_error(each).code), str(int(exit_for(each)))) for each in errors]


def test_every_phase_stands_in_the_table_with_its_state():
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)`[^|]* \| [^|]+ \|$", PAGE, re.MULTILINE))
    assert rows == {str(phase): str(STATES[phase]) for phase in Phase}


def test_the_numbers_on_the_page_are_those_of_the_code():
    assert f'"protocol": {PROTOCOL},' in PAGE
    assert f"at most {MAX_LINE // 1024**2} MiB each" in PAGE
    assert f"at most {MAX_WAIT_S}." in PAGE
    assert f"at least every {EVERY_S} seconds" in PAGE


def test_every_link_on_the_page_leads_somewhere():
    names = {heading.lower().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= names
