"""Number languages against arithmetic, over grids."""

from __future__ import annotations

import itertools
import json
import random
import re
from decimal import Decimal

import pytest

from toolc.compiler.regex import Regex, to_text
from toolc.compiler.schema import numbers

WINDOW = [*range(-25, 26), *range(95, 106), *range(-106, -94), *range(995, 1003), 12345, -12345, 99999, 100000]
BOUNDS = [None, -1000, -101, -100, -99, -11, -10, -9, -1, 0, 1, 5, 9, 10, 11, 42, 99, 100, 101, 999, 1000, 12344]


def _text(regex: Regex | None) -> str:
    return "" if regex is None else to_text(regex)


@pytest.mark.parametrize("low", BOUNDS)
def test_integer_intervals(low: int | None) -> None:
    for high in BOUNDS:
        if low is not None and high is not None and low > high:
            continue
        text = _text(numbers.interval(low, False, high, False, True, 20))
        assert text
        regex = re.compile(text)
        for value in WINDOW:
            inside = (low is None or value >= low) and (high is None or value <= high)
            assert bool(regex.fullmatch(str(value))) == inside, (low, high, value, text)
        zero = (low is None or low <= 0) and (high is None or high >= 0)
        assert bool(regex.fullmatch("-0")) == zero, (low, high)
        for wrong in ("", "-", "00", "01", "1.0", "+1", "1e0", "0x1", "-01"):
            assert not regex.fullmatch(wrong), (low, high, wrong)


DECIMALS = ["0", "0.0", "0.00", "0.05", "0.049", "0.0500", "0.051", "0.1", "0.5", "0.50", "0.9", "0.99", "0.999", "1"]
DECIMALS += [
    "1.0",
    "1.2",
    "1.24",
    "1.249",
    "1.25",
    "1.250",
    "1.251",
    "1.3",
    "1.9",
    "2",
    "2.5",
    "9",
    "9.99",
    "10",
    "10.01",
]
DECIMALS += ["99", "99.5", "100", "100.5", "0.0000001", "3.14159", "12.125"]
LIMITS = [
    None,
    "-10",
    "-1.25",
    "-1",
    "-0.5",
    "-0.05",
    "0",
    "0.05",
    "0.5",
    "0.99",
    "1",
    "1.2",
    "1.25",
    "2",
    "9.99",
    "10",
]


@pytest.mark.parametrize("low", LIMITS)
@pytest.mark.parametrize("strict", [(False, False), (True, False), (False, True), (True, True)])
def test_decimal_intervals(low: str | None, strict: tuple[bool, bool]) -> None:
    for high in LIMITS:
        a, b = (None if bound is None else Decimal(bound) for bound in (low, high))
        if a is not None and b is not None and (a > b or (a == b and any(strict))):
            continue
        text = _text(numbers.interval(a, strict[0] and a is not None, b, strict[1] and b is not None, False, 20))
        regex = re.compile(text or "(?!)")
        for sign, size in itertools.product(("", "-"), DECIMALS):
            value = Decimal(sign + size)
            inside = (a is None or value > a or (value == a and not strict[0])) and (
                b is None or value < b or (value == b and not strict[1])
            )
            assert bool(regex.fullmatch(sign + size)) == inside, (low, high, strict, sign + size, text)
        for wrong in ("", "-", ".5", "1.", "01", "00.5", "1e1", "-.1"):
            assert not regex.fullmatch(wrong), (low, high, wrong)


def test_random_decimal_intervals() -> None:
    rng = random.Random(1)

    def number() -> str:
        size = str(rng.choice([0, 1, 9, 10, 11, 99, 100, 7, 42, 55]))
        return (
            rng.choice(["", "-"]) + size + rng.choice(["", "." + str(rng.randrange(1000)).zfill(rng.choice([1, 2, 3]))])
        )

    for _ in range(1500):
        a, b = sorted((Decimal(number()), Decimal(number())))
        strict = rng.random() < 0.5, rng.random() < 0.5
        if a == b and any(strict):
            continue
        text = _text(numbers.interval(a, strict[0], b, strict[1], False, 20))
        regex = re.compile(text or "(?!)")
        for spelling in [number() for _ in range(25)] + [
            f"{a:f}",
            f"{b:f}",
            f"{a:f}0" if "." in f"{a:f}" else f"{a:f}.0",
        ]:
            value = Decimal(spelling)
            inside = (value > a or (value == a and not strict[0])) and (value < b or (value == b and not strict[1]))
            assert bool(regex.fullmatch(spelling)) == inside, (a, b, strict, spelling, text)


def test_long_bounds_raise_the_digits() -> None:
    low = 10**30
    regex = re.compile(_text(numbers.interval(low, False, None, False, True, 20)))
    assert regex.fullmatch(str(low)) and regex.fullmatch("9" * 31) and not regex.fullmatch("9" * 30)
    fine = Decimal("0." + "1" * 30)
    above = Decimal(f"{fine:f}"[:-1] + "2")
    regex = re.compile(_text(numbers.interval(fine, True, above, False, False, 20)))
    assert regex.fullmatch(f"{above:f}") and not regex.fullmatch(f"{fine:f}")
    regex = re.compile(_text(numbers.interval(above.copy_negate(), False, fine.copy_negate(), True, False, 20)))
    assert regex.fullmatch(f"-{above:f}") and not regex.fullmatch(f"-{fine:f}")


def test_floats_as_python_writes_them_fit_the_default_digits() -> None:
    rng = random.Random(2)
    free, bounded = (
        re.compile(_text(numbers.free_number(20))),
        re.compile(_text(numbers.interval(0, True, None, False, False, 20))),
    )
    values = [rng.uniform(0, 1) * 10.0**power for power in range(-320, 309) for _ in range(20)]
    for value in [*values, 5e-324, 1.7976931348623157e308, 0.0001, 0.00010000000000000002, 9999999999999998.0, 2**64]:
        text = json.dumps(value)
        assert free.fullmatch(text) and free.fullmatch("-" + text), text
        if "e" not in text and value:
            assert bounded.fullmatch(text), text


def _around(bound: Decimal, rng: random.Random) -> list[str]:
    """Spellings of numbers that differ from a bound in one digit, or in how many they have."""
    text = f"{bound:f}".lstrip("-")
    text += "" if "." in text else ".0"
    point = text.index(".")
    found = [text, text + "0", text + "1", text[:-1], text[: point + 2], "1" + text, text[1:] if point > 1 else "0"]
    for _ in range(5):
        at = rng.choice([at for at in range(len(text)) if at != point])
        found.append(text[:at] + rng.choice("0123456789") + text[at + 1 :])
        found.append(text[: at + 1])
    found += [one.split(".")[0] for one in found] + ["0", "0.5", "1", "9" * 20, "0." + "0" * 19 + "1"]
    kept = [one for one in found if re.fullmatch(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", one)]
    return [sign + one for one in kept for sign in ("", "-")]


FAR = ["5e-324", "2.2250738585072014e-308", "1e-170", "1e170", "1.7976931348623157e308", "1e400", "1e-400",
       "9." + "9" * 300, "0." + "1234567890" * 40, "1234567890" * 40, "1" + "0" * 200 + "1." + "0" * 200 + "1",
       "0.1", "1", "12.5"]  # fmt: skip


def test_bounds_of_hundreds_of_digits() -> None:
    """Each digit was a group inside of the one before it, so that RecursionError came from about 160 of them."""
    rng = random.Random(3)
    bounds = [Decimal(text) for text in FAR] + [Decimal("-" + text) for text in FAR]
    pairs = [(one, None) for one in bounds] + [(None, one) for one in bounds]
    pairs += [(one, other) for one in bounds for other in rng.sample(bounds, 3) if one <= other]
    # both begin alike
    pairs += [(one, Decimal(f"{one:f}{'' if '.' in f'{one:f}' else '.'}00700")) for one in bounds if one > 0]
    for low, high in pairs:
        for strict in rng.sample([(False, False), (True, False), (False, True), (True, True)], 2):
            if low is not None and low == high and any(strict):
                continue
            strict = strict[0] and low is not None, strict[1] and high is not None
            text = _text(numbers.interval(low, strict[0], high, strict[1], False, 20))
            regex = re.compile(text or "(?!)")
            for spelling in [one for bound in (low, high) if bound is not None for one in _around(bound, rng)]:
                value = Decimal(spelling)
                inside = (low is None or value > low or (value == low and not strict[0])) and (
                    high is None or value < high or (value == high and not strict[1])
                )
                whole, _, fraction = spelling.lstrip("-").partition(".")
                same_side = [bound for bound in (low, high) if bound is not None and (bound > 0) == (value > 0)]
                longest = max([20, *(len(str(int(abs(bound)))) for bound in same_side)])
                if inside and (len(whole) > longest or len(fraction) > 20):
                    continue  # may be left out
                assert bool(regex.fullmatch(spelling)) == inside, (low, high, strict, spelling)


def test_integers_of_hundreds_of_digits() -> None:
    rng = random.Random(4)
    bounds = [10**170, 10**400, 10**400 + 1, int("1234567890" * 40), int("9" * 300), int(1.7976931348623157e308), 7]
    for low, high in itertools.combinations(sorted(bounds), 2):
        for signed in ((low, high), (-high, -low), (low, None), (None, -low), (low, low + 10**100), (-low, high)):
            text = _text(numbers.interval(signed[0], False, signed[1], False, True, 20))
            regex = re.compile(text or "(?!)")
            for bound in (one for one in signed if one is not None):
                near = [bound + step for power in (0, 1, 2, 50, 169) for step in (10**power, -(10**power), 0)]
                for value in [*near, 0, 1, -1, bound // rng.randrange(2, 99)]:
                    inside = (signed[0] is None or value >= signed[0]) and (signed[1] is None or value <= signed[1])
                    longest = max(20, *(len(str(abs(one))) for one in signed if one is not None))
                    if not inside or len(str(abs(value))) <= longest:
                        assert bool(regex.fullmatch(str(value))) == inside, (signed, value)


def test_groups_do_not_nest_as_deep_as_a_bound_has_digits() -> None:
    for low in (Decimal("0." + "123456789" * 100), int("123456789" * 100)):
        for high in (None, low * 3):
            text = _text(numbers.interval(low, False, high, False, isinstance(low, int), 20))
            depth = list(itertools.accumulate((char == "(") - (char == ")") for char in text))
            assert max(depth) < 20


@pytest.mark.parametrize(
    "value, spelled, others",
    [
        (0, ["0", "-0"], ["0.0", "00", ""]),
        (5, ["5"], ["5.0", "-5", "05", "50"]),
        (-5, ["-5"], ["5", "-5.0"]),
        (1.5, ["1.5", "1.50", "1.500"], ["1", "1.", "15", "1.51", "1x5"]),
        (-0.25, ["-0.25", "-0.250"], ["0.25", "-.25"]),
        (1e-7, ["0.0000001"], ["1e-7"]),
        (2.0, ["2", "2.0", "2.000"], ["2.", "20"]),
        (1e22, ["1" + "0" * 22], ["1"]),
        (Decimal("0.1"), ["0.1", "0.10"], ["0.11"]),
    ],
)
def test_constants(value: float, spelled: list[str], others: list[str]) -> None:
    regex = re.compile(_text(numbers.constant(value, 20)))
    for text in spelled:
        assert regex.fullmatch(text), text
    for text in others:
        assert not regex.fullmatch(text), text
