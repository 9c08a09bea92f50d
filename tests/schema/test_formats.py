"""Formats against format_checkers.py on strings near valid ones; what is left out, against its declaration."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

import pytest

from toolc.compiler import Options, compile_schema
from toolc.compiler.errors import SpecError, UnsupportedError
from toolc.compiler.schema import schema_to_lark
from toolc.compiler.schema.formats import FORMATS
from toolc.compiler.schema.patterns import searcher
from toolc.runtime import Matcher
from toolc.runtime.format.keyword_report import unpack

from .format_checkers import CHECKERS, is_base64
from .recogniser import Compiled

URIS = ["http://a.b/c?d#e", "x:", "mailto:a@b", "//u:p@h:80/p", "http://[::1]:8/", "http://[v1.a:]/", "a/b:c", "./a:b",
        "?q", "#f", "http://a%20b/", "urn:x:y", "", "a", "http://1.2.3.4:/"]  # fmt: skip
WIDE = [*URIS, "http://é.org/ü?\ue000#ö", "é", "http://ex.org/\U0001f600"]
TIMES = ["23:59:60Z", "00:29:60+00:30", "15:59:60-08:00", "12:00:00.123z", "01:02:03+04:05", "23:44:60-00:15"]
HOSTS = ["a.b", "a", "x1.example.org", "a.b.c.d.e", "x" * 30 + ".a.b.c", "x" * 63, "a-b", "xn--nxasmq6b", "ab--cd",
         "a.b.c.d.e.f.g.h.i", "x" * 31 + ".a.b.c"]  # fmt: skip

SAMPLES: dict[str, tuple[list[str], str]] = {
    "date": (["2024-02-29", "1900-02-28", "2000-02-29", "0000-12-31", "2023-04-30"], "0123456789-"),
    "time": (TIMES, "012359:.Zz+-"),
    "date-time": (["2024-02-29T23:59:60Z", "2023-02-28t10:20:30.5-00:00", *(f"2024-01-31T{one}" for one in TIMES)],
                  "0123459:.TZt+- "),
    "duration": (["P1Y2M3DT4H5M6S", "P2W", "PT1H", "P1M2D", "P1YT3M4S"], "PT12YMDWHS"),
    "email": (["a@b", "a.b@c.d", '"a b\\"c"@d', "x@[1.2.3.4]", "x@[IPv6:::1]", "x@[IPv6:1:2:3:4:5:6:7::]",
               "x@[IPv6:1::1.2.3.4]", "x@[tag:abc]", "x@[001.2.3.4]"], 'a.@"\\ [1:]-'),
    "idn-email": (["é@é", '"é"@b', "a@é.b", "실례@실례.테스트"], 'aé.@"\\ -'),
    "hostname": (HOSTS, "a1-.x"),
    "idn-hostname": ([*HOSTS, "é", "é.org", "실례。테스트", "ж.a.b.c", "a.b.c.d", "é.a.b.c.d", "É",
                      "中" * 14], "a1-.é。中"),
    "ipv4": (["127.0.0.1", "255.255.255.255", "0.0.0.0"], "0125."),
    "ipv6": (["::", "::1", "1::", "1:2:3:4:5:6:7:8", "1::8", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4",
              "::2:3:4:5:6:7:8", "1:2::5:6:7:8"], "0af12:.%"),
    "uri": (URIS, "a:/?#[]@%1.-é "),
    "uri-reference": (URIS, "a:/?#[]@%1.-é "),
    "iri": (WIDE, "a:/?#[]@%1.-é\ue000 "),
    "iri-reference": (WIDE, "a:/?#[]@%1.-é\ue000 "),
    "uri-template": (["{a}", "/x{?a,b*}", "{+a.b:12}", "{a%20}", "é{x}", "a'b", "{a:9999}"], "{}a,:*1+%.é' <"),
    "uuid": (["123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-00000000000A"], "0aAg-"),
    "json-pointer": (["", "/a/~0b~1/", "//x"], '/~01a"\\'),
    "relative-json-pointer": (["0", "0#", "12/a~0", "1", "10#"], "01#/~a"),
    "regex": (["^a+$", "(a|b)*?", "[a-z0-9]{2,3}", "\\d\\p{L}", "(?=a)b", "[^]]", "\\u00e9", "(?<!a)b"],
              "a()[]{}*+?|^$\\-1,"),
}  # fmt: skip


def _leap(text: str) -> bool:
    """The seconds are 60, and the offset has no whole or half hours."""
    return re.search(r":60(\.[0-9]+)?[+-][0-9]{2}:(?!00|30)", text) is not None


def _labels(text: str) -> list[str]:
    return re.split("[.\u3002\uff0e\uff61]", text)


def _long_host(text: str) -> bool:
    labels = _labels(text)
    reserved = any(label[2:4] == "--" for label in labels)
    return reserved or (len(labels) > 3 and (len(labels) > 8 or max(map(len, labels)) > 30))


def _long_idn_host(text: str) -> bool:
    labels = _labels(text)
    wide = [label for label in labels if not label.isascii()]
    other = any(re.fullmatch(r"[a-z0-9ß-öø-ÿά-ώа-яぁ-ゖァ-ヺ一-鿿가-힣-]{1,14}", one) is None for one in wide)
    narrow = bool(wide) or len(labels) > 3
    return other or any(one[2:4] == "--" for one in labels) or (
        narrow and (len(labels) > 4 or max(map(len, labels)) > 30)
    )  # fmt: skip


DECLARED: dict[str, Callable[[str], bool]] = {
    "time": _leap, "date-time": _leap, "hostname": _long_host, "idn-hostname": _long_idn_host,
    "regex": lambda text: True,
}  # fmt: skip
"""Format → whether a string is among those that the format's note leaves out; regex is only held to be sound."""


def near(name: str, count: int) -> list[str]:
    """Strings of a format, and strings that differ from them in up to three places."""
    rng = random.Random(name)
    valid, alphabet = SAMPLES[name]
    texts = list(valid)
    for number in range(count):
        text = rng.choice(valid)
        for _ in range(number % 4):
            at = rng.randrange(len(text) + 1)
            text = text[: at - rng.randrange(2) if at else 0] + rng.choice([*alphabet, ""]) + text[at:]
        texts.append(text)
    return texts


def test_every_format_is_here() -> None:
    assert set(SAMPLES) == set(CHECKERS) == set(FORMATS) - {"byte"}
    assert set(DECLARED) == {name for name, known in FORMATS.items() if known.narrowed}


@pytest.mark.parametrize("name", SAMPLES)
def test_format(name: str) -> None:
    check, known = CHECKERS[name], FORMATS[name]
    matches = searcher(known.pattern, name)
    widest = searcher(known.widest, name) if known.widest else lambda text: True
    both = [0, 0]
    for text in near(name, 1500):
        both[check(text)] += 1
        assert check(text) or not matches(text), text
        if check(text) and not matches(text):
            assert name in DECLARED and DECLARED[name](text) and widest(text), text
    assert min(both) > 30
    ours = Compiled(schema_to_lark({"type": "string", "format": name})[0])
    others = Compiled(schema_to_lark({"type": "string", "not": {"format": name}})[0]) if known.widest else None
    for text in near(name, 150):
        quoted = json.dumps(text, ensure_ascii=False)
        assert ours.accepts(quoted) == matches(text)
        assert others is None or others.accepts(quoted) == (not widest(text))


def _not_after_all(name: str, text: str) -> bool:
    """Whether a string without the format is one of those that ``besides`` says its complement leaves out."""
    if name == "hostname":
        label = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
        return re.fullmatch(rf"{label}(\.{label})*", text) is not None and (
            any(one[2:4] == "--" for one in text.split(".")) or len(text) > 253
        )
    return ":60" in text and CHECKERS[name](text.replace(":60", ":59"))


@pytest.mark.parametrize("name", [name for name in SAMPLES if FORMATS[name].widest])
def test_what_complements_leave_out_besides(name: str) -> None:
    """Strings that have no format, nor are in its complement: those that the table tells of, and no others."""
    more = {"time": ["12:00:60Z", "12:00:60+00:15"], "date-time": ["2024-01-31T12:00:60Z"],
            "hostname": ["ab--cd", ".".join(["x" * 63] * 4) + ".y"]}.get(name, [])  # fmt: skip
    texts = [text for text in {*near(name, 150), *more} if not CHECKERS[name](text)]
    missing = {text for text in texts if searcher(FORMATS[name].widest, name)(text)}
    assert bool(FORMATS[name].besides) == bool(missing)
    assert {text for text in texts if FORMATS[name].besides and _not_after_all(name, text)} == missing
    others = Compiled(schema_to_lark({"type": "string", "not": {"format": name}})[0])
    assert not any(others.accepts(json.dumps(text)) for text in sorted(missing)[:50])


def test_base64() -> None:
    rng, matches = random.Random(2), searcher(FORMATS["byte"].pattern, "")
    for _ in range(2000):
        text = "".join(rng.choice("aB1+/=-") for _ in range(rng.randrange(10)))
        assert matches(text) == is_base64(text), text


def test_with_other_keywords() -> None:
    ours = Compiled(schema_to_lark({"format": "date", "pattern": "^2024", "not": {"pattern": "-0[1-9]-"}})[0])
    assert ours.accepts('"2024-10-01"') and not ours.accepts('"2024-09-01"') and not ours.accepts('"2023-10-01"')
    ours = Compiled(schema_to_lark({"format": "email", "maxLength": 9, "minLength": 8})[0])
    assert ours.accepts('"aa@bb.cc"') and not ours.accepts('"a@b.cc"') and not ours.accepts('"aaaa@bbb.cc"')
    ours = Compiled(schema_to_lark({"enum": ["2024-02-30", "2024-02-29", 1], "format": "date"})[0])
    assert ours.accepts('"2024-02-29"') and not ours.accepts('"2024-02-30"') and ours.accepts("1")
    assert Compiled(schema_to_lark({"type": "string", "format": "color"})[0]).accepts('"?"')


DURATIONS = [("draft-04", True), ("draft-06", True), ("draft-07", True), ("2019-09", False), ("2020-12", False)]


@pytest.mark.parametrize(("draft", "free"), DURATIONS)
def test_a_format_that_a_draft_does_not_define_is_an_annotation(draft: str, free: bool) -> None:
    address = f"http://json-schema.org/{draft}/schema#" if free else f"https://json-schema.org/draft/{draft}/schema"
    text, writer = schema_to_lark({"$schema": address, "type": "string", "format": "duration"})
    rows = {keyword: status for _, keyword, status, _ in writer.report()}
    assert rows["format"] == ("later" if free else "enforced")
    assert Compiled(text).accepts('"P1D"') and Compiled(text).accepts('"30s"') == free
    inside = {"id" if draft == "draft-04" else "$id": "http://x/d", "$schema": address, "format": "duration"}
    text, _ = schema_to_lark({"type": "string", "$defs": {"d": inside}, "$ref": "http://x/d"})
    assert Compiled(text).accepts('"30s"') == free


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError):
        schema_to_lark({"type": "string", "not": {"format": "regex"}})
    with pytest.raises(UnsupportedError):
        schema_to_lark({"enum": ["xn--nxasmq6b"], "format": "hostname"})


@pytest.mark.parametrize(
    ("formats", "date", "uuid", "number"),
    [("assert", "enforced", "enforced", "enforced"), ("annotate",) + ("annotation",) * 3,
     (("date",), "enforced", "annotation", "annotation"), (("uuid", "int32"), "annotation", "enforced", "enforced")],
)  # fmt: skip
def test_formats_that_are_annotations(formats: Any, date: str, uuid: str, number: str) -> None:
    schema = {
        "type": "object",
        "properties": {
            "d": {"type": "string", "format": "date"},
            "u": {"not": {"type": "string", "format": "uuid"}},
            "n": {"type": "integer", "format": "int32"},
        },
    }
    made = compile_schema(schema, "builtin", options=Options(jobs=1, formats=formats))
    rows = {(place, keyword): status for place, keyword, status, _ in unpack(made.bundle.meta["report"])}
    places = ("schema#/properties/d", "schema#/properties/u/not", "schema#/properties/n")
    assert [rows[place, "format"] for place in places] == [date, uuid, number]
    rights = date != "enforced", number != "enforced", uuid == "enforced"
    for value, right in zip(({"d": "x"}, {"n": 2**40}, {"u": "x"}), rights, strict=True):
        matcher, text = Matcher(made.bundle), json.dumps(value).encode()
        assert (matcher.advance_bytes(text) == len(text) and matcher.is_complete) == right


def test_a_format_that_is_none() -> None:
    with pytest.raises(SpecError, match="no such format") as caught:
        compile_schema({}, "builtin", options=Options(formats=("date", "dat")))
    assert caught.value.found == "dat"
