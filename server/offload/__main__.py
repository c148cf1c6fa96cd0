"""The command `offload`. The fronts and `--version` import the standard library only: an editor waits for them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

if __name__ == "__main__" and not __package__:
    # Run by its path, which works without site-packages too: python -I -S .../offload/__main__.py lsp
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from offload import __version__

NOT_SUPPORTED = 69
INTERRUPTED = 130  # as in cli/exits.py, which takes its time to be imported
# What editors' client libraries add by themselves; a front has nothing else to talk over and watches its parent anyway.
IGNORED = ("--stdio", "--clientProcessId=")


def main(words: Sequence[str] | None = None, *, system: str = os.name) -> int:
    """Run one command line; gives the exit status."""
    words = sys.argv[1:] if words is None else words
    if system == "nt":
        sys.stderr.write("offload: Windows is not supported yet; run it inside WSL.\n")
        return NOT_SUPPORTED
    match words:
        case ["--version"]:
            sys.stdout.write(f"offload {__version__}\n")
            return 0
        case ["lsp" | "mcp" as kind, *rest] if all(word.startswith(IGNORED) for word in rest):
            from offload.hub import forward  # noqa: PLC0415 - see above

            return forward.main(kind)
        case ["hub", "run"]:
            # Fronts start it like this and wait for it, so it goes past the command line's own imports.
            from offload import app  # noqa: PLC0415

            return app.run_hub()
        case _:
            try:
                from offload.cli import main as cli  # noqa: PLC0415

                return cli.main(words)
            except KeyboardInterrupt:
                return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
