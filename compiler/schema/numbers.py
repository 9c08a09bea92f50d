"""Numbers as regular expressions over JSON text: free numbers, intervals, constants.

Leaves out   which bounds hold (shapes.py), where the expression stands (writer.py).
Invariants   expressions use no look-around and never match the empty text;
             an interval is compared exactly, digit by digit; every spelling with at most ``digits`` digits before and
             after the point is matched (and more digits before it as far as a bound has more; some longer fractions
             too); an expression nests no deeper than the logarithm of a bound's digits;
             zero may be spelled -0; with an interval no exponent is matched, and an integer is digits only.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from ..regex import EMPTY, Chars, Regex, concat, literal, repeat, union
from .values import Number, exact, is_integral, minus

EXPONENT_DIGITS = 3

_ZERO, _POINT, _MINUS = literal("0"), literal("."), literal("-")
_SIGN = repeat(_MINUS, 0, 1)
_ANY_DIGIT, _DIGIT_BUT_ZERO = Chars(((48, 57),)), Chars(((49, 57),))
_POWER, _PLUS_OR_MINUS = Chars(((69, 69), (101, 101))), Chars(((43, 43), (45, 45)))


@lru_cache
def free_integer(digits: int) -> Regex:
    """Any integer."""
    return concat(_SIGN, union(_ZERO, concat(_DIGIT_BUT_ZERO, _digits(0, digits - 1))))


@lru_cache
def free_number(digits: int) -> Regex:
    """Any number."""
    exponent = concat(_POWER, repeat(_PLUS_OR_MINUS, 0, 1), _digits(1, EXPONENT_DIGITS))
    return concat(free_integer(digits), _maybe_fraction(digits), repeat(exponent, 0, 1))


@lru_cache
def free_fraction(digits: int) -> Regex:
    """Any number that is not whole, without an exponent."""
    return concat(free_integer(digits), _POINT, _zeros(digits), _DIGIT_BUT_ZERO, _digits(0, digits))


def constant(value: int | float | Decimal, digits: int) -> Regex:
    """Every allowed spelling of one number: never with an exponent, however the constant was written.

    A whole number is spelled as an integer, and if it was no integer in the schema (1.0, 1e3) also with zeros after a
    point; any other number is a plain decimal, with further zeros at its end. Zeros make up to ``digits`` digits.
    """
    number = exact(value)
    sign = _SIGN if number == 0 else _MINUS if number < 0 else EMPTY
    size = minus(number) if number < 0 else number
    if is_integral(size):
        tail = EMPTY if isinstance(value, int) else repeat(concat(_POINT, repeat(_ZERO, 1, digits)), 0, 1)
        return concat(sign, literal(str(int(size))), tail)
    whole, fraction = _split(size)
    return concat(sign, literal(f"{whole}.{fraction}"), _zeros(digits - len(fraction)))


def constant_restrictions(value: int | float | Decimal) -> tuple[str, ...]:
    """The declared restrictions that leave out spellings of a constant."""
    return ("plain-integers", "plain-bounds") if isinstance(value, int) else ("digits", "plain-bounds")


@lru_cache
def interval(
    low: Number | None, low_strict: bool, high: Number | None, high_strict: bool, integral: bool, digits: int
) -> Regex | None:
    """The numbers of an interval; None if it is empty (only an interval of integers can be, between its bounds)."""
    if integral:
        assert not low_strict and not high_strict
    negative = None if low is not None and low > 0 else _side(high, high_strict, low, low_strict, integral, digits, -1)
    positive = None if high is not None and high < 0 else _side(low, low_strict, high, high_strict, integral, digits, 1)
    if negative is not None:
        negative = concat(_MINUS, negative)
    return _either([negative, positive])


def _side(
    near: Number | None,
    near_strict: bool,
    far: Number | None,
    far_strict: bool,
    integral: bool,
    digits: int,
    sign: int,
) -> Regex | None:
    """Sizes of the numbers on one side of zero, between ``near`` and ``far`` from zero outwards."""
    low = near if near is None or sign > 0 else minus(near)
    high = far if far is None or sign > 0 else minus(far)
    if high is not None and (high < 0 or (high == 0 and far_strict)):
        return None
    if low is None or low < 0:
        low, near_strict = 0, False
    if integral:
        return _integers(int(low), None if high is None else int(high), digits)
    return _decimals(low, near_strict, high, far_strict, digits)


def _split(size: Number) -> tuple[str, str]:
    """Digits before and after the point, without zeros at the end of the fraction."""
    text = f"{size:f}".lstrip("-") if isinstance(size, Decimal) else str(size)
    whole, _, fraction = text.partition(".")
    return whole, fraction.rstrip("0")


# -- integers, from zero upwards


def _integers(low: int, high: int | None, digits: int) -> Regex | None:
    """The digits of the integers from ``low`` to ``high``, without one up to so many digits, or as many as ``low``."""
    if high is not None and high < low:
        return None
    parts: list[Regex | None] = []
    last = max(digits, len(str(low))) if high is None else len(str(high))
    for length in range(len(str(low)), last + 1):
        start = str(low) if length == len(str(low)) else "1" + "0" * (length - 1)
        end = str(high) if high is not None and length == last else "9" * length
        if start == "1" + "0" * (length - 1) and end == "9" * length:
            rest = last - (1 if high is not None and str(high) != "9" * last else 0)
            parts.append(concat(_DIGIT_BUT_ZERO, _digits(length - 1, rest - 1)))
            if rest < last:
                assert high is not None
                parts.append(_same_length("1" + "0" * (last - 1), str(high)))
            break
        parts.append(_same_length(start, end))
    return _either(parts)


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    differ = (n for n, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1])
    return next(differ, min(len(one), len(other)))


def _same_length(low: str, high: str) -> Regex:
    """Digit strings of one length from ``low`` to ``high``."""
    alike = _alike(low, high)
    if alike == len(low):
        return literal(low)
    rest = len(low) - alike - 1
    above, below = low[alike + 1 :].rstrip("0"), high[alike + 1 :].rstrip("9")
    first, last = int(low[alike]) + bool(above), int(high[alike]) - bool(below)
    parts: list[Regex | None] = []
    if above:
        more = _either([_parting(above, True, rest), _padded(above, rest)])
        parts.append(_followed_by(low[alike], more))
    if first <= last:
        parts.append(concat(_one_of(first, last), _digits(rest, rest)))
    if below:
        less = _either([_parting(below, False, rest), _padded(below, rest)])
        parts.append(_followed_by(high[alike], less))
    return concat(literal(low[:alike]), _either(parts) or EMPTY)


# -- decimals, from zero upwards


def _decimals(low: Number, low_strict: bool, high: Number | None, high_strict: bool, digits: int) -> Regex | None:
    low_whole, low_fraction = _split(low)
    first = int(low_whole)
    if high is None:
        above = _with_fraction(_integers(first + 1, None, digits), digits)
        return _either([_tail(low_whole, (low_fraction, low_strict), None, digits), above])
    high_whole, high_fraction = _split(high)
    if low_whole == high_whole:
        return _either([_tail(low_whole, (low_fraction, low_strict), (high_fraction, high_strict), digits)])
    return _either(
        [
            _tail(low_whole, (low_fraction, low_strict), None, digits),
            _with_fraction(_integers(first + 1, int(high_whole) - 1, digits), digits),
            _tail(high_whole, None, (high_fraction, high_strict), digits),
        ]
    )


Limit = tuple[str, bool]
"""Digits of a fraction, none of them a zero at the end, and whether the limit itself is left out."""

Fractions = tuple[bool, Regex | None]
"""Whether no digit at all is right (the value 0), and the expression of one digit or more, None for none."""


def _tail(whole: str, low: Limit | None, high: Limit | None, digits: int) -> Regex | None:
    """``whole`` and a fraction between two limits."""
    bare, more = _fraction(low, high, digits)
    return _followed(whole, (bare, None if more is None else concat(_POINT, more)))


def _fraction(low: Limit | None, high: Limit | None, digits: int) -> Fractions:
    """Digits after the point whose value is between two limits."""
    if low is None or low == ("", False):
        return (True, _digits(1, digits)) if high is None else _below(high, digits)
    if high is None:
        return _above(low, digits)
    (least, least_out), (most, most_out) = low, high
    if least == most and not least_out and not most_out:
        return False, concat(literal(least), _zeros(digits))
    padded = least.ljust(len(most), "0")
    if padded[: len(most)] >= most:
        return False, None
    # Both limits begin alike, then the lower one has the smaller digit.
    alike = _alike(padded, most)
    first, last = int(padded[alike]), int(most[alike])
    parts = [
        _followed(str(first), _above((least[alike + 1 :], least_out), digits)),
        concat(_one_of(first + 1, last - 1), _digits(0, digits)) if first + 1 < last else None,
        _followed(str(last), _below((most[alike + 1 :], most_out), digits)),
    ]
    short = None if least_out or len(least) > alike else concat(literal(least), _zeros(alike - len(least)))
    return False, _either([_followed_by(most[:alike], _either(parts)), short])


def _above(limit: Limit, digits: int) -> Fractions:
    """Digits after the point whose value is at least, or above, a limit."""
    least, out = limit
    if not least and not out:
        return True, _digits(1, digits)
    more = _digits(0, digits)
    same = concat(literal(least), *((_zeros(digits), _DIGIT_BUT_ZERO) if out else ()), more)
    larger = _parting(least, True)
    return False, _either([None if larger is None else concat(larger, more), same])


def _below(limit: Limit, digits: int) -> Fractions:
    """Digits after the point whose value is at most, or below, a limit."""
    most, out = limit
    if not most:
        return not out, None if out else concat(_ZERO, _zeros(digits - 1))
    same = None if out else concat(literal(most), _zeros(digits))
    smaller = _parting(most, False)
    smaller = None if smaller is None else concat(smaller, _digits(0, digits))
    return True, _either([smaller, _beginnings(most[:-1]), same])


# -- bounds with many digits: halves of halves, so that nothing nests as deep as there are digits


def _parting(bound: str, larger: bool, rest: int | None = None) -> Regex | None:
    """The beginnings of digits that are ``larger`` than a bound's, or smaller, up to the first that differs.

    With ``rest`` they go on to so many digits.
    """
    return _parting_within(bound, larger, rest, 0, len(bound))


def _parting_within(bound: str, larger: bool, rest: int | None, begin: int, end: int) -> Regex | None:
    """The same where the first digit that differs is one of some."""
    if end == begin:
        return None
    if end > begin + 1:
        middle = (begin + end) // 2
        later = _parting_within(bound, larger, rest, middle, end)
        return _either([_parting_within(bound, larger, rest, begin, middle), _followed_by(bound[begin:middle], later)])
    digit = int(bound[begin])
    first, last = (digit + 1, 9) if larger else (0, digit - 1)
    after = 0 if rest is None else rest - begin - 1
    return concat(_one_of(first, last), _digits(after, after)) if first <= last else None


def _beginnings(text: str) -> Regex | None:
    """The beginnings of some digits, of one digit to all; None where there are no digits."""
    if len(text) <= 1:
        return literal(text) if text else None
    middle = len(text) // 2
    return _either([_beginnings(text[:middle]), _followed_by(text[:middle], _beginnings(text[middle:]))])


# -- pieces


def _digits(low: int, high: int) -> Regex:
    return EMPTY if high <= 0 else repeat(_ANY_DIGIT, low, high)


def _padded(head: str, length: int) -> Regex:
    """So many digits that begin with some."""
    return concat(literal(head), _digits(length - len(head), length - len(head)))


def _zeros(most: int) -> Regex:
    return EMPTY if most <= 0 else repeat(_ZERO, 0, most)


def _one_of(first: int, last: int) -> Regex:
    return Chars(((48 + first, 48 + last),))


def _maybe_fraction(digits: int) -> Regex:
    return repeat(concat(_POINT, _digits(1, digits)), 0, 1)


def _with_fraction(whole: Regex | None, digits: int) -> Regex | None:
    return None if whole is None else concat(whole, _maybe_fraction(digits))


def _either(parts: Sequence[Regex | None]) -> Regex | None:
    kept = [part for part in parts if part is not None]
    return union(*kept) if kept else None


def _followed_by(head: str, rest: Regex | None) -> Regex | None:
    """A text, then the rest; None where there is none."""
    return None if rest is None else concat(literal(head), rest)


def _followed(head: str, rest: Fractions) -> Regex | None:
    """A text, then perhaps the rest; None where there is neither."""
    bare, more = rest
    if more is None:
        return literal(head) if bare else None
    return concat(literal(head), repeat(more, 0, 1) if bare else more)
