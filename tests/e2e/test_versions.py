"""Case H24 with a real task: front and hub of different versions, each way, while OpenCode is at work. The other version is a copy."""

import pytest

from offload import __version__
from offload.cli.exits import Exit
from offload.hub.greeting import PROTOCOL
from offload.processes import Identity, alive
from tests.e2e.host import BareHost
from tests.e2e.stage import Stage, brief, reached, write
from tests.support import other_version


@pytest.fixture(scope="module")
def stage(model):
    stage = Stage(model)
    yield stage
    stage.close()


@pytest.fixture
def newer(stage, project):
    """A host whose front is of a newer version, and starts hubs of that version."""
    copy = other_version.make(stage.folder, "99.0", PROTOCOL + 1)
    hub = other_version.command(copy, "run", copy / "offload" / "__main__.py", "hub", "run")
    hosts = []

    def start():
        hosts.append(BareHost(stage, project, hub, program=other_version.command(copy, "front", "mcp")))
        return hosts[-1].open()

    yield start
    for host in hosts:
        host.close()


async def test_a_task_goes_on_through_the_change_to_a_newer_hub_and_older_fronts_are_told(stage, project, model, newer):
    """The older hub leaves its worker at work, the newer one takes the turn up where it is: nothing is sent or started twice."""
    gate = model.gate("handover")
    older = BareHost(stage, project).open()
    steps = brief(write("a.txt", "a\n"), "::gate handover done")
    task_id = older.call("start_task", brief=steps)["structuredContent"]["task_id"]
    assert await reached(gate)
    hub, (worker,) = stage.hub_pid(), stage.opencode()

    host = newer()
    assert stage.hub_pid() not in {hub, None}
    (listed,) = host.call("list_tasks", workspace=str(project))["structuredContent"]["tasks"]
    assert (listed["task_id"], listed["state"]) == (task_id, "working")

    told = older.ask("tools/call", {"name": "list_tasks", "arguments": {}})["error"]["message"]
    ended = stage.run("list-tasks", cwd=project)
    assert ended.code == Exit.NO_HUB
    for said in (told, ended.stderr):
        for part in (f"offload {__version__} (protocol {PROTOCOL})", "99.0", "offload hub stop"):
            assert part in said
    assert older.close()[0] == 0

    gate.opened.set()
    waited = host.call("wait_for_tasks", task_ids=[task_id], timeout_s=45)["structuredContent"]
    (task,) = waited["tasks"]
    assert (task["phase"], task["files_changed"]) == ("ready", 1)
    assert [(one["pid"], one["started"]) for one in stage.opencode()] == [(worker["pid"], worker["started"])]
    assert alive(Identity(worker["pid"], worker["started"]))
    asked = [request for request in model.requests if request["tools"] and "handover" in request["prompt"]]
    assert len(asked) == 2, "one for each step of the one prompt"
