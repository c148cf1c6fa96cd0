"""The line that opens every connection, as the hub reads it, and the hub's answer.

    front → hub   {"protocol": 1, "version": "0.1.0", "kind": "lsp", "cwd": "/home/me/project", "pid": 4711,
                   "client": "", "environment": {"PATH": "…"}}
    hub → front   {"ok": true, "protocol": 1, "version": "0.1.0", "pid": 4700}
    or            {"ok": false, "protocol": 1, "version": "0.1.0", "code": "version_mismatch", "message": "…"}

The front sends nothing else before it has the answer. What follows is the bytes of the protocol that `kind` names. The kind
"control" (status, stop, drain) is understood between all versions, so that a hub of another version can be asked to end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from offload import __version__
from offload.hub.greeting import CONTROL, PROTOCOL, Refusal

T = TypeVar("T", int, str, dict[str, Any])


@dataclass(slots=True)
class Hello:
    """Who connects. `kind` names the protocol that follows, `cwd` is an absolute folder, `client` the program behind the
    front, "" until it has said so. `environment` may hold keys: it is kept in memory only and is not in the repr."""

    kind: str
    cwd: str
    pid: int
    version: str = __version__
    protocol: int = PROTOCOL
    client: str = ""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def learn(self, client: str) -> None:
        """Its own protocol has told who is behind a front that only passes bytes."""
        self.client = client


def parse(line: bytes) -> Hello:
    """Raises `Refusal` with a plain sentence for everything that is not a hello of our protocol."""
    try:
        body = json.loads(line)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal("invalid_request", "the first line must be one JSON object: the hello of a front")
    protocol, version, kind = _field(body, "protocol", int), _field(body, "version", str), _field(body, "kind", str)
    if protocol != PROTOCOL and kind != CONTROL:
        way_out = "end that hub with `offload hub stop`"
        if protocol < PROTOCOL:
            way_out = "restart the editor or host, so that it starts the offload that is installed now, or " + way_out
        raise Refusal(
            "version_mismatch",
            f"this front is offload {version} (protocol {protocol}), but the hub that runs is offload {__version__} "
            f"(protocol {PROTOCOL}): {way_out}; tasks are kept",
        )
    cwd = _field(body, "cwd", str)
    if not os.path.isabs(cwd):
        raise Refusal("invalid_request", "the hello's cwd must be an absolute folder")
    environment = _field(body, "environment", dict)
    if not all(isinstance(value, str) for value in environment.values()):
        raise Refusal("invalid_request", "the hello's environment must hold strings only")
    return Hello(
        kind=kind,
        cwd=cwd,
        pid=_field(body, "pid", int),
        version=version,
        protocol=protocol,
        client=_field(body, "client", str),
        environment=environment,
    )


def _field(body: dict[str, Any], name: str, of: type[T]) -> T:
    value = body.get(name, "" if name == "client" else None)
    # JSON's true is no number, though Python's is one.
    if not isinstance(value, of) or isinstance(value, bool):
        raise Refusal("invalid_request", f"the hello's {name} is missing or is not {_TYPES[of]}")
    return value


_TYPES: dict[type, str] = {int: "a whole number", str: "a string", dict: "an object"}


def accepted() -> bytes:
    """The hub's good answer."""
    return json.dumps({"ok": True, "protocol": PROTOCOL, "version": __version__, "pid": os.getpid()}).encode() + b"\n"


def refused(refusal: Refusal) -> bytes:
    """The hub's bad answer."""
    body = {
        "ok": False,
        "protocol": PROTOCOL,
        "version": __version__,
        "code": refusal.code,
        "message": str(refusal),
    }
    return json.dumps(body).encode() + b"\n"
