"""`offload lsp` with the echo hub in place of the real one; started with `-I -S`, as the real one can be."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ECHO_HUB = (sys.executable, "-E", str(HERE / "echo_hub.py"))

if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parents[1] / "server"))
    from offload.hub import forward

    sys.exit(forward.main(sys.argv[1], command=ECHO_HUB))
