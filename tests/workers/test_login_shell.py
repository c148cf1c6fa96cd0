"""Case H25: a front that a desktop has started has a bare PATH, and a person's start files may do anything."""

import os
import pwd

import pytest

from offload.domain.errors import WorkerMissing
from offload.processes import Processes
from offload.workers.opencode.login_shell import LoginShell, shell_of
from tests.workers.test_find import finder, program

BARE = "/usr/bin:/bin"
PATIENCE = 30


def shell(tmp_path, before, then='exec /bin/sh -c "$2"'):
    """A shell that does something first, as start files do, and then what it is told to."""
    return str(program(tmp_path / "shell", f"{before}\n{then}"))


def environment(tmp_path, shell="/bin/bash"):
    """What a desktop gives."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "PATH": BARE, "SHELL": shell}


@pytest.mark.parametrize(
    "start_file",
    ["", "echo; echo Welcome, PATH=/nowhere; echo", "printf 'no end of line'", "read -p 'Passphrase: ' word", "exec 2>&1; set -x", "stty sane; tput bold"],
    ids=["quiet", "banner", "no line end", "prompt", "trace", "terminal"],
)  # fmt: skip
async def test_the_worker_is_found_on_the_path_of_a_real_shell_whatever_its_start_file_does(tmp_path, start_file):
    wanted = program(tmp_path / "my tools" / "opencode")
    given = environment(tmp_path)
    (tmp_path / "home" / ".bash_profile").write_text(f'{start_file}\nexport PATH="{wanted.parent}:$PATH"\n')
    assert (await finder(tmp_path, shell_limit_s=PATIENCE).find(given)).path == wanted


async def test_a_shell_that_is_not_like_sh_is_understood(tmp_path):
    """fish and csh have their own words for everything but the start of a program in single quotes."""
    wanted = program(tmp_path / "tools" / "opencode")
    odd = shell(tmp_path, f'test "$1" = -ilc || exit 9; export PATH="{wanted.parent}:$PATH"; eval "set -- $2"', '"$@"')
    assert (await finder(tmp_path, shell_limit_s=PATIENCE).find(environment(tmp_path, odd))).path == wanted


async def test_it_has_no_terminal_no_input_and_works_nowhere(tmp_path):
    told = tmp_path / "told"
    looks = f'{{ test -t 0 && echo input; (: </dev/tty) 2>/dev/null && echo terminal; cat; pwd; }} >"{told}"'
    await LoginShell(Processes(), PATIENCE).path(environment(tmp_path, shell(tmp_path, looks)))
    assert told.read_text() == "/\n"


async def test_it_is_asked_once_whatever_it_answered(tmp_path):
    asked = tmp_path / "asked"
    login = LoginShell(Processes(), PATIENCE)
    for then in ("exit 3", 'exec /bin/sh -c "$2"'):
        given = environment(tmp_path, shell(tmp_path, f"echo x >>{asked}", then))
        assert await login.path(given) == ()
    assert asked.read_text() == "x\n"


@pytest.mark.parametrize(
    ("before", "limit_s"),
    [("exec sleep 600", 0.2), ("yes", PATIENCE), ("exit 1", PATIENCE), ("PATH=bare", PATIENCE)],
    ids=["sleeps", "floods", "fails", "has no path"],
)
async def test_a_shell_that_does_not_say_its_path_in_time_is_done_without_and_named(tmp_path, before, limit_s):
    given = environment(tmp_path, shell(tmp_path, before))
    with pytest.raises(WorkerMissing, match=r"the login shell .*/shell has on its PATH beside them \(nothing\)"):
        await finder(tmp_path, shell_limit_s=limit_s).find(given)


async def test_what_it_has_on_its_path_is_told_when_the_worker_is_not_there_either(tmp_path):
    given = environment(tmp_path, shell(tmp_path, f"PATH={tmp_path}/a:relative:/bin:{tmp_path}/b; export PATH"))
    with pytest.raises(WorkerMissing, match=rf"beside them \({tmp_path}/a, {tmp_path}/b\)\.$"):
        await finder(tmp_path, shell_limit_s=PATIENCE).find(given)


async def test_a_shell_that_is_missing_is_done_without(tmp_path):
    assert await LoginShell(Processes()).path(environment(tmp_path, "/nowhere/shell")) == ()


async def test_it_is_not_asked_when_the_worker_is_found_without_it_or_its_place_was_set(tmp_path):
    asked = tmp_path / "asked"
    given = environment(tmp_path, shell(tmp_path, f"echo x >>{asked}"))
    there = program(tmp_path / "bin" / "opencode")
    await finder(tmp_path).find({**given, "PATH": str(there.parent)})
    with pytest.raises(WorkerMissing):
        await finder(tmp_path, "/nowhere/opencode").find(given)
    assert not asked.exists()


def test_without_the_variable_it_is_the_shell_of_the_account():
    assert shell_of({"SHELL": "/bin/odd"}) == "/bin/odd"
    assert shell_of({}) == (pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh")


def test_an_account_that_does_not_exist_has_the_plain_shell(monkeypatch):
    """As in a container that runs with any number for a user."""
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000_000)
    assert shell_of({}) == "/bin/sh"
