"""Whether a concrete value satisfies a schema: the judge of ``enum`` and ``const`` beside other keywords.

Leaves out   shapes and text. Nothing here is restricted as text is (digits, key order, escapes): only values count.
Invariants   numbers are compared exactly; the meaning of an atom is written here and nowhere else on the value side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import UnsupportedError
from .atoms import (
    All,
    AtLeast,
    AtMost,
    Conj,
    Contains,
    Count,
    Formula,
    Integral,
    Items,
    Keys,
    Literal,
    Matches,
    Members,
    Multiple,
    OneOf,
    Refused,
    Required,
    Some,
    SomeMember,
    Tagged,
    Unique,
    Values,
)
from .formats import FORMATS
from .nodes import Node
from .patterns import searcher
from .values import exact, freeze, is_integral, is_multiple, kind_of

Parts = Callable[[Node, str], tuple[Formula, ...]]


def holds_atom(part: Formula, value: Any, parts: Parts) -> bool:
    """Whether a part of a formula holds for a value of the formula's kind."""
    if isinstance(part, Literal):
        kind = kind_of(value)
        return part.positive == all(holds_atom(one, value, parts) for one in parts(part.node, kind))
    if isinstance(part, All):
        return all(holds_atom(one, value, parts) for one in part.parts)
    if isinstance(part, Some):
        return any(holds_atom(one, value, parts) for one in part.parts)
    if isinstance(part, OneOf):
        return sum(holds_atom(Literal(node), value, parts) for node in part.nodes) == 1
    if isinstance(part, Values):
        return part.positive == (freeze(value) in part.keys)
    if isinstance(part, AtLeast):
        return exact(value) > part.value if part.strict else exact(value) >= part.value
    if isinstance(part, AtMost):
        return exact(value) < part.value if part.strict else exact(value) <= part.value
    if isinstance(part, Integral):
        return part.positive == is_integral(exact(value))
    if isinstance(part, Multiple):
        return part.positive == is_multiple(exact(value), part.value)
    if isinstance(part, Count):
        return part.low <= len(value) and (part.high is None or len(value) <= part.high)
    if isinstance(part, Matches):
        return _matches(part, value)
    if isinstance(part, Contains):
        count = sum(_holds(part.item, item, parts) for item in value[part.start :])
        return part.low <= count and (part.high is None or count <= part.high)
    if isinstance(part, Unique):
        return part.positive == (len({freeze(item) for item in value}) == len(value))
    if isinstance(part, Keys):
        return all(_holds(part.key, key, parts) for key in value)
    if isinstance(part, SomeMember):
        return any(_is_met(part, key, item, parts) for key, item in value.items())
    if isinstance(part, Required):
        return all(name in value for name in part.names)
    if isinstance(part, Items):
        return all(
            _holds(part.prefix[index] if index < len(part.prefix) else part.rest, item, parts)
            for index, item in enumerate(value)
        )
    if isinstance(part, Members):
        return _members(part, value, parts)
    if isinstance(part, Tagged):
        return True
    assert isinstance(part, Refused)
    raise UnsupportedError(part.reason or f"the keyword {part.keyword} is not supported here", place=part.place)


def _holds(one: Conj, value: Any, parts: Parts) -> bool:
    return one is not None and all(holds_atom(literal, value, parts) for literal in one)


def _members(part: Members, value: dict[str, Any], parts: Parts) -> bool:
    named = dict(part.named)
    for key, item in value.items():
        known = key in named
        if known and not _holds(named[key], item, parts):
            return False
        for match, inside in part.patterns:
            if search(match, key):
                known = True
                if not _holds(inside, item, parts):
                    return False
        if not known and not _holds(part.rest, item, parts):
            return False
    return True


def _is_met(part: SomeMember, key: str, item: Any, parts: Parts) -> bool:
    if key in part.names or any(search(match, key) != match.positive for match in part.patterns):
        return False
    return _holds(part.key, key, parts) and _holds(part.value, item, parts)


def _matches(part: Matches, text: str) -> bool:
    found = search(part, text)
    if part.format and found != part.positive:
        # Between what a narrowed format generates and the widest it could be, nothing is known.
        other = FORMATS[part.format].widest if part.positive else FORMATS[part.format].pattern
        if not other or searcher(other, part.place)(text) != found:
            raise UnsupportedError(f'whether a value has the format "{part.format}" is not known', place=part.place)
    return part.positive == found


def search(match: Matches, text: str) -> bool:
    """Whether the pattern is found in the text (ECMA-262 search); ``positive`` is not looked at."""
    return searcher(match.pattern, match.place)(text)
