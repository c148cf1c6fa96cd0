"""Values of the domain, made up by Hypothesis from its types, so that no new field or event is forgotten."""

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping

from hypothesis import strategies as st

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["", "\0", "a\0b", "🙂 é ﬃ 漢字", "\u2028\ufeff", '"\\\n\r\n', "\x7f\x80"]),
)


def of(hint, texts=TEXTS):
    """A strategy for a type as the domain's dataclasses use them."""
    if isinstance(hint, typing.NewType):
        return of(hint.__supertype__, texts)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return st.builds(hint, **{item.name: of(hints[item.name], texts) for item in dataclasses.fields(hint)})
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of(*(of(argument, texts) for argument in arguments))
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(of(arguments[0], texts), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*(of(argument, texts) for argument in arguments))
    if origin is Mapping:
        return st.dictionaries(of(arguments[0], texts), of(arguments[1], texts), max_size=3)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    plain = {
        str: texts,
        int: st.integers(-(2**70), 2**70),
        float: st.floats(allow_nan=False),
        bool: st.booleans(),
        types.NoneType: st.none(),
    }
    return plain[hint]
