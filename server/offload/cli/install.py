"""`offload install AGENT`: puts an agent into offload's own folder; what is installed elsewhere stays as it is."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from offload.cli.exits import Exit
from offload.cli.output import console, print_json
from offload.domain.errors import EnvironmentFailure
from offload.hub import address
from offload.workers.registry import install_agent


def install(agent: str, *, as_json: bool) -> int:
    """Installs the version that offload was tried with, and says where it is and how to sign in."""
    try:
        state = address.state_folder(os.environ)
        address.prepare(state)
    except address.AddressError as error:
        raise EnvironmentFailure(str(error)) from error
    folder = Path(state, "workers")
    with console(stderr=True).status(f"installing {agent} with npm"):
        found, sign_in = asyncio.run(install_agent(agent, folder, os.environ))
    if as_json:
        print_json({"agent": agent, "version": found.version, "folder": str(folder / agent), "sign_in": sign_in})
    else:
        console().print(f"{agent} {found.version} is in {folder / agent}", soft_wrap=True)
        console().print(f"Sign in with: {sign_in}", soft_wrap=True)
    return Exit.OK
