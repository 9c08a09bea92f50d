"""Arguments written part by part, as a tree of elements: their text → values, and back.

`meta["arguments"]["parts"]` tells how each kind of part begins and ends: [parameter or item, kind of its value or ""
for any, before the key, between key and value, after the value, after the key there]. `tool["elements"]` has a node for
every part: [types, member → node, nodes of the first items, node of any other item, what no text at all is, numbers of
its arrays and its objects: equal for what lies inside of its own kind].

Leaves out   where arguments begin and end (reader.py), raw texts (arguments.py), what of a text is allowed (writer.py).
Invariants   the texts are those that a bundle accepts, so a part that begins also ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ANYTHING: Sequence[Any] = (None, {}, (), -1, "")
"""The node of a part that may be anything."""

Raw = Callable[[str, Sequence[str] | None], Any]
"""(text, types but string; None: any) → the value that a raw text spells."""


@dataclass(frozen=True)
class Element:
    """One part: the kind of its value, its key, where its text begins, and what ends it."""

    kind: str
    key: str
    begin: int
    close: str


class Elements:
    """Reads values of one tool.

    Args:
        parts: how parts begin and end.
        nodes: the types of every part.
        raw: reads what has no parts.
    """

    def __init__(self, parts: Sequence[Sequence[str]], nodes: Sequence[Sequence[Any]], raw: Raw) -> None:
        self.parts = [
            (
                of,
                kind,
                re.compile(_OPENING.format(re.escape(before), _KEY if before else "", re.escape(between))),
                end,
                last,
            )
            for of, kind, before, between, end, last in parts
        ]
        self.nodes = nodes
        self.raw = raw

    def arguments(self, text: str) -> dict[str, Any]:
        """The arguments that a whole text writes."""
        return dict(self._value(text, 0, "object", 0 if self.nodes else -1, None)[0])

    def _open(self, text: str, at: int, of: str) -> Element | None:
        """The part that begins at a place, blank lines aside."""
        for one, kind, opening, after, last in self.parts:
            found = opening.match(text, at)
            if found and one == of:
                key = found["key"] if "key" in opening.groupindex else ""
                return Element(kind, key, found.end(), after + key + last if last else after)
        return None

    def _value(self, text: str, at: int, kind: str, node: int, close: str | None) -> tuple[Any, int]:
        """The value at a place, up to what closes it (None: the end of the text), and where that begins."""
        types, members, first, rest, empty = self.nodes[node][:5] if node >= 0 else ANYTHING
        of, child = "", None
        for one in ("item", "parameter") if kind not in ("text", "other") else ():
            if child is None and (types is None or {"item": "array", "parameter": "object"}[one] in types):
                of, child = one, self._open(text, at, one)
        if child is None:
            end = len(text) if close is None else text.index(close, at)
            return self._leaf(text[at:end], kind, types, kind or empty), end
        found: list[tuple[str, Any]] = []
        while child is not None:
            if of == "item":
                below = first[len(found)] if len(found) < len(first) else rest
            else:
                below = members.get(child.key, -1)
            value, at = self._value(text, child.begin, child.kind, below, child.close)
            found.append((child.key, value))
            at += len(child.close)
            child = self._open(text, at, of)
        end = len(text) if close is None else text.index(close, at)
        return ([value for _, value in found] if of == "item" else dict(found)), end

    def _leaf(self, text: str, kind: str, types: Sequence[str] | None, empty: str) -> Any:
        """What has no parts: an empty array or object, or a raw text."""
        if not text and empty in ("array", "object"):
            return [] if empty == "array" else {}
        return text if kind == "text" else self.raw(text, types)


def element_texts(
    parts: Sequence[Sequence[str]],
    nodes: Sequence[Sequence[Any]],
    in_parts: bool,
    arguments: Mapping[str, Any],
    leaf: Callable[[Any], str],
) -> tuple[str, ...]:
    """The text of every argument, as `Elements` reads it; what lies inside of its own kind has no parts.

    Args:
        parts, nodes: see `Elements`.
        in_parts: whether what may be anything has parts.
        arguments: as JSON values.
        leaf: writes what has no parts.
    """
    forms = {(part[0], part[1]): part[2:] for part in parts}
    declared_only = any(part[5] for part in parts)  # no text says twice what is not known

    def part(of: str, key: str, value: Any, node: int, above: frozenset[int]) -> str:
        kind = _KINDS.get(type(value), "other")
        before, between, after, last = forms.get((of, kind)) or forms[of, ""]
        key, again = (key, key if last else "") if of == "parameter" else ("", "")
        return f"{before}{key}{between}{text(value, node, above)}{after}{again}{last}"

    def text(value: Any, node: int, above: frozenset[int]) -> str:
        if not isinstance(value, (list, dict)) or (node < 0 and not in_parts):
            return leaf(value)
        _, members, first, rest, empty = nodes[node][:5] if node >= 0 else ANYTHING
        own = frozenset([_own(nodes[node], node, value)] if node >= 0 else ())
        if own & above:
            return leaf(value)
        if not value:
            kind = _KINDS[type(value)]
            return "" if kind == empty or any(said == kind for _, said in forms) else leaf(value)
        above |= own
        if isinstance(value, list):
            below = [*first, *[rest] * len(value)]
            return "".join(part("item", "", one, below[n], above) for n, one in enumerate(value))
        if declared_only and not members:
            return leaf(value)
        return "".join(part("parameter", key, one, members.get(key, -1), above) for key, one in value.items())

    members = nodes[0][1] if nodes else {}
    return tuple(text(value, members.get(key, -1), frozenset()) for key, value in arguments.items())


def _own(node: Sequence[Any], number: int, value: Sequence[Any] | Mapping[str, Any]) -> int:
    """The number of an array or object of a node; that of the node, where a bundle does not have it."""
    if len(node) < 6:
        return number
    own: int = node[5][isinstance(value, dict)]
    return own


_KINDS: dict[type, str] = {str: "text", list: "array", dict: "object"}
_OPENING = r"\n*{}{}{}"
_KEY = r"(?P<key>[A-Za-z0-9_.\-\x80-\U0010ffff]+)"
