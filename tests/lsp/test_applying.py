"""Results that go into open documents: core's port `Editor` over a real connection, with editors of every character."""

import asyncio
import random

import pytest

from offload.core.ports import DocumentEdit, EditOutcome
from offload.domain.text import Encoding
from offload.lsp.applying import Patience
from tests.lsp.client import NO_ANSWER, Refused
from tests.lsp.conftest import EDITING

# What editors announce, and no more: Neovim, and one of the first days of the protocol; EDITING is what VS Code does.
NEOVIM = {"workspace": {"applyEdit": True, "workspaceEdit": {"resourceOperations": ["create"]}}}
PLAIN = {"workspace": {"applyEdit": True}}
QUICK = Patience(answer_s=60, seen_s=60, moved_s=0.05)  # for those whose documents hold another text
HASTY = Patience(answer_s=0.05, seen_s=0.05, moved_s=0.05)  # for those who never say what is waited for

BEFORE = "one\ntwo\nthree\n"
AFTER = "one\nTWO\nthree\nfour\n"


@pytest.fixture
def file(house):
    return house.root / "a.py"


async def known(screen):
    """All that was said so far was taken in."""
    await screen.client.result("offload/listTasks")


def live(house, path):
    return house.delegation.documents.text(path)


@pytest.mark.parametrize("capabilities", [EDITING, NEOVIM, PLAIN])
async def test_an_open_document_is_changed_by_its_editor(house, editing, edit, file, capabilities):
    screen = await editing(capabilities, clientInfo={"name": "Vim"})
    screen.show(file, BEFORE, 7)
    await known(screen)
    editor = house.delegation.documents.editor("lsp-1")
    assert (editor.name, editor.can_edit) == ("Vim", True)
    assert await edit((file, 7, BEFORE, AFTER)) is EditOutcome.DONE
    assert screen.text(file) == live(house, file) == AFTER
    (request,) = screen.requests
    assert request["label"] == "offload: tests"
    assert not file.exists(), "nothing is written to disk"


async def test_the_version_goes_along_where_the_editor_takes_it(editing, edit, file):
    screen = await editing(NEOVIM)
    screen.show(file, BEFORE, 7)
    await known(screen)
    await edit((file, 7, BEFORE, AFTER))
    (change,) = screen.requests[0]["edit"]["documentChanges"]
    assert change["textDocument"] == {"uri": file.as_uri(), "version": 7}
    assert [(each["range"]["start"], each["newText"]) for each in change["edits"]] == [
        ({"line": 1, "character": 0}, "TWO\n"),
        ({"line": 2, "character": 0}, "three\nfour"),
    ]


@pytest.mark.parametrize("encoding", list(Encoding))
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_any_text_becomes_any_other_over_the_wire(house, editing, edit, file, encoding, end):
    """H16: a round trip gives the same characters in every encoding and with every line end."""
    rng = random.Random(7)
    screen = await editing(encoding=encoding)
    for number in range(30):
        words = ["#😋😋x", "é", "", "a = 1", "b = 2", "\u2028"]
        before, after = (end.join(rng.choices(words, k=rng.randrange(9))) for _ in range(2))
        screen.show(file, before, number)
        await known(screen)
        assert await edit((file, number, before, after)) is EditOutcome.DONE
        assert screen.text(file) == after
        assert live(house, file) == after


async def test_two_documents_are_changed_by_one_request(house, editing, edit, file):
    other = file.with_name("b.py")
    screen = await editing()
    screen.show(file, BEFORE)
    screen.show(other, "x\n", 5)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER), (other, 5, "x\n", "y\n")) is EditOutcome.DONE
    assert (screen.text(file), screen.text(other), len(screen.requests)) == (AFTER, "y\n", 1)


@pytest.mark.parametrize("capabilities", [EDITING, PLAIN])
async def test_a_document_that_was_typed_in_before_the_request_is_left_alone(editing, edit, file, capabilities):
    screen = await editing(capabilities)
    screen.show(file, BEFORE)
    screen.type(file, "# typed\n")
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.MOVED
    assert screen.requests == []


@pytest.mark.parametrize("how", ["another text", "closed", "never opened"])
async def test_a_document_that_is_not_as_core_thinks_is_left_alone(editing, edit, file, how):
    screen = await editing()
    if how != "never opened":
        screen.show(file, "another\n" if how == "another text" else BEFORE)
    if how == "closed":
        screen.client.close(file)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.MOVED
    assert screen.requests == []


@pytest.mark.parametrize("answer", ["refused", "applied", "broken", "error"])
async def test_a_document_that_was_typed_in_while_the_request_came_has_moved(house, editing, edit, file, answer):
    """Neovim says "applied" of an edit that it has skipped because the buffer is newer."""
    screen = await editing(patience=QUICK)

    def take(message):
        screen.type(file, "# typed\n")
        if answer == "error":
            raise Refused(-32603, "no")
        return {"refused": {"applied": False}, "applied": {"applied": True}, "broken": None}[answer]

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.MOVED
    assert live(house, file) == screen.text(file) == "# typed\n" + BEFORE


@pytest.mark.parametrize("answer", ["refused", "lying", "silent", "broken", "error"])
async def test_an_editor_that_changes_nothing_has_refused(house, editing, edit, file, answer):
    screen = await editing(patience=HASTY)

    def take(message):
        if answer == "error":
            raise Refused(-32601, "no")
        answers = {"refused": {"applied": False}, "lying": {"applied": True}, "silent": NO_ANSWER, "broken": None}
        return answers[answer]

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.REFUSED
    assert live(house, file) == BEFORE


@pytest.mark.parametrize("capabilities", [{}, {"workspace": {"applyEdit": False}}])
async def test_an_editor_without_edits_is_known_as_one(house, editing, edit, file, capabilities):
    screen = await editing(capabilities)
    screen.show(file, BEFORE)
    await known(screen)
    assert house.delegation.documents.editor("lsp-1").can_edit is False
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.REFUSED
    assert screen.requests == []


async def test_a_text_that_is_seen_counts_without_an_answer(editing, edit, file):
    screen = await editing()

    def take(message):
        screen.take(message)
        return NO_ANSWER

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.DONE


async def test_a_text_that_is_told_after_the_answer_is_waited_for(editing, edit, file):
    """Neovim answers first and gathers changes for 150 ms."""
    screen = await editing()

    def take(message):
        ((path, version, edits),) = screen.edits(message)
        screen.apply(path, version, edits, tell=False)
        return screen.answer(message, {"applied": True})

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    await known(screen)
    async with asyncio.TaskGroup() as group:
        outcome = group.create_task(edit((file, 1, BEFORE, AFTER)))
        await screen.client.next("workspace/applyEdit")
        await known(screen)
        assert not outcome.done()
        screen.tell(file)
    assert outcome.result() is EditOutcome.DONE


async def test_what_is_typed_right_after_the_edit_takes_nothing_from_it(house, editing, edit, file):
    """Both may come in one notification; that the text was there once is enough."""
    screen = await editing()

    def take(message):
        ((path, version, edits),) = screen.edits(message)
        screen.apply(path, version, edits, tell=False)
        typed = [((0, 0), (0, 0), "# typed\n")]
        ours = [
            (
                *((each["range"][side]["line"], each["range"][side]["character"]) for side in ("start", "end")),
                each["newText"],
            )
            for each in reversed(edits)
        ]
        screen.client.change(file, 3, *ours, *typed)
        return {"applied": True}

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.DONE
    await known(screen)
    assert live(house, file) == "# typed\n" + AFTER


async def test_what_is_told_after_the_answer_settles_it_at_once(house, editing, edit, file):
    """Neovim skips an edit of a text that it has not told of, says "applied", and tells of the text then: whoever goes on
    typing is not waited for."""
    screen = await editing()

    def take(message):
        screen.type(file, "# typed\n", tell=False)
        screen.answer(message, {"applied": True})
        screen.tell(file)
        return NO_ANSWER

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.MOVED
    assert live(house, file) == "# typed\n" + BEFORE


@pytest.mark.parametrize("newer", [True, False])
async def test_an_edit_that_reached_one_document_of_two_is_taken_back(house, editing, edit, file, newer):
    """All or none: the other was typed in meanwhile, or its editor said no."""
    other = file.with_name("b.py")
    screen = await editing(patience=QUICK)

    def take(message):
        screen.requests.append(message["params"])
        for path, version, edits in screen.edits(message):
            if path == file:
                screen.apply(path, version, edits)
            elif newer:
                screen.type(path, "# typed\n")
        return {"applied": newer}

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    screen.show(other, "x\n")
    await known(screen)
    outcome = await edit((file, 1, BEFORE, AFTER), (other, 1, "x\n", "y\n"))
    assert outcome is (EditOutcome.MOVED if newer else EditOutcome.REFUSED)
    assert [request["label"] for request in screen.requests] == ["offload: tests", "offload: tests, taken back"]
    assert live(house, file) == screen.text(file) == BEFORE


async def test_a_document_that_went_on_is_not_taken_back(house, editing, edit, file):
    other = file.with_name("b.py")
    screen = await editing(patience=QUICK)

    def take(message):
        screen.requests.append(message["params"])
        ((path, version, edits), _) = screen.edits(message)
        screen.apply(path, version, edits)
        screen.type(path, "# typed\n")
        return {"applied": False}

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    screen.show(other, "x\n")
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER), (other, 1, "x\n", "y\n")) is EditOutcome.REFUSED
    assert len(screen.requests) == 1
    assert live(house, file) == "# typed\n" + AFTER


@pytest.mark.parametrize("told", [True, False])
async def test_a_document_that_is_closed_meanwhile_has_moved(editing, edit, file, told):
    screen = await editing(patience=QUICK)

    def take(message):
        if told:
            screen.client.close(file)
            return {"applied": True}
        screen.answer(message, {"applied": True})
        screen.client.close(file)
        return NO_ANSWER

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, BEFORE)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER)) is EditOutcome.MOVED


@pytest.mark.parametrize(("before", "after"), [("a\nb\n", "a\nb"), ("a\nb", "a\nb\n")])
async def test_an_editor_that_keeps_the_last_line_end_for_itself_has_done_its_part(editing, edit, file, before, after):
    """For Neovim it is an option of the buffer, so there is no change to tell of."""
    screen = await editing()
    screen.client.handlers["workspace/applyEdit"] = lambda _: {"applied": True}
    screen.show(file, before)
    await known(screen)
    assert await edit((file, 1, before, after)) is EditOutcome.DONE


async def test_neovim_is_asked_once_for_each_document_with_a_version_that_it_looks_at(house, editing, edit, file):
    """tests/clients/test_neovim_edits.py shows why."""
    other = file.with_name("b.py")
    screen = await editing(NEOVIM, clientInfo={"name": "Neovim"})

    def take(message):
        screen.requests.append(message["params"])
        ((path, version, edits),) = screen.edits(message)
        screen.apply(path, version if version == 5 else 0, edits)
        return {"applied": True}

    screen.client.handlers["workspace/applyEdit"] = take
    screen.show(file, "a", 0)
    screen.show(other, "x\n", 5)
    await known(screen)
    assert await edit((file, 0, "a", "b\n"), (other, 5, "x\n", "y")) is EditOutcome.DONE
    versions = [request["edit"]["documentChanges"][0]["textDocument"]["version"] for request in screen.requests]
    assert versions == [1, 5]
    assert (screen.text(file), screen.text(other)) == ("b", "y\n"), "the last line end is the buffer's"


async def test_neovims_first_document_is_taken_back_when_its_second_has_moved(house, editing, edit, file):
    other = file.with_name("b.py")
    screen = await editing(NEOVIM, clientInfo={"name": "Neovim"})
    screen.show(file, BEFORE)
    screen.show(other, "x\n", 5)
    await known(screen)
    assert await edit((file, 1, BEFORE, AFTER), (other, 4, "x\n", "y\n")) is EditOutcome.MOVED
    assert live(house, file) == BEFORE
    assert [request["label"] for request in screen.requests] == ["offload: tests", "offload: tests, taken back"]


async def test_no_edit_is_no_request(editing, edit, file):
    screen = await editing()
    assert await edit() is EditOutcome.DONE
    assert screen.requests == []


async def test_a_text_whose_lines_editors_number_apart_is_refused(editing, edit, file):
    """An edit would land elsewhere, and once more with every try."""
    screen = await editing()
    screen.show(file, "a\rb\nc\n")
    await known(screen)
    assert await edit((file, 1, "a\rb\nc\n", "a\rb\nd\n")) is EditOutcome.REFUSED
    assert await edit((file, 1, BEFORE, "a\rb\n")) is EditOutcome.REFUSED
    assert screen.requests == []


@pytest.mark.parametrize("answered", [True, False])
async def test_the_end_of_the_connection_ends_the_wait(house, editing, edit, file, answered):
    screen = await editing()
    screen.client.handlers["workspace/applyEdit"] = lambda _: {"applied": True} if answered else NO_ANSWER
    screen.show(file, BEFORE)
    await known(screen)
    editor = house.delegation.documents.editor("lsp-1")
    async with asyncio.TaskGroup() as group:
        outcome = group.create_task(edit((file, 1, BEFORE, AFTER)))
        await screen.client.next("workspace/applyEdit")
        if answered:
            await known(screen)
        await screen.client.disconnect()
    assert outcome.result() is EditOutcome.REFUSED
    await screen.client.served
    assert house.delegation.documents.editor("lsp-1") is None
    assert await editor.edit("tests", [DocumentEdit(file, 1, BEFORE, AFTER)]) is EditOutcome.REFUSED


async def test_two_edits_at_once_do_not_take_each_others_news(house, editing, edit, file):
    other = file.with_name("b.py")
    screen = await editing()
    screen.show(file, BEFORE)
    screen.show(other, "x\n")
    await known(screen)
    async with asyncio.TaskGroup() as group:
        outcomes = [
            group.create_task(edit((file, 1, BEFORE, AFTER))),
            group.create_task(edit((other, 1, "x\n", "y\n"))),
        ]
    assert [outcome.result() for outcome in outcomes] == [EditOutcome.DONE] * 2
    assert (live(house, file), live(house, other)) == (AFTER, "y\n")


async def test_twenty_thousand_lines_are_changed_in_their_changed_lines_alone(editing, edit, file):
    screen = await editing()
    lines = [f"value_{number} = {number}\n" for number in range(20_000)]
    before = "".join(lines)
    lines[10], lines[19_990] = "changed = 1\n", "changed = 2\n"
    screen.show(file, before)
    await known(screen)
    assert await edit((file, 1, before, "".join(lines))) is EditOutcome.DONE
    assert [len(each["edits"]) for each in screen.requests[0]["edit"]["documentChanges"]] == [2]
