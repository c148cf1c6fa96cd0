"""Ends the agents' servers that a killed hub left running, so that nobody works on a task that is told to be interrupted.

Every adapter keeps a server in `NAME/servers/KEY`, where `server.json` says which process it is; knows nothing else of them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

from offload.processes import Identity, stop

logger = logging.getLogger(__name__)


async def end_left_over(folder: Path) -> None:
    """To be called by the one hub of `folder`, before it reads what the interrupted tasks have changed."""
    async with asyncio.TaskGroup() as group:
        for file in await asyncio.to_thread(lambda: [*folder.glob("*/servers/*/server.json")]):
            group.create_task(_end(file))


async def _end(file: Path) -> None:
    try:
        left = json.loads(await asyncio.to_thread(file.read_text, encoding="utf-8"))
        identity = Identity(left["pid"], left["started"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("a server's file makes no sense", extra={"file": str(file), "reason": repr(error)})
        return
    # The start time is compared too: the number of one that is gone may be somebody else's by now.
    survivors = await stop(identity)
    logger.info("a server of an earlier hub was ended", extra={"pid": identity.pid, "survivors": len(survivors)})
    await asyncio.to_thread(file.unlink)
