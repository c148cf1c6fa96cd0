"""A project that says of itself how tasks are readied and checked: by whose trust, in which rounds, and with a hub that is killed
meanwhile. Real hub, real OpenCode, real commands."""

import json
import os
import signal
import time

import pytest

from offload.cli.exits import Exit
from offload.processes import identify
from tests.e2e.script import scripting
from tests.e2e.stage import BOUND_S, Stage, gone, reached, rewriting, shell, write


def project_file(project, **values):
    """offload.toml; JSON's strings and lists are TOML's."""
    (project / "offload.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()))


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def wait_for(condition):
    end = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)


def test_what_a_project_asks_for_runs_only_once_it_is_trusted_and_failing_checks_go_back_by_themselves(stage, project):
    """H27 of the public reports, with our own project file; docs/CHECKS.md, "Trust" and "Rounds"."""
    canary = stage.folder / f"{project.name}.canary"
    check = f"echo check >>{canary}; grep -q '^good' work.txt || {{ cat work.txt; exit 1; }}"
    asked = {
        "setup": f"echo setup >>{canary}; touch .ready",
        "format": f"echo format >>{canary}; echo formatted >formatted.txt",
        "checks": [check],
    }
    project_file(project, **asked, check_rounds=1)
    mended = "\n".join(["bad", *rewriting("work.txt", "good\n"), "::text Mended."]) + "\n"
    hopeless = "\n".join(["bad", *rewriting("work.txt", "still bad\n"), "::text Tried."]) + "\n"
    with scripting(stage, project) as script, scripting(stage, project) as watching:
        first = script.ready(write("work.txt", mended), "::text Done.")
        status = script.ask("get_task_status", task_id=first)
        assert (status["checked"], status["files_changed"]) == ("not_checked", 1)
        assert any("is not trusted" in warning for warning in status["warnings"])
        assert "offload trust" in stage.run("task-status", first).stdout
        nothing = stage.json("check", first, code=Exit.REFUSED)["error"]
        assert "is not trusted" in nothing["message"]
        made = script.ask("integrate_tasks", task_ids=[first], wait_s=45)
        assert (made["phase"], made["checked"]) == ("ready", "not_checked")
        script.ask("apply_task", task_id=first)
        assert not canary.exists()

        stage.git(project, "clean", "-qf", "work.txt")
        told = stage.json("trust", cwd=project)
        assert (told["trusted"], told["setup"], told["checks"]) == (True, asked["setup"], [check])
        changes = watching.changes()
        second = script.start(write("work.txt", mended), "::text Done.")
        seen = []
        for view in changes:
            if view["task_id"] == second:
                seen.append((view["phase"], len(view["turns"])))
                if view["phase"] in {"ready", "failed", "cancelled", "interrupted"}:
                    break
        assert seen[-1] == ("ready", 2), seen
        assert ("checking", 1) in seen
        assert ("working", 2) in seen
        assert lines(canary) == ["setup", "format", "check", "format", "check"]
        whole = script.ask("get_task", task_id=second)
        assert [(turn["fix_round"], turn["checked"]) for turn in whole["turns"]] == [(0, "failed"), (1, "passed")]
        result = script.ask("get_task_result", task_id=second)
        assert result["text"].strip() == "Mended."
        assert [file["path"] for file in result["changes"]["files"]] == ["formatted.txt", "work.txt"]
        assert result["needs_review"] == ""

        third = script.ready(write("work.txt", hopeless), "::text Done.")
        status = script.ask("get_task_status", task_id=third)
        assert (status["checked"], status["needs_review"] != "") == ("failed", True)
        assert len(script.ask("get_task", task_id=third)["turns"]) == 2, "one round, as the project says"
        assert "still bad" in json.dumps(script.ask("get_task_result", task_id=third)["checks"])

        ran = len(lines(canary))
        project_file(project, **asked, check_rounds=2)
        fourth = script.ready(write("other.txt", "x\n"), "::text Done.")
        status = script.ask("get_task_status", task_id=fourth)
        assert any("has changed since it was trusted" in warning for warning in status["warnings"])
        assert (status["checked"], len(lines(canary))) == ("not_checked", ran)


async def test_a_workers_folder_has_what_is_carried_and_what_it_comes_after_and_nothing_that_is_never_sent(
    stage, project, model
):
    (project / ".gitignore").write_text("test.settings\nsecret.key\n")
    (project / "test.settings").write_text("carried\n")
    (project / "secret.key").write_text("top\n")
    (project / "notes.secret").write_text("top\n")  # neither ignored nor tracked
    project_file(project, carry=["test.settings", "secret.key"], never_send=["secret.key", "*.secret"])
    stage.json("trust", cwd=project)
    with scripting(stage, project) as script:
        gate = model.gate("checks-after")
        one = script.start(write("a.txt", "from a\n"), "::gate checks-after Done.", allowed_paths=["*.txt"])
        assert await reached(gate)
        other = script.ready(write("b.txt", "from b\n"), "::text Done.", allowed_paths=["b.txt"])
        (warning,) = script.ask("get_task_status", task_id=other)["warnings"]
        assert one in warning
        looked = shell("ls -A; cat test.settings a.txt b.txt; echo c >c.txt")
        after = script.start(looked, "::echo", after=[one, other], profile="full")
        waiting = script.ask("get_task_status", task_id=after)
        assert (waiting["phase"], one in waiting["next_step"]) == ("queued", True)
        gate.opened.set()
        assert script.rested(after)[0]["phase"] == "ready"
        text = script.ask("get_task_result", task_id=after)["text"]
        for there in ("test.settings", "carried", "from a", "from b"):
            assert there in text
        for absent in ("secret.key", "notes.secret", "top"):
            assert absent not in text
        assert list(script.hunks(after, "c.txt").values()) == ["pending"]
        assert len(script.ask("get_changes", task_id=after)["changes"]["files"]) == 1, (
            "what it began from is not its own"
        )
        assert script.ask("apply_task", task_id=after)["paths"] == ["c.txt"]
    assert not (project / "a.txt").exists()


@pytest.fixture
def own_stage(model):
    stage = Stage(model, trouble=True)
    yield stage
    stage.close()


def test_a_hub_that_is_killed_while_a_folder_is_set_up_or_checked_does_it_again_and_ends_with_the_evidence(own_stage):
    """The commands wait for a file of ours, so the kill is in the middle of them. Nothing is called checked that was not."""
    stage, project = own_stage, own_stage.project()
    log, go = stage.folder / "checks.log", stage.folder / "go"
    set_up, ready = stage.folder / "setup.log", stage.folder / "ready"
    setup = f"echo $$ >>{set_up}; until [ -e {ready} ]; do sleep 0.05; done; touch made"
    check = f"echo $$ >>{log}; until [ -e {go} ]; do sleep 0.05; done; test -e made && cat *.txt"
    project_file(project, setup=setup, checks=[check])
    stage.json("trust", cwd=project)
    with scripting(stage, project) as script:
        tasks = [script.start(write(f"{name}.txt", f"{name}\n"), "::text Done.") for name in ("a", "b")]
        wait_for(lambda: len(lines(set_up)) == 2)
    left = killed(stage, set_up)
    with scripting(stage, project) as script:
        assert {script.ask("get_task_status", task_id=each)["phase"] for each in tasks} <= {"recovering", "starting"}
        wait_for(lambda: len(lines(set_up)) == 4)
        assert all(gone(identity) for identity in left)
        ready.touch()
        wait_for(lambda: len(lines(log)) == 2)
    left = killed(stage, log)
    with scripting(stage, project) as script:
        for task_id in tasks:
            status = script.ask("get_task_status", task_id=task_id)
            assert (status["phase"], status["checked"], status["files_changed"]) == ("checking", "not_checked", 1)
        wait_for(lambda: len(lines(log)) == 4)
        go.touch()
        for task in script.rested(*tasks):
            assert (task["phase"], task["checked"]) == ("ready", "passed")
        (evidence,) = script.ask("get_task_result", task_id=tasks[0])["checks"]
        assert (evidence["passed"], evidence["tail"]) == (True, "a")
        assert all(gone(identity) for identity in left)

        go.unlink()
        made = script.ask("integrate_tasks", task_ids=tasks)["task_id"]
        wait_for(lambda: len(lines(log)) == 5)
    left = killed(stage, log)
    with scripting(stage, project) as script:
        status = script.ask("get_task_status", task_id=made)
        assert status["state"] == "working"
        assert stage.git(project, "status", "--porcelain") == b"?? offload.toml\n"
        wait_for(lambda: len(lines(log)) == 6)
        go.touch()
        (task,) = script.rested(made)
        assert (task["phase"], task["checked"], task["files_changed"]) == ("ready", "passed", 2)
        result = script.ask("get_task_result", task_id=made)
        assert result["checks"][0]["tail"] == "a\nb"
        assert sorted(result["integration"]["order"]) == sorted(tasks)
        assert script.ask("apply_task", task_id=made)["paths"] == ["a.txt", "b.txt"]
        assert all(gone(identity) for identity in left)
    assert [(project / f"{name}.txt").read_text() for name in ("a", "b")] == ["a\n", "b\n"]


def killed(stage, log):
    """Kill the hub; gives the processes of the checks that were begun."""
    running = [identify(int(line)) for line in lines(log)]
    hub = identify(stage.hub_pid())
    os.kill(hub.pid, signal.SIGKILL)
    assert gone(hub)
    return running
