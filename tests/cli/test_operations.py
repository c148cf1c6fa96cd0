"""Commands made from the operations table, over the real rpc to a real hub."""

import json

import pytest

from offload.cli.exits import Exit
from offload.domain.task import Front
from offload.wire.operations import OPERATIONS


def test_every_operation_of_the_terminal_is_a_command(terminal, plain):
    help_page = plain(terminal.run("--help").output)
    for operation in OPERATIONS:
        offered = Front.TERMINAL in operation.fronts
        assert (f" {operation.command} " in help_page) == offered
        assert not offered or terminal.run(operation.command, "--help").exit_code == 0


def test_every_parameter_can_be_given(terminal, plain):
    for operation in OPERATIONS:
        page = plain(terminal.run(operation.command, "--help").output)
        for name, field in operation.params.model_fields.items():
            assert plain(field.description)[:12] in page or name in {"wait_s", "timeout_s"}, (operation.command, name)


def test_a_task_is_started_waited_for_and_shown(terminal, plain):
    task = terminal.start("::write new.txt hello", "--key", "shown")
    waited = terminal.run("wait", task)
    assert waited.exit_code == Exit.OK
    assert f"{task} ready" in plain(waited.stdout)
    result = terminal.run("task-result", task)
    assert result.exit_code == Exit.OK
    assert "added new.txt +1 -0" in plain(result.stdout)
    assert "get_task_result" not in result.stdout


def test_start_with_wait_gives_the_task_as_it_ended(terminal):
    status = terminal.json("start-task", "::text all is well", "--wait", "60")
    assert (status["phase"], status["state"]) == ("ready", "completed")


def test_a_start_prints_the_bare_id_where_no_person_reads(terminal, plain):
    """`id=$(offload start-task ...)` must work; the words go to standard error."""
    result = terminal.run("start-task", "::text all is well", "--wait", 60)
    task = result.stdout.removesuffix("\n")
    assert terminal.json("task-status", task)["task_id"] == task
    assert f"{task} ready" in plain(result.stderr)


def test_a_file_is_looked_for_where_one_stands_and_then_in_the_repository(terminal, tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "cart.py").write_text("def total():\n    return 1\n")
    for name in ("src/cart.py", str(tmp_path / "src" / "cart.py"), "cart.py"):
        if name == "cart.py":
            monkeypatch.chdir(tmp_path / "src")
        task = terminal.start("::text read", "--file", name, "--workspace", "" if name == "cart.py" else tmp_path)
        assert terminal.json("show-task", task)["anchor"]["path"].endswith("cart.py")
    refused = terminal.run("start-task", "::text x", "--file", "shop.py")
    assert refused.exit_code == Exit.REFUSED
    assert refused.stderr == f"offload: there is no file shop.py in {tmp_path / 'src'}\n"


def test_a_failed_task_that_was_waited_for_ends_with_code_1(terminal, plain):
    result = terminal.run("start-task", "::fail no luck", "--wait", 60)
    assert result.exit_code == Exit.NOT_DONE
    assert "no luck" in plain(result.stderr)
    task = terminal.start("::fail no luck")
    assert terminal.json("wait", task, code=Exit.NOT_DONE)["tasks"][0]["failure"]["message"] == "no luck"
    assert terminal.run("task-result", task).exit_code == Exit.NOT_DONE
    assert terminal.run("task-status", task).exit_code == Exit.OK, "a status that is only asked for is an answer"


def test_a_wait_that_is_over_before_the_task_ends_with_code_1(terminal, plain):
    task = terminal.start("::gate closed")
    result = terminal.run("wait", task, "--timeout", 0)
    assert result.exit_code == Exit.NOT_DONE
    assert "not all of this is over yet" in plain(result.stdout)


def test_a_person_may_wait_longer_than_one_call_lasts(terminal, monkeypatch):
    monkeypatch.setattr("offload.cli.calling.MAX_WAIT_S", 0.01)
    task = terminal.start("::shell make everything")
    while not terminal.json("task-status", task)["asks"]:
        terminal.run("wait", task, "--timeout", 0.05)
    held = terminal.run("wait", task, "--timeout", 0.05)
    assert held.exit_code == Exit.NOT_DONE
    terminal.run("answer-task", task, "allow")
    assert terminal.run("wait", task).exit_code == Exit.OK


def test_a_wait_for_any_ends_with_the_first(terminal):
    held, quick = terminal.start("::gate closed"), terminal.start("::text quick")
    answer = terminal.json("wait", held, quick, "--mode", "any")
    assert {task["task_id"]: task["phase"] for task in answer["tasks"]}[quick] == "ready"


def test_a_wait_after_a_revision_ends_with_the_news(terminal):
    task = terminal.start("::text quick", "--wait", 60)
    held = terminal.start("::gate closed")
    answer = terminal.json("wait", task, held, "--after-revision", f"{task}=1", code=Exit.NOT_DONE)
    assert not answer["done"]
    assert answer["after_revision"][task] > 1


def test_a_wait_ends_when_a_worker_asks_and_goes_on_past_an_ask_that_is_known(terminal, plain):
    task = terminal.start("::shell make everything", "--wait", 60, code=Exit.NOT_DONE)
    shown = terminal.run("wait", task)
    assert shown.exit_code == Exit.NOT_DONE
    assert f"{task} waits for you" in plain(shown.stdout)
    revision = terminal.json("task-status", task)["revision"]
    answer = terminal.json("wait", task, "--after-revision", f"{task[:-1]}={revision}", "--timeout", 0.05, code=1)
    assert answer["after_revision"] == {task: revision}
    terminal.run("answer-task", task, "allow")
    assert terminal.run("wait", task).exit_code == Exit.OK


@pytest.mark.parametrize("word", ["=x", "task", "task=1.5"])
def test_a_malformed_revision_is_told(terminal, plain, word):
    result = terminal.run("wait", "x", "--after-revision", word)
    assert result.exit_code == Exit.USAGE
    assert "--after-revision wants ID=REVISION" in plain(result.output)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("list-tasks", "--limit", "0"), "--limit: Input should be greater than or equal to 1"),
        (("answer-task", "x", ""), "CHOICE: String should have at least 1 character"),
        (("task-status",), "Missing argument"),
        (("wait", "x", "--mode", "some"), "'some'"),
        (("no-such-command",), "No such command"),
    ],
)
def test_a_wrong_command_line_is_told_and_ends_with_code_2(terminal, plain, words, told):
    result = terminal.run(*words)
    assert result.exit_code == Exit.USAGE
    assert told in plain(result.output)


def test_a_refused_call_ends_with_code_3_and_says_why_on_standard_error(terminal):
    result = terminal.run("task-status", "task_nowhere")
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert result.stderr.startswith("offload: ")
    assert "task_nowhere" in result.stderr
    assert "`offload list-tasks` shows those that exist" in result.stderr


def test_with_json_an_error_is_an_object_on_standard_output(terminal):
    error = terminal.json("task-status", "task_nowhere", code=Exit.REFUSED)["error"]
    assert error["code"] == "unknown_task"
    assert "task_nowhere" in error["message"]
    assert error["reasons"] == []


def test_an_ask_is_shown_and_answered(terminal, plain):
    task = terminal.start("::shell make everything")
    while not (shown := terminal.json("task-status", task))["asks"]:
        terminal.run("wait", task, "--after-revision", f"{task}={shown['revision']}", "--timeout", 60)
    assert f"{task} waits for you" in plain(terminal.run("list-tasks").stdout)
    status = plain(terminal.run("task-status", task).stdout)
    assert "bash: make everything" in status
    each = " or ".join(f"`offload answer-task {task} {choice}`" for choice in ("allow", "always", "deny"))
    assert f"answer with {each}" in status
    assert terminal.run("answer-task", task, "deny", "--message", "rather not").exit_code == Exit.OK
    terminal.run("wait", task)
    assert terminal.json("task-result", task)["text"] == "rather not"


def test_a_follow_up_makes_a_second_turn(terminal, plain):
    task = terminal.start("::text first", "--wait", "60")
    assert terminal.json("continue-task", task, "::text second", "--wait", "60")["phase"] == "ready"
    shown = plain(terminal.run("show-task", task).stdout)
    assert "> ::text first" in shown
    assert "> ::text second" in shown
    assert task in plain(terminal.run("show-tasks").stdout)


def test_a_task_is_cancelled_and_closed(terminal, plain):
    task = terminal.start("::gate closed")
    terminal.run("cancel-task", task)
    assert terminal.run("wait", task).exit_code == Exit.NOT_DONE
    assert terminal.run("close-task", task).exit_code == Exit.OK
    assert task not in terminal.run("list-tasks").stdout
    assert task in terminal.run("list-tasks", "--closed").stdout


def test_a_list_says_how_many_it_left_out(terminal, plain):
    terminal.start("::text one", "--wait", "60")
    terminal.start("::text two", "--wait", "60")
    assert "--limit shows them" in plain(terminal.run("list-tasks", "--limit", 1).stdout)


def test_a_patch_in_a_pipe_is_printed_as_it_is(terminal):
    """`offload diff ID | git apply` must work."""
    task = terminal.start("::write new.txt hello", "--wait", "60")
    patch = terminal.run("diff", task).stdout
    assert patch == terminal.json("diff", task)["patch"]
    assert "+hello" in patch


def test_a_result_is_applied_to_the_files(terminal, plain, tmp_path):
    task = terminal.start("::write new.txt hello", "--wait", "60")
    result = terminal.run("apply", task, "new.txt")
    assert result.exit_code == Exit.OK
    assert "written: new.txt" in plain(result.stdout)
    assert (tmp_path / "new.txt").read_text() == "hello"
    again = terminal.run("apply", task)
    assert plain(again.stdout).split("\n")[0].strip() == "there already: new.txt"


def test_a_refused_apply_names_each_file(terminal, tmp_path):
    task = terminal.start("::write new.txt hello", "--wait", "60")
    (tmp_path / "new.txt").write_text("mine")
    result = terminal.run("apply", task)
    assert result.exit_code == Exit.REFUSED
    assert "  new.txt: was changed by you as well\n" in result.stderr
    error = terminal.json("apply", task, code=Exit.REFUSED)["error"]
    assert error["reasons"] == ["new.txt: was changed by you as well"]
    assert (tmp_path / "new.txt").read_text() == "mine"


def test_the_workers_and_recipes_are_listed(terminal, plain):
    shown = plain(terminal.run("agents").stdout)
    assert "fake 1.0 (default)" in shown
    assert "agent build Writes code." in shown
    assert "model fake/worker (default) $1 in, $2 out per million tokens variants: high, low" in shown
    assert "tests (Delegate tests for this block)" in shown


def test_json_is_what_the_table_says(terminal):
    """Scripts may rely on docs/PROTOCOL.md for what a command prints."""
    printed = terminal.run("list-tasks", "--json").stdout
    result = next(operation.result for operation in OPERATIONS if operation.command == "list-tasks")
    assert result.model_validate(json.loads(printed)).model_dump(mode="json") == json.loads(printed)


def test_old_tasks_are_listed_and_removed(terminal, plain):
    """What was never applied is listed, and goes only when it is named."""
    words = terminal.start("::text only words", "--wait", "60")
    kept = terminal.start("::write new.txt hello", "--wait", "60")
    dry = plain(terminal.run("clean", "--older-than-days", 0, "--dry-run").stdout)
    assert "would be removed:" in dry
    assert f"{words} ready" in dry
    assert "1 changed file was never applied" in dry
    assert "`offload clean TASK --include-unaccepted` removes what was never applied" in dry
    assert words in {task["task_id"] for task in terminal.json("list-tasks")["tasks"]}

    cleaned = terminal.json("clean", "--older-than-days", 0)
    assert words in {task["task_id"] for task in cleaned["removed"]}
    assert kept in {task["task_id"] for task in cleaned["kept"]}
    assert words not in {task["task_id"] for task in terminal.json("list-tasks", "--closed")["tasks"]}
    assert "1 younger tasks" not in plain(terminal.run("clean", "--older-than-days", 0).stdout)
    assert "younger tasks were not looked at" in plain(terminal.run("clean", "--older-than-days", 5).stdout)
    assert terminal.json("clean", "--include-unaccepted", "--older-than-days", 0, code=Exit.REFUSED)["error"]
    assert f"removed: 1 {kept} ready" in plain(terminal.run("clean", kept, "--include-unaccepted").stdout)
