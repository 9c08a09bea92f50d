"""Numbers as regular expressions over JSON text: free numbers, intervals, constants.

Leaves out   which bounds hold (shapes.py), where the expression stands (writer.py).
Invariants   expressions are in Python's ``re`` syntax, use no look-around and never match the empty text;
             an interval is compared exactly, digit by digit; every spelling with at most ``digits`` digits before and
             after the point is matched (a bound with more digits raises both; some longer fractions may be matched);
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
    """Every allowed spelling of one number: digits only if it is whole, else a plain decimal with zeros at its end.

    A whole number that was written with a point (1.0) may be spelled so, and one written with an exponent as written.
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
    for bound in (low, high):
        if bound is not None:
            digits = max(digits, *(len(part) for part in _split(bound)))
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
    """The digits of the integers from ``low`` to ``high``."""
    if high is not None and high < low:
        return None
    parts: list[str] = []
    last = digits if high is None else len(str(high))
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


def _same_length(low: str, high: str) -> str:
    """Digit strings of one length from ``low`` to ``high``."""
    if not low:
        return ""
    if low == high:
        return low
    if set(low) == {"0"} and set(high) == {"9"}:
        return _digits(len(low), len(low))
    if low[0] == high[0]:
        return low[0] + _group(_same_length(low[1:], high[1:]))
    parts: list[str] = []
    first, last = int(low[0]), int(high[0])
    rest = len(low) - 1
    if set(low[1:]) - {"0"}:
        parts.append(low[0] + _group(_same_length(low[1:], "9" * rest)))
        first += 1
    if set(high[1:]) - {"9"}:
        last -= 1
    if first <= last:
        parts.append(_one_of(first, last) + _digits(rest, rest))
    if set(high[1:]) - {"9"}:
        parts.append(high[0] + _group(_same_length("0" * rest, high[1:])))
    return "|".join(parts)


# -- decimals, from zero upwards


def _decimals(low: Number, low_strict: bool, high: Number | None, high_strict: bool, digits: int) -> str | None:
    low_whole, low_fraction = _split(low)
    first = int(low_whole)
    if high is None:
        above = _join(_integers(first + 1, None, max(digits, len(str(first + 1)))), rf"(?:\.{_digits(1, digits)})?")
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


def _tail(whole: str, low: Limit | None, high: Limit | None, digits: int) -> str | None:
    """``whole`` and a fraction between two limits."""
    bare, more = _fraction(low, high, digits)
    if more is None:
        return whole if bare else None
    return rf"{whole}(?:\.{_group(more)})?" if bare else rf"{whole}\.{_group(more)}"


def _fraction(low: Limit | None, high: Limit | None, digits: int) -> tuple[bool, str | None]:
    """Digits after the point whose value is between two limits.

    Returns:
        whether no digit at all is right (the value 0), and the expression of one digit or more, None for none.
    """
    if low == ("", False):
        low = None
    bare = (low is None) and (high is None or high != ("", True))
    if high == ("", True):
        return False, None
    if high == ("", False):
        return bare, f"0{_times(1, digits)}" if low is None else None
    if high is None:
        if low is None:
            return True, _digits(1, digits)
        if low == ("", True):
            return False, f"0{_times(0, digits)}[1-9]{_digits(0, digits)}"
    groups: dict[tuple[Limit | None, Limit | None], list[int]] = {}
    for digit in range(10):
        after_low, after_high = low, high
        if low is not None:
            first = int(low[0][0]) if low[0] else 0
            if digit < first:
                continue
            after_low = (low[0][1:], low[1]) if digit == first else None
        if high is not None:
            first = int(high[0][0])
            if digit > first:
                continue
            after_high = (high[0][1:], high[1]) if digit == first else None
        groups.setdefault((after_low, after_high), []).append(digit)
    parts: list[str] = []
    for (after_low, after_high), members in groups.items():
        done, more = _fraction(after_low, after_high, digits)
        head = _one_of(members[0], members[-1])
        if more is not None:
            parts.append(head + (f"(?:{more})?" if done else _group(more)))
        elif done:
            parts.append(head)
    return bare, _either(parts)


# -- pieces


def _digits(low: int, high: int) -> str:
    return "" if high <= 0 else "[0-9]" + _times(low, high)


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


def _join(head: str | None, tail: str) -> str | None:
    return None if head is None else _group(head) + tail
