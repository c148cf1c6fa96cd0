"""The table of status texts that both editor clients are held to, as whole tasks."""

import copy
import json
from pathlib import Path
from typing import Any

TABLE = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def task(changed: dict[str, Any] | None = None, turn: dict[str, Any] | None = None) -> dict[str, Any]:
    """The table's task with some fields changed, in the task and in its last turn."""
    made = copy.deepcopy(TABLE["base"] | {"turns": [TABLE["turn"] | (turn or {})]})
    return made | copy.deepcopy(changed or {})


CASES = [(case["mark"], case["level"], task(case["task"], case["turn"])) for case in TABLE["cases"]]
