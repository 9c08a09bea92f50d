"""The parameters of a tool and the types of each, or of every part: what reading back needs where values are not JSON.

Leaves out   how they are written (writer.py), how they are read (runtime/arguments.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .atoms import Conj
from .machine import object_is_plain
from .shapes import Arrays, Constants, Objects, is_integral_shape

if TYPE_CHECKING:
    from .writer import LarkWriter


def parameters_of(writer: LarkWriter) -> list[list[object]]:
    """[name, types but string (``types_of``)] of every declared parameter of the schema added last, in order."""
    found: dict[str, set[str]] = {}
    shapes = writer.normaliser.shapes(writer.root) if writer.root is not None else {}
    for shape in shapes.get("object", ()):
        for name, value in shape.named if isinstance(shape, Objects) else ():
            if value is not None and writer.normaliser.alive(value):
                found.setdefault(name, set()).update(types_of(writer, value))
    return [[name, sorted(kinds)] for name, kinds in found.items()]


def types_of(writer: LarkWriter, value: Conj) -> set[str]:
    """The types but string that a value may have: JSON types, "integer" where no other number may stand, "true" or
    "false" where only that may."""
    found = set()
    for kind, union in writer.normaliser.shapes(value).items() if value is not None else ():
        if kind == "boolean":
            said = {constant.value for shape in union if isinstance(shape, Constants) for constant in shape.values}
            kind = "boolean" if len(said) == 2 else "true" if True in said else "false"
        elif kind == "number" and all(map(is_integral_shape, union)):
            kind = "integer"
        if union and kind != "string":
            found.add(kind)
    return found


def elements_of(writer: LarkWriter) -> list[list[object]]:
    """The nodes of the parts of the schema that was added last; node 0 is the arguments themselves.

    A node is [types but string, member → node, nodes of the first items, node of any other item, what no text at
    all is: "array", "object" or "" for a string]; −1 stands for a part that may be anything. What a part may be in
    several ways is one node.
    """
    numbers: dict[tuple[Conj, ...], int] = {}
    nodes: list[list[object]] = []

    def number(values: tuple[Conj, ...]) -> int:
        if () in values:
            return -1
        if values not in numbers:
            numbers[values] = len(numbers)
            nodes.append([])
        return numbers[values]

    number((writer.root,))
    at = 0
    while at < len(nodes):
        nodes[at] = _node(writer, list(numbers)[at], number)
        at += 1
    return nodes


def _node(writer: LarkWriter, values: tuple[Conj, ...], number: Callable[[tuple[Conj, ...]], int]) -> list[object]:
    kinds: set[str] = set()
    named: dict[str, dict[Conj, None]] = {}
    arrays: list[Arrays] = []
    empty = ""
    for value in values:
        kinds |= types_of(writer, value)
        for union in writer.normaliser.shapes(value).values() if value is not None else ():
            arrays += [shape for shape in union if isinstance(shape, Arrays)]
            for shape in union:
                if isinstance(shape, Arrays) and not shape.low and not shape.needs:
                    empty = "array"
                if isinstance(shape, Objects) and object_is_plain(shape) and not shape.low and not shape.required:
                    empty = empty or "object"
                for name, one in shape.named if isinstance(shape, Objects) else ():
                    named.setdefault(name, {})[one] = None
    width = max((len(shape.prefix) for shape in arrays), default=0)
    items = [
        number(tuple(dict.fromkeys(shape.prefix[i] if i < len(shape.prefix) else shape.rest for shape in arrays)))
        for i in range(width)
    ]
    members = {name: number(tuple(found)) for name, found in named.items()}
    rest = number(tuple(dict.fromkeys(shape.rest for shape in arrays))) if arrays else -1
    return [sorted(kinds), members, items, rest, empty]
