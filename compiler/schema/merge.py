"""Merge the atoms of a branch into one shape: scalars here, arrays and objects in containers.py.

Leaves out   how branches arise (normalise.py).
Invariants   a shape is never visibly empty: ``merge`` gives None instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..errors import UnsupportedError
from .atoms import AtLeast, AtMost, Atom, Integral, Matches, Multiple, Refused, Values
from .containers import merge_arrays, merge_objects
from .patterns import text_lengths
from .shapes import CONSTANTS, Constants, Numbers, Shape, Strings, counts
from .values import Number, is_multiple, minus


def merge(
    kind: str,
    atoms: Sequence[Atom],
    holds: Callable[[Atom, object], bool],
    matches: Callable[[Matches, str], bool],
    relaxed: Callable[[str, str], bool] | None = None,
) -> Shape | None:
    """One shape from the atoms of a branch, or None if they visibly contradict each other.

    Args:
        kind: the JSON type.
        atoms: what must hold.
        holds: whether an atom holds for a concrete value.
        matches: whether a key matches a pattern.
        relaxed: asked with (place, keyword) of each unsupported keyword whether it is left out; None: none is.
    """
    if relaxed is not None:
        atoms = [atom for atom in atoms if not (isinstance(atom, Refused) and relaxed(atom.place, atom.keyword))]
    listed = [atom for atom in atoms if isinstance(atom, Values)]
    choices = next((atom.values for atom in listed if atom.positive), CONSTANTS.get(kind))
    if choices is not None:
        _refuse(atoms, bool(choices))
        kept = tuple(one for one in choices if all(holds(atom, one.value) for atom in atoms))
        return Constants(kept) if kept else None
    build = {"number": _numbers, "string": _strings, "array": merge_arrays}.get(kind)
    shape = build(atoms) if build else merge_objects(atoms, holds, matches)
    _refuse(atoms, shape is not None)
    return shape


def _refuse(atoms: Sequence[Atom], matters: bool) -> None:
    if not matters:
        return
    for atom in atoms:
        if isinstance(atom, Refused):
            raise UnsupportedError(atom.reason or f"the keyword {atom.keyword} is not supported here", place=atom.place)


def _numbers(atoms: Sequence[Atom]) -> Numbers | None:
    low: tuple[Number, bool] | None = None
    high: tuple[Number, bool] | None = None
    integral = fractional = False
    multiples: dict[Number, None] = {}
    others: dict[Number, None] = {}
    for atom in atoms:
        if isinstance(atom, AtLeast):
            low = (atom.value, atom.strict) if low is None else max(low, (atom.value, atom.strict))
        elif isinstance(atom, AtMost):
            if high is None or (atom.value, not atom.strict) < (high[0], not high[1]):
                high = (atom.value, atom.strict)
        elif isinstance(atom, Integral):
            integral, fractional = integral or atom.positive, fractional or not atom.positive
        elif isinstance(atom, Multiple):
            (multiples if atom.positive else others).setdefault(atom.value)
    if integral and fractional:
        return None
    if integral:
        low = None if low is None else (_ceiling(*low), False)
        high = None if high is None else (-_ceiling(minus(high[0]), high[1]), False)
    if low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))):
        return None
    low_value, low_strict = low or (None, False)
    high_value, high_strict = high or (None, False)
    if integral:
        multiples = {value: None for value in multiples if not is_multiple(1, value)}
    if multiples.keys() & others.keys() or (integral and any(is_multiple(1, value) for value in others)):
        return None
    return Numbers(
        low_value, low_strict, high_value, high_strict, integral, fractional, tuple(multiples), tuple(others)
    )


def _ceiling(value: Number, strict: bool) -> int:
    """The least integer that is at least, or with ``strict`` above, ``value``."""
    whole = int(value)
    whole += whole < value
    return whole + (strict and whole == value)


def _strings(atoms: Sequence[Atom]) -> Strings | None:
    count = counts(atoms)
    if count is None:
        return None
    patterns: dict[tuple[str, bool], Matches] = {}
    excluded: dict[str, None] = {}
    for atom in atoms:
        if isinstance(atom, Matches):
            if (atom.pattern, not atom.positive) in patterns:
                return None
            patterns.setdefault((atom.pattern, atom.positive), atom)
        elif isinstance(atom, Values):
            excluded.update((constant.value, None) for constant in atom.values)
    bounded = _without_implied(*count, list(patterns.values()))
    return None if bounded is None else Strings(*bounded, tuple(excluded))


def _without_implied(
    low: int, high: int | None, patterns: list[Matches]
) -> tuple[int, int | None, tuple[Matches, ...]] | None:
    """Bounds and patterns that mean the same, less the bounds that a pattern implies, which would be counted once more;
    None if no length is left. A pattern of which the shortest match has the most characters is that of a whole string.
    """
    kept: list[Matches] = []
    least, most = low, high
    for match in patterns:
        held = text_lengths(match.pattern) if match.positive else None
        if held is not None:
            shortest, longest = held
            if (high is not None and shortest > high) or (longest is not None and longest < low):
                return None
            if shortest == high and longest is None:
                match = replace(match, pattern=f"^(?:{match.pattern})$")
                _, longest = text_lengths(match.pattern) or held
            least = 0 if shortest >= low else least
            most = None if high is not None and longest is not None and longest <= high else most
        kept.append(match)
    return least, most, tuple(kept)
