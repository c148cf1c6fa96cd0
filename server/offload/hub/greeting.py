"""What a front says first and how it reads the answer (see `hello` for both lines).

A front is waited for, so this imports little: `dataclasses` and `typing` alone would double the time that it takes to start.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from offload import __version__

PROTOCOL = 1
LIMIT = 256 * 1024  # bytes of a first line
CONTROL = "control"
# The variable that everything a worker starts inherits (`processes.MARKER`, which is too slow to import here).
MARKER = "OFFLOAD_WORKER"
WORKER_REFUSED = "worker_refused"
NOT_A_PERSON = "a worker's own process may not use offload: only people and their hosts start, answer and apply tasks"

# One variable, and all together, take up no more than fits well into the limit of the line.
VALUE_LIMIT = 16 * 1024
ENVIRONMENT_LIMIT = 96 * 1024

# What a worker needs of its caller's environment: to find programs, to sign in, to reach the network. Everything else stays
# behind, above all the GIT_* of a hook, which would send a worker's git into the wrong repository.
NAMES = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TERM",
        "TMPDIR",
        "TZ",
        "SSH_AUTH_SOCK",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
        "NODE_EXTRA_CA_CERTS",
        "NODE_OPTIONS",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYENV_ROOT",
        "JAVA_HOME",
        "GRADLE_USER_HOME",
        "MAVEN_HOME",
        "ANDROID_HOME",
        "DOTNET_ROOT",
        "GOPATH",
        "GOROOT",
        "GOBIN",
        "GOPROXY",
        "GOFLAGS",
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "PNPM_HOME",
        "BUN_INSTALL",
        "DENO_DIR",
        "VOLTA_HOME",
        "NIX_PATH",
    ]
)
PREFIXES = (
    *("LC_", "XDG_", "SSL_", "NIX_SSL_", "AWS_", "GOOGLE_", "AZURE_", "OPENCODE_", "OFFLOAD_"),
    *("NVM_", "FNM_", "ASDF_", "MISE_"),
)
SUFFIXES = ("_API_KEY", "_TOKEN", "_BASE_URL")


class Refusal(Exception):
    """The hub does not take this connection. `code` is a word of the error tree, `protocol` that of the hub, 0 if unknown."""

    def __init__(self, code: str, message: str, protocol: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.protocol = protocol


def relevant(environ: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that the hub is told; bounded, and in a fixed order."""
    wanted = [name for name in environ if name in NAMES or name.startswith(PREFIXES) or name.endswith(SUFFIXES)]
    chosen: dict[str, str] = {}
    room = ENVIRONMENT_LIMIT
    # Those known by name come first: they must not be the ones that fall out at the limit.
    for name in sorted(wanted, key=lambda name: (name not in NAMES, name)):
        size = len(json.dumps({name: environ[name]}))
        if size <= min(VALUE_LIMIT, room):
            chosen[name] = environ[name]
            room -= size
    return chosen


def greeting(kind: str, environ: Mapping[str, str], client: str = "") -> bytes:
    """This process's hello, as it goes over the wire."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        cwd = "/"  # started in a folder that is gone; an editor names its own folders later
    body = {
        "protocol": PROTOCOL,
        "version": __version__,
        "kind": kind,
        "cwd": cwd,
        "pid": os.getpid(),
        "client": client,
        "environment": relevant(environ),
    }
    return json.dumps(body).encode() + b"\n"


def welcome(line: bytes) -> tuple[str, int]:
    """Version and process id of the hub from its answer. Raises `Refusal` for a bad one, and for one that makes no sense."""
    try:
        body = json.loads(line)
        if body["ok"]:
            return str(body["version"]), int(body["pid"])
        refusal = Refusal(str(body["code"]), str(body["message"]), int(body.get("protocol", 0)))
    except (ValueError, TypeError, KeyError, RecursionError):
        refusal = Refusal("version_mismatch", "what listens on the hub's socket does not speak its protocol")
    raise refusal
