"""The command line as a script uses it: --json, exit codes, and a diff that git takes."""

import json

from offload.cli.exits import Exit
from tests.e2e.stage import BOUND_S, SOURCE, brief, write

AREA = "    return width * height"


def start(stage, project, *steps, wait=45, code=Exit.OK):
    return stage.json("start-task", brief(*steps), "--wait", wait, cwd=project, code=code)


def editing(old, new):
    """Steps that change the project's file by the worker's own tools."""
    change = {"filePath": "shapes.py", "oldString": old, "newString": new}
    return f"::tool read {json.dumps({'filePath': 'shapes.py'})}", f"::tool edit {json.dumps(change)}"


def test_a_task_from_its_start_to_its_close(stage, project):
    steps = (
        *editing(AREA, "    return height * width"),
        write("docs/notes.md", "Zwölf Boxkämpfer\n"),
        "::text Turned.",
    )
    started = stage.json("start-task", brief(*steps), "--file", "shapes.py", "--symbol", "area", cwd=project)
    task_id = started["task_id"]
    waited = stage.json("wait", task_id)
    assert waited["done"]
    assert waited["tasks"][0]["phase"] == "ready"

    result = stage.json("task-result", task_id)
    assert result["text"].strip() == "Turned."
    assert result["usage"]["total_tokens"] > 0
    changed = [(file["path"], file["status"]) for file in result["changes"]["files"]]
    assert changed == [("docs/notes.md", "added"), ("shapes.py", "modified")]

    patch = stage.run("diff", task_id).stdout
    stage.git(project, "apply", "--check", "-", input=patch.encode())
    one = stage.run("diff", task_id, "shapes.py").stdout
    assert "docs/notes.md" not in one
    stage.git(project, "apply", "--check", "-", input=one.encode())
    assert stage.json("diff", task_id)["patch"] == patch

    assert (project / "shapes.py").read_text() == SOURCE, "nothing lands by itself"
    assert stage.json("apply", task_id)["paths"] == ["docs/notes.md", "shapes.py"]
    assert (project / "shapes.py").read_text() == SOURCE.replace(AREA, "    return height * width")
    assert (project / "docs/notes.md").read_text() == "Zwölf Boxkämpfer\n"
    assert stage.git(project, "diff", "--cached") == b"", "the index is the person's"

    stage.json("close-task", task_id)
    listed = stage.json("list-tasks", "--workspace", project)
    assert listed["tasks"] == []
    listed = stage.json("list-tasks", "--workspace", project, "--closed")
    assert [task["task_id"] for task in listed["tasks"]] == [task_id]
    assert stage.json("task-result", task_id)["text"].strip() == "Turned."
    refused = stage.json("continue-task", task_id, "more", code=Exit.REFUSED)
    assert refused["error"]["code"] == "wrong_phase"


def test_what_does_not_fit_any_more_is_refused_whole(stage, project):
    task = start(stage, project, *editing(AREA, "    return 0"), write("new.txt", "new\n"), "::text Done.")
    mine = SOURCE.replace(AREA, "    return width * height * 1")
    (project / "shapes.py").write_text(mine)
    refused = stage.json("apply", task["task_id"], code=Exit.REFUSED)["error"]
    assert refused["code"] == "apply_refused"
    assert [reason.partition(": ")[0] for reason in refused["reasons"]] == ["shapes.py"]
    assert (project / "shapes.py").read_text() == mine
    assert not (project / "new.txt").exists()
    said = stage.run("apply", task["task_id"])
    assert said.code == Exit.REFUSED
    assert said.stdout == ""
    assert "shapes.py: " in said.stderr
    assert stage.json("apply", task["task_id"], "new.txt")["paths"] == ["new.txt"]


def test_what_was_changed_elsewhere_in_the_file_stays(stage, project):
    task = start(stage, project, *editing(AREA, "    return 0"), "::text Done.")
    (project / "shapes.py").write_text("# mine\n" + SOURCE)
    stage.json("apply", task["task_id"])
    assert (project / "shapes.py").read_text() == "# mine\n" + SOURCE.replace(AREA, "    return 0")


def test_waiting_says_by_its_exit_code_how_the_task_went(stage, project, model):
    gate = model.gate("terminal-wait")
    task = start(stage, project, "::gate terminal-wait Done.", wait=0)
    assert gate.reached.wait(BOUND_S)
    assert not stage.json("wait", task["task_id"], "--timeout", "0.1", code=Exit.NOT_DONE)["done"]
    assert stage.json("task-status", task["task_id"])["state"] == "working", "to ask is not to wait"
    too_early = stage.json("apply", task["task_id"], code=Exit.REFUSED)["error"]
    assert too_early["code"] == "wrong_phase"
    gate.opened.set()
    assert stage.json("wait", task["task_id"])["done"]
    failed = start(stage, project, "::error 400", code=Exit.NOT_DONE)
    assert failed["phase"] == "failed"
    assert "scripted 400" in failed["failure"]["message"]
    assert stage.json("wait", failed["task_id"], code=Exit.NOT_DONE)["done"]
    assert stage.json("task-result", failed["task_id"], code=Exit.NOT_DONE)["failure"] == failed["failure"]


def test_agents_and_doctor_say_what_is_there(stage, project):
    (worker,) = stage.json("agents")["workers"]
    assert (worker["name"], worker["version"], worker["problem"]) == ("opencode", "1.18.33", "")
    assert "fake/worker" in stage.run("agents").stdout
    report = stage.json("doctor")
    assert {check["name"] for check in report["checks"]} >= {"git", "state folder", "socket", "hub", "opencode"}
    assert report["ok"]
    assert all(check["ok"] for check in report["checks"])
    assert str(stage.state) in stage.run("doctor").stdout
