"""What the demo works on, and how it finds blocks without tests."""

import subprocess
import sys

import pytest

from offload.demo import project
from offload.domain.errors import GitFailed, NotAWorkspace


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


FUNCTION = "def {}(x):\n    y = x\n    return y\n\n\n"


def test_the_sample_has_five_blocks_without_tests(tmp_path):
    copy = project.copy_sample(tmp_path)
    assert [block.symbol for block in project.untested(copy, 50)] == ["merge", "price", "share", "Stock.take", "slug"]
    clean = subprocess.run(["git", "status", "--porcelain"], cwd=copy, capture_output=True, text=True, check=True)
    assert clean.stdout == ""


def test_a_block_is_named_with_its_lines(tmp_path):
    write(tmp_path, a_dot_py="# first\n" + FUNCTION.format("one"))
    (block,) = project.untested(tmp_path, 5)
    assert block == project.Untested("a.py", "one", 2, 4)
    assert block.name == "one (a.py)"


def test_what_tests_name_what_is_private_and_what_is_tiny_is_left_out(tmp_path):
    write(
        tmp_path,
        a_dot_py=FUNCTION.format("tested")
        + FUNCTION.format("_private")
        + "def tiny(): ...\n\n\n"
        + FUNCTION.format("new"),
        tests__test_a_dot_py="from a import tested\n" + FUNCTION.format("helper"),
        notes_dot_md="def prose(x):\n",
    )
    assert [block.symbol for block in project.untested(tmp_path, 5)] == ["new"]


def test_no_more_than_wanted_are_found(tmp_path):
    write(tmp_path, a_dot_py=FUNCTION.format("one") + FUNCTION.format("two"), b_dot_py=FUNCTION.format("three"))
    assert [block.symbol for block in project.untested(tmp_path, 1)] == ["one"]
    assert [block.symbol for block in project.untested(tmp_path, 3)] == ["one", "two", "three"]


def test_what_git_ignores_and_what_is_hidden_is_left_out(tmp_path):
    write(
        tmp_path,
        a_dot_py=FUNCTION.format("one"),
        out__b_dot_py=FUNCTION.format("two"),
        gone_dot_py=FUNCTION.format("x"),
    )
    write(tmp_path, _dot_hidden__c_dot_py=FUNCTION.format("three"))
    assert {block.symbol for block in project.untested(tmp_path, 5)} == {"one", "two", "x"}
    (tmp_path / ".gitignore").write_text("out/\n.hidden/\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tmp_path, check=True)
    (tmp_path / "gone.py").unlink()
    assert [block.symbol for block in project.untested(tmp_path, 5)] == ["one"]


def test_what_is_not_source_is_left_out(tmp_path):
    write(tmp_path, large_dot_py=FUNCTION.format("one") + "#" * project.LARGEST_FILE)
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    assert project.untested(tmp_path, 5) == []


def test_a_folder_that_is_not_there_is_told(tmp_path):
    with pytest.raises(NotAWorkspace, match="is not a folder"):
        project.untested(tmp_path / "nowhere", 5)


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("package.json", "npm test"),
        ("go.mod", "go test ./..."),
        ("Cargo.toml", "cargo test"),
        ("pom.xml", "mvn -q test"),
    ],
)
def test_a_projects_tests_are_run_as_its_kind_does(tmp_path, file, command):
    (tmp_path / file).write_text("")
    assert " ".join(project.test_command(tmp_path)) == command


def test_python_is_tested_with_pytest_where_that_is_installed(tmp_path, monkeypatch):
    """The project's own environment decides, then the one on PATH."""
    own = tmp_path / ".venv/bin"
    own.mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (own / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (own / "python").chmod(0o755)
    assert project.test_command(tmp_path) == (str(own / "python"), "-m", "pytest", "-q")
    (own / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    assert project.test_command(tmp_path) == (str(own / "python"), "-m", "unittest")
    (own / "python").unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert project.test_command(tmp_path)[0] == sys.executable


def test_without_git_the_sample_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitFailed, match="not found on PATH"):
        project.copy_sample(tmp_path)


def test_a_git_that_fails_is_told(tmp_path, monkeypatch):
    (tmp_path / "git").write_text("#!/bin/sh\necho no luck >&2\nexit 3\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(GitFailed, match=r"git init failed in .*: no luck"):
        project.copy_sample(tmp_path / "new")
