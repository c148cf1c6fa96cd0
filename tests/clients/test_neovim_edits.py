"""Edits of open buffers in the real Neovim, over the real edge and core's own documents."""

import random

import pytest

from offload.core.ports import EditOutcome
from tests.fakes.house import open_house
from tests.support.neovim_edge import TYPE, screen_of


@pytest.fixture
async def screen(tmp_path):
    async with open_house(tmp_path, files={}) as house, screen_of(house) as screen:
        yield screen


@pytest.mark.parametrize(
    ("data", "settings", "after", "written"),
    [
        (b"a\nb\n", "", "a\nB\nc\n", b"a\nB\nc\n"),
        (b"a\r\nb\r\n", "", "a\r\nB\r\nc\r\n", b"a\r\nB\r\nc\r\n"),
        (b"a\nb", "setlocal nofixeol", "a\nB", b"a\nB"),
        (b"a\nb", "", "a\nB\n", b"a\nB\n"),
        (b"a\nb\n", "", "a\nB", b"a\nB\n"),
        (b"\xef\xbb\xbfa\nb\n", "", "a\nB\n", b"\xef\xbb\xbfa\nB\n"),
        ("#😋😋x\né".encode(), "setlocal nofixeol", "#😋😋y\né😋", "#😋😋y\né😋".encode()),
    ],
)
async def test_a_buffer_is_changed_and_written_with_its_own_line_ends(screen, data, settings, after, written):
    """The mark at the beginning of a file and the line end at its end are options of the buffer."""
    file = screen.house.root / "a.txt"
    document = await screen.open(file, data, settings)
    assert await screen.edit((document, after)) is EditOutcome.DONE
    assert file.read_bytes() == data, "nothing is written by itself"
    await screen.lua("vim.cmd('silent write')")
    assert file.read_bytes() == written


async def test_any_buffer_becomes_any_other(screen):
    """What core has of a buffer afterwards is what is in it: Neovim tells of some changes at the end of a text wrongly."""
    rng = random.Random(5)
    for number in range(25):
        end = rng.choice(["\n", "\r\n"])
        words = ["#😋😋x", "é", "", "a = 1", "b = 2", "c", "d"]
        before, after = (end.join(["first", *rng.choices(words, k=rng.randrange(8)), ""]) for _ in range(2))
        file = screen.house.root / f"{number}.txt"
        document = await screen.open(file, before.encode())
        assert await screen.edit((document, after)) is EditOutcome.DONE
        assert [line + end for line in await screen.lines(file)] == after.splitlines(keepends=True)
        told = await screen.document(file, lambda document: document is not None)
        assert told.text == after


async def test_one_undo_takes_an_edit_back_with_all_its_places(screen):
    file = screen.house.root / "a.txt"
    document = await screen.open(file, b"a\nb\nc\nd\n")
    assert await screen.edit((document, "A\nb\nc\nD\n")) is EditOutcome.DONE
    await screen.lua("vim.cmd.undo()")
    assert await screen.lines(file) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("which", [0, 1])
async def test_a_buffer_that_was_typed_in_unheard_is_left_alone_and_so_are_the_others(screen, which):
    """Neovim looks at the version of an edit's first document only, takes version 0 for none, and answers "applied"."""
    files = [screen.house.root / name for name in ("a.txt", "b.txt")]
    documents = [await screen.open(file, b"a\nb\n", debounce=1000) for file in files]
    assert [document.version for document in documents] == [0, 0]
    await screen.lua(TYPE, str(files[which]))
    assert await screen.edit(*((document, "a\nB\n") for document in documents)) is EditOutcome.MOVED
    for file in files:
        typed = ["# typed"] if file == files[which] else []
        assert await screen.lines(file) == [*typed, "a", "b"]


async def test_a_buffer_that_cannot_be_modified_refuses(screen):
    file = screen.house.root / "a.txt"
    document = await screen.open(file, b"a\nb\n", "setlocal nomodifiable")
    assert await screen.edit((document, "a\nB\n")) is EditOutcome.REFUSED
    assert await screen.lines(file) == ["a", "b"]
