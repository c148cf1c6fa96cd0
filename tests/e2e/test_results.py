"""Results on their way into the user's files, as the stories of people and models: chosen by hunk, agreed to, merged, refused, taken
back. Real hub, real OpenCode, real fronts."""

import os

import pytest

from offload.cli.exits import Exit
from tests.e2e.editor import editing
from tests.e2e.host import facts, hosting, refusal, rested
from tests.e2e.script import scripting
from tests.e2e.stage import Stage, brief, rewriting, shell, write

TOP, MIDDLE, BOTTOM = "2\n", "20\n", "38\n"  # lines so far from each other that each is a hunk of its own


def numbers(**changed):
    """A file of forty lines, some of them changed: `numbers(top="two")`."""
    lines = [f"{number}\n" for number in range(1, 41)]
    places = {"top": TOP, "middle": MIDDLE, "bottom": BOTTOM}
    for place, word in changed.items():
        lines[lines.index(places[place])] = f"{word}\n"
    return "".join(lines)


@pytest.fixture
def listed(stage, project):
    """The file of numbers in the project."""
    file = project / "numbers.txt"
    file.write_text(numbers())
    stage.git(project, "add", "-A")
    stage.git(project, "commit", "-qm", "numbers")
    return file


async def test_a_model_reviews_two_results_sends_a_hunk_back_and_the_user_lets_it_apply_both(stage, project, listed):
    async with hosting(stage, project) as client:
        counted = brief(*rewriting("numbers.txt", numbers(top="two", middle="twenty", bottom="last")), "::text Done.")
        first = (await facts(client, "start_task", brief=counted))["task_id"]
        second = (await facts(client, "start_task", brief=brief(write("page.md", "a page\n"), "::text Done.")))[
            "task_id"
        ]
        for task_id in (first, second):
            assert (await rested(client, task_id))["phase"] == "ready"

        shown = await facts(client, "get_changes", task_id=first)
        (file,) = shown["changes"]["files"]
        top, middle, bottom = (hunk["hunk_id"] for hunk in file["hunks"])
        one = await facts(client, "get_changes", task_id=first, hunks=[middle])
        assert "+twenty" in one["patch"]
        assert "+two" not in one["patch"].replace("+twenty", "")
        reason = "\n".join(
            ["keep the 20", *rewriting("numbers.txt", numbers(top="two", bottom="last")), "::text Kept."]
        )
        sent = await facts(client, "reject_task", task_id=first, hunks=[middle], reason=reason, send_back=True)
        assert sent["phase"] != "ready"
        assert (await rested(client, first))["phase"] == "ready"
        (file,) = (await facts(client, "get_changes", task_id=first))["changes"]["files"]
        assert [hunk["hunk_id"] for hunk in file["hunks"]] == [top, bottom], "ids stay, whatever else is changed"

        made = (await facts(client, "integrate_tasks", task_ids=[first, second], wait_s=45))["task_id"]
        assert (await rested(client, made))["phase"] == "ready"
        asked = await refusal(client, "apply_task", task_id=made)
        assert asked.startswith("apply_forbidden: ")
        assert "the user is asked" in asked
        status = await facts(client, "get_task_status", task_id=made)
        (ask,) = status["asks"]
        assert (status["state"], ask["subject"], ask["choices"]) == ("input_required", "apply", ["allow", "deny"])
        own_answer = await refusal(client, "answer_task", task_id=made, ask_id=ask["ask_id"], choice="allow")
        assert own_answer.startswith("apply_forbidden: ")
        assert listed.read_text() == numbers(), "nothing is written before the user says so"

        assert "apply" in stage.run("task-status", made).stdout
        assert stage.run("answer-task", made, "allow").code == Exit.OK
        assert listed.read_text() == numbers(top="two", bottom="last")
        assert (project / "page.md").read_text() == "a page\n"
        told = await facts(
            client, "wait_for_tasks", task_ids=[made], after_revision={made: status["revision"]}, timeout_s=45
        )
        assert told["done"]
        assert told["tasks"][0]["next_step"].startswith("Applied")
        again = await facts(client, "apply_task", task_id=made)
        assert again["apply_id"], "a model that says it again is told that it is there"

        taken_back = stage.json("undo", made)
        assert sorted(file["path"] for file in taken_back["files"]) == ["numbers.txt", "page.md"]
        assert listed.read_text() == numbers()
        assert not (project / "page.md").exists()

        with scripting(stage, project) as script:
            persons = script.ready(write("mine.txt", "x\n"), "::text Done.")
        refused = await refusal(client, "apply_task", task_id=persons)
        assert "was not started by" in refused
        assert not (await facts(client, "get_task_status", task_id=persons)).get("asks")
    assert not (project / "mine.txt").exists()


async def test_a_model_applies_and_takes_back_by_itself_where_that_is_allowed_and_nothing_where_it_is_not(model):
    stage = Stage(model, OFFLOAD_MCP_APPLY="allow")
    try:
        project = stage.project()
        async with hosting(stage, project) as client:
            steps = brief(write("a.txt", "a\n"), "::text Done.")
            task_id = (await facts(client, "start_task", brief=steps))["task_id"]
            assert (await rested(client, task_id))["phase"] == "ready"
            applied = await facts(client, "apply_task", task_id=task_id)
            assert (project / "a.txt").read_text() == "a\n"
            assert [(file["path"], file["place"]) for file in applied["files"]] == [("a.txt", "disk")]
            await facts(client, "undo_apply", task_id=task_id, apply_id=applied["apply_id"])
            assert not (project / "a.txt").exists()
        stage.stop()
        stage.environ["OFFLOAD_MCP_APPLY"] = "never"
        async with hosting(stage, project, "legacy") as client:
            refused = await refusal(client, "apply_task", task_id=task_id)
            assert "mcp_apply is never" in refused
            assert not (await facts(client, "get_task_status", task_id=task_id)).get("asks")
        assert not (project / "a.txt").exists()
        assert stage.json("apply", task_id)["paths"] == ["a.txt"], "a person may"
    finally:
        stage.close()


def test_a_hunk_goes_before_the_rest_a_follow_up_merges_onto_it_and_a_conflict_is_resolved_by_the_worker(
    stage, project, listed
):
    with scripting(stage, project) as script:
        task_id = script.ready(
            *rewriting("numbers.txt", numbers(top="two", middle="twenty", bottom="last")), "::text Done."
        )
        top, middle, bottom = script.hunks(task_id, "numbers.txt")
        assert stage.json("apply", task_id, "--hunk", middle)["hunks_pending"] == 2
        assert listed.read_text() == numbers(middle="twenty")
        states = script.hunks(task_id, "numbers.txt")
        assert states == {top: "pending", middle: "applied", bottom: "pending"}
        assert stage.json("apply", task_id)["hunks_pending"] == 0
        assert listed.read_text() == numbers(top="two", middle="twenty", bottom="last")

        listed.write_text("0\n" + listed.read_text())  # the user goes on
        more = brief(*rewriting("numbers.txt", numbers(top="two", middle="twenty-one", bottom="last")), "::text More.")
        script.ask("continue_task", task_id=task_id, brief=more)
        assert script.rested(task_id)[0]["phase"] == "ready"
        stage.json("apply", task_id)
        assert listed.read_text() == "0\n" + numbers(top="two", middle="twenty-one", bottom="last")

        mine = "0\n" + numbers(top="two", middle="mine", bottom="last")
        listed.write_text(mine)
        more = brief(*rewriting("numbers.txt", numbers(top="2.0", middle="theirs", bottom="last")), "::text More.")
        script.ask("continue_task", task_id=task_id, brief=more)
        assert script.rested(task_id)[0]["phase"] == "ready"
        told = stage.run("apply", task_id)
        assert told.code == Exit.REFUSED
        assert "mine" in told.stderr
        assert "theirs" in told.stderr
        error = stage.json("apply", task_id, code=Exit.REFUSED)["error"]
        (conflict,) = error["conflicts"]
        assert (conflict["path"], conflict["yours"], conflict["theirs"]) == ("numbers.txt", "mine\n", "theirs\n")
        assert conflict["hunk_id"] in script.hunks(task_id, "numbers.txt")
        assert listed.read_text() == mine

        resolved = "0\n" + numbers(top="2.0", middle="mine and theirs", bottom="last")
        stage.json("continue-task", task_id, brief("::text I only looked."), "--onto", "files")
        assert "numbers.txt" in script.rested(task_id)[0]["needs_review"], "what is still marked is no good end"
        assert "\n+<<<<<<<" in stage.run("diff", task_id).stdout
        more = brief(*rewriting("numbers.txt", resolved), "::text Resolved.")
        script.ask("continue_task", task_id=task_id, brief=more)
        (task,) = script.rested(task_id)
        assert (task["phase"], task["needs_review"]) == ("ready", "")
        stage.json("apply", task_id)
        assert listed.read_text() == resolved


def test_of_two_results_that_add_at_the_same_place_the_second_is_refused_and_nothing_is_lost(stage, project, listed):
    """H22 of the public reports: the second result silently took the place of the first."""
    with scripting(stage, project) as script:
        ids = [
            script.start(*rewriting("numbers.txt", numbers() + f"## {name}\n"), "::text Done.")
            for name in ("one", "two")
        ]
        assert [task["phase"] for task in script.rested(*ids)] == ["ready", "ready"]
        script.ask("apply_task", task_id=ids[0])
        error = stage.json("apply", ids[1], code=Exit.REFUSED)["error"]
        (conflict,) = error["conflicts"]
        assert (conflict["yours"], conflict["theirs"]) == ("## one\n", "## two\n")
        assert listed.read_text() == numbers() + "## one\n"
        for name, task_id, state in (("one", ids[0], "applied"), ("two", ids[1], "pending")):
            assert f"+## {name}" in stage.run("diff", task_id).stdout
            assert set(script.hunks(task_id, "numbers.txt").values()) == {state}
        assert not script.ask("get_task", task_id=ids[1])["landings"]


async def test_what_a_shell_left_is_applied_to_the_byte_by_every_front_whatever_its_name_is(stage, project):
    """H13 and H21 of the public reports: names that are no UTF-8, what was committed, what was never staged, what is binary."""
    (project / ".gitignore").write_text("ignored.log\n")
    (project / "committed.txt").write_text("before\n")
    stage.git(project, "add", "-A")
    stage.git(project, "commit", "-qm", "more")
    made = {
        b"committed.txt": b"after\n",
        b"new.txt": b"new\n",
        b"empty": b"",
        b"binary": bytes(range(256)) * 3,
        b"rpc-\xe9.txt": b"r\n",
        b"cli-\xe9.txt": b"c\n",
        b"lsp-\xe9 \xf0\x9f\x98\x8b.txt": b"l\n",
        b"mcp-\xe9\xff.bin": b"\0m\n",
    }
    program = f"for name, data in {made!r}.items(): open(name, 'wb').write(data)\nopen('ignored.log', 'w').write('x')"
    command = f"python3 - <<'END'\n{program}\nEND\ngit commit -qm 'by the worker' committed.txt"
    with scripting(stage, project) as script:
        async with hosting(stage, project) as client:
            steps = brief(shell(command), "::text Done.")
            task_id = (await facts(client, "start_task", brief=steps, profile="full"))["task_id"]
            assert (await rested(client, task_id))["phase"] == "ready"
            shown = await facts(client, "get_changes", task_id=task_id)
            files = {file["path"].split("-")[0]: file for file in shown["changes"]["files"]}
            assert files.keys() == {"committed.txt", "new.txt", "empty", "binary", "rpc", "cli", "lsp", "mcp"}
            assert (files["binary"]["binary"], files["binary"]["size"]) == (True, 768)
            ids = {front: files[front]["file_id"] for front in ("rpc", "cli", "lsp", "mcp")}

            assert script.ask("apply_task", task_id=task_id, hunks=[ids["rpc"]])["hunks_pending"] == 7
            assert stage.run("apply", task_id, "--hunk", ids["cli"]).code == Exit.OK
            async with editing(stage, project) as editor:
                await editor.ask("offload/applyTask", task_id=task_id, hunks=[ids["lsp"]])
            assert "the user is asked" in await refusal(client, "apply_task", task_id=task_id, hunks=[ids["mcp"]])
            stage.json("answer-task", task_id, "allow")
        names = {os.fsencode(path.name) for path in project.iterdir()}.intersection(made)
        assert names == {b"committed.txt", *(name for name in made if b"-" in name)}
        assert stage.json("apply", task_id)["hunks_pending"] == 0
    for name, data in made.items():
        assert (project / os.fsdecode(name)).read_bytes() == data
    assert not (project / "ignored.log").exists()
    assert stage.git(project, "log", "--oneline").count(b"\n") == 2, "a worker's commit is no commit of the user's"


async def test_a_result_of_megabytes_is_shown_to_a_model_in_small_pieces_and_applied_whole(stage, project):
    """H12 of the public reports: one call of a delegation tool filled a model's context."""
    program = (
        "open('long.txt', 'w').write('é' * 1_500_000)\n"
        "for number in range(200): open(f'part-{number:03}.txt', 'w').write(f'zeile {number} ü\\n' * 800)"
    )
    with scripting(stage, project) as script:
        async with hosting(stage, project) as client:
            steps = brief(shell(f"python3 - <<'END'\n{program}\nEND"), "::text Done.")
            task_id = (await facts(client, "start_task", brief=steps, profile="full"))["task_id"]
            task = await rested(client, task_id)
            assert (task["phase"], task["files_changed"]) == ("ready", 201)
            whole = script.ask("get_changes", task_id=task_id)["patch"]
            assert len(whole.encode()) > 5_000_000
            result = await facts(client, "get_task_result", task_id=task_id)
            assert len(result["changes"]["files"]) + result["changes"]["files_left_out"] == 201
            for offset in (0, 7, 1_000_000, len(whole) - 9_000):
                at, read = offset, ""
                while at is not None and len(read) < 9_000:
                    piece = await facts(client, "get_changes", task_id=task_id, patch_offset=at)
                    read += piece["patch"]
                    at = piece.get("next_patch_offset")
                assert whole[offset:].startswith(read)
                assert (at is None) == (offset + len(read) == len(whole))
            one = await facts(client, "get_changes", task_id=task_id, paths=["part-007.txt"])
            assert [file["path"] for file in one["changes"]["files"]] == ["part-007.txt"]
        assert len(script.ask("apply_task", task_id=task_id)["paths"]) == 201
    assert (project / "long.txt").read_text() == "é" * 1_500_000
    assert (project / "part-199.txt").read_text() == "zeile 199 ü\n" * 800
