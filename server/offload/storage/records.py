"""Events as JSON and back. An event's kind is the name of its class; the domain itself knows nothing of being stored.

A field that an older version did not write takes its default, so fields may be added. A lone surrogate, which JSON in UTF-8
cannot hold, is stored as the replacement character.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from offload.domain.errors import StorageFailed
from offload.domain.events import Created, Event
from offload.domain.lifecycle import TRANSITIONS
from offload.domain.text import well_formed

_POSSIBLE: set[type[Event]] = {Created}.union(*TRANSITIONS.values())
KINDS: Mapping[str, type[Event]] = {cls.__name__: cls for cls in _POSSIBLE}


@functools.cache
def _adapter(kind: str) -> TypeAdapter[Event]:
    """Built when the first event of its kind comes: all of them together would delay the start of the hub."""
    return TypeAdapter(KINDS[kind])


class Unreadable(Exception):
    """A record is damaged."""


def encode(event: Event) -> tuple[str, str]:
    """The event's kind and its body."""
    kind = type(event).__name__
    body = _adapter(kind).dump_python(event, mode="json")
    return kind, well_formed(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def decode(kind: str, body: str | bytes) -> Event:
    """The event of a record. Raises `StorageFailed` for a kind that this version does not know, `Unreadable` for a damaged
    body."""
    if kind not in KINDS:
        raise StorageFailed(f"it holds an event {kind!r} of a newer version of offload: install that version")
    try:
        return _adapter(kind).validate_json(body)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        raise Unreadable(f"its record of an event {kind!r} is damaged: {first['msg']}") from None
