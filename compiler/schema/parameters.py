"""The parameters of a tool and the types of each, or of every part: what reading back needs where values are not JSON.

Leaves out   how they are written (argument_rules.py), how they are read (runtime/calls/arguments.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from .atoms import Conj
from .normalise import Normaliser
from .shapes import Arrays, Constants, Objects, Shape, is_integral_shape, may_be_empty

UNDECLARED = ""
"""The name under which the types of parameters that are not declared are told; no parameter is called so."""


class Beside:
    """What may stand in the place of a parameter, over the alternatives of the arguments.

    A name may be declared in one and be among those that another leaves open.
    """

    def __init__(self, normaliser: Normaliser, union: Sequence[Objects]) -> None:
        alive = normaliser.alive
        self.names = dict.fromkeys(name for shape in union for name, value in shape.named if alive(value))
        self._union = [
            (
                {name: value for name, value in shape.named if alive(value)},
                {name for name, _ in shape.named},
                [one.value for one in shape.opened if alive(one.value)],
            )
            for shape in union
        ]

    def named(self, name: str) -> tuple[Conj, ...]:
        """Values of a declared parameter."""
        found: dict[Conj, None] = {}
        for values, named, opened in self._union:
            found.update(dict.fromkeys([values[name]] if name in values else [] if name in named else opened))
        return tuple(found)

    def opened(self, shape: Objects | None = None) -> tuple[Conj, ...]:
        """Values of parameters that a shape does not declare; without one, that none does."""
        declared = self.names if shape is None else {name for name, _ in shape.named}
        found = dict.fromkeys(one for _, _, opened in self._union for one in opened)
        for name in self.names:
            if name not in declared:
                found.update(dict.fromkeys(self.named(name)))
        return tuple(found)


def alternatives_of(normaliser: Normaliser, one: Conj, closed: bool) -> tuple[Objects, ...]:
    """The alternatives of arguments that live; perhaps of declared parameters alone."""
    union = normaliser.shapes(one).get("object", ()) if one is not None else ()
    shapes = [shape for shape in union if isinstance(shape, Objects)]
    shapes = [replace(shape, opened=()) if closed else shape for shape in shapes]
    return tuple(shape for shape in dict.fromkeys(shapes) if normaliser.lives(shape))


def parameters_of(normaliser: Normaliser, root: Conj, closed: bool) -> list[list[object]]:
    """[name, types but string (``types_of``)] of every declared parameter of some arguments, in order; then of
    those that are not declared, where they may be written and have not every type."""
    beside = Beside(normaliser, alternatives_of(normaliser, root, closed))
    places = [(name, beside.named(name)) for name in beside.names]
    opened = beside.opened()
    if opened and () not in opened:
        places.append((UNDECLARED, opened))
    return [[name, sorted(set().union(*(types_of(normaliser, one) for one in values)))] for name, values in places]


def types_of(normaliser: Normaliser, value: Conj) -> set[str]:
    """The types but string that a value may have: JSON types, "integer" where no other number may stand, "true" or
    "false" where only that may."""
    found = set()
    for kind, union in normaliser.shapes(value).items() if value is not None else ():
        union = tuple(shape for shape in union if normaliser.lives(shape))
        if kind == "boolean":
            said = {constant.value for shape in union if isinstance(shape, Constants) for constant in shape.values}
            kind = "boolean" if len(said) == 2 else "true" if True in said else "false"
        elif kind == "number" and all(map(is_integral_shape, union)):
            kind = "integer"
        if union and kind != "string":
            found.add(kind)
    return found


def empty_kind(normaliser: Normaliser, values: Iterable[Conj]) -> str:
    """The kind of arrays and objects that no text at all may be, where these are written part by part: "array" before
    "object"; empty where none of some values has an empty one."""
    kinds: set[str] = set()
    for value in values:
        shapes = normaliser.shapes(value) if value else {}  # what may be anything says nothing
        for kind in ("array", "object"):
            if any(may_be_empty(shape) and normaliser.lives(shape) for shape in shapes.get(kind, ())):
                kinds.add(kind)
    return min(kinds, default="")


def elements_of(normaliser: Normaliser, root: Conj, closed: bool, said: bool) -> list[list[object]]:
    """The nodes of the parts of some arguments; node 0 is the arguments themselves.

    A node is [types but string, member → node, nodes of the first items, node of any other item, what no text at
    all is: "array", "object" or "" for a string, number of its arrays and number of its objects: of what lies inside of
    its own kind the numbers are equal]; −1 stands for a part that may be anything. What a part may be in several ways
    is one node.

    Args:
        closed: see `parameters_of`;  said: whether a text says what kind of value a part is.
    """
    numbers: dict[tuple[Conj, ...], int] = {}
    order: list[tuple[Conj, ...]] = []

    def number(values: Iterable[Conj]) -> int:
        key = tuple(dict.fromkeys(values))
        if () in key:
            return -1
        if key not in numbers:
            order.append(key)
            numbers[key] = len(order)
        return numbers[key]

    itself: dict[tuple[str, tuple[Shape, ...], bool], int] = {}

    def own(shapes: Sequence[Shape], empty: str) -> list[int]:
        of_kind: dict[str, tuple[Shape, ...]] = {
            "array": tuple(dict.fromkeys(shape for shape in shapes if isinstance(shape, Arrays))),
            "object": tuple(dict.fromkeys(shape for shape in shapes if isinstance(shape, Objects))),
        }
        keys = [(kind, some, said or kind == empty) for kind, some in of_kind.items()]  # elements.py, Key
        return [itself.setdefault(key, len(itself)) for key in keys]

    union = alternatives_of(normaliser, root, closed)
    nodes = [_node(["object"], union, "", number) + [own(union, "object")]]
    for some in order:  # which grows
        kinds = sorted(set().union(*(types_of(normaliser, value) for value in some)))
        unions = [union for one in some if one is not None for union in normaliser.shapes(one).values()]
        shapes = [shape for union in unions for shape in union if normaliser.lives(shape)]
        empty = empty_kind(normaliser, some)
        nodes.append(_node(kinds, shapes, empty, number) + [own(shapes, empty)])
    return nodes


def _node(
    kinds: list[str], shapes: Sequence[Shape], empty: str, number: Callable[[Iterable[Conj]], int]
) -> list[object]:
    named: dict[str, list[Conj]] = {}
    for shape in shapes:
        for name, one in shape.named if isinstance(shape, Objects) else ():
            named.setdefault(name, []).append(one)
    members = {name: number(found) for name, found in named.items()}
    arrays = [shape for shape in shapes if isinstance(shape, Arrays)]
    width = max((len(shape.prefix) for shape in arrays), default=0)
    items = [number(shape.prefix[i] if i < len(shape.prefix) else shape.rest for shape in arrays) for i in range(width)]
    return [kinds, members, items, number(shape.rest for shape in arrays) if arrays else -1, empty]
