"""What the scripted model knows: tests from a function's source, mended by what a real run of them prints."""

import ast
import subprocess
import sys

import pytest

from offload.demo import derive

ROUND = '''
def half(number: int) -> float:
    """
    >>> half(4)
    2.0
    >>> half("x")
    Traceback (most recent call last):
    TypeError: not a number
    """
    if not isinstance(number, int):
        raise TypeError("not a number")
    return number / 2
'''


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "__init__.py").touch()
    return tmp_path


def subject_of(source, name, path="code.py"):
    tree = ast.parse(source)
    node = next(node for node in ast.walk(tree) if getattr(node, "name", "") == name)
    subject = derive.find_subject(path, source, "Please look at\n" + ast.get_source_segment(source, node))
    assert subject is not None
    return subject


def run(project, subject, source, tests):
    (project / "code.py").write_text(source)
    (project / subject.test_path).write_text(tests)
    command = [sys.executable, "-B", "-m", "unittest", subject.test_path]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def written_and_mended(project, source, name, edges=derive.FIRST_EDGES):
    """The test file after one run and its lesson, with what was learnt; it must pass then."""
    subject = subject_of(source, name)
    text = derive.extended(derive.draft(subject), derive.edge_cases(subject, edges))
    _, output = run(project, subject, source, text)
    mended = derive.mend(text, output)
    code, output = run(project, subject, source, mended.text)
    assert code == 0, output
    return mended


def test_the_draft_asserts_every_example_of_the_documentation():
    draft = derive.draft(subject_of(ROUND, "half"))
    assert "self.assertEqual(half(4), 2.0)" in draft
    assert 'with self.assertRaises(TypeError):\n            half("x")' in draft


def test_what_an_example_needs_is_set_up_as_documented(project):
    source = 'def grow(items: list[str]) -> None:\n    """\n    >>> items = []\n    >>> grow(items)\n    >>> items\n'
    source += "    ['more']\n    \"\"\"\n    items.append('more')\n"
    text = written_and_mended(project, source, "grow").text
    assert "        items = []\n        grow(items)\n        self.assertEqual(items, ['more'])\n" in text


def test_a_wrong_guess_becomes_what_the_code_gives(project):
    source = 'def tag(count: int) -> str:\n    return f"<{count}>"\n'
    mended = written_and_mended(project, source, "tag")
    assert mended.learnt == ("test_zero_count",)
    assert "self.assertEqual(tag(0), '<0>')" in mended.text


@pytest.mark.parametrize(
    ("body", "raised"),
    [
        ('raise ValueError("no")', "ValueError"),
        ("raise Odd", "Exception"),
    ],
)
def test_an_error_of_the_code_becomes_an_expected_error(project, body, raised):
    source = f"class Odd(Exception):\n    pass\n\n\ndef check(count: int) -> str:\n    {body}\n"
    mended = written_and_mended(project, source, "check")
    assert f"with self.assertRaises({raised}):\n            check(0)" in mended.text


@pytest.mark.parametrize(
    ("annotation", "body", "line"),
    [
        ("list[int]", "[count, 1]", "self.assertEqual(make(0), [0, 1])"),
        ("dict[str, int]", '{"a": count}', "self.assertEqual(make(0), {'a': 0})"),
        ("tuple[int, int]", "(count, count)", "self.assertEqual(make(0), (0, 0))"),
        ("set[int]", "{count}", "self.assertIsInstance(make(0), set)"),
        ("bool", "True", "self.assertEqual(make(0), True)"),
        ("None", "None", "self.assertEqual(make(0), None)"),
        ("str | None", '"x"', "self.assertEqual(make(0), 'x')"),
        ("str", '"x" * 300', "self.assertIsInstance(make(0), str)"),
        ("list[int]", "list(range(200))", "self.assertIsInstance(make(0), list)"),
    ],
)
def test_results_of_every_plain_kind_are_learnt(project, annotation, body, line):
    """What unittest shortens in its output cannot be learnt, only its kind is asserted then."""
    source = f"def make(count: int) -> {annotation}:\n    return {body}\n"
    assert line in written_and_mended(project, source, "make").text


def test_arguments_fit_their_annotations(project):
    source = (
        "def mix(a: list[tuple[str, int]], b: float, c: bool = False) -> int:\n"
        "    return len(a) + int(b) + sum(count for _, count in a) + c\n"
    )
    text = written_and_mended(project, source, "mix", ("empty", "zero", "negative")).text
    assert "mix([], 2.5, True), 3)" in text
    assert 'mix([("tea", 3,)], 0.0, True), 5)' in text
    assert 'mix([("tea", 3,)], -2.5, True), 3)' in text


def test_a_method_is_tried_on_a_fresh_object(project):
    source = "class Box:\n    def __init__(self, size: int = 2) -> None:\n        self.size = size\n\n"
    source += "    def fits(self, count: int) -> bool:\n        return count <= self.size\n"
    mended = written_and_mended(project, source, "fits")
    assert "from code import Box" in mended.text
    assert "self.assertEqual(Box().fits(0), True)" in mended.text


@pytest.mark.parametrize(
    "source",
    [
        "def f(x) -> int:\n    return 1\n",
        "def f(x: dict[str, int]) -> int:\n    return 1\n",
        "def f(x: list[Thing]) -> int:\n    return 1\n",
        "def f(x: int):\n    return 1\n",
        "def f(x: int) -> Thing:\n    return 1\n",
        "def f(*, x: int) -> int:\n    return 1\n",
        "def f(x: int, /) -> int:\n    return 1\n",
        "class A:\n    @staticmethod\n    def f(x: int) -> int:\n        return 1\n",
        "class A(B):\n    def f(self, x: int) -> int:\n        return 1\n",
        "@dataclass\nclass A:\n    y: int\n\n    def f(self, x: int) -> int:\n        return 1\n",
        "class A:\n    def __init__(self, y): ...\n\n    def f(self, x: int) -> int:\n        return 1\n",
    ],
)
def test_nothing_is_guessed_where_the_source_says_too_little(source):
    subject = subject_of(source, "f")
    assert derive.edge_cases(subject, tuple(derive.EDGES)) == []
    assert "test_can_be_called" in derive.draft(subject)


def test_a_broken_promise_of_the_documentation_is_told_and_never_adapted(project):
    source = 'def two() -> int:\n    """\n    >>> two()\n    2\n    """\n    return 3\n'
    subject = subject_of(source, "two")
    draft = derive.draft(subject)
    code, output = run(project, subject, source, draft)
    mended = derive.mend(draft, output)
    assert code == 1
    assert mended == derive.Mended(draft, (), (derive.DOCUMENTED,))


def test_a_test_of_somebody_else_is_not_adapted(project):
    source = "def two() -> int:\n    return 3\n"
    subject = subject_of(source, "two")
    tests = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.fail('no')\n"
    _, output = run(project, subject, source, tests)
    assert derive.mend(tests, output) == derive.Mended(tests, (), ("test_it",))


def test_a_file_that_cannot_be_imported_is_told(project):
    source = "def two() -> int:\n    return 3\n"
    subject = subject_of(source, "two")
    tests = "import nowhere\n"
    _, output = run(project, subject, source, tests)
    mended = derive.mend(tests, output)
    assert (mended.learnt, len(mended.broken)) == ((), 1)


def test_a_case_that_is_there_already_is_not_added_again():
    subject = subject_of(ROUND, "half")
    draft = derive.draft(subject)
    assert derive.extended(draft, derive.edge_cases(subject, ("zero",))) == draft


def test_a_block_that_is_not_in_the_file_has_no_subject():
    assert derive.find_subject("code.py", ROUND, "def other(): ...") is None


def test_every_module_has_a_usual_test_file_and_every_block_one_of_its_own():
    source = "class Shop:\n    def Open(self):\n        return 1\n"
    subject = subject_of(source, "Open", "shop/main.py")
    assert subject.test_path == "tests/test_main.py"
    assert subject.own_test_path == "tests/test_main_shop_open.py"


@pytest.mark.parametrize(
    ("text", "united"),
    [
        ("a\n<<<<<<< x\nb\n=======\nc\n>>>>>>> y\nd\n", "a\nb\n\n\nc\nd\n"),
        ("<<<<<<< x\nh\nb\nt\n||||||| base\nold\n=======\nh\nc\nt\n>>>>>>> y\n", "h\nb\n\n\nc\nt\n"),
        ("<<<<<<<<<<< x\nb\n===========\nc\n>>>>>>>>>>> y\n", "b\n\n\nc\n"),
        ("no conflict\n", "no conflict\n"),
    ],
)
def test_both_sides_of_a_conflict_are_kept_and_what_they_share_once(text, united):
    assert derive.united(text) == united
