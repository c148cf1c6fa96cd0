"""Where the hub of this user is: its state folder and its socket. Standard library only; knows nothing of what is said there."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping

PRIVATE = 0o700
# A socket's path must fit into sun_path with its closing zero: 104 bytes on macOS, 108 on Linux. The hub binds at a
# temporary name beside it, which is longer by the process id.
SOCKET_PATH_LIMIT = 104 - len(".4194304") - 1
SHORT_FOLDERS = "/tmp"  # noqa: S108 - every process of a user must find the same one, so TMPDIR is no help; see `prepare`


class AddressError(Exception):
    """The state folder cannot be used. The message is one sentence that says what to do."""


def state_folder(environ: Mapping[str, str]) -> str:
    """The absolute folder that holds all that offload keeps; one hub serves it."""
    if own := environ.get("OFFLOAD_STATE_DIR"):
        source, folder = "OFFLOAD_STATE_DIR", own
    elif (shared := environ.get("XDG_STATE_HOME", "")).startswith("/"):
        # The XDG rules say that a relative path is to be ignored.
        source, folder = "XDG_STATE_HOME", shared + "/offload"
    else:
        home = environ.get("HOME") or os.path.expanduser("~")
        below = "Library/Application Support/offload" if sys.platform == "darwin" else ".local/state/offload"
        source, folder = "HOME", os.path.join(home, below)
    if not os.path.isabs(folder) or "\0" in folder:
        raise AddressError(f"{source} must name an absolute folder, not {folder!r}; set OFFLOAD_STATE_DIR to one")
    return os.path.realpath(folder)


def socket_path(state: str) -> str:
    """Where the hub of `state` listens: inside of it, or in a short folder of our own when that is too long for a socket."""
    path = os.path.join(state, "hub.sock")
    if len(os.fsencode(path)) <= SOCKET_PATH_LIMIT:
        return path
    import hashlib  # noqa: PLC0415 - costs every front 4 MB, and few state folders are this deep

    digest = hashlib.sha256(os.fsencode(state)).hexdigest()[:16]
    return f"{SHORT_FOLDERS}/offload-{os.getuid()}-{digest}/hub.sock"


def prepare(state: str) -> str:
    """Make the state folder and the socket's folder, for their owner only, and give the socket's path."""
    _own_folder(state)
    path = socket_path(state)
    if os.path.dirname(path) != state:
        _own_folder(os.path.dirname(path))
    return path


def _own_folder(folder: str) -> None:
    """Another user could have made a folder below /tmp before us, so a folder is used only when it is ours alone."""
    try:
        os.makedirs(folder, mode=PRIVATE, exist_ok=True)
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise AddressError(f"{folder} is not a folder of this user; move it away or set OFFLOAD_STATE_DIR")
        if stat.S_IMODE(found.st_mode) != PRIVATE:
            os.chmod(folder, PRIVATE)
    except OSError as error:
        raise AddressError(
            f"the state folder {folder} cannot be used: {error.strerror}; mend its rights or set OFFLOAD_STATE_DIR"
        ) from error
