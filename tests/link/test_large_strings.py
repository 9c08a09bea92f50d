"""Large strings are parts that tools share; the masks stay those of the whole."""

from __future__ import annotations

from typing import Any

import pytest

from toolc.compiler.ir.nodes import Grammar, Ref, Terminal, sequence, string
from toolc.compiler.link import large_strings, link, stubs
from toolc.compiler.link.large_strings import with_large_strings
from toolc.compiler.passes import Pass, without
from toolc.compiler.regex import parse_regex
from toolc.runtime import subset

from .test_definitions import closed, parts
from .test_link import compare, compiled, own_cache, tool, whole

__all__ = ["own_cache"]


NAME = {"type": "string", "pattern": "^arn:[a-z0-9-]{1,9}:[^/].{0,20}$", "maxLength": 24}
FREE = {"type": "string", "pattern": "[a-z]{3,12}:", "minLength": 5, "maxLength": 40}
QUOTED = {"type": "string", "pattern": '^("|\\\\){1,20}$'}
PLAIN = closed({"name": NAME, "other": FREE, "n": {"type": "integer"}}, "name")
LIST = closed({"names": {"type": "array", "items": NAME}, "some": {"type": "array", "items": QUOTED, "maxItems": 30}})
UNION = closed({"x": {"anyOf": [NAME, {"type": "null"}]}, "y": {"anyOf": [FREE, {"enum": ["a", "b:c"]}]}})
COUNTED = closed({"text": {"type": "string", "maxLength": 9}, "name": NAME, "quoted": QUOTED}, "text", "name", "quoted")
MANY = closed({f"k{n}": NAME if n % 3 == 0 else {"type": "boolean"} for n in range(14)}, "k0", "k13")
OPEN = {"type": "object", "properties": {"name": NAME}, "additionalProperties": FREE}
TREE = {"type": "object", "properties": {"name": NAME, "next": {"$ref": "#"}}, "additionalProperties": False}
CASES = [tool(f"tool_{n}", one) for n, one in enumerate([PLAIN, LIST, UNION, COUNTED, MANY, OPEN, TREE])]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings of few positions are large."""
    monkeypatch.setattr(large_strings, "WORTH", 16)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"protocol": "json"},
        {"protocol": "qwen3_coder"},
        {"protocol": "pythonic"},
        {"protocol": "lfm2"},
        {"protocol": "mistral", "whitespace": "compact"},
        {"protocol": "hermes", "whitespace": "flexible"},
        {"key_order": "any"},
        {"response": PLAIN},
    ],
    ids=str,
)
def test_masks_are_those_of_the_whole(options: dict[str, Any]) -> None:
    made, other = compiled(CASES, **options), whole(CASES, **options)
    assert made.report["parts"] is not None
    met: set[int] = set()
    for n in range(40):
        met |= compare(made.bundle, other, f"{options} {n}", 60, brute=n < 4)
    assert len(met) > 100
    some, wanted = subset(made.bundle, ["tool_0", "tool_4"]), subset(other, ["tool_0", "tool_4"])
    for n in range(10):
        compare(some, wanted, f"subset {options} {n}", 60)


def test_a_string_of_two_tools_is_one_part() -> None:
    spec = [tool("a", PLAIN), tool("b", closed({"name": NAME, "m": {"type": "null"}}))]
    assert parts(spec) == 4  # two tools, two strings
    assert compiled([tool("c", closed({"c": NAME}))]).report["parts"] == {"all": 2, "reused": 1}
    with without(Pass.LARGE_STRINGS):
        assert parts(spec) == 2


def test_a_string_of_python_is_a_part_for_each_quote() -> None:
    spec = [tool("a", PLAIN), tool("b", closed({"name": NAME, "m": {"type": "null"}}))]
    assert parts(spec, protocol="pythonic") == 6  # two tools, two strings in two quotes


def test_what_cannot_be_a_part_is_seen_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """No automaton is made in vain where items are counted, or another alternative begins with a quote."""
    said: list[str] = []

    class Counted(stubs.Apart):
        def __init__(self, why: str) -> None:
            super().__init__(why)
            said.append(why)

    for module in (stubs, link):
        monkeypatch.setattr(module, "Apart", Counted)
    assert parts([tool("t", LIST)]) == 2  # the arguments, the string that is not counted
    assert parts([tool("t", UNION)]) == 2
    assert parts([tool("t", TREE)]) == 1  # what recurs is one part
    assert not said


def test_keys_are_no_large_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind members that may be left out other keys begin with a quote, too."""
    listed = {f"property number {n}": {"type": "string"} for n in range(9)}
    for more in ({"additionalProperties": NAME}, {"patternProperties": {"^x[a-z]{1,300}$": NAME}}):
        schema = {"type": "object", "properties": {"id": {"type": "string"}, **listed}, "required": ["id"], **more}
        monkeypatch.setattr(stubs.Apart, "__init__", lambda *_: pytest.fail("made in vain"))
        assert parts([tool("t", schema)]) >= 2
        made, other = compiled([tool("t", schema)]).bundle, whole([tool("t", schema)])
        for n in range(6):
            compare(made, other, f"keys {n}", 60, brute=n < 2)


def test_large_strings_are_in_quotes_and_long() -> None:
    def rules(*patterns: str) -> dict[str, Any]:
        terminals = [Terminal(parse_regex(one), f"F__{n}") for n, one in enumerate(patterns)]
        return {"start": sequence(Ref("f"), *terminals, string("!")), "f": terminals[0]}

    grammar = Grammar(rules('"a{16}"', '"a{4}(?:b{2}){2}bbbbb"', "'a{16}'", '"(?!a{16})a"', '"(?:b{4}){4}"'))
    changed, names = with_large_strings(grammar)
    assert names == changed.groups == {"F__0#string", "F__4#string"}
    assert changed.rules["f"] == Ref("F__0#string")
    assert changed.rules["F__0#string"] == grammar.rules["f"]
    again, names = with_large_strings(Grammar(rules('"a{15}"')))
    assert not names
    assert not again.groups
