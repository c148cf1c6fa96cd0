"""Patterns of paths: which files a task may change, carries, never sends."""

import pytest

from offload.domain.scope import in_scope, matches, overlap


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("tests", ["tests", "tests/a.py", "shop/tests/a/b.py"], ["test", "mytests/a.py", "tests.py"]),
        ("tests/", ["tests/a.py", "shop/tests/a.py"], ["test/a.py"]),
        ("test_*.py", ["test_a.py", "shop/test_.py"], ["shop/atest_a.py", "test_a.pyc"]),
        ("*.pem", ["a.pem", "keys/b.PEM", "keys.pem/readme"], ["a.pem.txt"]),
        (".env", [".env", "shop/.env"], [".env.test", "a.env"]),
        ("/shop.py", ["shop.py"], ["a/shop.py"]),
        ("./shop.py", ["shop.py"], ["a/shop.py"]),
        ("./shop", ["shop/a.py"], ["a/shop/a.py"]),
        ("shop/tests", ["shop/tests/a.py", "Shop/Tests/A.py"], ["shop/test/a.py", "a/shop/tests/b.py", "shop"]),
        ("docs/*.md", ["docs/a.md", "docs/deep/a.md"], ["docs/a.txt", "a/docs/a.md"]),
        ("docs/?.md", ["docs/a.md"], ["docs/ab.md"]),
        ("src/[ab].py", ["src/a.py"], ["src/c.py", "src/[ab].py"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "lib/src/a"]),
        ("**/.env", [".env", "a/.env", "a/b/.env"], ["a.env"]),
        ("**/*.py", ["a.py", "a/b.py"], ["a.pyi"]),
        ("**/a/b", ["a/b", "x/a/b", "x/y/a/b/c"], ["xa/b", "a/x/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b/c"], ["ab", "a/xb", "x/a/b"]),
        ("a/**/b/**/c*", ["a/b/c", "a/x/b/y/c1"], ["a/c"]),
        ("**", ["a", "a/b"], []),
        (".", ["a", "a/b"], []),
        ("a+(b)", ["a+(b)"], ["aab"]),
        ("Ä.txt", ["ä.txt"], []),
        ("new\nline", ["new\nline"], ["new"]),
        ("", [], ["a"]),
        ("/", [], ["a"]),
    ],
)
def test_a_pattern_is_for_a_path_or_a_folder_above_it(pattern, yes, no):
    assert [path for path in yes if not matches(path, [pattern])] == []
    assert [path for path in no if matches(path, [pattern])] == []


def test_one_of_several_patterns_is_enough_and_none_is_for_nothing():
    assert matches("a/b.py", ["*.md", "a/*"])
    assert matches("b.md", ["*.md", "a/*"])
    assert not matches("b.py", ["*.md", "a/*"])
    assert not matches("a", [])


def test_without_allowed_paths_all_of_the_workspace_is_in_scope():
    assert in_scope("any/thing", [])
    assert in_scope("tests/a.py", ["tests"])
    assert not in_scope("shop.py", ["tests"])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (["tests"], ["shop/tests"], True),
        (["shop"], ["shop/cart.py"], True),
        (["/shop.py"], ["/shop.py"], True),
        (["./shop.py"], ["shop.py"], True),
        (["./shop"], ["/shop/"], True),
        (["**/cart.py"], ["shop/cart.py"], True),
        (["docs", "shop.py"], ["tests", "shop.py"], True),
        (["*.py"], ["shop/cart.py"], True),
        (["tests"], ["docs"], False),
        (["shop/a.py"], ["shop/b.py"], False),
        ([], ["docs"], False),
    ],
)
def test_two_scopes_overlap_when_one_names_something_of_the_other(one, other, expected):
    assert overlap(one, other) is expected
    assert overlap(other, one) is expected
