import os
import stat
import sys
from pathlib import Path

import pytest

from offload.hub import address


def test_the_state_folder_is_the_one_that_was_set(tmp_path):
    environ = {"OFFLOAD_STATE_DIR": str(tmp_path), "XDG_STATE_HOME": "/elsewhere", "HOME": "/home/me"}
    assert address.state_folder(environ) == str(tmp_path)


def test_else_it_is_where_the_system_keeps_such_things():
    assert address.state_folder({"XDG_STATE_HOME": "/x", "HOME": "/home/me"}) == "/x/offload"


def test_a_relative_xdg_folder_is_ignored_as_its_rules_say():
    assert address.state_folder({"XDG_STATE_HOME": "x", "HOME": "/h"}) == address.state_folder({"HOME": "/h"})


@pytest.mark.parametrize(
    ("system", "folder"),
    [("linux", "/h/.local/state/offload"), ("darwin", "/h/Library/Application Support/offload")],
)
def test_else_it_is_in_the_home_folder(system, folder, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    assert address.state_folder({"HOME": "/h"}) == folder


def test_without_a_home_the_user_entry_says_where_it_is():
    assert address.state_folder({}) == address.state_folder({"HOME": os.path.expanduser("~")})


@pytest.mark.parametrize("folder", ["state", "~/state", "/with\0zero"])
def test_a_folder_that_means_another_one_in_each_place_is_refused(folder):
    with pytest.raises(address.AddressError, match="OFFLOAD_STATE_DIR must name an absolute folder"):
        address.state_folder({"OFFLOAD_STATE_DIR": folder})


def test_two_names_of_one_folder_are_one_address(tmp_path):
    """Else the same state folder would get two sockets when its path is long."""
    (tmp_path / "link").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "real").mkdir()
    link, real = (address.state_folder({"OFFLOAD_STATE_DIR": str(tmp_path / name)}) for name in ("link", "real"))
    assert link == real


@pytest.mark.parametrize("length", [90, 91, 92, 93, 94, 95, 96, 97, 98, 99, 100, 110, 1000])
def test_the_socket_path_always_fits_with_the_name_that_it_is_bound_at(length):
    """104 bytes on macOS, with the closing zero; it is bound with the process id behind it."""
    path = address.socket_path("/" + "s" * (length - 1))
    assert len(os.fsencode(path)) + len(".4194304") < 104


def test_a_path_is_measured_in_bytes():
    assert address.socket_path("/" + "é" * 60).startswith("/tmp/")
    assert address.socket_path("/" + "e" * 60).startswith("/eee")


def test_long_paths_that_differ_get_different_sockets():
    assert address.socket_path("/" + "s" * 200) != address.socket_path("/" + "s" * 201)


def test_the_folder_is_made_for_its_owner_only(tmp_path):
    state = tmp_path / "deep" / "state"
    address.prepare(str(state))
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_a_folder_that_is_open_to_others_is_closed(tmp_path):
    tmp_path.chmod(0o755)
    address.prepare(str(tmp_path))
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


def test_a_folder_of_somebody_else_is_refused(tmp_path):
    """Below /tmp anybody can make the folder first, and would then own the hub's socket."""
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    if os.getuid() == 0:
        os.chown(foreign, 4711, 4711)
    else:
        foreign = Path("/usr")
    with pytest.raises(address.AddressError, match="is not a folder of this user"):
        address.prepare(str(foreign))


def test_a_link_in_place_of_the_short_folder_is_refused(tmp_path):
    """The same attack, by a link to a folder of the victim."""
    state = str(tmp_path / ("s" * 120))
    short = Path(address.socket_path(state)).parent
    short.symlink_to(tmp_path, target_is_directory=True)
    try:
        with pytest.raises(address.AddressError, match="is not a folder of this user"):
            address.prepare(state)
    finally:
        short.unlink()


def test_a_folder_that_cannot_be_made_is_told_with_the_way_out(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(
        address.AddressError, match=r"cannot be used: Not a directory; mend .* or set OFFLOAD_STATE_DIR"
    ):
        address.prepare(str(tmp_path / "file" / "state"))
