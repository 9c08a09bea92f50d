"""Linking: the masks of a bundle put together from parts are those of the whole, and its bytes do not depend on what
was compiled before."""

from __future__ import annotations

import functools
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolc.compiler import Options, compile_grammar, compile_schema, compile_tools
from toolc.compiler.budget import Budget
from toolc.compiler.compiled import Compiled
from toolc.compiler.errors import BudgetError
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.link import cache, link
from toolc.compiler.passes import Pass, without
from toolc.compiler.schema import cached_rules as pieces
from toolc.compiler.vocab import load_tokens
from toolc.runtime import Bundle, Matcher, Vocab, subset

from ..lift.brute import brute_mask

OPEN = {"type": "object", "properties": {"free": {"type": "object"}}, "required": ["free"]}
LIST = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "integer"}}}}},
    "additionalProperties": False,
}
COUNTED = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 40}, "many": {"type": "array", "items": {"type": "number"}}},
    "required": ["text"],
    "additionalProperties": False,
}
COUNTED_ANY = {"type": "object", "properties": {"some": {"type": "array", "items": {}, "minItems": 4, "maxItems": 40}}}
TREE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"$ref": "#"}},
    "required": ["value"],
    "additionalProperties": False,
}
CHOICE = {"anyOf": [COUNTED, {"type": "object", "properties": {"k": {"const": "}"}}, "additionalProperties": False}]}
NAMES = {"type": "object", "properties": {"ключ": {"enum": ["да", "нет"]}}, "additionalProperties": False}
EMPTY = {"type": "object", "properties": {}, "additionalProperties": False}
SCHEMAS = (OPEN, LIST, COUNTED, COUNTED_ANY, TREE, CHOICE, NAMES, EMPTY)


@functools.cache
def vocab() -> Vocab:
    return build_vocab(load_tokens("builtin"))


def tool(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def tools(*numbers: int) -> list[dict[str, Any]]:
    return [tool(f"tool_{n}", SCHEMAS[n]) for n in numbers]


def forget() -> None:
    """Know what a new process does."""
    cache.forget()
    pieces.forget()


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLC_CACHE", str(tmp_path_factory.mktemp("cache")))
    forget()


def compiled(spec: Any, **options: Any) -> Compiled:
    if not isinstance(spec, list):
        return compile_schema(spec, vocab(), options=Options(**options))
    return compile_tools(spec, vocab(), options=Options(**{"protocol": "hermes", **options}))


def whole(spec: Any, **options: Any) -> Bundle:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link, "split", lambda *_: None)
        made = compiled(spec, **options)
    assert made.report["parts"] is None
    return made.bundle


def bits(matcher: Matcher) -> np.ndarray:
    mask = np.zeros(matcher.bundle.vocab.words, np.uint32)
    matcher.fill(mask)
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[: matcher.bundle.vocab.size].astype(bool)


def choose(allowed: np.ndarray, held: Bundle, rng: random.Random) -> int:
    """Long tokens and structure before others: what goes through several frames at once."""
    some = [int(allowed[n]) for n in rng.sample(range(allowed.size), min(40, allowed.size))]
    text = held.vocab.token
    some.sort(key=lambda token: (sum(b in b'{}[]":,<>' for b in text(token)), len(text(token))))
    return some[-1] if rng.random() < 0.5 else rng.choice(some)


def compare(one: Bundle, other: Bundle, seed: str, steps: int, brute: bool = False) -> set[int]:
    """Masks of two bundles on one random walk; returns the states of the first that were met."""
    rng = random.Random(seed)
    entry = rng.choice(sorted(set(one.entry) & set(other.entry)))
    a, b, met, text = Matcher(one, entry), Matcher(other, entry), set(), []
    for _ in range(steps):
        mask = bits(a)
        assert (mask == bits(b)).all(), (entry, b"".join(map(one.vocab.token, text)))
        if brute:
            assert (mask == brute_mask(one, a)).all(), (entry, text)
        met.add(a.state)
        allowed = np.flatnonzero(mask)
        token = choose(allowed, one, rng)
        a.advance(token)
        b.advance(token)
        text.append(token)
        if a.is_finished:
            break
    return met


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"protocol": "json"},
        {"protocol": "llama3", "whitespace": "compact"},
        {"protocol": "mistral", "whitespace": "spaced"},
        {"protocol": "hermes", "whitespace": "pretty"},
        {"response": {"type": "object"}},
    ],
    ids=str,
)
def test_masks_are_those_of_the_whole(options: dict[str, Any]) -> None:
    spec = tools(0, 1, 2, 4, 7, 3)
    made = compiled(spec, **options)
    assert made.report["parts"] is not None and made.report["parts"]["all"] >= 6
    other = whole(spec, **options)
    assert made.bundle.entry.keys() == other.entry.keys()
    met: set[int] = set()
    for n in range(40):
        met |= compare(made.bundle, other, f"{options} {n}", 60, brute=n < 8)
    assert len(met) > 100


@pytest.mark.parametrize("soft_depth", [1, 2, 5, 30])
def test_the_soft_depth_may_be_small(soft_depth: int) -> None:
    spec = tools(0, 1, 4)
    made = compiled(spec, soft_depth=soft_depth)
    other = whole(spec, soft_depth=soft_depth)
    assert made.bundle.meta["modes"] == other.meta["modes"] == 2
    for n in range(25):
        compare(made.bundle, other, f"depth {soft_depth} {n}", 60, brute=True)


def test_subsets_are_those_of_the_whole() -> None:
    spec = tools(0, 1, 2, 4)
    made, other = compiled(spec).bundle, whole(spec)
    assert made.meta["separable"] and other.meta["separable"]
    assert 0 < made.tables.narrowing.size < made.tables.states / 2
    for n, chosen in enumerate((["tool_0"], ["tool_1", "tool_4"], ["tool_0", "tool_2"])):
        some, wanted = subset(made, chosen), subset(other, chosen)
        for k in range(12):
            compare(some, wanted, f"subset {n} {k}", 50)


def test_budgets_are_kept() -> None:
    """Whatever is chosen, a run ends with the tokens that were left, and the bound falls as the close says."""
    spec = tools(0, 1, 2, 4, 7)
    bundle, other = compiled(spec).bundle, whole(spec)
    assert bundle.min_tokens.keys() == other.min_tokens.keys()
    for n in range(40):
        rng = random.Random(f"budget {n}")
        entry = rng.choice(sorted(bundle.entry))
        least = bundle.min_tokens[entry]
        assert least is not None and least <= 2 * (other.min_tokens[entry] or 0)
        matcher = Matcher(bundle, entry, budget=least + rng.randrange(40))
        while not matcher.is_finished:
            assert matcher.left is not None and matcher.left > 0
            allowed = np.flatnonzero(bits(matcher))
            matcher.advance(choose(allowed, bundle, rng))


def test_states_are_counted_part_by_part() -> None:
    """Many tools pass no limit of states together that none of them passes alone; one that does is named."""
    keys = [{f"key_{n}_{k}": {"type": "string"} for k in range(30)} for n in range(8)]
    spec = [tool(f"t{n}", {"type": "object", "properties": keys[n]}) for n in range(8)]
    options = Options(protocol="hermes", jobs=1)
    with without(Pass.TOOL_GROUPS):
        counts = compile_tools(spec, options=options).report["counts"]
        limit = int(counts["states"]) // 2
        bundle = compile_tools(spec, options=replace(options, budget=Budget(states=limit))).bundle
        assert bundle.tables.states > limit
        spec[5]["function"]["parameters"]["properties"] |= {f"more_{k}": {"type": "integer"} for k in range(300)}
        with pytest.raises(BudgetError, match="states") as refused:
            compile_tools(spec, options=replace(options, budget=Budget(states=limit)))
    assert refused.value.place is not None and "#/5/" in refused.value.place


def test_forced_tokens_are_allowed() -> None:
    bundle = compile_tools(tools(0, 1, 2, 4), options=Options(protocol="hermes")).bundle
    seen = 0
    for n in range(30):
        rng = random.Random(f"forced {n}")
        matcher = Matcher(bundle, rng.choice(sorted(bundle.entry)))
        for _ in range(60):
            if matcher.is_finished:
                break
            forced = matcher.forced().tolist()
            if forced:
                seen += 1
                for token in forced:
                    assert bits(matcher)[token]
                    matcher.advance(token)
                continue
            matcher.advance(choose(np.flatnonzero(bits(matcher)), bundle, rng))
    assert seen > 50


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from((0, 1, 2, 4, 6, 7)), unique=True, min_size=1, max_size=4), st.randoms())
def test_linked_and_fresh_bytes_are_equal(numbers: list[int], order: random.Random) -> None:
    """Whatever was compiled before: nothing, the same, other tools, the same in another order."""
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache.Parts, "_read", lambda self, name: None)
        fresh = compiled(tools(*numbers))
    assert fresh.report["parts"]["reused"] == 0
    again = compiled(tools(*numbers))
    parts = fresh.report["parts"]
    assert again.bundle.encode() == fresh.bundle.encode()
    assert again.report["parts"] == {"all": parts["all"], "reused": parts["all"]}
    forget()
    others = [n for n in (0, 1, 2, 4, 6, 7) if n not in numbers]
    shuffled = order.sample(numbers, len(numbers))
    compiled(tools(*others, *shuffled))
    compiled(tools(*shuffled))
    after = compiled(tools(*numbers))
    assert after.bundle.encode() == fresh.bundle.encode()
    forget()  # from the files
    assert compiled(tools(*numbers)).bundle.encode() == fresh.bundle.encode()


def test_pieces_that_are_kept_change_no_bytes() -> None:
    """Tools whose texts are kept from another spec, with a union that stays in the main part and equal schemas."""
    spec = [*tools(6, 5, 0), tool("other", SCHEMAS[0]), tool("last", SCHEMAS[3])]
    for options in ({}, {"named": False, "whitespace": "compact"}):
        forget()
        compiled(spec[1:3], **options)
        kept = compiled(spec, **options).bundle.encode()
        forget()
        assert compiled(spec, **options).bundle.encode() == kept


def test_a_tool_more_costs_one_part() -> None:
    compiled(tools(0, 1))
    forget()
    more = compiled(tools(0, 1, 2))
    assert more.report["parts"]["reused"] == more.report["parts"]["all"] - 1
    less = compiled(tools(1))
    assert less.report["parts"]["reused"] == less.report["parts"]["all"]


def test_damaged_files_are_made_anew() -> None:
    fresh = compiled(tools(0, 2)).bundle.encode()
    folder = cache.vocab_cache_dir() / "parts"
    files = sorted(folder.iterdir())
    assert len(files) == 3
    cut, edited, renamed = files
    cut.write_bytes(cut.read_bytes()[:-100])
    data = bytearray(edited.read_bytes())
    data[len(data) // 2] ^= 1
    edited.write_bytes(bytes(data))
    renamed.write_bytes(files[0].read_bytes())
    forget()
    again = compiled(tools(0, 2))
    assert again.report["parts"]["reused"] == 0
    assert again.bundle.encode() == fresh
    forget()
    assert compiled(tools(0, 2)).report["parts"]["reused"] == 3


def test_the_least_recently_used_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(tools(2))
    size = sum(file.stat().st_size for file in (cache.vocab_cache_dir() / "parts").iterdir())
    monkeypatch.setattr(cache, "MOST_STORED", 2 * size)
    monkeypatch.setattr(cache, "MOST_HELD", 0)
    compiled(tools(0, 1))
    assert sum(file.stat().st_size for file in (cache.vocab_cache_dir() / "parts").iterdir()) <= 2 * size
    assert compiled(tools(2)).report["parts"]["reused"] == 0


LATE = """%import .protocol (_w, _c, _k)
tool{name, arguments}: "\\"arguments\\"" _k arguments _c "\\"name\\"" _k "\\"" name "\\""
call{tools}: _w "{" _w tools _w "}" _w
"""


def test_what_cannot_be_told_apart_is_compiled_as_a_whole(tmp_path: Path) -> None:
    """The arguments come before the name that tells the tools apart: they are entered together."""
    assert compiled([tool("a", CHOICE)]).report["parts"] is None
    (tmp_path / "late.lark").write_text(LATE)
    protocol = tmp_path / "late.lark"
    assert compiled(tools(2), protocol=protocol).report["parts"] == {"all": 1, "reused": 0}
    made = compiled(tools(2, 7), protocol=protocol)
    assert made.report["parts"] is None


def test_a_union_stays_in_the_main_part() -> None:
    spec = [tool("a", CHOICE), tool("b", COUNTED)]
    made = compiled(spec)
    assert made.report["parts"]["all"] == 1
    other = whole(spec)
    for n in range(15):
        compare(made.bundle, other, f"union {n}", 50, brute=True)


NESTED = {
    "type": "object",
    "properties": {
        "list": {"type": "array", "items": OPEN, "maxItems": 3},
        "both": {"anyOf": [{"type": "object"}, {"type": "string", "maxLength": 5}]},
        "text": {"type": "string", "pattern": "^[a-z]{2,40}$"},
    },
    "required": ["list"],
}
LINKED = {
    "any": True,
    "open": OPEN,
    "nested": NESTED,
    "array": {"type": "array", "items": {}, "minItems": 1},
    "keys": {"type": "object", "patternProperties": {"^x-": {}}, "additionalProperties": {"type": "integer"}},
    "names": {"type": "object", "properties": {"obj": LIST, "arr": {"type": "array", "items": COUNTED}, "any": {}}},
    "dependent": {"type": "object", "properties": {"a": {}, "b": {"type": "null"}}, "dependentRequired": {"a": ["b"]}},
}


@pytest.mark.parametrize("name", LINKED)
def test_any_json_of_a_schema_is_a_part(name: str) -> None:
    schema = LINKED[name]
    made = compiled(schema)
    assert made.report["parts"] == {"all": 1, "reused": 0}
    other = whole(schema)
    assert made.bundle.min_tokens == other.min_tokens
    for n in range(25):
        compare(made.bundle, other, f"{name} {n}", 60, brute=n < 8)
    again = compiled(True), compiled(schema)
    assert [one.report["parts"]["reused"] for one in again] == [1, 1]
    assert again[1].bundle.encode() == made.bundle.encode()
    forget()  # from the file
    assert compiled(schema).bundle.encode() == made.bundle.encode()


@pytest.mark.parametrize("soft_depth", [3, 4, 7])
def test_a_schema_at_a_small_soft_depth(soft_depth: int) -> None:
    """Linked where the frames of the schema lie below it, else compiled as a whole."""
    made, other = compiled(NESTED, soft_depth=soft_depth), whole(NESTED, soft_depth=soft_depth)
    for n in range(25):
        compare(made.bundle, other, f"depth {soft_depth} {n}", 60, brute=n < 8)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"next": {"$ref": "#"}}},  # recurs, and is open
        {"type": "object", "properties": {"some": {"type": "array", "items": {}, "minItems": 2, "maxItems": 9}}},
        LIST["properties"]["rows"] | {"maxItems": 9, "items": {"type": "integer"}},
    ],
    ids=["recursive", "counted", "closed"],
)
def test_schemas_that_are_compiled_as_a_whole(schema: Any) -> None:
    made = compiled(schema)
    assert made.report["parts"] is None
    assert made.bundle.encode() == whole(schema).encode()


def test_a_grammar_of_ones_own_is_compiled_as_a_whole() -> None:
    text = 'start: arr\narr: "[" (arr ("," arr)*)? "]"\n'
    assert compile_grammar(text, vocab()).report["parts"] is None


def test_linked_schemas_keep_budgets() -> None:
    for name in ("nested", "any", "dependent"):
        bundle = compiled(LINKED[name]).bundle
        for n in range(20):
            rng = random.Random(f"budget {name} {n}")
            least = bundle.min_tokens["start"]
            assert least is not None
            matcher = Matcher(bundle, budget=least + rng.randrange(40))
            while not matcher.is_finished:
                assert matcher.left is not None and matcher.left > 0
                matcher.advance(choose(np.flatnonzero(bits(matcher)), bundle, rng))
