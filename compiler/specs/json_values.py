"""Whether a Python value is one that JSON can say, and where it is not.

Leaves out   text (json_text.py, yaml_text.py).
Invariants   what passes holds dict (text keys), list, str, finite numbers (exact_numbers.py), bool and None, nests at
             most MAX_DEPTH deep and so has no cycle, and is walked in bounded time, whatever stands in it at several
             places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from ..errors import SpecError
from .exact_numbers import MAX_DIGITS, TooLong, is_too_long, number_text
from .model import escape

MAX_DEPTH = 500
MAX_NODES = 20_000_000
MAX_REPEATED = 2_000_000
"""Most values that aliases of YAML, or one Python value at several places, may add to those that are written."""
_TOO_LONG = 10**MAX_DIGITS
_TEXT = frozenset((str,))


def check_response(schema: Any, name: str = "response") -> None:
    """Refuse what is no schema of a structured response.

    Raises:
        SpecError: at a place in ``name``.
    """
    check_value(schema, name)
    if not isinstance(schema, (dict, bool)):
        raise SpecError("the response is no schema", place=f"{name}#", expected="an object, true or false")


def check_value(document: Any, name: str) -> None:
    """SpecError unless the value is what JSON can say, nested at most MAX_DEPTH deep (so without a cycle).

    What stands at several places (an alias of YAML) is looked at once, and counted as often as it stands.
    """
    if _is_plainly_json(document):
        return
    size: dict[int, int] = {}  # of a container, by id: values in it
    height: dict[int, int] = {}
    path: list[tuple[Any, Iterator[tuple[str, Any]]]] = []
    keys: list[str] = []
    own = 0

    def place(*more: str) -> str:
        return f"{name}#" + "".join("/" + escape(one) for one in (*keys, *more))

    def enter(value: Any, key: str | None) -> None:
        """Check a value and go into it if it is a container not seen before."""
        nonlocal own
        at = () if key is None else (key,)
        if value is None:
            return
        if isinstance(value, int):
            if abs(value) >= _TOO_LONG:
                digits = int(value.bit_length() * math.log10(2)) + 1  # one too many at times
                raise SpecError("this number is too long", place=place(*at), found=f"{digits:,} digits")
            return
        if isinstance(value, str):
            if not _is_text(value):
                raise SpecError("a lone surrogate is no text", place=place(*at), found=ascii(value)[:40])
        elif isinstance(value, float):
            if not math.isfinite(value):
                raise SpecError("JSON has no such number", place=place(*at), found=repr(value))
        elif isinstance(value, Decimal):
            if not value.is_finite():
                raise SpecError("JSON has no such number", place=place(*at), found=str(value)[:40])
            if is_too_long(value):
                raise SpecError(
                    "this number is too long",
                    place=place(*at),
                    found=number_text(value)[:40],
                    expected=TooLong.expected,
                )
        elif isinstance(value, (dict, list)):
            if id(value) in size:
                return
            if key is not None:
                keys.append(key)
            if isinstance(value, dict):
                _check_keys(value, place())
            own += len(value)
            members = value.items() if isinstance(value, dict) else ((str(i), one) for i, one in enumerate(value))
            path.append((value, iter(members)))
            if len(path) > MAX_DEPTH:
                raise too_deep(name)
        else:
            raise SpecError(
                "JSON has no such value",
                place=place(*at),
                found=_named(value),
                hint="a function may stand for a tool of a list, a type for a schema: as parameters, as response_format"
                if callable(value)
                else None,
            )

    enter(document, None)
    while path:
        value, members = path[-1]
        depth = len(path)
        for key, one in members:
            enter(one, key)
            if len(path) > depth:
                break
        else:
            path.pop()
            if keys:
                keys.pop()
            inside = [id(one) for one in (value.values() if isinstance(value, dict) else value) if id(one) in size]
            size[id(value)] = len(value) + sum(size[one] for one in inside)
            height[id(value)] = 1 + max((height[one] for one in inside), default=0)
    if not isinstance(document, (dict, list)):
        return
    if height[id(document)] > MAX_DEPTH:
        raise too_deep(name)
    count = size[id(document)] + 1
    if count > MAX_NODES or count - own > MAX_REPEATED:
        repeated = count - own > MAX_REPEATED
        raise SpecError(
            "the document is too large",
            place=name,
            found=f"{count:,} values" + (f", {own:,} of them written" if repeated else ""),
            expected=f"at most {MAX_REPEATED if repeated else MAX_NODES:,}"
            + (" that are repeated" if repeated else ""),
            hint="define what is repeated once and use $ref" if repeated else None,
        )


def _named(value: Any) -> str:
    """A Python value as errors show it."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__}"
    return type(value).__name__


def _check_keys(value: dict[Any, Any], place: str) -> None:
    for key in value:
        if not isinstance(key, str):
            raise SpecError("a key is not text", place=place, found=repr(key)[:40], hint="write it between quotes")
        if not _is_text(key):
            raise SpecError("a lone surrogate is no text", place=place, found=f"the key {ascii(key)[:40]}")


def _is_text(text: str) -> bool:
    """Whether it can be written as UTF-8: it holds no half of a surrogate pair."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_plainly_json(document: Any) -> bool:
    """Whether a value is surely what JSON can say, neither deep nor large; what is not is looked at place by place."""
    level, nodes = [document], 0
    texts: list[str] = []
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is str:
                texts.append(value)
            elif kind is dict or kind is list:
                nodes += len(value)
                if nodes > MAX_NODES // 20:  # before they are listed: one value may stand at many places
                    return False
                if kind is dict:
                    texts += value
                    below += value.values()
                else:
                    below += value
            elif kind is float:
                if not math.isfinite(value):
                    return False
            elif kind is Decimal:
                if not value.is_finite() or is_too_long(value):
                    return False
            elif kind is int:
                if abs(value) >= _TOO_LONG:
                    return False
            elif value is not None and kind is not bool:
                return False
        if not below:
            return _TEXT.issuperset(map(type, texts)) and _is_text("".join(texts))
        level = below
    return False


def too_deep(place: str, most: int = MAX_DEPTH) -> SpecError:
    return SpecError(
        f"the document nests more than {most} deep here",
        place=place,
        expected=f"at most {most} open brackets",
        hint="define the repeated part once and use $ref",
    )
