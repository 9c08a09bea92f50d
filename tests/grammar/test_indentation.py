"""Indented JSON: what ``json.dumps(…, indent=2)`` writes is allowed, and no other layout is."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases.protocols import FAMILIES
from tests.cases.schemas import SCHEMAS
from tests.protocols.allowed import masks_allow
from tests.protocols.vocabularies import vocab_for
from toolc.compiler import Options, compile_grammar, compile_schema, compile_tools
from toolc.compiler.commands.restrictions import RESTRICTIONS
from toolc.compiler.errors import GrammarError, ToolcError
from toolc.compiler.grammar.indentation import DEEPEST
from toolc.runtime.format.bundle import Bundle

NUMBERS = st.integers(-99, 10**6) | st.floats(-1e3, 1e3, width=32).filter(lambda x: "e" not in repr(x))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text('a {[\n,:"é', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{}", max_size=3), inner, max_size=3),
    max_leaves=12,
)
LEAF: dict[str, Any] = {"type": ["integer", "boolean", "null"]}
NODE = {
    "type": "object",
    "properties": {"of": {"type": "array", "items": {"$ref": "#"}}, "n": LEAF},
    "required": ["of"],
    "additionalProperties": False,
}


@functools.cache
def compiled(schema: str, whitespace: str = "pretty") -> Bundle:
    return compile_schema(json.loads(schema), "builtin", options=Options(whitespace=whitespace)).bundle


def allows(held: Bundle, text: str) -> bool:
    return masks_allow(held, text.encode(), "start")


def indented(value: Any, indent: int | str | None = 2) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False)


def depth(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max(map(depth, inside), default=0) + isinstance(value, (dict, list))


def other_layouts(text: str) -> set[str]:
    """The text with a blank more or less in each gap, and in the layouts of other settings."""
    gaps = [found.span() for found in re.finditer(r"\n *|(?<=:) ", text)]  # no string has either
    out = {text[:end] + " " + text[end:] for _, end in gaps} | {text[: end - 1] + text[end:] for _, end in gaps}
    out |= {text[:begin] + text[end:] for begin, end in gaps} | {text + "\n", " " + text, text.replace("\n", "\r\n")}
    return out - {text}


@settings(deadline=None)
@given(VALUES)
def test_any_value(value: Any) -> None:
    held, text = compiled("{}"), indented(value)
    assert depth(value) > DEEPEST or allows(held, text)
    for layout in (None, 1, 4, "\t"):
        assert allows(held, indented(value, layout)) == (indented(value, layout) == text)
    for separators in ((",", ":"), (", ", ":")):
        other = json.dumps(value, ensure_ascii=False, separators=separators)
        assert allows(held, other) == (other == text)


@settings(deadline=None)
@given(st.recursive(st.sampled_from([0, True, None]), lambda one: st.lists(one, max_size=3), max_leaves=9))
def test_no_other_blanks(value: Any) -> None:
    """One blank more or less, anywhere: of arrays, and of objects around them."""
    text = indented({"a": value, "b": {"": value}})
    assert allows(compiled("{}"), text)
    assert not any(allows(compiled("{}"), other) for other in other_layouts(text))


@pytest.mark.parametrize("row", SCHEMAS, ids=lambda row: str(row[0]))
def test_cases(row: tuple[str, Any, list[str], list[str]]) -> None:
    """A value is allowed in this layout where it is in that of ``spaced``."""
    schema = json.dumps(row[1])
    try:
        spaced = compiled(schema, "spaced")
    except ToolcError:
        with pytest.raises(ToolcError):
            compiled(schema)
        return
    for text in [*row[2], *row[3]]:
        try:
            value = json.loads(text, object_pairs_hook=_unique, parse_float=_spelled)
            flat, pretty = json.dumps(value, ensure_ascii=False), indented(value)
            flat.encode()  # half of a surrogate pair is no text
        except (ValueError, TypeError):
            continue
        assert allows(compiled(schema), pretty) == allows(spaced, flat), pretty
        assert flat == pretty or not allows(compiled(schema), flat)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _spelled(text: str) -> float:
    if repr(float(text)) != text:
        raise ValueError("json.dumps would spell it otherwise")
    return float(text)


def test_a_schema_says_how_deep() -> None:
    """Without recursion, each depth has its own layout, however deep."""
    schema: dict[str, Any] = LEAF
    value: Any = 1
    for _ in range(2 * DEEPEST):
        schema = {"type": "object", "properties": {"a": {"type": "array", "items": schema}}}
        schema |= {"required": ["a"], "additionalProperties": False}
        value = {"a": [value, value]} if value == 1 else {"a": [value]}
    held = compiled(json.dumps(schema))
    assert allows(held, indented(value))
    assert not any(allows(held, other) for other in other_layouts(indented(value)))
    assert "indentation" not in held.meta["restrictions"]


def test_recursion_goes_on_in_one_line() -> None:
    held = compiled(json.dumps(NODE))
    assert "indentation" in held.meta["restrictions"]
    leaf: Any = {"of": [], "n": 5}
    text = json.dumps({"of": [leaf, leaf], "n": 1})
    for level in range(DEEPEST // 2, 0, -1):
        pad = "  " * (2 * level)
        text = (
            f'{{\n{pad[2:]}"of": [\n{pad}{text},\n{pad}{{\n{pad}  "of": []\n{pad}}}\n{pad[2:]}],\n{pad[2:]}"n": {level}'
        )
        text += "\n" + pad[4:] + "}"
    assert json.loads(text)["n"] == 1
    # The last one is too deep to be indented, its brother beside it as well.
    pad = "  " * DEEPEST
    text = text.replace(f'{pad}{{\n{pad}  "of": []\n{pad}}}', f'{pad}{{"of": []}}')
    assert allows(held, text)
    assert not any(allows(held, other) for other in other_layouts(text))
    assert not allows(held, indented(json.loads(text)))


def test_brackets_around_nothing() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": LEAF}, "o": {"const": {}}}}
    held = compiled(json.dumps({**schema, "additionalProperties": False}))
    assert allows(held, "{}") and allows(held, '{\n  "a": [],\n  "o": {}\n}')
    for text in ("{\n}", '{\n  "a": [\n  ]\n}', '{\n  "o": {\n  }\n}'):
        assert not allows(held, text), text


def test_keys_in_any_order() -> None:
    schema = {
        "type": "object",
        "properties": dict.fromkeys("abc", LEAF),
        "additionalProperties": False,
        "minProperties": 2,
    }
    options = Options(whitespace="pretty", key_order="any")
    held = compile_schema({"type": "array", "items": schema}, "builtin", options=options).bundle
    text = indented([{"c": 1, "a": None}, {"b": 1, "c": 2, "a": 3}])
    assert allows(held, text) and not any(allows(held, other) for other in other_layouts(text))
    assert not allows(held, indented([{"a": 1}]))


TOOLS = [
    {"name": "get", "parameters": NODE | {"properties": {"of": {"type": "array", "items": LEAF}, "n": {}}}},
    {"name": "stop", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}},
]
ARGUMENTS = {"of": [1, None], "n": {"x": [1, {}], "y": "a, [b"}}
CALLS = {
    "json": [{"name": "get", "arguments": ARGUMENTS}],
    "hermes": [{"name": "get", "arguments": ARGUMENTS}],
    "llama3": [{"name": "get", "parameters": ARGUMENTS}],
    "mistral": [[{"name": "get", "arguments": ARGUMENTS}], [{"name": "stop", "arguments": {}}]],
    "granite": [[{"name": "get", "arguments": ARGUMENTS}, {"name": "stop", "arguments": {}}]],
    "apertus": [[{"get": ARGUMENTS}, {"stop": {}}]],
}
"""Protocol → what stands in a text as JSON."""


@pytest.mark.parametrize("name", sorted(CALLS))
def test_what_a_protocol_writes_around_arguments(name: str) -> None:
    """It is indented with them, as one value."""
    held = compile_tools(TOOLS, vocab_for(name, True), options=Options(protocol=name, whitespace="pretty")).bundle
    family = FAMILIES[name]
    for value in CALLS[name]:
        calls = [("get", ARGUMENTS), ("stop", {})]
        some = (calls[:1], calls[1:], calls)
        flat = next(text for text in map(family.write, some) if json.dumps(value) in text)
        text = flat.replace(json.dumps(value), indented(value, 4 if name == "granite" else 2))
        assert masks_allow(held, text.encode(), "required"), text
        assert not masks_allow(held, flat.encode(), "required")
        for indent in (1, 2, 3, 4):
            other = flat.replace(json.dumps(value), indented(value, indent))
            assert other == text or not masks_allow(held, other.encode(), "required")


def test_a_response_beside_calls() -> None:
    options = Options(protocol="pythonic", whitespace="pretty", response={"type": "array", "items": LEAF})
    held = compile_tools(TOOLS, "builtin", options=options).bundle
    assert masks_allow(held, b"[\n  1,\n  null\n]", "response") and not masks_allow(held, b"[1, null]", "response")
    assert masks_allow(held, b"[get(of=[1, None])]", "required")
    assert not masks_allow(held, b"[get(of=[\n  1,\n  None\n])]", "required")


def test_values_in_a_structural_tag() -> None:
    """Each is a text of its own, whatever stands around it; a number of blanks that a format asks for holds there."""
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": LEAF}}, "additionalProperties": False}
    json_of: dict[str, Any] = {"type": "json_schema", "json_schema": schema}
    any_order, compact = json_of | {"any_order": True}, json_of | {"max_whitespace_cnt": 0}
    tags = [{"type": "tag", "begin": "[", "content": one, "end": "]"} for one in (json_of, any_order, compact)]
    document = {"type": "structural_tag", "format": {"type": "sequence", "elements": tags}}
    value = {"a": [1, None]}
    for held in (
        compile_tools(document, "builtin", options=Options(whitespace="pretty")).bundle,
        compile_tools(
            TOOLS, "builtin", options=Options(whitespace="pretty", protocol="hermes", response=document)
        ).bundle,
    ):
        entry = "response" if "response" in held.entry else "start"
        pretty, short = indented(value), json.dumps(value, separators=(",", ":"))
        assert masks_allow(held, f"[{pretty}][{pretty}][{short}]".encode(), entry)
        for other in ((short, pretty, short), (pretty, short, short), (pretty, pretty, pretty)):
            assert not masks_allow(held, "".join(f"[{one}]" for one in other).encode(), entry)


def test_a_grammar_may_have_lines() -> None:
    text = 'start: value\nvalue: "{" _nl "x" (_c "y")? _nl "}" | "[" (_nl value (_c value)* _nl)? "]"\n'
    text += '_nl: _indented{/\\n(?:   )*/}\n_c: "," _nl\n%import .protocol (_indented)\n'
    held = compile_grammar(text, "builtin").bundle
    assert allows(held, "[\n   {\n      x,\n      y\n   },\n   []\n]")
    assert not allows(held, "[\n   {\n     x,\n      y\n   },\n   []\n]")


def test_lines_may_begin_with_tabs() -> None:
    text = 'start: "[" _n "x" _n "]"\n_n: _indented{/\\n\\t*/}\n%import .protocol (_indented)\n'
    held = compile_grammar(text, "builtin").bundle
    assert allows(held, "[\n\tx\n]") and not allows(held, "[\n x\n]")


@pytest.mark.parametrize(
    "rules, message",
    [
        ('start: "[" _n "x" (_n | "," "{" _n) "]"\n_n: _indented{/\\n */}\n', "open and close other brackets"),
        ('start: "[" (_n "x")* "]"\n_n: _indented{/\\n */}\n', "open and close other brackets"),
        ('start: "[" _n "]"\n_n: _indented{"x"}\n', "wrong argument of _indented"),
        ('start: "[" _n "]"\n_n: _indented{/\\n(?:' + 65 * " " + ")*/}\n", "wrong argument of _indented"),
        ('start: "{" _n "a:" (start | "1") "}"\n_n: _indented{/\\n */}\n', "open and close other brackets"),
        ('start: _n start | "x"\n_n: _indented{/\\n */}\n', "open and close other brackets"),
        ('start: "x" _n "y"\n_n: _indented{/\\n */}\n', "that no line has opened"),
        ('start: "y" | "x" _n start "[" _n\n_n: _indented{/\\n */}\n', "that no line has opened"),
    ],
)
def test_lines_that_stand_nowhere(rules: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        compile_grammar(rules + "%import .protocol (_indented)\n", "builtin")


def test_pages_name_the_depth() -> None:
    page = Path(__file__).parents[2] / "docs" / "json-schema.md"
    assert f"deeper than {DEEPEST} brackets" in page.read_text(encoding="utf-8")
    assert f"{DEEPEST} levels" in RESTRICTIONS["indentation"][0]
