"""Shapes that lie inside other shapes of the same union are left out.

Leaves out   whether a conj lies in another beyond having all its literals.
Invariants   only what is certainly contained is dropped; the order of what stays is kept.
"""

from __future__ import annotations

from .atoms import ANY, NEVER, Conj
from .shapes import Arrays, Constants, Numbers, Objects, Shape, Strings

MOST = 1024
"""Unions of more shapes are left as they are: the comparison is quadratic."""


def absorbed(kind: str, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    """The union without shapes that another one contains."""
    if not 1 < len(shapes) <= MOST or kind in ("null", "boolean"):
        return shapes
    kept: list[Shape] = []
    for index, shape in enumerate(shapes):
        inside = any(contains(other, shape) for other in kept) or any(
            contains(other, shape) and not contains(shape, other) for other in shapes[index + 1 :]
        )
        if not inside:
            kept.append(shape)
    return tuple(kept)


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
