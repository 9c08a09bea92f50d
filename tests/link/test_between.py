"""What many calls have alike between name and arguments is a frame of its own (link/between.py)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.cases.protocols import FAMILIES
from tests.protocols.test_protocols import BOTH, CALLS
from tests.protocols.test_protocols import TOOLS as CLOSED
from tests.protocols.test_reading import read
from tests.protocols.test_subset import budgets_are_kept
from toolc.compiler.grammar.assemble import Mark
from toolc.compiler.grammar.ir import Expr, Grammar, Literal, Ref, Repeat, Special, sequence
from toolc.compiler.link import between
from toolc.compiler.link.between import with_between
from toolc.compiler.pipeline import Compiled

from .test_link import compare
from .test_tails import RAW, along, compiled, own_cache, whole

__all__ = ["own_cache"]

JSON = [name for name in FAMILIES if name not in (*RAW, "restgpt")]
HAVING = {"mistral", "json", "hermes", "llama3", "kimi_k2", "phi4_mini", "granite", "cohere", "harmony"}


def made_between(name: str, as_tokens: bool) -> Compiled:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(between, "MANY", 2)
        return compiled(name, CLOSED, as_tokens)


@BOTH
@pytest.mark.parametrize("name", JSON)
def test_masks_calls_and_bounds_are_those_of_the_whole(name: str, as_tokens: bool) -> None:
    made, family = made_between(name, as_tokens), FAMILIES[name]
    one, plain, other = made.bundle, compiled(name, CLOSED, as_tokens).bundle, whole(name, CLOSED, as_tokens)
    assert made.report["parts"] is not None
    assert one.meta["separable"] == plain.meta["separable"]
    for entry, least in plain.min_tokens.items():  # no token is counted upon to end the frame and more
        assert least is not None and least <= (one.min_tokens[entry] or 0) <= least + 1
    for calls in ([call] for call in CALLS):
        for n in range(3):
            along(one, other, family.write(calls, compact=n % 2 > 0), "required", f"{name}{n}", 0.2)
    for calls in [[call] for call in CALLS] + [CALLS] * family.many:
        found = read(one, "required", family.write(calls))[0].calls
        assert found == read(other, "required", family.write(calls))[0].calls
        assert [(call.name, call.arguments) for call in found] == calls
    for n in range(6):
        compare(one, other, f"{name} {n}", 40, brute=n < 2)
    some = [bundle.subset(["get_all", "stop.now-1"]) for bundle in (one, other)]
    for bundle in (one, some[0]):
        budgets_are_kept(bundle, f"{name}{as_tokens}")
    for n in range(4):
        along(*some, family.write(CALLS[1:] if family.many else CALLS[1:2]), "required", f"{name}{n}", 0.2)
        compare(*some, f"{name} {n} subset", 40)


def test_which_families_have_it() -> None:
    for name in JSON:
        states = [made.bundle.tables.states for made in (made_between(name, True), compiled(name, CLOSED))]
        assert (states[0] < states[1]) == (name in HAVING)


def test_few_tools_have_none() -> None:
    few, many = compiled("hermes", CLOSED), made_between("hermes", True)
    assert few.report["counts"]["stack_symbols"] < many.report["counts"]["stack_symbols"]
    tools = [{"name": f"tool_{n}", "input_schema": CLOSED[0]["input_schema"]} for n in range(between.MANY)]
    counts = [compiled("hermes", tools[:some]).report["counts"] for some in (-2, -1, between.MANY)]
    more = np.diff([count["stack_symbols"] for count in counts])
    assert more[0] == 1 and more[1] >= between.MANY


def grammar(names: list[str], *items: Expr) -> Grammar:
    rules: dict[str, Expr] = {"w": Repeat(Literal(b" "), 0, 8)}
    marks = {}
    for n, name in enumerate(names):
        rules |= {f"t{n}": Ref(f"member{n}"), f"n{n}": Literal(name.encode()), f"a{n}": Literal(b"{}")}
        rules[f"member{n}"] = sequence(Literal(b'"'), Ref(f"n{n}"), *items, Ref(f"a{n}"))
        marks |= {f"t{n}": Mark("tool", n), f"n{n}": Mark("name"), f"a{n}": Mark("arguments")}
    return Grammar({**rules, "start": Ref("t0")}, "start", marks=marks)


def cut(names: list[str], *items: Expr) -> Any:
    made = with_between(grammar(names, *items), [f"a{n}" for n in range(len(names))])
    assert with_between(grammar(names, *items), []).groups == frozenset()  # no arguments in brackets
    return [made.rules[rule] for rule in sorted(made.groups)], made.rules["t0"]


def test_what_is_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(between, "MANY", 3)
    names, gap = ["a", "b", "ab:c"], Ref("w")
    quote, colon, bracket = Literal(b'"'), Literal(b":"), Literal(b"(")
    found, rule = cut(names, quote, gap, colon, gap)
    assert found == [sequence(quote, gap, colon)]
    assert rule == sequence(quote, Ref("n0"), Ref("#between0"), gap, Ref("a0"))
    assert cut(names, Special("<sep>"), gap, colon)[0] == [sequence(Special("<sep>"), gap, colon)]
    assert cut(names[:2], quote, gap, colon)[0] == []  # few tools
    assert cut(names, colon, gap, quote)[0] == []  # a name goes on with its first byte
    assert cut(names, gap, colon)[0] == [] and cut(names, quote, gap)[0] == []  # nothing to begin or end with
    assert cut(names, quote, bracket, colon)[0] == []
