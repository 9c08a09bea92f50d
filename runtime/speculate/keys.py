"""One canonical key for all ways to write the same call.

Leaves out   what may be run early: see rules.py. Reading calls from text: see events.py.
Invariants   two calls have equal keys only if server, user, tool and version are equal and the arguments are equal as
             JSON values once the schema's defaults are filled in: keys sorted, numbers as ECMAScript prints the double
             (1.0 is 1, 1e2 is 100). Arguments that have no such form (integers from 2^53 on, NaN, lone surrogates,
             defaults that are no doubles) have no key. A call without a key is neither run early nor found in a cache.
Source       RFC 8785 (JSON Canonicalization Scheme), by the library rfc8785.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import rfc8785

from .errors import SpeculateError


@dataclass(frozen=True)
class Scope:
    """Whose calls may share results: the tool server they go to, and the user they are made for."""

    server: str = ""
    user: str = ""


@dataclass(frozen=True)
class CallKey:
    """What makes two calls the same; compared as a whole, so no digest can collide.

    Attributes:
        arguments: the canonical JSON text, UTF-8; empty in the key of any call of the tool.
    """

    scope: Scope
    tool: str
    version: str
    arguments: bytes

    @property
    def of_any(self) -> CallKey:
        """The key of any call of this tool."""
        return replace(self, arguments=b"")


def canonical(arguments: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> bytes:
    """The canonical JSON text of arguments.

    Args:
        arguments: a JSON object.
        defaults: the tree {default, properties, items} that the compiler writes into a bundle.

    Raises:
        SpeculateError: the arguments have no canonical form.
    """
    try:
        return rfc8785.dumps(fill_defaults(dict(arguments), defaults or {}))
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise SpeculateError("these arguments have no canonical form", found=str(error)) from error


def fill_defaults(value: Any, tree: Mapping[str, Any]) -> Any:
    """The value with what its schema says of absent members; nothing that is there is changed."""
    if isinstance(value, dict) and "properties" in tree:
        out = dict(value)
        for name, below in tree["properties"].items():
            if name in out:
                out[name] = fill_defaults(out[name], below)
            elif "default" in below:
                out[name] = fill_defaults(below["default"], below)
        return out
    if isinstance(value, list) and "items" in tree:
        return [fill_defaults(one, tree["items"]) for one in value]
    return value


def parse_object(text: str | bytes, place: str = "arguments", number: Callable[[str], Any] = float) -> dict[str, Any]:
    """A JSON object from text; see `parse_json`."""
    value = parse_json(text, place, number)
    if not isinstance(value, dict):
        raise SpeculateError(place=place, found=type(value).__name__, expected="a JSON object")
    return value


def parse_json(text: str | bytes, place: str, number: Callable[[str], Any] = float) -> Any:
    """A JSON value from text; a key that comes twice, or a constant such as NaN, is refused.

    Args:
        number: reads a number with a point or an exponent.
    """
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_float=number, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise SpeculateError("this is no JSON", place=place, found=str(error)) from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a key that comes twice")
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(name)
