"""A hub that tests start in place of `offload hub run`: everything of the real one, but what it serves is made up here.

Kinds: `lsp`, `mcp` and `rpc` say who they are to the line "who" and send back everything else; `crash` fails; `exit` calls
sys.exit like a language server. The file `options` of the state folder tells a hub that a front starts how to behave:
`hasty` (ends when nobody needs it for a moment), `stubborn` (its connections do not end when told to), `broken`.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from offload.domain.errors import StorageFailed
from offload.hub import address, run
from offload.hub.clock import SystemClock
from offload.hub.server import Limits
from offload.hub.services import Services

# Settings by the folder, so that a hub which a front starts can be told too.
OPTIONS_FILE = "options"


async def echo(reader, writer, hello):
    if hello.kind == "crash":
        raise ZeroDivisionError("as asked")
    if hello.kind == "exit":
        sys.exit(3)
    while data := await reader.read(65536):
        if data == b"who\n":
            strange = [name for name in os.environ if name.startswith(("GIT_", "PYTHON"))]
            told = {"pid": os.getpid(), "cwd": hello.cwd, "environment": dict(hello.environment), "strange": strange}
            data = json.dumps(told).encode() + b"\n"
        writer.write(data)
        await writer.drain()
    writer.write(b"bye\n")


async def stubborn(reader, writer, hello):
    """Does not end when it is told to."""
    writer.write(b"here\n")
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


def main():
    state = address.state_folder(os.environ)
    address.prepare(state)
    options = Path(state, OPTIONS_FILE).read_text().split() if Path(state, OPTIONS_FILE).exists() else []

    @asynccontextmanager
    async def build():
        with Path(state, "hubs").open("a") as hubs:
            hubs.write(f"{os.getpid()}\n")
        if "broken" in options:
            raise StorageFailed("the journal is broken; mend it")
        serve = stubborn if "stubborn" in options else echo
        yield Services(
            serve=dict.fromkeys(("lsp", "mcp", "rpc", "crash", "exit"), serve),
            busy=lambda: "hasty" not in options,
            status=lambda: {"tasks": 0},
        )

    if not {"hasty", "stubborn"} & set(options):
        return run.main(build)
    return run.run(build, state, SystemClock(), Limits(idle_exit_s=0.2, stop_s=0.2), end_s=1)


if __name__ == "__main__":
    sys.exit(main())
