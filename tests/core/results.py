"""Short ways through the house for the tests of apply, undo and reject."""

from dataclasses import replace
from pathlib import Path

from offload.core.caller import Caller
from offload.core.delegation import StartRequest
from offload.domain.review import Selection
from offload.domain.task import Front
from tests.fakes.editor import FakeEditor

LINES = [f"line {number}\n" for number in range(1, 41)]
TEXT = "".join(LINES)
MODEL = Caller(Front.MODEL, "mcp-1", Path("/"), "claude-code", {"PATH": "/usr/bin"})
PERSON = Caller(Front.EDITOR, "lsp-1", Path("/"), "Neovim", {"PATH": "/usr/bin"})


def changed(*numbers, word="changed"):
    """The text with these lines (1-based) changed."""
    return "".join(f"{word} {at}\n" if at in numbers else line for at, line in enumerate(LINES, 1))


def writes(files):
    """A script that writes these files; None removes one."""

    async def script(stage):
        await stage.seen()
        for path, text in files.items():
            if text is None:
                (stage.order.folder / path).unlink()
            else:
                stage.write(path, text)
        await stage.say("done")

    return script


async def result(house, files, caller=None, **request):
    """A task that rests and has left `files` so."""
    house.worker.script = writes(files)
    caller = replace(caller or house.caller, workspace=house.root)
    task = await house.delegation.start(caller, StartRequest(brief="do it", **request))
    return await house.rested(task.id)


async def follow_up(house, task, files, **how):
    house.worker.script = writes(files)
    await house.delegation.continue_(house.caller, task.id, "more", **how)
    return await house.rested(task.id)


async def apply(house, task, *hunks, caller=None, key="", **selection):
    wanted = Selection(hunks=hunks, **selection)
    return await house.delegation.apply(caller or house.caller, task.id, wanted, key)


async def undo(house, task, apply_id="", caller=None):
    return await house.delegation.undo(caller or house.caller, task.id, apply_id)


async def reject(house, task, *hunks, reason="", send_back=False, **selection):
    wanted = Selection(hunks=hunks, **selection)
    return await house.delegation.reject(house.caller, task.id, wanted, reason, send_back=send_back)


def on_disk(house, path="a.txt"):
    return (house.root / path).read_text()


def editor(house, id_="lsp-1", name="Neovim", **how):
    return FakeEditor(house.delegation.documents, id_, name, **how)
