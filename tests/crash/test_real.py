"""A fixed sample of crashes on the real OpenCode, with a real kill -9 of the hub's process, of OpenCode's, and of both, at moments
that the scripted model's gates make exact. The rules are those of docs/RELIABILITY.md, "Crashes"."""

import os
import signal
import sqlite3
import time

import psutil
import pytest

from offload.processes import Identity, alive, identify
from tests.crash.schedule import FIRST_REAL, Verdict
from tests.e2e.stage import BOUND_S, Stage, brief, gone, shell, write
from tests.fakes import model as fake_model

pytestmark = [pytest.mark.opencode, pytest.mark.timeout(2 * BOUND_S)]
HUB, SERVER, BOTH = VICTIMS = ("hub",), ("server",), ("hub", "server")
SCENES = (
    "just started",
    "before a word",
    "a file is written",
    "an ask is open",
    "a command runs",
    "finished meanwhile",
    "ready",
)


@pytest.fixture(scope="module")
def model():
    with fake_model.running() as model:
        yield model


@pytest.fixture(scope="module")
def stage(model):
    stage = Stage(model, trouble=True)
    yield stage
    stage.close()


@pytest.mark.parametrize("victims", VICTIMS, ids="-and-".join)
@pytest.mark.parametrize("name", SCENES, ids=lambda name: name.replace(" ", "-"))
def test_a_real_kill_loses_no_task_sends_no_prompt_twice_and_makes_no_status_lie(stage, model, figures, name, victims):
    number = FIRST_REAL + len(VICTIMS) * SCENES.index(name) + VICTIMS.index(victims)
    gate, word = model.gate(f"crash{number}"), f"::gate crash{number} the end"
    project = stage.project()
    command = f"until [ -e go-{number} ]; do sleep 0.1; done"
    steps = {
        "just started": [write("a.txt", "a\n"), word],
        "before a word": [word],
        "a file is written": [write("a.txt", "a\n"), word],
        "an ask is open": [write("a.txt", "a\n"), shell("echo b >b.txt"), word],
        "a command runs": [write("a.txt", "a\n"), shell(command), word],
        "finished meanwhile": [write("a.txt", "a\n"), word],
        "ready": [write("a.txt", "a\n"), "::text the end"],
    }[name]
    task_id = stage.json("start-task", brief(*steps), cwd=project)["task_id"]
    bring_to(stage, gate, task_id, name, command)

    left = [identify(process.pid) for process in running(command)]
    if "hub" in victims:
        kill(stage.hub_pid())
    if name == "finished meanwhile":
        finish(stage, gate, "hub" in victims, task_id)
    if "server" in victims:
        for pid in servers(stage):
            kill(pid)
    killed = time.monotonic()

    until(stage, task_id, lambda task: task["phase"] not in ("recovering", "starting"))
    slowest = time.monotonic() - killed
    if victims == HUB:
        settle(stage, gate, task_id, name, number)
    elif name == "just started":
        gate.opened.set()  # the prompt may not have been out yet, and is sent once then
    task = until(stage, task_id, lambda task: task["phase"] in ("ready", "interrupted", "failed", "cancelled"))
    gate.opened.set()

    wrong = [] if task["phase"] in ends(name, victims) else [f"{name}: {task['phase']}, {task.get('failure')}"]
    if task["phase"] == "interrupted":
        wrong += [f"{each.pid} goes on" for each in left if not gone(each, 30)]
        wrong += [] if task["failure"]["message"] else ["no reason is given"]
        wrong += (
            []
            if "resume_task" in task["next_step"] or "resume-task" in task["next_step"]
            else ["resume is not offered"]
        )
    else:
        text = stage.json("task-result", task_id)["text"].strip()
        wrong += [] if text.endswith("the end") else [f"its text is {text!r}"]
    verdict = Verdict(number, kills=[f"{name}: {' and '.join(victims)}"], phases=[task["phase"]], slowest_s=slowest)
    verdict.duplicates = [prompt for prompt, times in prompts(stage, task["turn_id"]).items() if times != 1]
    verdict.wrong = wrong
    figures(verdict)
    assert (verdict.duplicates, verdict.wrong) == ([], [])


def ends(name, victims):
    """What is true of the task afterwards; one that had only just begun may or may not have sent its prompt by then."""
    if victims == HUB or name in ("finished meanwhile", "ready"):
        return {"ready"}
    return {"interrupted", "ready"} if name == "just started" else {"interrupted"}


def bring_to(stage, gate, task_id, name, command):
    if name == "an ask is open":
        until(stage, task_id, lambda task: task["asks"])
    elif name == "a command runs":
        until(stage, task_id, lambda task: task["asks"])
        stage.json("answer-task", task_id, "allow")
        wait_for(lambda: running(command))
    elif name == "ready":
        until(stage, task_id, lambda task: task["phase"] == "ready")
    elif name != "just started":
        assert gate.reached.wait(BOUND_S)


def finish(stage, gate, hub_is_gone, task_id):
    """Let the turn end, with nobody or with the hub there to see it."""
    gate.opened.set()
    if hub_is_gone:
        wait_for(lambda: not busy(stage))
    else:
        until(stage, task_id, lambda task: task["phase"] == "ready")


def settle(stage, gate, task_id, name, number):
    """With the hub alone killed, the turn goes on where it was: it is asked again, and comes to its end."""
    gate.opened.set()
    if name == "an ask is open":
        until(stage, task_id, lambda task: task["asks"])
        stage.json("answer-task", task_id, "allow")
    if name == "a command runs":
        (folder,) = (stage.state / "tasks" / task_id).iterdir()
        (folder / f"go-{number}").touch()


def kill(pid):
    identity = identify(pid)
    os.kill(pid, signal.SIGKILL)
    assert gone(identity), f"{pid} outlived kill -9"


def servers(stage):
    """The OpenCode servers that run; one that was killed leaves its file behind."""
    return [left["pid"] for left in stage.opencode() if alive(Identity(left["pid"], left["started"]))]


def until(stage, task_id, wanted):
    found = {}

    def look():
        found.update(stage.json("task-status", task_id))
        return wanted(found)

    wait_for(look)
    return found


def wait_for(condition):
    end = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.05)


def running(command):
    return [each for each in psutil.process_iter() if command in _words(each)]


def _words(process):
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def databases(stage):
    return stage.state.glob("workers/opencode/servers/*/opencode.db")


def prompts(stage, turn):
    """How many parts each stored prompt of the turn has; a second sending would add one to it."""
    message = f"msg_{turn.removeprefix('turn_')}"
    counts = {}
    for path in databases(stage):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            for (times,) in database.execute(
                "select count(*) from part where message_id = ? group by message_id", (message,)
            ):
                counts[message] = counts.get(message, 0) + times
    return counts


def busy(stage):
    """Whether an assistant's message is open in the database."""
    for path in databases(stage):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
            query = "select data from message order by id desc limit 1"
            if any('"finish":"stop"' not in data for (data,) in database.execute(query)):
                return True
    return False
