"""Makes commits of trees that are there, and of a handful of files: written straight as git's loose objects.

Asking git for it takes four processes one after another (`hash-object`, `update-index`, `write-tree`, `commit-tree`), which
is longer than the merge that they would record; and git leaves out what the user's own objects hold, which are not ours to
keep.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from offload.workspace.git import IDENTITY


@dataclass(frozen=True, slots=True)
class File:
    """`mode` is git's; `permissions` are those on disk, 0 where they are not known."""

    mode: str
    content: bytes
    permissions: int = 0


@dataclass(frozen=True, slots=True)
class Objects:
    """A git directory of ours, to be written to. `object_format` is git's word for the hash."""

    private: Path
    object_format: str

    def commit(self, title: str, prefix: str, files: Mapping[str, File]) -> str:
        """A commit that holds exactly these files (path below `prefix` to file), with no parent. Its message keeps the
        permissions, of which git knows one bit."""
        tree = self._tree({os.fsencode(prefix + path): file for path, file in files.items()})
        kept = json.dumps({path: file.permissions for path, file in files.items()}, sort_keys=True)
        return self.record(tree, "", f"{title}\n\n{kept}")

    def record(self, tree: str, parent: str, message: str) -> str:
        """A commit of a tree that is there already; `parent` is "" for none."""
        after = f"parent {parent}\n" if parent else ""
        who = f"{IDENTITY['name']} <{IDENTITY['email']}> {int(time.time())} +0000"
        text = f"tree {tree}\n{after}author {who}\ncommitter {who}\n\n{message}\n"
        return self._write("commit", text.encode())

    def _tree(self, files: Mapping[bytes, File]) -> str:
        found: list[tuple[bytes, bytes]] = []
        below: defaultdict[bytes, dict[bytes, File]] = defaultdict(dict)
        for path, file in files.items():
            name, _, rest = path.partition(b"/")
            if rest:
                below[name][rest] = file
            else:
                found.append((name, _entry(file.mode, name, self._write("blob", file.content))))
        # git sorts a folder as if its name ended in "/".
        found.extend((name + b"/", _entry("40000", name, self._tree(inner))) for name, inner in below.items())
        return self._write("tree", b"".join(entry for _, entry in sorted(found)))

    def _write(self, kind: str, content: bytes) -> str:
        header, name = _header(kind, content), named(self.object_format, kind, content)
        target = self.private / "objects" / name[:2] / name[2:]
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            # Stored as it is, which takes a fifth of the time; what is kept for long is packed one day.
            stored = zlib.compressobj(0)
            with tempfile.NamedTemporaryFile(dir=target.parent, prefix="tmp_obj_", delete=False) as beside:
                for part in (stored.compress(header), stored.compress(content), stored.flush()):
                    beside.write(part)
            Path(beside.name).chmod(0o444)
            Path(beside.name).replace(target)
        return name


def named(object_format: str, kind: str, content: bytes) -> str:
    """The name of the object that holds this."""
    hashed = hashlib.new(object_format, _header(kind, content))
    hashed.update(content)
    return hashed.hexdigest()


def _header(kind: str, content: bytes) -> bytes:
    return b"%s %d\0" % (kind.encode(), len(content))


def _entry(mode: str, name: bytes, id_: str) -> bytes:
    return b"%s %s\0%s" % (mode.encode(), name, bytes.fromhex(id_))


def permissions(message: str) -> dict[str, int]:
    """Those that a commit of `Objects` keeps, by path; none of another's."""
    try:
        kept = json.loads(message.rstrip("\n").rpartition("\n")[2])
    except ValueError:
        return {}
    return kept if isinstance(kept, dict) else {}
