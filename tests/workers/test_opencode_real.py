"""The real OpenCode with the scripted model: what no fake can vouch for."""

import asyncio
import json
import os
import re
import signal
import stat

import psutil
import pytest

from offload.core.worker import AskOpened, Doing, Failed, Finished, Halted, Lost, Said, Seen
from offload.domain.ask import Answer
from offload.domain.route import Route
from offload.domain.turn import ActivityKind
from offload.processes import Identity, alive
from tests.fakes.clock import ManualClock
from tests.workers.conftest import BOUND_S, Bench, home, play, real_worker, repository

pytestmark = [pytest.mark.opencode, pytest.mark.asyncio(loop_scope="session")]


def tool(name, **arguments):
    return f"::tool {name} {json.dumps(arguments)}"


def bash(command):
    return tool("bash", command=command, description="scripted")


def write(path, content="x"):
    return tool("write", filePath=str(path), content=content)


def asked(events):
    return [(event.ask.subject, event.ask.detail) for event in events if isinstance(event, AskOpened)]


async def deny(turn, event):
    if isinstance(event, AskOpened):
        await turn.answer(event.ask.id, Answer("deny", "not now"))


async def allow(turn, event):
    if isinstance(event, AskOpened):
        await turn.answer(event.ask.id, Answer("allow"))


DECLARED = "echo test"


BESIDE = [
    "echo tests",
    "echo test; rm -rf x",
    "echo test && rm x",
    "echo test || rm x",
    "echo test | tee x",
    "echo test > made.txt",
    "echo test $(rm x)",
    "echo test `rm x`",
    "echo test <(rm x)",
    "echo test\nrm x",
    "FOO=1 echo test",
    "f() { rm x; }; echo test",
    "eval 'rm x'",
]


async def test_nothing_slips_through_beside_a_declared_command(bench):
    """Measured: a redirection counts as part of its command, so that "CMD *" would allow writing anywhere."""
    order = bench.order("\n".join([*map(bash, BESIDE), "::echo"]), commands=(DECLARED,))
    events = await play(bench.worker, order, deny)
    assert asked(events) == [("bash", command) for command in BESIDE]
    assert "not now" in events[-1].text
    assert not (order.folder / "made.txt").exists()


async def test_a_declared_command_runs_with_its_own_arguments(bench):
    commands = ["echo test", "echo test one", "echo test 2>&1"]
    order = bench.order("\n".join([*map(bash, commands), "::echo"]), commands=(DECLARED,))
    events = await play(bench.worker, order, deny)
    assert asked(events) == []
    assert events[-1].text == "5 characters: test"
    assert "running the test suite" in [event.activity.label for event in events if isinstance(event, Doing)]


async def test_edits_outside_of_the_folder_are_refused_and_nobody_is_asked(bench):
    outside = bench.folder / "outside.txt"
    order = bench.order(f"{write(outside)}\n{write('../outside.txt')}\n{write('sub/inside.txt')}\n::text on")
    events = await play(bench.worker, order)
    assert asked(events) == []
    assert events[-1].text == "on"
    assert not outside.exists()
    assert not (order.folder.parent / "outside.txt").exists()
    assert (order.folder / "sub" / "inside.txt").exists()


async def test_reading_outside_and_reading_secrets_asks(bench):
    """Public trouble report: of what asks by surprise (H02); with nobody there core denies it."""
    secret = bench.folder / "secret.txt"
    secret.write_text("words\n")
    order = bench.order(f"{tool('read', filePath=str(secret))}\n{tool('read', filePath='.env')}\n::text on")
    (order.folder / ".env").write_text("KEY=1\n")
    events = await play(bench.worker, order, deny)
    assert [subject for subject, _ in asked(events)] == ["external_directory", "read"]


async def test_the_same_call_again_and_again_in_one_round_asks_and_a_denial_of_it_ends_the_turn_in_words(bench):
    """Public trouble report: of what asks by surprise (H02). Measured of 1.18.33: over several rounds it does not notice, and
    a denial of this kind is the turn's end, told with the words of the denial."""
    again = json.dumps([["read", {"filePath": "a.txt"}]] * 3)
    order = bench.order(f"::tools {again}\n::text on")
    (order.folder / "a.txt").write_text("words\n")
    events = await play(bench.worker, order, deny)
    assert {subject for subject, _ in asked(events)} == {"doom_loop"}
    assert isinstance(events[-1], Failed)
    assert events[-1].failure.message.startswith("OpenCode ended the turn: ")
    assert events[-1].failure.message.endswith("not now")


async def test_a_sub_agent_has_no_shell_and_no_edits_outside_and_its_asks_reach_us(bench):
    """A sub-agent's session is not given our rules, only what is denied to its parent's."""
    secret = bench.folder / "for-a-child.txt"
    secret.write_text("words\n")
    steps = f"{bash('touch made.txt')}\n{write(bench.folder / 'by-a-child.txt')}\n{tool('read', filePath=str(secret))}\n::text c"
    task = tool("task", description="sub", prompt=steps, subagent_type="general")
    order = bench.order(f"{task}\n::text parent")
    events = await play(bench.worker, order, allow)
    assert ("external_directory", str(secret)) in asked(events)
    assert "bash" not in [subject for subject, _ in asked(events)]
    assert not (order.folder / "made.txt").exists()
    assert not (bench.folder / "by-a-child.txt").exists()
    end = events[-1]
    assert end.text == "parent"
    assert end.usage.input_tokens == 60 * 6  # two rounds of its own, four of the sub-agent
    assert "asking a sub-agent" in [event.activity.label for event in events if isinstance(event, Doing)]


async def test_a_stop_reaches_a_sub_agent_that_waits_for_an_answer(bench):
    secret = bench.folder / "never-read.txt"
    secret.write_text("words\n")
    task = tool("task", description="s", prompt=tool("read", filePath=str(secret)), subagent_type="general")

    async def stop(turn, event):
        if isinstance(event, AskOpened):
            await turn.stop()

    # The gate stays shut: a parent that could go on might end before the stop comes to it, and then its end counts.
    events = await play(bench.worker, bench.order(f"{task}\n::gate parent never"), stop)
    assert isinstance(events[-1], Halted)


async def test_a_stop_ends_a_running_command(bench):
    async def stop(turn, event):
        if isinstance(event, Doing) and event.activity.kind is ActivityKind.TOOL:
            while not (order.folder / "pid").exists():  # noqa: ASYNC110 - a file is the fact, and the test has a bound
                await asyncio.sleep(0.01)
            await turn.stop()

    command = "echo $$ > part && mv part pid && sleep 300"
    order = bench.order(f"{bash(command)}\n::text never", commands=())
    events = await play(bench.worker, order, lambda turn, event: both(turn, event, stop))
    assert isinstance(events[-1], Halted)
    assert not psutil.pid_exists(int((order.folder / "pid").read_text()))


async def both(turn, event, stop):
    await allow(turn, event)
    await stop(turn, event)


@pytest.mark.parametrize("name", ["项目", "Masaüstü", "a b", "100%"])
async def test_a_folder_may_have_any_name(bench, name):
    """Public trouble report: a path that is not plain ASCII was a crash, or another folder (H05)."""
    order = bench.order(
        f"{write('made.txt')}\n{bash('rm x')}\n::text done", folder=repository(bench.folder / "names" / name)
    )
    events = await play(bench.worker, order, deny)
    assert events[-1].text == "done"
    assert (order.folder / "made.txt").exists()
    assert asked(events) == [("bash", "rm x")]


async def test_the_variant_that_was_asked_for_reaches_the_model(bench):
    order = bench.order("::text with effort", route=Route("opencode", "build", "fake/worker", "high"))
    events = await play(bench.worker, order)
    assert events[-1].ran == order.route
    assert [made["effort"] for made in bench.model.requests if made["prompt"] == order.prompt] == ["high"]


async def test_a_model_without_a_price_has_an_unknown_cost(bench):
    events = await play(bench.worker, bench.order("::text free", route=Route("opencode", model="fake/other")))
    assert events[-1].usage.cost is None
    assert events[-1].usage.output_tokens == 5


async def test_the_providers_words_are_told_when_it_refuses(bench):
    end = (await play(bench.worker, bench.order("::error 400")))[-1]
    assert isinstance(end, Failed)
    assert end.failure.code == "APIError"
    assert "scripted 400" in end.failure.message


async def test_a_provider_that_is_busy_is_shown_as_retrying(bench):
    events = await play(bench.worker, bench.order("::error 429 1"))
    retries = [event.activity for event in events if isinstance(event, Doing) and event.activity.kind == "retrying"]
    assert retries
    assert retries[0].until
    assert events[-1].text == "Recovered."


async def test_a_provider_that_cannot_be_reached_is_shown_as_retrying_with_the_next_try(tmp_path, model, bench):
    config = model.opencode_config()
    config["provider"]["fake"]["options"]["baseURL"] = "http://127.0.0.1:9/v1"
    worker = real_worker(tmp_path / "worker", model, config=config)
    retries = []

    async def stop(turn, event):
        if isinstance(event, Doing) and event.activity.kind is ActivityKind.RETRYING:
            retries.append(event.activity)
            await turn.stop()

    events = await play(worker, bench.order("::text never"), stop)
    await worker.aclose()
    assert isinstance(events[-1], Halted)
    assert re.match(r"trying again at [\d:]{8}: Cannot connect to API", retries[0].label)
    assert retries[0].until


async def test_a_follow_up_may_come_from_another_environment(tmp_path, model, bench):
    """A shell with another PATH, or an editor: the session is in the database of the server that began it."""
    worker = real_worker(tmp_path / "worker", model)
    folder = repository(tmp_path / "repository")
    other = {**bench.environment, "PATH": f"{tmp_path}:{bench.environment['PATH']}", "EDITOR_SET": "1"}
    session = (await play(worker, bench.order("::text first", folder=folder)))[0].session
    await worker.check(Route("opencode"), other, session)
    again = bench.order("::text second", folder=folder, session=session, environment=other)
    assert (await play(worker, again))[-1].text == "second"
    await worker.aclose()

    after = real_worker(tmp_path / "worker", model)
    last = bench.order("::text third", folder=folder, session=session, environment=other)
    assert (await play(after, last))[-1].text == "third"
    await after.release(session, {})
    await after.aclose()
    assert len([*(tmp_path / "worker" / "servers").iterdir()]) == 1


async def test_a_start_leaves_nothing_in_the_temporary_folder_of_the_user(tmp_path, model, bench):
    """OpenCode unpacks a library of 5 MB at each start and leaves it."""
    worker = real_worker(tmp_path / "worker", model)
    own = Bench(worker, tmp_path, home(tmp_path / "home"), model, bench.numbers)
    await play(worker, own.order("::text done"))
    (folder,) = (tmp_path / "worker" / "servers").iterdir()
    unpacked = [*(folder / "tmp").glob(".*.so")]
    await worker.aclose()
    assert unpacked
    assert not (folder / "tmp").exists()
    assert not [*(tmp_path / "home").glob(".*.so")]


async def test_reasoning_is_not_said(bench):
    events = await play(bench.worker, bench.order("::reason so many thoughts"))
    assert ActivityKind.THINKING in [event.activity.kind for event in events if isinstance(event, Doing)]
    assert events[-1].text == "after reasoning"


async def test_a_lot_of_text_and_a_lot_of_output_come_through(bench):
    order = bench.order(f"{bash('seq 100000')}\n::big 300", commands=("seq 100000",))
    end = (await play(bench.worker, order))[-1]
    assert isinstance(end, Finished)
    assert len(end.text) == 300 * 1024


async def test_five_turns_run_at_the_same_time(bench):
    orders = [bench.order(f"::gate five-{number} done {number}") for number in range(5)]
    async with asyncio.timeout(BOUND_S), asyncio.TaskGroup() as group:
        playing = [group.create_task(play(bench.worker, order)) for order in orders]
        gates = [bench.model.gate(f"five-{number}") for number in range(5)]
        for gate in gates:
            assert await asyncio.to_thread(gate.reached.wait, BOUND_S)
        for gate in gates:
            gate.opened.set()
    assert [task.result()[-1].text for task in playing] == [f"so far done {number}" for number in range(5)]


@pytest.fixture
def apart(tmp_path, model, bench):
    """A bench with a worker that the test may break; the test closes it."""
    clock = ManualClock()
    return Bench(
        real_worker(tmp_path / "worker", model, clock), tmp_path, home(tmp_path / "home"), model, bench.numbers
    ), clock


def left(bench):
    (file,) = (bench.folder / "worker" / "servers").glob("*/server.json")
    return file, json.loads(file.read_text())


async def test_a_server_that_dies_loses_the_turn_and_the_next_turn_gets_a_new_one(apart):
    own, _ = apart
    dead = []

    async def kill(turn, event):
        if isinstance(event, Seen):
            _, server = left(own)
            os.kill(server["pid"], signal.SIGKILL)
            dead.append(server["pid"])

    events = await play(own.worker, own.order("::gate killed on"), kill)
    assert isinstance(events[-1], Lost)
    assert "SIGKILL" in events[-1].reason
    events = await play(own.worker, own.order("::text again"))
    assert events[-1].text == "again"
    assert left(own)[1]["pid"] not in dead
    await own.worker.aclose()


async def test_a_server_is_started_once_found_again_by_the_next_hub_and_ended_when_idle(apart, model):
    own, clock = apart
    await asyncio.gather(own.worker.describe(own.environment), own.worker.describe(own.environment))
    file, server = left(own)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert server["password"] not in " ".join(psutil.Process(server["pid"]).cmdline())

    following = real_worker(own.folder / "worker", model, clock)
    assert (await following.describe({**own.environment, "TERM": "other", "PWD": "/other"})).problem == ""
    assert left(own)[1] == server

    identity = Identity(server["pid"], server["started"])
    await clock.sleepers(2)
    clock.advance(601)
    async with asyncio.timeout(BOUND_S):
        while alive(identity):  # noqa: ASYNC110 - the end of a process is the fact
            await asyncio.sleep(0.01)
    await following.aclose()
    await own.worker.aclose()
    assert not (own.folder / "home" / ".config").exists()
    assert not file.exists()


async def test_other_keys_get_another_server(apart):
    own, _ = apart
    await own.worker.describe(own.environment)
    await own.worker.describe({**own.environment, "SOME_API_KEY": "other"})
    assert len([*(own.folder / "worker" / "servers").glob("*/server.json")]) == 2
    await own.worker.aclose()
    assert not [*(own.folder / "worker" / "servers").glob("*/server.json")]


async def test_the_users_own_denials_and_agents_stand_and_his_files_are_not_written(tmp_path, model, bench):
    environment = home(tmp_path / "home")
    folder = tmp_path / "home" / ".config" / "opencode"
    (folder / "agents").mkdir(parents=True)
    (folder / "agents" / "helper.md").write_text("---\ndescription: Helps.\nmode: primary\n---\nHelp.\n")
    (folder / "opencode.json").write_text(json.dumps({"permission": {"bash": {"*": "allow", "git push *": "deny"}}}))
    worker = real_worker(tmp_path / "worker", model)
    own = Bench(worker, tmp_path, environment, model, bench.numbers)
    steps = f"{bash('git push origin')}\n{bash('ls')}\n::text done"
    events = await play(worker, own.order(steps, route=Route("opencode", "helper"), commands=("git push",)), deny)
    await worker.aclose()
    assert events[-1].ran.agent == "helper"
    assert asked(events) == [("bash", "ls")]
    assert sorted(path.name for path in folder.rglob("*")) == ["agents", "helper.md", "opencode.json"]


GETAWAYS = (
    "setsid sh -c '{write}' > /dev/null 2>&1 &",
    "(setsid sh -c '(setsid sh -c \"{write}\" &) ; true' &) > /dev/null 2>&1",
    "(env -i PATH=$PATH setsid sh -c 'trap \"\" TERM; {write}' &) > /dev/null 2>&1",
)


async def test_a_stop_ends_what_left_and_it_writes_no_more(bench):
    """Report H06: `setsid sh -c "while :; do date >> f; sleep 1; done" &` went on with full rights after the cancel."""
    write = "echo x >> begun; while :; do date >> written; sleep 0.02; done"
    lines = [bash(away.format(write=write)) for away in GETAWAYS]
    order = bench.order("\n".join([*lines, "::gate getaway never"]))

    async def stop(turn, event):
        await allow(turn, event)
        if isinstance(event, Said):
            begun = order.folder / "begun"
            while not begun.exists() or len(begun.read_text().splitlines()) < len(GETAWAYS):  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.01)
            await turn.stop()

    events = await play(bench.worker, order, stop)
    assert isinstance(events[-1], Halted)
    assert not [one for one in psutil.process_iter(["cwd"]) if one.info["cwd"] == str(order.folder)]


async def test_what_a_finished_turn_left_running_is_ended_and_told(bench):
    order = bench.order(f"{bash('(setsid sleep 600 > /dev/null 2>&1 &)')}\n::text served")
    events = await play(bench.worker, order, allow)
    end = events[-1]
    assert end.text == "served"
    assert "ended 1 process that the worker had left running" in end.doubt
    assert "(sleep 600)" in end.doubt


async def test_a_stop_reaches_a_sub_agent_of_a_sub_agent(bench):
    """Reported of others: depth two and three go on after their parent's stop."""
    deepest = "::gate deepest never"
    # The gates stay shut, as above.
    middle = f"{tool('task', description='deep', prompt=deepest, subagent_type='deep')}\n::gate middle never"
    order = bench.order(f"{tool('task', description='sub', prompt=middle, subagent_type='deep')}\n::gate parent never")
    gate = bench.model.gate("deepest")

    async def stop(turn, event):
        if isinstance(event, Doing):
            assert await asyncio.to_thread(gate.reached.wait, BOUND_S)
            await turn.stop()

    events = await play(bench.worker, order, stop)
    assert isinstance(events[-1], Halted)
