"""Formats against checkers of their own: the standard library where it knows them, small parsers elsewhere."""

from __future__ import annotations

import datetime
import ipaddress
import json
import random
import re
from collections.abc import Callable

import pytest

from toolc.compiler.errors import UnsupportedError
from toolc.compiler.schema import schema_to_lark
from toolc.compiler.schema.formats import FORMATS
from toolc.compiler.schema.patterns import searcher

from .recogniser import Compiled


def is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = map(int, text.split("-"))
    try:
        datetime.date(year or 400, month, day)  # the year 0 is a leap year
    except ValueError:
        return False
    return True


def is_time(text: str) -> bool:
    found = re.fullmatch(r"(\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[zZ]|([+-])(\d\d):(\d\d))", text, re.A)
    if not found:
        return False
    hour, minute, second = int(found[1]), int(found[2]), int(found[3])
    ahead, behind = (int(found[5]), int(found[6])) if found[4] else (0, 0)
    if hour > 23 or minute > 59 or second > 60 or ahead > 23 or behind > 59:
        return False
    offset = (ahead * 60 + behind) * (-1 if found[4] == "-" else 1)
    return second < 60 or (hour * 60 + minute - offset) % 1440 == 23 * 60 + 59


def is_date_time(text: str) -> bool:
    return len(text) > 10 and text[10] in "tT" and is_date(text[:10]) and is_time(text[11:])


def is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return text.isascii()


def is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text and text.isascii()


def is_hostname(text: str) -> bool:
    labels = text.split(".")
    return len(text) <= 253 and all(
        re.fullmatch("[A-Za-z0-9-]{1,63}", one) and one[0] + one[-1] == (one[0] + one[-1]).replace("-", "")
        for one in labels
    )


def is_duration(text: str) -> bool:
    if re.fullmatch("P[0-9]+W", text):
        return True
    found = re.fullmatch("P((?:[0-9]+[YMD])*)(?:T((?:[0-9]+[HMS])+))?", text)
    if not found or not (found[1] or found[2]):
        return False
    parts = ("".join(re.findall("[A-Z]", found[1] or "")), "".join(re.findall("[A-Z]", found[2] or "")))
    return parts[0] in "YMD" and parts[1] in "HMS"


def is_pointer(text: str) -> bool:
    return (not text or text[0] == "/") and re.search("~(?![01])", text) is None


CHECKERS: dict[str, tuple[Callable[[str], bool], list[str], str]] = {
    "date": (is_date, ["2024-02-29", "1900-02-28", "2000-02-29", "0000-12-31", "2023-04-30"], "0123456789-"),
    "time": (is_time, ["23:59:60Z", "00:29:60+00:30", "15:59:60-08:00", "12:00:00.123z", "01:02:03+04:05"],
             "012359:.Zz+-"),
    "date-time": (is_date_time, ["2024-02-29T23:59:60Z", "2023-02-28t10:20:30.5-00:00"], "0123459:.TZt+- "),
    "ipv4": (is_ipv4, ["127.0.0.1", "255.255.255.255", "0.0.0.0"], "0125."),
    "ipv6": (is_ipv6, ["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4",
                       "1:2:3:4:5:6:1.2.3.4", "::2:3:4:5:6:7:8", "1:2::5:6:7:8"], "0af12:.%"),
    "duration": (is_duration, ["P1Y2M3DT4H5M6S", "P2W", "PT1H", "P1M2D", "P1YT3M4S"], "PT12YMDWHS"),
    "json-pointer": (is_pointer, ["", "/a/~0b~1/", "//x"], "/~01a\"\\"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKERS)
def test_format(name: str) -> None:
    rng = random.Random(name)
    check, valid, alphabet = CHECKERS[name]
    matches, widest = searcher(FORMATS[name].pattern, name), searcher(FORMATS[name].widest, name)
    ours, others = (
        Compiled(schema_to_lark(schema)[0])
        for schema in ({"type": "string", "format": name}, {"type": "string", "not": {"format": name}})
    )
    for number in range(1500):
        text = rng.choice(valid)
        for _ in range(number % 4):
            at = rng.randrange(len(text) + 1)
            text = text[: at - rng.randrange(2) if at else 0] + rng.choice([*alphabet, ""]) + text[at:]
        if check(text) and not matches(text):
            assert FORMATS[name].narrowed and widest(text), text
        assert check(text) or not matches(text), text
        if number < 200:
            quoted = json.dumps(text, ensure_ascii=False)
            assert ours.accepts(quoted) == matches(text)
            assert others.accepts(quoted) == (not widest(text))


def test_hostname_is_narrowed_only_as_declared() -> None:
    rng = random.Random(3)
    matches, widest = searcher(FORMATS["hostname"].pattern, ""), searcher(FORMATS["hostname"].widest, "")
    for _ in range(4000):
        text = "".join(rng.choice(["a", "b7", "-", ".", "x" * 20, "x" * 33]) for _ in range(rng.randrange(9)))
        assert not matches(text) or is_hostname(text)
        assert not is_hostname(text) or widest(text)
        if is_hostname(text) and text.count(".") < 3 and not re.search(r"(^|\.)..--", text):
            assert matches(text), text


def test_with_other_keywords() -> None:
    ours = Compiled(schema_to_lark({"format": "date", "pattern": "^2024", "not": {"pattern": "-0[1-9]-"}})[0])
    assert ours.accepts('"2024-10-01"') and not ours.accepts('"2024-09-01"') and not ours.accepts('"2023-10-01"')
    ours = Compiled(schema_to_lark({"format": "email", "maxLength": 9, "minLength": 8})[0])
    assert ours.accepts('"aa@bb.cc"') and not ours.accepts('"a@b.cc"') and not ours.accepts('"aaaa@bbb.cc"')
    ours = Compiled(schema_to_lark({"enum": ["2024-02-30", "2024-02-29", 1], "format": "date"})[0])
    assert ours.accepts('"2024-02-29"') and not ours.accepts('"2024-02-30"') and ours.accepts("1")
    assert Compiled(schema_to_lark({"type": "string", "format": "color"})[0]).accepts('"?"')


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError):
        schema_to_lark({"type": "string", "not": {"format": "regex"}})
    with pytest.raises(UnsupportedError):
        schema_to_lark({"enum": ["xn--nxasmq6b"], "format": "hostname"})
