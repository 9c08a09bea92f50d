"""Numbers that are multiples: spellings as an automaton over characters, for ``multipleOf`` beside bounds.

Leaves out   numbers that an interval describes alone (numbers.py).
Invariants   exact decimal arithmetic: a multiple of p/10^k is an integer multiple of p once k digits of the fraction
             are read, and zeros after them; no exponent is read; every path is finite, since digits are bounded; equal
             states are one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from functools import cache, lru_cache
from typing import Generic, TypeAlias, TypeVar

from ..errors import UnsupportedError
from .shapes import Numbers
from .values import Number, minus

MAX_RESIDUES = 10_000
"""The largest multiple, as an integer: 12.5 counts as 125."""
MAX_STATES = 40_000
"""States before equal ones are merged: about (digits + 1) times the product of the multiples."""
MAX_RULES = 3_000
"""States after merging."""
MOST_LISTED = 1_000
"""Values that are listed instead, where multiples are too large for that."""

Moves = dict[str, int]


def _parts(value: Number) -> tuple[int, int]:
    """(p, k) with value = p / 10^k, k as small as can be."""
    if isinstance(value, int):
        return value, 0
    _, digits, exponent = value.as_tuple()
    number = int("".join(map(str, digits)))
    assert isinstance(exponent, int)
    if exponent >= 0:
        return number * 10**exponent, 0
    while number % 10 == 0 and exponent < 0:
        number, exponent = number // 10, exponent + 1
    return number, -exponent


@lru_cache(maxsize=64)
def _first_alike(of: int) -> tuple[int, ...]:
    """For each residue the first one that no further digits tell from it."""
    if of > MAX_RESIDUES:
        raise _too_many(None)
    block = [int(residue > 0) for residue in range(of)]
    count = len(set(block))
    while True:
        known: dict[tuple[int, ...], int] = {}
        again = []
        for residue in range(of):
            key = (block[residue], *(block[(residue * 10 + digit) % of] for digit in range(10)))
            again.append(known.setdefault(key, len(known)))
        block = again
        if len(known) == count:
            break
        count = len(known)
    first: dict[int, int] = {}
    return tuple(first.setdefault(one, residue) for residue, one in enumerate(block))


class _Multiple:
    """Residues of digits read so far; None once a fraction goes on too long to be a multiple."""

    def __init__(self, value: Number) -> None:
        self.of, self.places = _parts(value)
        self.first = _first_alike(self.of)

    def step(self, state: int | None, digit: int, place: int) -> int | None:
        """After one more digit; ``place`` is its place in the fraction, 0 before the point."""
        if state is None or (place > self.places and digit):
            return None
        return state if place > self.places else self.first[(state * 10 + digit) % self.of]

    def holds(self, state: int | None, place: int) -> bool:
        return state is not None and state * 10 ** max(0, self.places - place) % self.of == 0


class _Bound:
    """Compares the size of a number with a bound, digit by digit: (digits before the point, -1 0 1 so far)."""

    def __init__(self, size: Number) -> None:
        text = f"{size:f}" if isinstance(size, Decimal) else str(size)
        self.whole, _, fraction = text.partition(".")
        self.fraction = fraction.rstrip("0")

    def step(self, state: tuple[int, int], digit: int, place: int) -> tuple[int, int]:
        count, order = state
        if place:
            other = int(self.fraction[place - 1]) if place <= len(self.fraction) else 0
            return count, order or (digit > other) - (digit < other)
        if count < len(self.whole):
            order = order or (digit > int(self.whole[count])) - (digit < int(self.whole[count]))
        return min(count + 1, len(self.whole) + 1), order

    def point(self, state: tuple[int, int]) -> tuple[int, int]:
        """At the end of the digits before the point."""
        count, order = state
        return 0, (1 if count > len(self.whole) else -1 if count < len(self.whole) else order)

    def order(self, state: tuple[int, int], place: int) -> int:
        return state[1] or (-1 if self.fraction[place:] else 0)


Frame: TypeAlias = tuple[int, int, int, tuple[tuple[int, int], ...], bool]
"""Sign, how many whole digits, or 1 and how many of the fraction (-1 before the point), how it compares with the
bounds, whether all digits were 0."""

State: TypeAlias = tuple[int, int]
"""A frame and the residues in it, both by number, as there are far fewer of each than of both."""

T = TypeVar("T", bound=Hashable)


class _Numbering(Generic[T]):
    """Values by number, in the order in which they are met."""

    def __init__(self) -> None:
        self.values: list[T] = []
        self._number: dict[T, int] = {}

    def number(self, value: T) -> int:
        found = self._number.setdefault(value, len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found


def multiples_machine(shape: Numbers, digits: int, place: str | None) -> tuple[list[Moves], list[bool]] | None:
    """The spellings of the numbers of a shape as an automaton, state 0 the start; None if there are none.

    Returns:
        per state, sets of characters ("-", "." or digits) → next state; and whether the number may end there.
    """
    try:
        return _machine(shape, digits)
    except UnsupportedError as error:
        error.place = error.place or place
        raise


def few_multiples(shape: Numbers) -> list[Number] | None:
    """The numbers of a shape where multiples and bounds leave few; None where there may be more.

    Each is an int where only integers are, else a Decimal, which may be written with a point.
    """
    if not shape.multiples or shape.others or shape.low is None or shape.high is None:
        return None
    parts = [_parts(value) for value in shape.multiples] + [(1, 0)] * shape.integral
    places = max(count for _, count in parts)
    step = math.lcm(*(number * 10 ** (places - count) for number, count in parts))  # in units of 10^-places
    low, high = (Fraction(bound) * 10**places / step for bound in (shape.low, shape.high))
    first = math.floor(low) + 1 if shape.low_strict else math.ceil(low)
    last = math.ceil(high) - 1 if shape.high_strict else math.floor(high)
    if last - first >= MOST_LISTED:
        return None
    found = [times * step for times in range(first, last + 1)]
    if shape.integral:
        return [number // 10**places for number in found]
    kept = [number for number in found if not (shape.fractional and number % 10**places == 0)]
    return [_decimal(number, places) for number in kept]


def _decimal(number: int, places: int) -> Decimal:
    """number / 10^places, exactly."""
    return Decimal((int(number < 0), tuple(map(int, str(abs(number)))), -places))


@lru_cache(maxsize=256)  # asked whether there are any numbers first, then for them
def _machine(shape: Numbers, digits: int) -> tuple[list[Moves], list[bool]] | None:
    tests = [(_Multiple(value), True) for value in shape.multiples] + [
        (_Multiple(value), False) for value in shape.others
    ]
    if shape.fractional:
        tests.append((_Multiple(1), False))
    bounds: list[tuple[_Bound, int, bool, int]] = []  # bound, sign of it, strict, +1 a lower bound
    for value, strict, side in ((shape.low, shape.low_strict, 1), (shape.high, shape.high_strict, -1)):
        if value is not None:
            bounds.append((_Bound(minus(value) if value < 0 else value), -1 if value < 0 else 1, strict, side))
    longest = max([digits, *(len(bound.whole) for bound, *_ in bounds)])
    finest = max([digits, *(len(bound.fraction) for bound, *_ in bounds), *(test.places for test, _ in tests)])

    def fits(frame: Frame) -> bool:
        sign, whole, fraction, states, zero = frame
        if not whole or fraction == 0:
            return False
        if fraction < 0:
            states = tuple(bound.point(one) for (bound, *_), one in zip(bounds, states, strict=True))
        for (bound, side_of, strict, side), state in zip(bounds, states, strict=True):
            if zero:
                sign = side_of  # -0 is 0
            size = bound.order(state, max(fraction, 0))
            order = (sign > side_of) - (sign < side_of) if sign != side_of else size * sign
            if order * side < 0 or (order == 0 and strict):
                return False
        return True

    frames: _Numbering[Frame] = _Numbering()
    residues: _Numbering[tuple[int | None, ...]] = _Numbering()

    @cache
    def frames_after(number: int) -> tuple[list[tuple[str, int]], tuple[int, ...], int]:
        """What "-" and "." lead to, and the frames after each digit, if one may come, and its place."""
        sign, whole, fraction, states, zero = frames.values[number]
        found: list[tuple[str, int]] = []
        if not sign and not whole:
            found.append(("-", frames.number((-1, 0, -1, states, True))))
        if whole and fraction < 0 and not shape.integral:
            after = tuple([bound.point(one) for (bound, *_), one in zip(bounds, states, strict=True)])
            found.append((".", frames.number((sign, 1, 0, after, zero))))
        if fraction < 0 and ((whole == 1 and zero) or whole >= longest) or fraction >= finest:
            return found, (), 0
        at = fraction + 1 if fraction >= 0 else 0
        sign, whole, fraction = sign or 1, 1 if at else whole + 1, at or -1
        digits_after = []
        for digit in range(10):
            after = tuple([bound.step(one, digit, at) for (bound, *_), one in zip(bounds, states, strict=True)])
            digits_after.append(frames.number((sign, whole, fraction, after, zero and digit == 0)))
        return found, tuple(digits_after), at

    @cache
    def residues_after(number: int, place: int) -> list[int]:
        held = list(zip((test for test, _ in tests), residues.values[number], strict=True))
        return [residues.number(tuple([test.step(one, digit, place) for test, one in held])) for digit in range(10)]

    @cache
    def are_met(number: int, place: int) -> bool:
        known = residues.values[number]
        return all(test.holds(one, place) == wanted for (test, wanted), one in zip(tests, known, strict=True))

    fitting = cache(lambda number: fits(frames.values[number]))
    past = 1 + max(test.places for test, _ in tests)  # places behind it are alike

    def ends(state: State) -> bool:
        return fitting(state[0]) and are_met(state[1], min(past, max(0, frames.values[state[0]][2])))

    def moves_of(state: State) -> list[tuple[str, State]]:
        frame, known = state
        others, digits_after, place = frames_after(frame)
        found = [(char, (after, known)) for char, after in others]
        if digits_after:
            after_each = zip(digits_after, residues_after(known, min(past, place)), strict=True)
            found += zip("0123456789", after_each, strict=True)
        return found

    first: State = (
        frames.number((0, 0, -1, ((0, 0),) * len(bounds), True)),
        residues.number((0,) * len(tests)),
    )

    # Read from the end: states are numbered once what follows them is known, equal ones are one.
    numbers: dict[Hashable, int] = {}
    table: list[tuple[bool, tuple[tuple[str, int], ...]]] = []
    done: dict[State, int] = {}
    moves: dict[State, list[tuple[str, State]]] = {}
    stack: list[State] = [first]
    while stack:
        state = stack[-1]
        if state in done:
            stack.pop()
            continue
        targets = moves.pop(state, None)
        if targets is None:
            targets = moves_of(state)
            waiting = [after for _, after in targets if after not in done]
            if waiting:
                moves[state] = targets
                stack += waiting
                if len(done) + len(stack) > MAX_STATES:
                    raise _too_many(None)
                continue
        stack.pop()
        grouped: dict[int, str] = {}
        for char, after in targets:
            if done[after] >= 0:
                grouped[done[after]] = grouped.get(done[after], "") + char
        key = (ends(state), tuple(sorted((chars, to) for to, chars in grouped.items())))
        if not key[0] and not key[1]:
            done[state] = -1
            continue
        if key not in numbers:
            numbers[key] = len(table)
            table.append(key)
            if len(table) > MAX_RULES:
                raise _too_many(None)
        done[state] = numbers[key]
    if done[first] < 0:
        return None
    turn = len(table) - 1
    return (
        [{chars: turn - to for chars, to in row} for _, row in reversed(table)],
        [end for end, _ in reversed(table)],
    )


def _too_many(place: str | None) -> UnsupportedError:
    return UnsupportedError(
        "multipleOf has too many residues here",
        place=place,
        hint="integers up to about 150 work, and multiples of them by 2, 5 and 10 up to 10,000; so do bounds between "
        "which at most 1,000 multiples are",
    )
