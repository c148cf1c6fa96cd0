"""Issue 3, items 8 and 9, with the installed command and a real worker: what the hub lives through, and who may not use it."""

import json

import pytest

from offload.cli.exits import Exit
from offload.hub.greeting import NOT_A_PERSON
from tests.e2e.editor import editing
from tests.e2e.host import facts, hosting, rested, until
from tests.e2e.stage import OFFLOAD, Stage, brief, shell, write


@pytest.fixture(scope="module")
def stage(model):
    stage = Stage(model)
    yield stage
    stage.close()


async def test_a_workers_own_shell_can_ask_nothing_of_offload(stage, project):
    """By what it inherits, with an emptied environment, and in a session of its own; nor can it end the hub."""
    at = f"OFFLOAD_STATE_DIR={stage.state}"
    tries = (
        f"{at} {OFFLOAD} list-tasks",
        f"env -i HOME=/tmp {at} {OFFLOAD} start-task 'more of me'",
        f"{at} setsid -w {OFFLOAD} hub stop",
        f"{at} {OFFLOAD} mcp </dev/null",
    )
    script = "{ " + " ".join(f"{one}; echo = $?;" for one in tries) + " } >out.txt 2>&1"
    async with hosting(stage, project) as client:
        started = await facts(client, "start_task", brief=brief(shell(script)), profile="full")
        task_id = started["task_id"]
        await until(client, task_id, lambda task: task["state"] == "completed")
        changes = await facts(client, "get_task_result", task_id=task_id)
        assert [file["path"] for file in changes["changes"]["files"]] == ["out.txt"]
        listed = await facts(client, "list_tasks", workspace=str(project))
        assert [task["task_id"] for task in listed["tasks"]] == [task_id]
    stage.json("apply", task_id)
    told = (project / "out.txt").read_text()
    codes = [line for line in told.splitlines() if line.startswith("=")]
    assert codes == [f"= {code}" for code in (Exit.REFUSED, Exit.REFUSED, Exit.REFUSED, Exit.NO_HUB)], told
    assert told.count(NOT_A_PERSON) == len(tries)


async def test_the_hub_tells_who_is_connected_and_its_log_what_became_of_each_task(stage, project):
    """The log names tasks and phases, and says nothing of what they are about."""
    words = "a very secret plan"
    async with hosting(stage, project) as client, editing(stage, project):
        started = await facts(client, "start_task", brief=brief(write("a.txt", "a\n"), f"::text {words}"))
        await rested(client, started["task_id"])
        fronts = {front["kind"]: front["client"] for front in stage.json("hub", "status")["fronts"]}
        assert fronts == {"mcp": "claude-code", "lsp": "an editor of tests"}
    lines = [json.loads(line) for line in (stage.state / "hub.log").read_text().splitlines()]
    told = [line for line in lines if line["message"] == "task" and line["task"] == started["task_id"]]
    assert [line["phase"] for line in told][-1] == "ready"
    assert {line["phase"] for line in told} <= {"queued", "starting", "working", "checking", "ready"}
    assert not [line for line in lines if line["level"] != "debug" and words in json.dumps(line)]


@pytest.mark.parametrize("home", [None, "/dev/null"], ids=["none", "cannot be written"])
async def test_a_task_is_done_without_a_home(model, home):
    """Issue 3, item 8: HOME unset or read-only, as for a service. All that offload and its worker keep is in the state folder."""
    stage = Stage(model)
    project = stage.project()
    del stage.environ["HOME"]
    if home:
        stage.environ["HOME"] = home
    try:
        async with hosting(stage, project) as client:
            started = await facts(client, "start_task", brief=brief(write("a.txt", "a\n")))
            done = await rested(client, started["task_id"])
            assert (done["phase"], done.get("files_changed")) == ("ready", 1), json.dumps(done.get("failure"))
    finally:
        stage.close()
