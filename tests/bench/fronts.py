"""How long an editor or a host waits for its first answer, and what a front costs in memory."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.bench.measure import Frames, Lines, Rows, alternate, clean_environment, connect

HERE = Path(__file__).parent
STOCK = HERE / "stock"
ROUNDS = 15
COLD_ROUNDS = 5
OFFLOAD = [str(Path(sys.executable).with_name("offload"))]


def node_server(cache: Path) -> list[str]:
    """The command of the stock Node server; its packages are installed into the project's cache."""
    target = cache / "bench-node"
    if not (target / "node_modules" / "vscode-languageserver").exists():
        shutil.copytree(STOCK / "node", target, dirs_exist_ok=True)
        subprocess.run(
            ["npm", "ci", "--prefix", str(target), "--loglevel=error"], check=True, stdout=subprocess.DEVNULL
        )
    return ["node", str(target / "server.mjs"), "--stdio"]


def bench(rows: Rows, cache: Path, state: Path) -> None:
    plain = clean_environment()
    ours = clean_environment(OFFLOAD_STATE_DIR=str(state))
    node = node_server(cache)
    stock_lsp = [sys.executable, str(STOCK / "language_server.py")]
    stock_mcp = [sys.executable, str(STOCK / "model_server.py")]

    def cold() -> tuple[float, float]:
        try:
            return connect([*OFFLOAD, "lsp"], Frames, ours)
        finally:
            stop_hub(ours)

    first = alternate(COLD_ROUNDS, {"cold": cold, "stock": lambda: connect(stock_lsp, Frames, plain)})
    taken = alternate(
        ROUNDS,
        {
            "pygls": lambda: connect(stock_lsp, Frames, plain),
            "node": lambda: connect(node, Frames, plain),
            "lsp": lambda: connect([*OFFLOAD, "lsp"], Frames, ours),
            "sdk": lambda: connect(stock_mcp, Lines, plain),
            "mcp": lambda: connect([*OFFLOAD, "mcp"], Lines, ours),
        },
    )
    stop_hub(ours)
    times = {name: [sample[0] for sample in samples] for name, samples in taken.items()}
    memory = {name: [sample[1] for sample in samples] for name, samples in taken.items()}
    cold_times = {name: [sample[0] for sample in samples] for name, samples in first.items()}

    rows.add("editor connect, stock pygls over stdio", "ms", times["pygls"])
    rows.add("editor connect, stock Node server", "ms", times["node"])
    rows.add(
        "editor connect, offload, hub warm",
        "ms",
        times["lsp"],
        against="editor connect, stock pygls over stdio",
        goal=1 / 6,
    )
    rows.add("… against Node", "ms", times["lsp"], against="editor connect, stock Node server", goal=1 / 2)
    rows.add("editor connect, stock pygls (beside cold)", "ms", cold_times["stock"])
    rows.add(
        "editor connect, offload, no hub yet",
        "ms",
        cold_times["cold"],
        against="editor connect, stock pygls (beside cold)",
        goal=1.5,
    )
    rows.add("MCP connect, stock SDK over stdio", "ms", times["sdk"])
    rows.add(
        "MCP connect, offload, hub warm", "ms", times["mcp"], against="MCP connect, stock SDK over stdio", goal=1 / 10
    )
    rows.add("memory, stock pygls over stdio", "MB", memory["pygls"])
    rows.add("memory, stock Node server", "MB", memory["node"])
    rows.add("memory, stock SDK over stdio", "MB", memory["sdk"])
    rows.bound("memory, offload lsp front", "MB", memory["lsp"], 14)
    rows.bound("memory, offload mcp front", "MB", memory["mcp"], 14)


def stop_hub(environment: dict[str, str]) -> None:
    subprocess.run([*OFFLOAD, "hub", "stop"], env=environment, check=True, stdout=subprocess.DEVNULL)
