"""Generated files are what the code says, in the repository and wherever else they are written."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from offload.domain.events import Event
from offload.domain.lifecycle import TRANSITIONS
from offload.domain.task import Phase
from offload.wire import generate, lua, pages, schema, typescript
from offload.wire.operations import OPERATIONS

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/PROTOCOL.md", "docs/ARCHITECTURE.md")
PROTOCOL = schema.protocol()


def copy(folder):
    """The two pages without their generated parts."""
    (folder / "docs").mkdir()
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        (folder / page).write_text(re.sub(r"(<!-- generated: \w+ -->\n).*?(<!-- end)", r"\1\2", text, flags=re.DOTALL))


def test_the_files_in_the_repository_are_fresh(capsys):
    """`make check` asks the same."""
    assert generate.main(["--check", "--root", str(ROOT)]) == 0, capsys.readouterr().err


def test_what_is_written_anew_is_the_same_as_in_the_repository(tmp_path, capsys):
    copy(tmp_path)
    assert generate.main(["--root", str(tmp_path)]) == 0
    written = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert len(written) == 5
    for path in written:
        assert (tmp_path / path).read_text() == (ROOT / path).read_text(), path
    assert capsys.readouterr().out.count("wrote ") == 5


def test_a_second_run_writes_nothing(tmp_path, capsys):
    copy(tmp_path)
    generate.main(["--root", str(tmp_path)])
    capsys.readouterr()
    assert generate.main(["--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


def test_a_check_writes_nothing_and_names_what_is_stale(tmp_path, capsys):
    copy(tmp_path)
    generate.main(["--root", str(tmp_path)])
    stale = tmp_path / "clients" / "vscode" / "src" / "protocol.ts"
    stale.write_text("edited")
    assert generate.main(["--check", "--root", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "clients/vscode/src/protocol.ts is not what the operations table says: run `make generate`\n"
    )
    assert stale.read_text() == "edited"


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "offload.wire.generate", "--check"]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("page", ["", "<!-- generated: x -->\n", "<!-- end generated: x -->\n<!-- generated: x -->\n"])
def test_a_page_without_its_markers_is_refused(page):
    with pytest.raises(ValueError, match="no markers <!-- generated: x --> and <!-- end generated: x -->"):
        generate.with_part(page, "x", "part")


@pytest.mark.parametrize("path", generate.outputs(lambda path: (ROOT / path).read_text()))
def test_each_generated_file_or_part_says_so_in_its_first_line(path):
    text = (ROOT / path).read_text()
    first = re.search(r"<!-- generated: \w+ -->\n(.*)", text)[1] if path in PAGES else text.splitlines()[0]
    assert generate.COMMENT in first


def test_the_schema_is_json_with_every_operation_and_no_open_reference():
    read = json.loads((ROOT / "docs/protocol.schema.json").read_text())
    assert list(read["operations"]) == [operation.name for operation in OPERATIONS]
    references = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(read)))
    assert references <= set(read["$defs"])
    assert read["operations"]["trust_workspace"]["mcp"] is None
    assert read["operations"]["start_task"]["lsp"] == "offload/startTask"


EXPRESSIONS = [
    (str, "string", "string"),
    (int, "number", "integer"),
    (float, "number", "number"),
    (bool, "boolean", "boolean"),
    (list[str], "string[]", "string[]"),
    (dict[str, int], "Record<string, number>", "table<string, integer>"),
    (float | None, "number | null", "number|nil"),
    (list[Phase], "Phase[]", "offload.Phase[]"),
]


@pytest.mark.parametrize(("python", "typescript_type", "lua_type"), EXPRESSIONS, ids=str)
def test_a_type_is_the_same_in_every_language(python, typescript_type, lua_type):
    node = TypeAdapter(python).json_schema()
    assert typescript.expression(node) == typescript_type
    assert lua.expression(node) == lua_type


def test_a_field_with_a_default_may_be_left_out_in_every_language():
    assert "  task_id: string;\n" in typescript.module(PROTOCOL, "c")
    assert "  wait_s?: number;\n" in typescript.module(PROTOCOL, "c")
    assert "---@field choice string One of" in lua.module(PROTOCOL, "c")
    assert "---@field wait_s? number Seconds" in lua.module(PROTOCOL, "c")


def test_the_clients_know_every_request_of_editors_and_no_other():
    for text in (typescript.module(PROTOCOL, "c"), lua.module(PROTOCOL, "c")):
        found = set(re.findall(r"offload/\w+", text))
        assert found == {f"offload/{operation.lsp}" for operation in OPERATIONS} | {"offload/taskChanged"}


def test_a_request_that_editors_do_not_have_is_not_in_the_clients():
    hidden = {**PROTOCOL["operations"]["get_task"], "lsp": None}
    protocol = {**PROTOCOL, "operations": {**PROTOCOL["operations"], "get_task": hidden}}
    for text in (typescript.module(protocol, "c"), lua.module(protocol, "c")):
        assert "offload/getTaskStatus" in text
        assert not re.search(r"offload/getTask\b", text)


def test_every_transition_to_another_phase_is_in_the_diagram():
    diagram = pages.lifecycle()
    drawn = {
        (source, target, event.split(" (")[0])
        for source, target, events in re.findall(r"^    (\S+) --> (\w+): (.+)$", diagram, re.MULTILINE)
        for event in events.split(", ")
    }
    assert ("[*]", "queued", "Created") in drawn
    plain = {
        (str(phase), str(target), event.__name__)
        for phase, row in TRANSITIONS.items()
        for event, target in row.items()
        if isinstance(target, Phase) and target is not phase
    }
    assert plain <= drawn
    assert ("recovering", "cancelled", "CannotResume") in drawn
    assert ("recovering", "interrupted", "CannotResume") in drawn
    assert not [edge for edge in drawn if edge[0] == edge[1]]


def test_a_rule_is_drawn_with_what_it_depends_on():
    class Happened(Event):
        pass

    def rule(task, event):
        return Phase.READY if task.stop_requested else Phase.CHECKING if event.to_check else task.phase

    diagram = pages.lifecycle({Phase.WORKING: {Happened: rule}})
    assert "    working --> ready: Happened (a stop was asked)\n" in diagram
    assert "    working --> checking: Happened (with checks)\n" in diagram
