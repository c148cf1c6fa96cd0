"""One cattrs converter for all connections: its generated hooks are paid for once, and it is lenient where editors are new."""

from __future__ import annotations

import enum
from functools import cache
from typing import Any

from cattrs import Converter
from lsprotocol import types
from pygls.protocol import default_converter
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage, JsonRPCResponseMessage


@cache
def shared_converter() -> Converter:
    """The converter that every connection uses."""
    converter: Converter = default_converter()  # type: ignore[no-untyped-call]
    # A newer editor's unknown enum member must not make `initialize` fail. One hook per class: cattrs treats enums that
    # also derive from str or int as str or int first.
    for value in vars(types).values():
        if isinstance(value, type) and issubclass(value, enum.Enum):
            converter.register_structure_hook(value, _keep_unknown_member)
    # Messages without a registered type, which are all of ours, keep their params as plain JSON values.
    for envelope in (JsonRPCRequestMessage, JsonRPCResponseMessage, JsonRPCNotification):
        converter.register_structure_hook(envelope, _plain)
    return converter


def _keep_unknown_member(value: Any, enum_class: type[enum.Enum]) -> Any:
    try:
        return enum_class(value)
    except ValueError:
        return value


def _plain(value: dict[str, Any], envelope: type[Any]) -> Any:
    return envelope(**value)
