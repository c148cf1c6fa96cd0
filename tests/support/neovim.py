"""Drives a real Neovim from a test: started headless with the plugin and a home of its own, asked in Lua, ended as users end it.

It knows nothing about what the plugin does.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "clients" / "neovim"
NVIM = Path(sys.executable).with_name("nvim")

BOUND_S = 45  # The one bound of everything that is waited for in the editor.


class Neovim:
    """One editor. `lua` runs statements and gives what they return; `until` waits for a true value of an expression."""

    def __init__(self, home: Path, workspace: Path, environment: Mapping[str, str]) -> None:
        """Starts it in `workspace`; `home` takes all that it writes, and its path is short, because a socket lies in it."""
        address = str(home / "control")
        own = {"HOME": str(home), "NVIM_LOG_FILE": str(home / "nvim.log"), "OFFLOAD_TEST_SOCKET": address}
        own |= {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
        # The file type of Python looks for a Python that has Neovim's own package, which takes most of a second.
        command = [str(NVIM), "--clean", "--headless", "--cmd", "let g:loaded_python3_provider = 0"]
        command += ["--cmd", f"set rtp^={PLUGIN}"]
        command += ["-c", f"luafile {Path(__file__).with_suffix('.lua')}"]
        self.process = subprocess.Popen(
            command,
            cwd=workspace,
            env={**os.environ, **own, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first == b"there\n", first
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(2 * BOUND_S)
        self._socket.connect(address)
        self._answers = self._socket.makefile("r", encoding="utf-8")

    def lua(self, statements: str, *arguments: object) -> Any:
        """Runs `statements`, which find `arguments` in `...`, and gives what they return."""
        self._socket.sendall(json.dumps([statements, arguments]).encode() + b"\n")
        good, value = json.loads(self._answers.readline())
        assert good, f"{statements}\n{value}"
        return value

    def until(self, expression: str, *arguments: object) -> Any:
        """The first value of `expression` that is neither nil nor false."""
        look = f"local function look(...) return {expression} end; local given, value = {{ ... }}, nil;"
        wait = f"vim.wait({BOUND_S * 1000}, function() value = look(unpack(given)); return value end, 10); return value"
        value = self.lua(look + wait, *arguments)
        assert value, f"never came true: {expression}\nthe user was told: {self.said()}"
        return value

    def command(self, text: str) -> None:
        """Runs one Ex command as a user would type it."""
        self.lua("vim.cmd(...)", text)

    def said(self) -> Sequence[str]:
        """What the user was told, oldest first."""
        return list(self.lua("return said"))

    def quit(self) -> int:
        """Ends the editor as `:qall!` does and gives its exit status."""
        self._socket.sendall(json.dumps(["vim.cmd('qall!')", []]).encode() + b"\n")
        try:
            return self.process.wait(timeout=BOUND_S)
        finally:
            self.process.kill()  # does nothing to a process that is over
            self._answers.close()
            self._socket.close()
            if self.process.stdout is not None:
                self.process.stdout.close()
