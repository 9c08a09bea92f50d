"""Explanations agree with masks, name the value that is written, and are short; reprs are lines."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_schema, compile_tools, read_spec
from toolc.compiler.cli import cli
from toolc.runtime import BatchMatcher, Bundle, DecodeError, Matcher, Reader, explain
from toolc.runtime.calls.explain import open_path

POINT = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "integer", "maximum": 9}], "items": False}
SCHEMA = {
    "type": "object",
    "properties": {
        "place": {"type": "string", "minLength": 1},
        "units": {"enum": ["celsius", "fahrenheit"]},
        "days": {"anyOf": [{"type": "integer", "maximum": 14}, {"type": "null"}]},
        "at": {"$ref": "#/$defs/point"},
        "a/b": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "boolean"}}}},
    },
    "additionalProperties": False,
    "$defs": {"point": POINT},
}
TOOLS = [
    {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
    {"type": "function", "function": {"name": "stop"}},
]


def bundle_of(protocol: str | None) -> Bundle:
    return compile_tools(TOOLS, "builtin", options=Options(protocol=protocol)).bundle


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return bundle_of(None)


HEAD = '{"name": "look", "arguments": '
BASE = "spec#/0/function/parameters"

# id; text; offset; pointer; place and keywords that are named
TEXTS: list[tuple[str, str, int, str | None, tuple[str, str] | None]] = [
    ("name", '{"name": "lock', 12, None, None),
    ("enum", HEAD + '{"units": "kel', 41, "/units", (f"{BASE}/properties/units", "enum")),
    ("short", HEAD + '{"place": ""', 41, "/place", (f"{BASE}/properties/place", "minLength")),
    ("maximum", HEAD + '{"days": 99', 40, "/days", (f"{BASE}/properties/days/anyOf/0", "maximum")),
    ("reference", HEAD + '{"at": [1, 23', 42, "/at/1", (f"{BASE}/properties/at", "$ref")),
    ("items", HEAD + '{"a/b": [{"x": 1', 45, "/a~1b/0/x", (f"{BASE}/properties/a~1b/items/properties/x", "type")),
    ("second", HEAD + '{"a/b": [{}, {"x": 1', 49, "/a~1b/1/x", (f"{BASE}/properties/a~1b/items/properties/x", "type")),
    ("key", HEAD + '{"placf', 36, "", (BASE, "additionalProperties")),
    ("between", HEAD + '{"place": "x"x', 43, "", (BASE, "properties")),
]


@pytest.mark.parametrize(("text", "offset", "pointer", "rule"), [row[1:] for row in TEXTS], ids=[r[0] for r in TEXTS])
def test_texts(text: str, offset: int, pointer: str | None, rule: tuple[str, str] | None, bundle: Bundle) -> None:
    found = explain(bundle, text)
    assert not found.allowed and found.found and found.expected
    assert (found.offset, found.pointer) == (offset, pointer), str(found)
    if rule is None:
        assert found.rules == ()
    else:
        assert rule[1] in dict(found.rules)[rule[0]]
    assert len(str(found)) < 600
    assert explain(bundle, text[: -(len(text) - offset)]).allowed


def test_parameters_in_tags() -> None:
    bundle = bundle_of("qwen3_coder")
    text = "<tool_call>\n<function=look>\n<parameter=units>\nkel"
    found = explain(bundle, text, "required")
    assert not found.allowed and found.pointer == "/units"
    assert (f"{BASE}/properties/units", ("enum",)) in found.rules


def test_tokens_that_are_refused_are_explained_and_no_others() -> None:
    """Along random walks every token is explained as the mask has it."""
    bundle = bundle_of("hermes")
    draw, vocab = random.Random(1), bundle.vocab
    for seed in range(6):
        matcher = Matcher(bundle, "required", budget=40 if seed % 2 else None)
        mask = np.zeros(vocab.words, np.uint32)
        read: list[int] = []
        for _ in range(25):
            matcher.fill(mask)
            bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: vocab.size]
            allowed = np.flatnonzero(bits)
            for token in {*draw.sample(range(vocab.size), 6), int(draw.choice(allowed))}:
                told = matcher.explain(token)
                assert told.allowed == bool(bits[token]) == matcher.allows(token), str(told)
                reads = explain(bundle, [*read, token], "required").allowed
                assert reads == told.allowed or "only the budget" in told.reason, str(told)
            token = int(draw.choice(allowed))
            matcher.advance(token)
            read.append(token)
            if matcher.is_finished:
                break


def test_what_a_budget_forbids(bundle: Bundle) -> None:
    least = bundle.min_tokens["start"]
    assert least is not None
    told = Matcher(bundle, budget=least).explain("{")
    assert not told.allowed and "only the budget" in told.reason and str(least) in told.reason


def test_tokens_by_text(bundle: Bundle) -> None:
    matcher = Matcher(bundle)
    assert matcher.explain("{").allowed and str(matcher.explain("{")).endswith("is allowed")
    told = matcher.explain("<|end|>")
    assert not told.allowed and told.expected == ("{",)
    with pytest.raises(DecodeError, match="the tokenizer has no token of this text"):
        matcher.explain("no token is as long as this one")
    with pytest.raises(DecodeError, match="a token is no integer"):
        matcher.explain(1.5)  # type: ignore[arg-type]
    assert matcher.allowed(9) == ["{", '{"'] and matcher.allowed(1) == ["{"] and matcher.allowed(0) == []


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": 1', ["a"]),
        ('{"a": 1, "b', []),
        ('{"a": 1, "b"', []),
        ('{"a": 1, "b": [', ["b", 0]),
        ('{"a": "x\\"', ["a"]),
        ('{"a": "x",', []),
        ('[1, [2, {"k": ', [1, 1, "k"]),
        ('[{"k": 1}', []),
        ('[{"k": 1}, ', [1]),
        ("", []),
        ('"x', []),
    ],
)
def test_the_way_to_a_value(text: str, path: list[Any]) -> None:
    assert open_path(text.encode()) == path


def test_the_command(bundle: Bundle, tmp_path: Path) -> None:
    bundle.write(tmp_path / "w.toolc", standalone=True)

    def toolc(*arguments: str) -> Any:
        return CliRunner().invoke(cli, ["explain", str(tmp_path / "w.toolc"), *arguments])

    done = toolc(HEAD + '{"units": "kel')
    assert done.exit_code == 1 and done.stdout.splitlines() == [
        "the text is masked at byte 41, in the arguments of look, at /units",
        "  found 'k', expected celsius\" or fahrenheit\"",
        f"  {BASE}/properties/units: enum",
    ]
    assert toolc(HEAD).exit_code == 0
    brace = next(n for n in range(bundle.vocab.size) if bundle.vocab.token(n) == b"{")
    assert toolc(f"{brace} {brace}", "--tokens").exit_code == 1 and toolc(f"[{brace}]", "--tokens").exit_code == 0
    assert toolc("x", "--tokens").exit_code == 2 and toolc("x", "--entry", "strat").exit_code == 2
    assert '"pointer": "/units"' in toolc(HEAD + '{"units": "kel', "--json").stdout.replace('":"', '": "')


def test_reprs_are_lines(bundle: Bundle) -> None:
    """The repr of a bundle was 34,000 characters."""
    spec = read_spec(TOOLS)
    shown = [compile_tools(spec.document, "builtin"), bundle, bundle.vocab, bundle.tables, spec, Matcher(bundle)]
    shown += [Reader(bundle), BatchMatcher([bundle])]
    for one in shown:
        assert len(repr(one)) < 200 and "\n" not in repr(one), repr(one)
    assert repr(bundle) == "<Bundle spec: 2 tools, protocol json, tokenizer builtin of 8,192 tokens, " + (
        f"{bundle.tables.state_cell.size - 1:,} states>"
    )


def test_html_is_small_and_escaped() -> None:
    evil = {"type": "function", "function": {"name": "a", "description": "<script>alert(1)</script>" * 50}}
    many = [{"type": "function", "function": {"name": f"t{n}"}} for n in range(100)]
    compiled = compile_tools([evil, *many], "builtin", options=Options(named=False))
    page = compiled._repr_html_()
    assert "<script" not in page and "&lt;script&gt;" in page and "and 77 more" in page and len(page) < 10_000
    assert "<table>" in compile_schema({"type": "null"}, "builtin").bundle._repr_html_()


def test_the_page_shows_what_is_printed(repository: Path) -> None:
    page = (repository / "docs" / "runtime.md").read_text(encoding="utf-8").partition("## Why a token is masked")[2]
    call, shown = page.split("explain(bundle, '")[1].split("'))")[0], page.split("```text\n")[1].split("```")[0]
    bundle = compile_tools(repository / "tools_specs" / "weather.json", "builtin").bundle
    assert f"{explain(bundle, call)}\n" == shown
