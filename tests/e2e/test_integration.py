"""Results of several workers made one by the command line: a conflict, a pair that breaks the checks, and the way out of both."""

import json
import sys

from offload.cli.exits import Exit
from tests.e2e.stage import SOURCE, brief, write

AREA = "    return width * height"
CHECK = f'"{sys.executable}" -c "import glob, runpy; [runpy.run_path(each) for each in sorted(glob.glob(\'*.py\'))]"'


def editing(old, new, path="shapes.py"):
    """Steps that change a file of the project by the worker's own tools."""
    change = {"filePath": path, "oldString": old, "newString": new}
    return f"::tool read {json.dumps({'filePath': path})}", f"::tool edit {json.dumps(change)}", "::text Done."


def rewriting(path, text):
    return f"::tool read {json.dumps({'filePath': path})}", write(path, text), "::text Done."


def test_results_that_conflict_or_break_the_checks_are_named_mended_and_applied_as_one(stage, project):
    (project / "offload.toml").write_text(f"checks = [{json.dumps(CHECK)}]\ncheck_rounds = 0\n")
    assert stage.json("trust", cwd=project)["trusted"]
    briefs = {
        "turned": editing(AREA, "    return height * width"),
        "renamed": editing("def label(name)", "def tag(name)"),
        "page": (write("page.py", "from shapes import label\n"), "::text Done."),
        "exact": editing(AREA, "    return float(width * height)"),
    }
    started = {name: stage.json("start-task", brief(*steps), cwd=project)["task_id"] for name, steps in briefs.items()}
    assert stage.json("wait", *started.values())["done"]
    for task_id in started.values():
        assert stage.json("task-result", task_id)["checked"] == "passed", "each is good by itself"

    first = stage.json("integrate", *started.values(), "--wait", 45)
    assert (first["phase"], first["checked"]) == ("ready", "failed")
    made = stage.json("task-result", first["task_id"])["integration"]
    assert [(left["task_id"], left["with_tasks"]) for left in made["left_out"]] == [
        (started["exact"], [started["turned"]])
    ]
    assert set(made["culprits"]) == {started["renamed"], started["page"]}
    assert "together" in first["needs_review"]
    assert f"onto={first['task_id']}" in stage.json("task-result", first["task_id"])["text"]
    assert (project / "shapes.py").read_text() == SOURCE, "nothing lands by itself"
    refused = stage.json("continue-task", first["task_id"], "more", code=Exit.REFUSED)["error"]
    assert refused["code"] == "wrong_phase"

    resolved = SOURCE.replace(AREA, "    return float(height * width)").replace("label", "tag")
    words = brief(*rewriting("shapes.py", resolved))
    stage.json("continue-task", started["exact"], words, "--onto", first["task_id"], "--wait", 45)
    stage.json("continue-task", started["page"], brief(*editing("label", "tag", "page.py")), "--wait", 45)
    again = stage.json("integrate", *started.values(), "--wait", 45)
    assert (again["phase"], again["checked"], again["needs_review"]) == ("ready", "passed", "")

    assert stage.json("apply", again["task_id"])["paths"] == ["page.py", "shapes.py"]
    assert (project / "shapes.py").read_text() == resolved
    assert (project / "page.py").read_text() == "from shapes import tag\n"
    stage.json("undo", again["task_id"])
    assert (project / "shapes.py").read_text() == SOURCE
    assert not (project / "page.py").exists()
