"""The named blocks of a text, per language."""

import pytest

from offload.source.found import Found
from offload.source.parsing import find_blocks

SOURCES = {
    "python": """\
class Cart:
    @property
    def total(self):
        def inner():
            return 1
        return inner

    @total.setter
    def total(self, value):
        pass

double = lambda x: 2 * x
""",
    "javascript": """\
export class Cart {
  #secret = () => 1
  total(x) {
    return x
  }
}
const add = async (a) => {
  return a
}
module.exports = { list: () => 1, get() {} }
const Box = class {}
function* walk() {}
exports.close = function () {}
const a = () => 1, b = () => 2
""",
    "typescript": """\
export class Cart<T> {
  constructor(private x: T) {}
  @Get()
  total(a: number): T { return this.x }
  open = () => { }
}
@Injectable()
export default class Shop {}
declare function outside(): void
namespace Names { export type X = number }
interface Shape { area(): void }
abstract class Base { abstract run(): void }
enum Colour { Red }
""",
    "typescriptreact": "export const App = () => <div>x</div>\n",
    "go": """\
package p
type Cart struct {
\ta int
}
func (c *Cart) Total(x int) int {
\treturn x
}
func (s Set[K]) Add() {}
func Run() {
\tstep := func() { }
\tstep()
}
var Hook = func() {}
type (
\tA int
\tB = int
)
""",
    "rust": """\
mod shop {
    impl<T> Cart<T> {
        #[inline]
        pub fn total(&self) -> u8 {
            1
        }
    }
}
impl Show for other::Cart { fn show() { } }
#[test]
#[ignore]
fn works() {}
trait Shape { fn area(&self); }
macro_rules! each { () => {} }
""",
    "java": """\
class Cart {
  Cart(int x) { }
  @Override
  public int total() {
    return 1;
  }
  record Line(int a) { Line { } }
  enum Kind { X; void show() { } }
}
@interface Marked {}
""",
    "lua": """\
local M = {}
function M.open(a)
  return a
end
function M:close() end
local function help()
  return 2
end
local k = function() end
M.x = function() end
local t = { each = function() end }
""",
}

BLOCKS = {
    "python": [
        ("Cart", "class", 0, 9),
        ("Cart.total", "method", 1, 5),
        ("Cart.total.inner", "function", 3, 4),
        ("Cart.total", "method", 7, 9),
        ("double", "function", 11, 11),
    ],
    "javascript": [
        ("Cart", "class", 0, 5),
        ("Cart.#secret", "method", 1, 1),
        ("Cart.total", "method", 2, 4),
        ("add", "function", 6, 8),
        ("list", "function", 9, 9),
        ("get", "method", 9, 9),
        ("Box", "class", 10, 10),
        ("walk", "function", 11, 11),
        ("close", "function", 12, 12),
        ("a", "function", 13, 13),
        ("b", "function", 13, 13),
    ],
    "typescript": [
        ("Cart", "class", 0, 5),
        ("Cart.constructor", "method", 1, 1),
        ("Cart.total", "method", 2, 3),
        ("Cart.open", "method", 4, 4),
        ("Shop", "class", 6, 7),
        ("outside", "function", 8, 8),
        ("Names", "module", 9, 9),
        ("Names.X", "type", 9, 9),
        ("Shape", "interface", 10, 10),
        ("Shape.area", "method", 10, 10),
        ("Base", "class", 11, 11),
        ("Base.run", "method", 11, 11),
        ("Colour", "enum", 12, 12),
    ],
    "typescriptreact": [("App", "function", 0, 0)],
    "go": [
        ("Cart", "type", 1, 3),
        ("Cart.Total", "method", 4, 6),
        ("Set.Add", "method", 7, 7),
        ("Run", "function", 8, 11),
        ("Run.step", "function", 9, 9),
        ("Hook", "function", 12, 12),
        ("A", "type", 14, 14),
        ("B", "type", 15, 15),
    ],
    "rust": [
        ("shop", "module", 0, 7),
        ("shop.Cart", "impl", 1, 6),
        ("shop.Cart.total", "method", 2, 5),
        ("Cart", "impl", 8, 8),
        ("Cart.show", "method", 8, 8),
        ("works", "function", 9, 11),
        ("Shape", "interface", 12, 12),
        ("Shape.area", "method", 12, 12),
        ("each", "macro", 13, 13),
    ],
    "java": [
        ("Cart", "class", 0, 8),
        ("Cart.Cart", "constructor", 1, 1),
        ("Cart.total", "method", 2, 5),
        ("Cart.Line", "class", 6, 6),
        ("Cart.Line.Line", "constructor", 6, 6),
        ("Cart.Kind", "enum", 7, 7),
        ("Cart.Kind.show", "method", 7, 7),
        ("Marked", "interface", 9, 9),
    ],
    "lua": [
        ("M.open", "function", 1, 3),
        ("M.close", "function", 4, 4),
        ("help", "function", 5, 7),
        ("k", "function", 8, 8),
        ("M.x", "function", 9, 9),
        ("each", "function", 10, 10),
    ],
}


@pytest.mark.parametrize("grammar", sorted(SOURCES))
def test_every_named_definition_is_a_block_with_what_belongs_to_it(grammar):
    """Decorators, attributes, `export` and a lone `const` belong to the block; a duplicated name is listed each time."""
    found = find_blocks(grammar, SOURCES[grammar])
    assert [(block.symbol, block.kind, block.start_line, block.end_line) for block in found] == BLOCKS[grammar]


@pytest.mark.parametrize("grammar", sorted(SOURCES))
def test_line_ends_of_windows_give_the_same_blocks(grammar):
    windows = SOURCES[grammar].replace("\n", "\r\n")
    assert find_blocks(grammar, windows) == find_blocks(grammar, SOURCES[grammar])


def test_a_lone_carriage_return_ends_a_line_as_it_does_in_an_editor():
    assert find_blocks("javascript", "// one\rfunction two() {\r}\r") == [Found("two", "function", 1, 0, 2, 1)]


def test_columns_count_code_points():
    assert find_blocks("javascript", "/* é😋 */ function f() {}") == [Found("f", "function", 0, 9, 0, 24)]


def test_a_syntax_error_hides_only_what_it_breaks():
    text = "def good():\n    return 1\n\ndef bad(:\n\ndef also_good():\n    return 2\n"
    symbols = [block.symbol for block in find_blocks("python", text)]
    assert "good" in symbols
    assert "also_good" in symbols


def test_half_a_surrogate_pair_is_text_like_any_other():
    """JSON can carry one, UTF-8 cannot."""
    assert find_blocks("python", "def f():\n    return '\ud83d'\n") == [Found("f", "function", 0, 0, 1, 14)]


def test_endless_nesting_does_not_make_endless_names():
    text = "".join("  " * depth + f"class C{depth}:\n" for depth in range(60)) + "  " * 60 + "x = 1\n"
    found = find_blocks("python", text)
    assert len(found) == 40
    assert found[-1].symbol.count(".") == 39


def test_a_name_is_cut_where_no_person_would_read_on():
    (block,) = find_blocks("python", f"def {'x' * 1000}(): pass\n")
    assert block.symbol == "x" * 200
