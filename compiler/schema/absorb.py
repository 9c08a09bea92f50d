"""Drop shapes that lie inside other shapes of the same union.

Leaves out   whether a conj lies in another beyond having all its literals.
Invariants   only what is certainly contained is dropped; the order of what stays is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from itertools import chain

from .atoms import ANY, NEVER, Conj
from .shapes import Arrays, Constants, Numbers, Objects, Shape, Strings

MOST = 1024
"""Of more shapes without marks none is compared: that would take the square of their number."""


def absorbed(kind: str, shapes: tuple[Shape, ...], look: Callable[[], None] = lambda: None) -> tuple[Shape, ...]:
    """The union without shapes that another one contains; ``look`` is called for each, and may end the work."""
    if len(shapes) < 2 or kind in ("null", "boolean"):
        return shapes
    marks = [_marks(shape) for shape in shapes]
    common = Counter(chain.from_iterable(marks))
    filed: dict[Hashable, list[int]] = {}  # under the rarest mark: what lies in a shape has all of its marks
    for index, own in enumerate(marks):
        filed.setdefault(min(own, key=common.__getitem__, default=None), []).append(index)
    if len(filed.get(None, ())) > MOST:
        del filed[None]
    out = [False] * len(shapes)
    for index, shape in enumerate(shapes):
        look()
        others = _met(filed, marks[index], shape)
        out[index] = any(
            contains(shapes[other], shape) and (other < index or not contains(shape, shapes[other]))
            for other in others
            if other != index and not out[other]
        )
    return tuple(shape for shape, left in zip(shapes, out, strict=True) if not left)


def _marks(shape: Shape) -> set[Hashable]:
    """What a shape that lies in this one has, too, where all that it names may be there."""
    if isinstance(shape, Arrays):
        return {(0, literal) for literal in _first(shape) or ()}
    if isinstance(shape, Objects):
        asked = ((name, literal) for name, value in shape.named for literal in value or ())
        return {tuple(name for name, _ in shape.named), *shape.required, *asked}
    if isinstance(shape, Strings):
        return {*shape.patterns, *((one,) for one in shape.excluded)}
    return set()


def _met(filed: dict[Hashable, list[int]], marks: set[Hashable], shape: Shape) -> Iterable[int]:
    """The shapes that may contain one."""
    if (isinstance(shape, Objects) and any(value is NEVER for _, value in shape.named)) or (
        isinstance(shape, Arrays) and (_first(shape) is NEVER or shape.high == 0)
    ):
        return chain.from_iterable(filed.values())  # what may not be there satisfies whatever is asked of it
    return chain.from_iterable(filed[mark] for mark in (None, *marks) if mark in filed)


def _first(shape: Arrays) -> Conj:
    return shape.prefix[0] if shape.prefix else shape.rest


def contains(big: Shape, small: Shape) -> bool:
    """Whether every value of ``small`` is surely one of ``big``."""
    if isinstance(big, Objects) and isinstance(small, Objects):
        return _objects(big, small)
    if isinstance(big, Arrays) and isinstance(small, Arrays):
        return _arrays(big, small)
    if isinstance(big, Strings) and isinstance(small, Strings):
        return (
            _between(big.low, big.high, small.low, small.high)
            and set(big.patterns) <= set(small.patterns)
            and set(big.excluded) <= set(small.excluded)
        )
    if isinstance(big, Constants) and isinstance(small, Constants):
        return {one.key for one in small.values} <= {one.key for one in big.values}
    if isinstance(big, Numbers) and isinstance(small, Numbers):
        return _numbers(big, small)
    return False


def _implies(small: Conj, big: Conj) -> bool:
    """Whether the one surely implies the other: it has all its literals."""
    return small is None or (big is not None and set(big) <= set(small))


def _between(low: int, high: int | None, other_low: int, other_high: int | None) -> bool:
    return other_low >= low and (high is None or (other_high is not None and other_high <= high))


def _numbers(big: Numbers, small: Numbers) -> bool:
    if big.low is not None:
        if small.low is None or small.low < big.low:
            return False
        if small.low == big.low and big.low_strict and not small.low_strict:
            return False
    if big.high is not None:
        if small.high is None or small.high > big.high:
            return False
        if small.high == big.high and big.high_strict and not small.high_strict:
            return False
    flags = big.integral <= small.integral and big.fractional <= small.fractional
    # With bounds no exponent is written, so an interval is not inside all numbers as text; as values it is.
    return flags and set(big.multiples) <= set(small.multiples) and set(big.others) <= set(small.others)


def _arrays(big: Arrays, small: Arrays) -> bool:
    if big.needs or big.unique not in (None, small.unique) or not _between(big.low, big.high, small.low, small.high):
        return False
    for index in range(max(len(big.prefix), len(small.prefix))):
        if small.high is not None and index >= small.high:
            return True
        one = big.prefix[index] if index < len(big.prefix) else big.rest
        other = small.prefix[index] if index < len(small.prefix) else small.rest
        if not _implies(other, one):
            return False
    return _implies(small.rest, big.rest) or (small.high is not None and small.high <= len(small.prefix))


def _objects(big: Objects, small: Objects) -> bool:
    if big.needs or not _between(big.low, big.high, small.low, small.high):
        return False
    if not set(big.required) <= set(small.required) or not _implies(small.key, big.key):
        return False
    # The names and their order must be the same, or texts would be lost.
    if [name for name, _ in big.named] != [name for name, _ in small.named]:
        return False
    if not all(_implies(value, other) for (_, value), (_, other) in zip(small.named, big.named, strict=True)):
        return False
    table = {(one.matched, one.unmatched): one.value for one in big.opened}
    for one in small.opened:
        value = table.get((one.matched, one.unmatched), NEVER)
        if value != ANY and not _implies(one.value, value):
            return False
    return True
