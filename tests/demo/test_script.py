"""The scripted model's rounds, played against real files and a real test run in place of an agent."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from offload.demo import script

SAMPLE = Path(script.__file__).with_name("sample")
PRICE = (SAMPLE / "shop/money.py").read_text().split("\n\n\n")[1]
PROMPT = f"Write tests for `price`.\n\nshop/money.py, lines 4-14:\n```python\n{PRICE}\n```\n"


class Agent:
    """Does what the model asks for, as a coding agent would, and keeps the messages."""

    def __init__(self, folder):
        self.folder = folder
        self.messages = [{"role": "system", "content": f"You help.\nWorking directory: {folder}\nToday is today."}]
        self.calls = []

    def ask(self, prompt):
        self.messages.append({"role": "user", "content": [{"type": "text", "text": prompt}]})
        for number in range(20):
            move = script.next_move(script.read_conversation(self.messages))
            if isinstance(move, script.Say):
                self.messages.append({"role": "assistant", "content": move.text})
                return move.text
            self.calls.append(move.tool)
            name = f"call_{len(self.messages)}_{number}"
            function = {"name": move.tool, "arguments": json.dumps(move.arguments)}
            call = {"id": name, "type": "function", "function": function}
            self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            result = getattr(self, move.tool)(**move.arguments)
            self.messages.append({"role": "tool", "tool_call_id": name, "content": result})
        raise AssertionError(f"the model goes on without end: {self.calls}")

    def read(self, filePath):  # noqa: N803 - the tool's own name for it
        if not Path(filePath).exists():
            return f"Error: File not found: {filePath}"
        lines = Path(filePath).read_text().splitlines()
        return "<content>\n" + "\n".join(f"{n}: {line}" for n, line in enumerate(lines, 1)) + "\n</content>"

    def write(self, filePath, content):  # noqa: N803
        Path(filePath).write_text(content)
        return "Wrote file successfully."

    def edit(self, filePath, oldString, newString):  # noqa: N803
        text = Path(filePath).read_text()
        assert text.count(oldString) == 1, "an edit must say where"
        Path(filePath).write_text(text.replace(oldString, newString))
        return "Edit applied successfully."

    def bash(self, command, description):
        assert description
        program, *rest = command.split()
        assert program == "python3"
        done = subprocess.run(
            [sys.executable, "-B", *rest], cwd=self.folder, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr


@pytest.fixture
def agent(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "shop")
    return Agent(tmp_path / "shop")


def test_it_reads_writes_runs_learns_and_runs_again(agent):
    text = agent.ask(PROMPT)
    assert agent.calls == ["read", "read", "write", "bash", "edit", "bash"]
    assert text == (
        "tests/test_money.py holds 2 tests for `price`. They pass. "
        "I guessed wrongly in test_zero_cents and wrote down what the code does: please check it."
    )
    assert "assertEqual(price(0), '0.00')" in (agent.folder / "tests/test_money.py").read_text()


def test_a_follow_up_extends_the_same_file_and_runs_it(agent):
    agent.ask(PROMPT)
    agent.calls.clear()
    text = agent.ask("Also cover negative and large amounts.")
    assert agent.calls == ["edit", "bash", "edit", "bash"]
    assert text.startswith("tests/test_money.py holds 4 tests for `price`. They pass.")
    tests = (agent.folder / "tests/test_money.py").read_text()
    assert "assertEqual(price(-5), '-0.05')" in tests
    assert "assertEqual(price(1_000_000), '10000.00')" in tests


@pytest.mark.parametrize("answer", ["Tool execution aborted", "[Tool execution was interrupted]"])
@pytest.mark.parametrize("tool", ["read", "write", "bash", "edit"])
def test_it_goes_on_where_it_was_interrupted(agent, tool, answer):
    """The agent tells the model of a call that was stopped without its arguments when these had not come yet."""

    class Interrupted(Exception):
        pass

    def stop(**_):
        agent.messages[-1]["tool_calls"][0]["function"]["arguments"] = "{}"
        agent.messages.append(
            {"role": "tool", "tool_call_id": agent.messages[-1]["tool_calls"][0]["id"], "content": answer}
        )
        raise Interrupted

    setattr(agent, tool, stop)
    with pytest.raises(Interrupted):
        agent.ask(PROMPT)
    delattr(agent, tool)
    text = agent.ask("You were interrupted; go on.")
    assert text.startswith("tests/test_money.py holds 2 tests for `price`. They pass.")
    assert "assertEqual(price(0), '0.00')" in (agent.folder / "tests/test_money.py").read_text()


def test_where_the_usual_file_is_taken_it_makes_one_of_its_own(agent):
    slug = (SAMPLE / "shop/text.py").read_text().split("\n\n\n")[2]
    text = agent.ask(f"Write tests for `slug`.\n\nshop/text.py, lines 9-20:\n```python\n{slug}\n```\n")
    assert text.startswith("tests/test_text_slug.py holds 2 tests for `slug`. They pass.")


@pytest.mark.parametrize("base", ["", "||||||| what both began from\n"])
def test_it_keeps_both_sides_of_a_conflict(agent, base):
    agent.ask(PROMPT)
    tests = agent.folder / "tests/test_money.py"
    mine = tests.read_text()
    share = "import unittest\n\nfrom shop.money import share\n\n\nclass ShareTest(unittest.TestCase):\n"
    share += "    def test_nothing_is_lost(self):\n        self.assertEqual(sum(share(100, 3)), 100)\n"
    share += '\nif __name__ == "__main__":\n    unittest.main()\n'
    tests.write_text(f"<<<<<<< the user's\n{share}{base}=======\n{mine}>>>>>>> the task's\n")
    agent.calls.clear()
    text = agent.ask("There are conflicts, marked in these files: tests/test_money.py. Resolve them.")
    assert agent.calls == ["read", "write", "bash"]
    assert text == (
        "tests/test_money.py holds 3 tests for `price`. I kept the tests of both sides of the conflict. They pass."
    )
    united = tests.read_text()
    assert (united.count("import unittest\n"), united.count("__main__"), united.count("class ")) == (1, 1, 2)


def test_a_follow_up_without_a_known_case_changes_nothing_and_says_so(agent):
    agent.ask(PROMPT)
    agent.calls.clear()
    assert agent.ask("Make it nicer.").endswith("so I changed nothing.")
    assert agent.calls == []


def test_it_says_so_when_the_shell_does_not_run_the_tests(agent):
    agent.bash = lambda **_: "python3: command not found"
    assert "I could not see them pass. The shell said: python3: command not found" in agent.ask(PROMPT)


def test_it_gives_up_on_tests_that_fail_again_and_again(agent):
    agent.edit = lambda **_: "The edit was refused."
    text = agent.ask(PROMPT)
    assert agent.calls.count("bash") <= script.RUNS_PER_TURN
    assert "Failing: test_zero_cents; please look at the code." in text


def test_a_broken_promise_in_the_code_is_reported(agent):
    money = agent.folder / "shop/money.py"
    money.write_text(money.read_text().replace("'12.50'", "'13.50'"))
    text = agent.ask(PROMPT.replace("'12.50'", "'13.50'"))
    assert "Failing: test_does_what_its_documentation_says; please look at the code." in text


def test_a_block_that_is_no_longer_in_the_file_is_reported(agent):
    (agent.folder / "shop/money.py").write_text("# empty\n")
    assert agent.ask(PROMPT).startswith("I found no function of the block in shop/money.py, so I wrote nothing.")


def test_it_says_what_it_is_when_no_python_file_is_named(agent):
    assert agent.ask("Hello!").startswith("I am the scripted model of offload's demo")


def test_without_a_known_folder_paths_stay_as_they_are():
    conversation = script.read_conversation([{"role": "system", "content": "x"}, {"role": "user", "content": PROMPT}])
    move = script.next_move(conversation)
    assert isinstance(move, script.Call)
    assert move.arguments == {"filePath": "shop/money.py"}


def test_a_file_printed_without_line_numbers_is_taken_as_it_is():
    assert script.unnumbered("def f():\n    pass\n") == "def f():\n    pass\n"
