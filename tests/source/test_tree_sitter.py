"""The `Source` port on tree-sitter, with its real child process."""

import asyncio
import sys

import psutil
import pytest

from offload.domain.anchor import Block
from offload.domain.errors import EnvironmentFailure
from offload.source.tree_sitter import TreeSitterSource

CART = """\
import math

class Cart:
    rate = 1

    @property
    def total(self):
        return 1

    def tax(self): return 2
"""
TOTAL = Block("Cart.total", "method", 5, 7)


@pytest.fixture
async def source():
    source = TreeSitterSource()
    yield source
    await source.aclose()


@pytest.mark.parametrize(
    ("line", "column", "symbol"),
    [
        (5, 6, "Cart.total"),  # on the decorator
        (6, 0, "Cart.total"),  # in the white space before `def`
        (6, 200, "Cart.total"),  # past the end of the line
        (7, 8, "Cart.total"),
        (8, 0, "Cart.total"),  # the blank line after it
        (9, 10, "Cart.tax"),
        (3, 4, "Cart"),
        (10, 0, "Cart.tax"),  # the last, empty line
        (4, 0, "Cart"),
        (11, 0, ""),  # outside of the text
        (0, 2, ""),
        (1, 0, ""),
    ],
)
async def test_the_block_at_a_cursor_is_the_innermost_one_around_it(source, line, column, symbol):
    block = await source.block_at("/p/cart.py", CART, line, column)
    assert (block.symbol if block else "") == symbol


async def test_of_two_blocks_that_touch_the_cursor_is_at_the_second(source):
    text = "class A { m() {}n() {} }\n"
    block = await source.block_at("a.js", text, 0, 16)
    assert block == Block("A.n", "method", 0, 0)


async def test_a_block_that_fills_its_parent_is_the_inner_one(source):
    text = "const A = class { m() {} }\n"
    assert await source.block_at("a.js", text, 0, 20) == Block("A.m", "method", 0, 0)


async def test_all_blocks_come_outer_before_inner(source):
    assert await source.blocks("cart.py", CART) == [
        Block("Cart", "class", 2, 9),
        TOTAL,
        Block("Cart.tax", "method", 9, 9),
    ]


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("/a/b.py", "python"),
        ("b.PYI", "python"),
        ("x.mjs", "javascript"),
        ("x.ts", "typescript"),
        ("x.tsx", "typescript"),
        ("x.go", "go"),
        ("x.rs", "rust"),
        ("x.java", "java"),
        ("x.lua", "lua"),
        ("Makefile", ""),
        ("x.unknown", ""),
        ("", ""),
    ],
)
def test_the_language_is_told_by_the_ending(path, language):
    assert TreeSitterSource().language(path) == language


async def test_what_cannot_be_parsed_has_no_blocks_and_starts_no_process(source):
    assert await source.block_at("notes.txt", "def f(): pass", 0, 1) is None
    assert await source.blocks("notes.txt", "def f(): pass") == []
    assert await source.blocks("empty.py", "") == []
    assert await source.block_at("empty.py", "", 0, 0) is None
    assert await source.blocks("huge.py", "def f(): pass\n" + "#" * 4_000_000) == []
    assert source._child is None


async def test_a_text_is_parsed_once(source):
    await source.blocks("a.py", CART)
    child = source._child
    child.process.kill()
    assert await source.block_at("b.py", CART, 7, 8) == TOTAL
    assert source._child is child


async def test_old_texts_are_forgotten(source):
    for number in range(70):
        await source.blocks("a.py", f"def f{number}(): pass\n")
    assert len(source._found) == 64


async def test_a_child_that_died_is_replaced(source):
    await source.warm()
    first = source._child.process
    first.kill()
    await first.wait()
    assert await source.block_at("cart.py", CART, 7, 8) == TOTAL
    assert source._child.process.pid != first.pid


async def test_closing_ends_the_child():
    source = TreeSitterSource()
    await source.warm()
    process = psutil.Process(source._child.process.pid)
    await source.aclose()
    assert not process.is_running()
    await source.aclose()


async def test_an_answer_for_a_caller_that_did_not_wait_is_passed_over(source):
    """$/cancelRequest ends the wait, not the parsing."""
    await source.warm()
    slow = asyncio.create_task(source.blocks("slow.py", CART))
    await asyncio.sleep(0)  # the request is written
    slow.cancel()
    await asyncio.wait({slow})
    assert await source.blocks("other.py", "def other(): pass\n") == [Block("other", "function", 0, 0)]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("import signal; signal.pause()", "could not be parsed within 0.2 seconds"),
        ("import sys; sys.stdin.read()", "could not be parsed within 0.2 seconds"),
        ("pass", "the parser ended"),
        ("print('no json', flush=True); import sys; sys.stdin.read()", "the parser ended"),
    ],
)
async def test_a_parser_that_fails_says_so_and_leaves_no_process(script, message):
    source = TreeSitterSource(timeout_s=0.2 if "within" in message else 30, command=(sys.executable, "-c", script))
    with pytest.raises(EnvironmentFailure, match=message):
        await source.blocks("a.py", CART)
    assert source._child is None
