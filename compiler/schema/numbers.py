"""Numbers as regular expressions over JSON text: free numbers, intervals, constants.

Leaves out   which bounds hold (shapes.py), where the expression stands (writer.py).
Invariants   expressions are in Python's ``re`` syntax, use no look-around and never match the empty text;
             an interval is compared exactly, digit by digit; every spelling with at most ``digits`` digits before and
             after the point is matched (and more digits before it as far as a bound has more; some longer fractions
             too); an expression nests no deeper than the logarithm of a bound's digits;
             zero may be spelled -0; with an interval no exponent is matched, and an integer is digits only.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from .values import Number, exact, is_integral, minus

EXPONENT_DIGITS = 3


@lru_cache
def free_integer(digits: int) -> str:
    """Any integer."""
    return f"-?(?:0|[1-9]{_digits(0, digits - 1)})"


@lru_cache
def free_number(digits: int) -> str:
    """Any number."""
    return rf"{free_integer(digits)}(?:\.{_digits(1, digits)})?(?:[eE][+-]?{_digits(1, EXPONENT_DIGITS)})?"


@lru_cache
def free_fraction(digits: int) -> str:
    """Any number that is not whole, without an exponent."""
    return rf"{free_integer(digits)}\.0{_times(0, digits)}[1-9]{_digits(0, digits)}"


def constant(value: int | float | Decimal, digits: int) -> str:
    """Every allowed spelling of one number: never with an exponent, however the constant was written.

    A whole number is spelled as an integer, and if it was no integer in the schema (1.0, 1e3) also with zeros after a
    point; any other number is a plain decimal, with further zeros at its end. Zeros make up to ``digits`` digits.
    """
    number = exact(value)
    sign = "-?" if number == 0 else "-" if number < 0 else ""
    size = minus(number) if number < 0 else number
    if is_integral(size):
        text = str(int(size))
        tail = "" if isinstance(value, int) else rf"(?:\.0{_times(1, digits)})?"
        return sign + text + tail
    whole, fraction = _split(size)
    return sign + rf"{whole}\.{fraction}" + (f"0{_times(0, digits - len(fraction))}" if len(fraction) < digits else "")


def constant_restrictions(value: int | float | Decimal) -> tuple[str, ...]:
    """The declared restrictions that leave out spellings of a constant."""
    return ("plain-integers", "plain-bounds") if isinstance(value, int) else ("digits", "plain-bounds")


@lru_cache
def interval(
    low: Number | None, low_strict: bool, high: Number | None, high_strict: bool, integral: bool, digits: int
) -> str | None:
    """The numbers of an interval; None if it is empty (only an interval of integers can be, between its bounds)."""
    if integral:
        assert not low_strict and not high_strict
    negative = None if low is not None and low > 0 else _side(high, high_strict, low, low_strict, integral, digits, -1)
    positive = None if high is not None and high < 0 else _side(low, low_strict, high, high_strict, integral, digits, 1)
    if negative is not None:
        negative = f"-(?:{negative})" if "|" in negative else f"-{negative}"
    return _either([part for part in (negative, positive) if part is not None])


def _side(
    near: Number | None,
    near_strict: bool,
    far: Number | None,
    far_strict: bool,
    integral: bool,
    digits: int,
    sign: int,
) -> str | None:
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


def _integers(low: int, high: int | None, digits: int) -> str | None:
    """The digits of the integers from ``low`` to ``high``, without one up to so many digits, or as many as ``low``."""
    if high is not None and high < low:
        return None
    parts: list[str | None] = []
    last = max(digits, len(str(low))) if high is None else len(str(high))
    for length in range(len(str(low)), last + 1):
        start = str(low) if length == len(str(low)) else "1" + "0" * (length - 1)
        end = str(high) if high is not None and length == last else "9" * length
        if start == "1" + "0" * (length - 1) and end == "9" * length:
            rest = last - (1 if high is not None and str(high) != "9" * last else 0)
            parts.append("[1-9]" + _digits(length - 1, rest - 1))
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


def _same_length(low: str, high: str) -> str:
    """Digit strings of one length from ``low`` to ``high``."""
    alike = _alike(low, high)
    if alike == len(low):
        return low
    rest = len(low) - alike - 1
    above, below = low[alike + 1 :].rstrip("0"), high[alike + 1 :].rstrip("9")
    first, last = int(low[alike]) + bool(above), int(high[alike]) - bool(below)
    parts: list[str | None] = []
    if above:
        more = _either([_parting(above, True, rest), above + _digits(rest - len(above), rest - len(above))])
        parts.append(_join(more, "", low[alike]))
    if first <= last:
        parts.append(_one_of(first, last) + _digits(rest, rest))
    if below:
        less = _either([_parting(below, False, rest), below + _digits(rest - len(below), rest - len(below))])
        parts.append(_join(less, "", high[alike]))
    return low[:alike] + _group(_either(parts) or "")


# -- decimals, from zero upwards


def _decimals(low: Number, low_strict: bool, high: Number | None, high_strict: bool, digits: int) -> str | None:
    low_whole, low_fraction = _split(low)
    first = int(low_whole)
    if high is None:
        above = _join(_integers(first + 1, None, digits), rf"(?:\.{_digits(1, digits)})?")
        return _either([_tail(low_whole, (low_fraction, low_strict), None, digits), above])
    high_whole, high_fraction = _split(high)
    if low_whole == high_whole:
        return _either([_tail(low_whole, (low_fraction, low_strict), (high_fraction, high_strict), digits)])
    return _either(
        [
            _tail(low_whole, (low_fraction, low_strict), None, digits),
            _join(_integers(first + 1, int(high_whole) - 1, digits), rf"(?:\.{_digits(1, digits)})?"),
            _tail(high_whole, None, (high_fraction, high_strict), digits),
        ]
    )


Limit = tuple[str, bool]
"""Digits of a fraction, none of them a zero at the end, and whether the limit itself is left out."""

Fractions = tuple[bool, str | None]
"""Whether no digit at all is right (the value 0), and the expression of one digit or more, None for none."""


def _tail(whole: str, low: Limit | None, high: Limit | None, digits: int) -> str | None:
    """``whole`` and a fraction between two limits."""
    bare, more = _fraction(low, high, digits)
    return _followed(whole, (bare, None if more is None else rf"\.{_group(more)}"))


def _fraction(low: Limit | None, high: Limit | None, digits: int) -> Fractions:
    """Digits after the point whose value is between two limits."""
    if low is None or low == ("", False):
        return (True, _digits(1, digits)) if high is None else _below(high, digits)
    if high is None:
        return _above(low, digits)
    (least, least_out), (most, most_out) = low, high
    if least == most and not least_out and not most_out:
        return False, least + _zeros(digits)
    padded = least.ljust(len(most), "0")
    if padded[: len(most)] >= most:
        return False, None
    # Both limits begin alike, then the lower one has the smaller digit.
    alike = _alike(padded, most)
    first, last = int(padded[alike]), int(most[alike])
    parts = [
        _followed(str(first), _above((least[alike + 1 :], least_out), digits)),
        _one_of(first + 1, last - 1) + _digits(0, digits) if first + 1 < last else None,
        _followed(str(last), _below((most[alike + 1 :], most_out), digits)),
    ]
    short = None if least_out or len(least) > alike else least + _zeros(alike - len(least))
    return False, _either([_join(_either(parts), "", most[:alike]), short])


def _above(limit: Limit, digits: int) -> Fractions:
    """Digits after the point whose value is at least, or above, a limit."""
    least, out = limit
    if not least and not out:
        return True, _digits(1, digits)
    more = _digits(0, digits)
    same = least + (f"{_zeros(digits)}[1-9]" if out else "") + more
    return False, _either([_join(_parting(least, True), more), same])


def _below(limit: Limit, digits: int) -> Fractions:
    """Digits after the point whose value is at most, or below, a limit."""
    most, out = limit
    if not most:
        return not out, None if out else "0" + _zeros(digits - 1)
    same = None if out else most + _zeros(digits)
    return True, _either([_join(_parting(most, False), _digits(0, digits)), _beginnings(most[:-1]), same])


# -- bounds with many digits: halves of halves, so that nothing nests as deep as there are digits


def _parting(bound: str, larger: bool, rest: int | None = None) -> str | None:
    """The beginnings of digits that are ``larger`` than a bound's, or smaller, up to the first that differs.

    With ``rest`` they go on to so many digits.
    """
    return _parting_within(bound, larger, rest, 0, len(bound))


def _parting_within(bound: str, larger: bool, rest: int | None, begin: int, end: int) -> str | None:
    """The same where the first digit that differs is one of some."""
    if end == begin:
        return None
    if end > begin + 1:
        middle = (begin + end) // 2
        later = _parting_within(bound, larger, rest, middle, end)
        return _either([_parting_within(bound, larger, rest, begin, middle), _join(later, "", bound[begin:middle])])
    digit = int(bound[begin])
    first, last = (digit + 1, 9) if larger else (0, digit - 1)
    after = 0 if rest is None else rest - begin - 1
    return _one_of(first, last) + _digits(after, after) if first <= last else None


def _beginnings(text: str) -> str | None:
    """The beginnings of some digits, of one digit to all; None where there are no digits."""
    if len(text) <= 1:
        return text or None
    middle = len(text) // 2
    return _either([_beginnings(text[:middle]), _join(_beginnings(text[middle:]), "", text[:middle])])


# -- pieces


def _digits(low: int, high: int) -> str:
    return "" if high <= 0 else "[0-9]" + _times(low, high)


def _zeros(most: int) -> str:
    return "" if most <= 0 else "0" + _times(0, most)


def _times(low: int, high: int) -> str:
    if low == high:
        return "" if low == 1 else f"{{{low}}}"
    return "?" if (low, high) == (0, 1) else f"{{{low},{high}}}"


def _one_of(first: int, last: int) -> str:
    return str(first) if first == last else f"[{first}-{last}]" if last > first + 1 else f"[{first}{last}]"


def _group(text: str) -> str:
    """The expression as one factor of a product: alternatives in a group of their own."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if char == "|" and depth == 0:
            return f"(?:{text})"
    return text


def _either(parts: Sequence[str | None]) -> str | None:
    kept = [part for part in parts if part is not None]
    return "|".join(kept) if kept else None


def _join(middle: str | None, tail: str, head: str = "") -> str | None:
    return None if middle is None else head + _group(middle) + tail


def _followed(head: str, rest: Fractions) -> str | None:
    """A text, then the rest; None where there is none."""
    bare, more = rest
    if more is None:
        return head if bare else None
    return head + (f"(?:{more})?" if bare else _group(more))
