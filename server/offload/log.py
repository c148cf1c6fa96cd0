"""Logs of the hub: one JSON object per line, to a file that cannot grow without end. Standard output is never written to.

What is passed as `extra` becomes fields. Prompts, code and secrets are logged at DEBUG only, if at all.
"""

from __future__ import annotations

import json
import logging
import os
import time
from logging.handlers import RotatingFileHandler
from typing import Any

FILE_LIMIT = 4 * 1024 * 1024  # bytes; two older files are kept
OLD_FILES = 2
TEXT_LIMIT = 16 * 1024  # characters of one message, field or traceback

# These log what goes over the wire below WARNING: every payload, every URL. pygls also does when something fails; the front
# for editors says itself what matters then.
QUIET = {
    "pygls": logging.CRITICAL,
    "mcp": logging.WARNING,
    "httpx": logging.WARNING,
    "httpcore": logging.WARNING,
    "asyncio": logging.WARNING,
}

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """A record as one line: at, level, logger, message, then the extra fields, then the traceback as `error`."""

    def format(self, record: logging.LogRecord) -> str:
        """Everything is made safe to print: what is no JSON is shown by its repr, and long texts are cut."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        fields: dict[str, Any] = {
            "at": f"{at}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:TEXT_LIMIT],
        }
        fields.update((name, _short(value)) for name, value in vars(record).items() if name not in _STANDARD)
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)[-TEXT_LIMIT:]
        return json.dumps(fields, default=repr)


def _short(value: object) -> object:
    """As it is, unless it would make a line without end."""
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    return value if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT]


def set_up(level: str, path: str) -> None:
    """Log to the file `path`, for this user only, at `level` and above."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    handler = RotatingFileHandler(path, maxBytes=FILE_LIMIT, backupCount=OLD_FILES, encoding="utf-8")
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name, least in QUIET.items():
        logging.getLogger(name).setLevel(least)
