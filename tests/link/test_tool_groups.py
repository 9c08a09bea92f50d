"""Groups: tools that are made as one part are what each of them is alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from toolc.compiler import Budget
from toolc.compiler.compiled import Compiled
from toolc.compiler.ir import nodes as ir
from toolc.compiler.link import tool_groups as groups
from toolc.runtime.errors import ToolcError

from .test_link import COUNTED, EMPTY, LIST, NAMES, OPEN, TREE, compare, compiled, forget, own_cache, tool, whole

__all__ = ["own_cache"]

SHARED = {"type": "object", "properties": {"a": {"anyOf": [{"type": "object"}, LIST]}}}  # `{` begins any JSON, and LIST
NESTED = {"type": "object", "properties": {"tree": TREE, "any": {}}, "additionalProperties": False}
KEYS = [
    {"type": "object", "properties": {f"key_{n}": {"enum": [f"a{n}", "b"]}, "more": {}}, "required": [f"key_{n}"]}
    for n in range(8)
]
SPEC = [tool(f"tool_{n}", one) for n, one in enumerate([OPEN, LIST, COUNTED, TREE, NAMES, EMPTY, NESTED, *KEYS, OPEN])]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short runs, of short specs."""
    monkeypatch.setattr(groups, "MANY", 4)
    monkeypatch.setattr(groups, "_FEWEST", 2)
    monkeypatch.setattr(groups, "_ONE_IN", 3)


def one_by_one(spec: Any, **options: Any) -> Compiled:
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groups, "MANY", 1 << 30)
        made = compiled(spec, **options)
    forget()
    return made


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"protocol": "llama3", "whitespace": "compact"},
        {"protocol": "qwen3_coder"},
        {"response": {"type": "object"}},
    ],
    ids=str,
)
def test_masks_are_those_of_the_parts(options: dict[str, Any]) -> None:
    made, other = compiled(SPEC, **options), one_by_one(SPEC, **options)
    assert 2 < made.report["parts"]["all"] < other.report["parts"]["all"]
    assert made.bundle.min_tokens == other.bundle.min_tokens
    assert made.bundle.tables.states == other.bundle.tables.states
    met: set[int] = set()
    for n in range(40):
        met |= compare(made.bundle, other.bundle, f"{options} {n}", 60, brute=n < 4)
    assert len(met) > 100


def test_masks_are_those_of_the_whole() -> None:
    made, other = compiled(SPEC), whole(SPEC)
    for n in range(20):
        compare(made.bundle, other, f"whole {n}", 60)


def test_what_was_compiled_before_changes_no_bytes() -> None:
    fresh = compiled(SPEC)
    parts = fresh.report["parts"]["all"]
    again = compiled(SPEC)
    assert again.bundle.encode() == fresh.bundle.encode()
    assert again.report["parts"] == {"all": parts, "reused": parts}
    for others in (SPEC[:3], SPEC[::-1], SPEC[4:]):
        forget()
        compiled(others)
        assert compiled(SPEC).bundle.encode() == fresh.bundle.encode()


@pytest.mark.parametrize("place", [0, 6, 12, len(SPEC)])
def test_a_tool_more_costs_a_group(place: int) -> None:
    """Runs begin and end elsewhere near the tool alone."""
    compiled(SPEC, whitespace=8)  # where runs begin and end follows from the content of the members
    new = tool("new", {"type": "object", "properties": {"new": {}}})
    more = compiled([*SPEC[:place], new, *SPEC[place:]], whitespace=8)
    made = more.report["parts"]["all"] - more.report["parts"]["reused"]
    assert 1 <= made <= 3  # its run, perhaps cut in two, and the next one
    assert more.report["parts"]["all"] >= 6


def test_tools_behind_the_last_end_are_groups_of_powers_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """So what is made anew when tools are added one by one is little, and depends on the tools alone."""
    monkeypatch.setattr(groups, "_ONE_IN", 1 << 30)  # no content ends a run
    keys = [tool(f"t{n}", {"type": "object", "properties": {f"k{n}": {"type": "integer"}}}) for n in range(13)]
    made = []
    for count in range(5, 13):  # one of them is any JSON
        parts = compiled(keys[:count]).report["parts"]
        assert parts["all"] - 1 == count.bit_count()
        made.append(parts["all"] - parts["reused"])
    assert made[1:] == [1] * 7
    fresh = compiled(keys[:12]).bundle.encode()
    forget()
    assert compiled(keys[:12]).bundle.encode() == fresh


def test_a_small_spec_has_none() -> None:
    """So each of its tools is a part for any other spec."""
    compiled(SPEC[:3])
    assert compiled(SPEC[1:2]).report["parts"] == {"all": 2, "reused": 2}  # one is any JSON


@pytest.mark.parametrize("place", [0, 5, 15])
def test_a_tool_that_cannot_be_in_a_group(place: int) -> None:
    """It and its group are made one by one, whatever is known before."""
    spec = [*SPEC[:place], tool("shared", SHARED), *SPEC[place:]]
    fresh, other = compiled(spec), one_by_one(spec)
    assert fresh.report["parts"]["all"] < other.report["parts"]["all"]
    for n in range(15):
        compare(fresh.bundle, other.bundle, f"shared {place} {n}", 60)
    again = compiled(spec)  # of the fresh one nothing is known any more
    parts = again.report["parts"]
    assert again.bundle.encode() == fresh.bundle.encode() and parts["all"] == fresh.report["parts"]["all"]
    known = compiled(spec)
    assert known.bundle.encode() == fresh.bundle.encode()
    assert known.report["parts"] == {"all": parts["all"], "reused": parts["all"]}


def test_an_error_is_of_the_tool() -> None:
    wide = {"type": "object", "properties": {"x": {"pattern": "^(a|b)*a(a|b){9}$"}}, "required": ["x"]}
    spec = [*SPEC[:5], tool("wide", wide), *SPEC[5:]]
    told = []
    for compiling in (compiled, one_by_one):
        with pytest.raises(ToolcError) as caught:
            compiling(spec, budget=Budget(pattern_states=100))
        told.append(caught.value.as_dict())
    assert told[0] == told[1]
    assert "/5/function/parameters/properties/x" in told[0]["place"]


def test_rules_are_shared_where_all_that_they_mention_is() -> None:
    def grammar(b: bytes) -> ir.Grammar:
        rules: dict[str, ir.Expr] = {
            "start": ir.Literal(b"0;"),
            "a": ir.Sequence((ir.Ref("b"), ir.Literal(b"1"))),
            "b": ir.Literal(b),
            "c": ir.Sequence((ir.Ref("c"), ir.Literal(b"2"))),
            "stub": ir.Literal(b"\xff0\xff"),
        }
        return ir.Grammar(rules)

    shared = groups._Shared()
    assert shared.names("0:", grammar(b"x"), [4]) == {}
    assert shared.names("1:", grammar(b"x"), [4]) == {rule: f"0:{rule}" for rule in ("a", "b", "c", "stub")}
    assert shared.names("2:", grammar(b"y"), [4]) == {"c": "0:c", "stub": "0:stub"}, "b is another one"
    assert shared.names("3:", grammar(b"x"), [5]) == {"a": "0:a", "b": "0:b", "c": "0:c"}, "the stub is another one"
    marked = replace(grammar(b"x"), marks={"b": ir.Mark("value")})
    assert shared.names("4:", marked, [4]) == {"c": "0:c", "stub": "0:stub"}


def test_strings_and_blanks_of_a_group_are_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, ir.Grammar]] = []
    grammar = groups.Group.grammar

    def noted(self: groups.Group) -> ir.Grammar:
        made.append((len(self.members), grammar(self)))
        return made[-1][1]

    monkeypatch.setattr(groups.Group, "grammar", noted)
    lists = [{"type": "array", "items": {"type": "string"}, "maxItems": n + 2} for n in range(6)]
    spec = [tool(f"tool_{n}", {"type": "object", "properties": {"x": one}}) for n, one in enumerate(lists)]
    bundle = compiled(spec, whitespace=8).bundle
    for members, one in made:
        names = [rule.partition(":")[2] for rule in one.rules]
        assert names.count("str") == names.count("_w") == 1
        assert names.count("x") == members, "of the same name, but not the same"
    assert made
    for n in range(10):
        compare(bundle, whole(spec, whitespace=8), f"strings {n}", 60, brute=n < 2)
