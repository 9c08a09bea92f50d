"""Keep values that some schemas have, to see without taking it apart that a conj has one, too.

Leaves out   making the values (normalise.py), what holds for a value (evaluate.py).
Invariants   a conj that is met has a value; of one that is not met nothing is known. A schema judges a value once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ..errors import SchemaError, UnsupportedError
from .atoms import Literal
from .evaluate import Parts, holds_atom
from .nodes import Node
from .values import freeze, kind_of

MOST_WITNESSES = 1024
"""Values that are kept."""


class Witnesses:
    """Values, by number; sets of them are masks.

    Args:
        parts: the formula of a node for a kind.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._values: list[Any] = []
        self._known: set[Hashable] = set()
        self._of_kind: dict[str, int] = {}
        self._judged: dict[Node, tuple[int, int, int]] = {}  # node → those judged, that satisfy it, that do not

    def add(self, value: Any) -> None:
        """Keep one more value, while there is room."""
        key = freeze(value)
        if len(self._values) < MOST_WITNESSES and key not in self._known:
            self._known.add(key)
            kind = kind_of(value)
            self._of_kind[kind] = self._of_kind.get(kind, 0) | 1 << len(self._values)
            self._values.append(value)

    def meet(self, one: tuple[Literal, ...], kind: str = "") -> bool:
        """Whether one of the values, of a kind if one is named, satisfies a conj."""
        left = self._of_kind.get(kind, 0) if kind else (1 << len(self._values)) - 1
        for node, positive in one:
            if not left:
                return False
            judged, yes, no = self._judged.get(node, (0, 0, 0))
            if left & ~judged:
                judged, yes, no = self._judged[node] = self._judge(node, left & ~judged, judged, yes, no)
            left &= yes if positive else no
        return left != 0

    def _judge(self, node: Node, new: int, judged: int, yes: int, no: int) -> tuple[int, int, int]:
        literal = Literal(node)
        for number, value in enumerate(self._values):
            bit = 1 << number
            if new & bit:
                try:
                    holds = holds_atom(literal, value, self._parts)
                except (SchemaError, UnsupportedError):
                    continue  # neither; refused where it matters, with its place
                yes, no = (yes | bit, no) if holds else (yes, no | bit)
        return judged | new, yes, no
