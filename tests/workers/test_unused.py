"""Folders of servers that run no more: only what nobody can want any more goes."""

import json
import os

import pytest

from offload.processes import identify
from offload.workers.opencode import unused

OLD, BETWEEN, NEW = 1000.0, 2000.0, 3000.0


@pytest.fixture
def folder(tmp_path):
    """A server's folder with a database, last used long ago."""
    folder = tmp_path / "servers" / "key"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "opencode.db").write_bytes(b"x" * 1000)
    (folder / "server.json").write_text("{}")
    (folder / "agents").symlink_to("/nowhere")
    return folder


def age(folder, at=OLD, **others):
    for path in (*folder.rglob("*"), folder):
        os.utime(path, (at, at), follow_symlinks=False)
    for name, other in others.items():
        os.utime(folder / name, (other, other))


def test_what_was_left_alone_for_long_enough_has_a_size(folder):
    age(folder)
    assert unused.size(folder, BETWEEN) > 1000


@pytest.mark.parametrize("name", ["data", "server.json"])
def test_what_was_used_since_then_counts_for_nothing(folder, name):
    age(folder, **{name: NEW})
    assert unused.size(folder, BETWEEN) == 0


def test_what_a_living_server_uses_counts_for_nothing_however_old_it_looks(folder):
    """An earlier hub may have left it running."""
    own = identify(os.getpid())
    (folder / "server.json").write_text(json.dumps({"pid": own.pid, "started": own.started}))
    age(folder)
    assert unused.size(folder, BETWEEN) == 0
