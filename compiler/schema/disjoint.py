"""Test by required constants which of many schemas surely have no value in common.

    oneOf: [{const: "a", title: …}, {const: "b", title: …}, …]
    oneOf: [{properties: {kind: {const: "a"}, …}, required: ["kind"]}, …]

To look for a value of each two of n schemas takes n² looks; to sort them by a constant takes n.

Leaves out   whether others have: normalise.py looks.
Invariants   schemas that are told apart have no value in common; some that have none are not told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from .nodes import Node

_SELF = ""  # the value itself, beside the names of members, which begin with a dot

Constants = Mapping[str, frozenset[Hashable]]
"""Of a value, and of members that it has: which constants each is one of, as ``freeze`` writes them."""


def not_told_apart(nodes: Sequence[Node], kind: str) -> list[list[int]]:
    """Of each schema, the others with which it may have a value of a kind in common, ascending."""
    asked = [_constants(node, kind) for node in nodes]
    named = Counter(name for one in asked for name in one)
    name = max(named, key=named.__getitem__, default=_SELF)  # what most ask for, to sort by
    everyone = range(len(nodes))
    free = [at for at in everyone if name not in asked[at]]
    having: dict[Hashable, list[int]] = {}
    for at in everyone:
        for constant in asked[at].get(name, ()):
            having.setdefault(constant, []).append(at)
    found: list[list[int]] = []
    for index, one in enumerate(asked):
        constants = one.get(name)
        near = everyone if constants is None else {*free, *(at for key in constants for at in having[key])}
        found.append(sorted(at for at in near if at != index and not _differ(one, asked[at])))
    return found


def _constants(node: Node, kind: str) -> Constants:
    keywords = node.keywords
    found = {}
    own = _values(keywords)
    if own is not None:
        found[_SELF] = own
    if kind == "object":
        members = keywords.get("properties", {})
        for name in keywords.get("required", ()):
            child = members.get(name)
            values = _values(child.keywords) if isinstance(child, Node) else None
            if values is not None:
                found[f".{name}"] = values
    return found


def _values(keywords: Mapping[str, Any]) -> frozenset[Hashable] | None:
    """The constants of which a value has to be one, if any are named."""
    named = [frozenset(one.key for one in keywords[key]) for key in ("const", "enum") if key in keywords]
    return frozenset.intersection(*named) if named else None


def _differ(one: Constants, other: Constants) -> bool:
    """Whether there is something that both ask for, and nothing that meets both."""
    return any(name in other and values.isdisjoint(other[name]) for name, values in one.items())
