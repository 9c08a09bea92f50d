"""Numbers that are multiples: spellings as an automaton over characters, for ``multipleOf`` beside bounds.

Leaves out   numbers that an interval describes alone (numbers.py).
Invariants   exact decimal arithmetic: a multiple of p/10^k is an integer multiple of p once k digits of the fraction
             are read, and zeros after them; no exponent is read; every path is finite, since digits are bounded; equal
             states are one.
"""

from __future__ import annotations

from collections.abc import Hashable
from decimal import Decimal
from functools import lru_cache

from ..errors import UnsupportedError
from .shapes import Numbers
from .values import Number, minus

MAX_RESIDUES = 10_000
"""The largest multiple, as an integer: 12.5 counts as 125."""
MAX_STATES = 40_000
"""States before equal ones are merged: about (digits + 1) times the product of the multiples."""
MAX_RULES = 3_000
"""States after merging."""

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

    def fits(sign: int, states: tuple[tuple[int, int], ...], at: int, zero: bool) -> bool:
        for (bound, side_of, strict, side), state in zip(bounds, states, strict=True):
            if zero:
                sign = side_of  # -0 is 0
            size = bound.order(state, at)
            order = (sign > side_of) - (sign < side_of) if sign != side_of else size * sign
            if order * side < 0 or (order == 0 and strict):
                return False
        return True

    # (sign, where: whole digits or "." and digits, residues, bounds, whether all digits were 0)
    State = tuple[int, int, int, tuple, tuple, bool]
    first: State = (0, 0, -1, (0,) * len(tests), ((0, 0),) * len(bounds), True)

    def ends(state: State) -> bool:
        sign, whole, fraction, residues, states, zero = state
        if not whole or fraction == 0:
            return False
        if fraction < 0:
            states = tuple(bound.point(one) for (bound, *_), one in zip(bounds, states, strict=True))
        at = max(fraction, 0)
        if any(test.holds(one, at) != wanted for (test, wanted), one in zip(tests, residues, strict=True)):
            return False
        return fits(sign, states, at, zero)

    def read(state: State, char: str) -> State | None:
        sign, whole, fraction, residues, states, zero = state
        if char == "-":
            return (-1, 0, -1, residues, states, True) if not sign and not whole else None
        if char == ".":
            if not whole or fraction >= 0 or shape.integral:
                return None
            return sign, 1, 0, residues, tuple(b.point(s) for (b, *_), s in zip(bounds, states, strict=True)), zero
        digit = int(char)
        if fraction < 0 and ((whole == 1 and zero) or whole >= longest) or fraction >= finest:
            return None
        at = fraction + 1 if fraction >= 0 else 0
        residues = tuple(test.step(one, digit, at) for (test, _), one in zip(tests, residues, strict=True))
        states = tuple(bound.step(one, digit, at) for (bound, *_), one in zip(bounds, states, strict=True))
        zero = zero and digit == 0
        return sign or 1, 1 if at else whole + 1, at or -1, residues, states, zero

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
            targets = [(char, after) for char in "-.0123456789" if (after := read(state, char)) is not None]
        waiting = [after for _, after in targets if after not in done]
        if waiting:
            moves[state] = targets
            stack.extend(waiting)
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
        hint="integers up to about 150 work, and multiples of them by 2, 5 and 10 up to 10,000",
    )
