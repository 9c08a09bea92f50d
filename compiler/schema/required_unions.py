"""Merge a union of objects that differ only in one required key.

As alternatives, each of n lists its n members, and every state of their automaton is a set of those that are still
possible. As one object with a need, a state tells whether one of the keys was there.

Leaves out   needs that schemas state themselves (containers.py), objects that lie inside others (absorb.py), and those
             whose automaton would be too large.
Invariants   the values are the same. The order of what stays is kept.
"""

from __future__ import annotations

from dataclasses import replace

from .atoms import ANY, NEVER, SomeMember
from .member_automata import MAX_OBJECT_STATES, most_states
from .shapes import Objects, Shape

_SOME = SomeMember(ANY, NEVER)
"""Some of the declared keys that `able` names, and no other."""


def joined(shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The union with such objects made one, in the place of the first."""
    groups: dict[tuple[Objects, int, int], list[Objects]] = {}
    for shape in shapes:
        if isinstance(shape, Objects) and shape.required and not shape.needs:
            count = len(shape.required)
            bare = replace(shape, required=(), low=0)
            groups.setdefault((bare, count, shape.low - count), []).append(shape)
    swapped: dict[Shape, Shape | None] = {}
    for some in groups.values():
        first = some[0]
        common = set(first.required).intersection(*(shape.required for shape in some))
        if len(some) > 1 and len(common) + 1 == len(first.required):
            either = {name for shape in some for name in shape.required} - common
            one = replace(
                first,
                required=tuple(name for name in first.required if name in common),
                low=first.low if first.low > len(first.required) else len(common),
                needs=(_SOME,),
                able=tuple(int(name in either) for name, _ in first.named),
            )
            if most_states(one) <= MAX_OBJECT_STATES:
                swapped.update(dict.fromkeys(some))
                swapped[first] = one
    found = [swapped.get(shape, shape) for shape in shapes]
    return tuple(shape for shape in found if shape is not None)


def separated(shape: Objects) -> list[Objects]:
    """The objects that were joined, for texts that say by position which keys there are; one that was not as it is."""
    if shape.needs != (_SOME,):
        return [shape]
    low = max(shape.low, len(shape.required) + 1)
    bare = replace(shape, low=low, needs=(), able=())
    names = [name for (name, _), bits in zip(shape.named, shape.able, strict=True) if bits]
    return [replace(bare, required=(*shape.required, name)) for name in names]
