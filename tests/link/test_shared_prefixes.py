"""What leads to the arguments of many calls is read in the frame of the arguments (link/shared_prefixes.py)."""

from __future__ import annotations

import pytest

from tests.cases.protocols import FAMILIES
from tests.protocols.test_protocols import BOTH, CALLS
from tests.protocols.test_protocols import TOOLS as CLOSED
from tests.protocols.test_reading import read
from tests.protocols.test_subset import budgets_are_kept
from toolc.compiler.grammar.assemble import Mark
from toolc.compiler.ir.nodes import Closed, Expr, Grammar, Literal, Ref, Repeat, Special, sequence
from toolc.compiler.link import shared_prefixes as leads
from toolc.compiler.link.shared_prefixes import with_leads
from toolc.compiler.pipeline import Compiled
from toolc.runtime import Reader, subset

from .test_call_tails import RAW, along, compiled, own_cache, whole
from .test_link import compare

__all__ = ["own_cache"]

JSON = [name for name in FAMILIES if name not in (*RAW, "restgpt")]
HAVING = {"mistral", "json", "hermes", "llama3", "kimi_k2", "phi4_mini", "granite", "cohere", "harmony"}


def made_led(name: str, as_tokens: bool) -> Compiled:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leads, "MANY", 2)
        return compiled(name, CLOSED, as_tokens)


@BOTH
@pytest.mark.parametrize("name", JSON)
def test_masks_calls_and_bounds_are_those_of_the_whole(name: str, as_tokens: bool) -> None:
    made, family = made_led(name, as_tokens), FAMILIES[name]
    one, plain, other = made.bundle, compiled(name, CLOSED, as_tokens).bundle, whole(name, CLOSED, as_tokens)
    assert made.report["parts"] is not None
    assert one.meta["separable"] == plain.meta["separable"]
    for entry, least in plain.min_tokens.items():
        # No token is counted upon to end a frame and more, nor to enter a part. The built-in vocabulary has tokens
        # for most of a lead.
        assert least is not None and least <= (one.min_tokens[entry] or 0) <= least + 4
    for calls in ([call] for call in CALLS):
        for n in range(3):
            along(one, other, family.write(calls, compact=n % 2 > 0), "required", f"{name}{n}", 0.2)
    for calls in [[call] for call in CALLS] + [CALLS] * family.many:
        found = read(one, "required", family.write(calls))[0].calls
        assert found == read(other, "required", family.write(calls))[0].calls
        assert [(call.name, call.arguments) for call in found] == calls
    for n in range(6):
        compare(one, other, f"{name} {n}", 40, brute=n < 2)
    some = [subset(bundle, ["get_all", "stop.now-1"]) for bundle in (one, other)]
    for bundle in (one, some[0]):
        budgets_are_kept(bundle, f"{name}{as_tokens}")
    for n in range(4):
        along(*some, family.write(CALLS[1:] if family.many else CALLS[1:2]), "required", f"{name}{n}", 0.2)
        compare(*some, f"{name} {n} subset", 40)


def led(made: Compiled) -> bool:
    t = made.bundle.tables
    return bool(t.mark[t.symbol_mark, 3].any())


def test_which_families_have_it() -> None:
    for name in JSON:
        assert led(made_led(name, True)) == (name in HAVING)
        assert not led(compiled(name, CLOSED))


def test_few_tools_have_none() -> None:
    tools = [{"name": f"tool_{n}", "input_schema": CLOSED[0]["input_schema"]} for n in range(leads.MANY)]
    assert not led(compiled("hermes", tools[:-1]))
    many = compiled("hermes", tools)
    assert led(many)
    text = FAMILIES["hermes"].write([("tool_7", CALLS[0][1])])
    assert [call.name for call in read(many.bundle, "required", text)[0].calls] == ["tool_7"]


def test_arguments_that_recur_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leads, "MANY", 2)
    tree = {"type": "object", "properties": {"of": {"$ref": "#"}}, "additionalProperties": False}
    plain = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
    tools = [{"name": name, "input_schema": schema} for name, schema in (("tree", tree), ("a", plain), ("b", plain))]
    made = compiled("hermes", tools)
    assert led(made)
    for name, arguments in (("tree", {"of": {"of": {}}}), ("a", {}), ("b", {"n": 1})):
        text = FAMILIES["hermes"].write([(name, arguments)])
        assert [(call.name, call.arguments) for call in read(made.bundle, "required", text)[0].calls] == [
            (name, arguments)
        ]


def test_a_call_streams_as_it_does_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte by itself: where the arguments begin, and that the blanks before them are none of theirs."""
    monkeypatch.setattr(leads, "MANY", 2)
    text = FAMILIES["hermes"].write(CALLS).replace('"arguments": {', '"arguments" :  {')
    assert ":  {" in text
    for bundle in (compiled("hermes", CLOSED).bundle, whole("hermes", CLOSED)):
        found = read(bundle, "required", text)[0]
        assert [call.text[:1] + call.text[-1:] for call in found.calls] == ["{}"] * len(CALLS)
    one, other = Reader(compiled("hermes", CLOSED).bundle, "required"), Reader(whole("hermes", CLOSED), "required")
    for byte in text.encode():
        assert one.feed_text(bytes((byte,))) == other.feed_text(bytes((byte,)))
        assert one.unfinished == other.unfinished
    assert one.finish() == other.finish()
    assert one.calls == other.calls


def grammar(names: list[str], *items: Expr) -> Grammar:
    """Tools whose arguments, which stand apart, are behind some items."""
    rules: dict[str, Expr] = {"rule": Repeat(Ref("blank"), 0, 8), "blank": Literal(b" "), "again": Ref("again")}
    marks, apart = {}, {}
    for n, name in enumerate(names):
        rules |= {f"t{n}": Ref(f"member{n}"), f"n{n}": Literal(name.encode())}
        rules[f"member{n}"] = sequence(Literal(b'"'), Ref(f"n{n}"), *items, Ref(f"a{n}"))
        marks |= {f"t{n}": Mark("tool", n), f"n{n}": Mark("name"), f"a{n}": Mark("arguments")}
        apart[f"a{n}"] = Closed(Grammar({"a": Literal(b"{}")}, "a"), ("a",)), ""
    return Grammar({**rules, "start": Ref("t0")}, "start", marks=marks, apart=apart)


def cut(names: list[str], *items: Expr) -> tuple[Expr, dict[str, Expr]]:
    """The call of the first tool, and its arguments."""
    plain = grammar(names, *items)
    made = with_leads(plain, [f"a{n}" for n in range(len(names))])
    assert with_leads(plain, []) == plain  # no arguments in brackets
    last = list(made.apart.values())[-1][0].grammar
    assert (last.groups != frozenset()) == (made.rules != plain.rules)
    return made.rules["t0"], last.rules


def test_what_leads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leads, "MANY", 3)
    names, gap = ["a", "b", "ab:c"], Repeat(Literal(b" "), 0, 8)
    quote, colon, bracket = Literal(b'"'), Literal(b":"), Literal(b"(")
    call, arguments = cut(names, Literal(b'",'), gap, colon, gap)
    assert call == sequence(quote, Ref("n0"), Ref("a0#led0"))
    between = sequence(Literal(b","), gap, colon)
    assert arguments == {"a": sequence(quote, Ref("#between"), gap, Literal(b"{}")), "#between": between}
    separator = Special("<sep>")
    assert cut(names, separator, colon, gap, colon)[1]["a"] == sequence(separator, Ref("#between"), Literal(b"{}"))
    as_it_was = Ref("member0")
    assert cut(names[:2], quote, colon, gap, colon)[0] == as_it_was  # few tools
    assert cut(names, colon, colon, gap, quote)[0] == as_it_was  # a name goes on with its first byte
    assert cut(names, gap, colon)[0] == as_it_was and cut(names, quote, gap)[0] == as_it_was  # no end, or no beginning
    assert cut(names, quote, gap, colon)[0] == as_it_was  # one symbol cannot begin and end it
    assert cut(names, quote, colon, colon)[0] == as_it_was  # but delimiters
    assert cut(names, quote, gap, bracket, colon)[0] == as_it_was
    # What has names of its own in this grammar is written out: pieces are those of all grammars.
    assert cut(names, Literal(b'",'), Ref("rule"), colon, gap) == cut(names, Literal(b'",'), gap, colon, gap)
    assert cut(names, Literal(b'",'), Ref("_w"), colon)[1]["#between"] == sequence(Literal(b","), Ref("_w"), colon)
    assert cut(names, Literal(b'",'), Ref("again"), colon)[0] == as_it_was
    assert cut(names, Literal(b'",'), Ref("n0"), colon)[0] == as_it_was  # is marked
