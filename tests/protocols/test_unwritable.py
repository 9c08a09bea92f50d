"""Values, keys and counts that a protocol cannot write: no text stands for them, whatever else is allowed."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.cases.protocols import FAMILIES
from toolc.compiler import Options, compile_tools
from toolc.compiler.commands.check import check
from toolc.compiler.errors import UnsatisfiableError, UnsupportedError
from toolc.compiler.grammar.protocol import load_protocol
from toolc.runtime import DecodeError, Reader, read_calls, subset, write_calls
from toolc.runtime.format.bundle import Bundle

from .vocabularies import vocab_for

KEPT_OUT = {
    "qwen3_coder": "</parameter>", "mimo": "</tool_call>", "step3": "</steptml:parameter>", "glm45": "</arg_value>",
    "glm47": "</arg_value>", "minimax_m2": "</parameter>", "minimax_m3": "]<]minimax[>[",
    "deepseek_v32": "</｜DSML｜parameter>", "deepseek_v4": "</｜DSML｜parameter>",
    "deepseek_v41": "</｜DSML｜ parameter>", "kimi_k3": "<|sep|>", "cohere_cmd5": "</cofl:value>",
    "gemma4": '<|"|>', "functiongemma": "<escape>", "dots": "</parameter>", "gigachat35": "</｜GCML｜parameter>",
    "hy3_opensource": "</arg_value:opensource>", "hy_v3": "</arg_value>", "hy_v4": "</arg_value>",
    "iquest_q1": "</arg_value>", "k2_horizon": "</ifm|arg_value>",
    "minicpm5": "</param>", "muse": "</atem:parameter>", "seed_oss": "</parameter>",
}  # fmt: skip
IN_PARTS = ("minimax_m3", "cohere_cmd5", "gemma4", "functiongemma")  # which write members and items as they do strings
M = "]<]minimax[>["


def shut(*left_out: str, **properties: Any) -> dict[str, Any]:
    """An object of these members alone, all required but some."""
    needed = [name for name in properties if name not in left_out]
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}


def held(protocol: str, schema: Any, *others: Any, **options: Any) -> Bundle:
    tools = [{"name": f"f{n or ''}", "input_schema": one} for n, one in enumerate((schema, *others))]
    return compile_tools(tools, vocab_for(protocol), options=Options(protocol=protocol, **options)).bundle


def accepted(bundle: Bundle, text: str) -> bool:
    return bool(check(bundle, text.encode(), "required")["accepted"])


def m3(inside: str) -> str:
    """A call of f, written by hand: M stands before every tag."""
    return f'M<tool_call>\nM<invoke name="f">{inside}M</invoke>M</tool_call>'.replace("M", M)


def test_every_string_that_is_kept_out_is_here() -> None:
    strings = {name: load_protocol(name).strings("KEEP_OUT") for name in FAMILIES}
    assert {name for name, some in strings.items() if some} == KEPT_OUT.keys()
    assert all(KEPT_OUT[name] in some for name, some in strings.items() if some)


@pytest.mark.parametrize("protocol", sorted(KEPT_OUT))
def test_a_value_that_cannot_be_written(protocol: str) -> None:
    never, flag = {"const": KEPT_OUT[protocol]}, {"type": "boolean"}
    with pytest.raises(UnsatisfiableError, match="can be written in this protocol") as caught:
        held(protocol, {"type": "object"}, shut(A=never, b=flag), named=False)
    assert caught.value.place == "spec#/1/input_schema"
    bundle = held(protocol, shut("A", A=never, b=flag))
    write = FAMILIES[protocol].write
    assert accepted(bundle, write([("f", {"b": True})]))
    assert not accepted(bundle, write([("f", {"A": KEPT_OUT[protocol], "b": True})]))
    either = {"anyOf": [shut(A=never, b=flag), shut(A={"type": "integer"}, b=flag)]}
    assert accepted(held(protocol, either), write([("f", {"A": 1, "b": True})]))
    assert not accepted(held(protocol, either), write([("f", {"b": True})]))


@pytest.mark.parametrize("protocol", IN_PARTS)
def test_an_item_or_member_that_cannot_be_written(protocol: str) -> None:
    never = {"const": KEPT_OUT[protocol]}
    with pytest.raises(UnsatisfiableError):
        held(protocol, shut(o=shut(A=never)))
    with pytest.raises(UnsatisfiableError):
        held(protocol, shut(l={"type": "array", "items": never, "minItems": 1}))
    bundle = held(protocol, shut(l={"type": "array", "items": never}))
    text = FAMILIES[protocol].write([("f", {"l": []})])
    assert read_calls(bundle, text, "required")[0].arguments == {"l": []}


def test_a_constant_inside_of_quotes() -> None:
    mark = KEPT_OUT["gemma4"]
    bundle = held("gemma4", shut(v={"enum": [[mark], {"a": mark}, ["x"]]}))
    write = FAMILIES["gemma4"].write
    assert accepted(bundle, write([("f", {"v": ["x"]})]))
    for text in ("{v:[]}", "{v:[,]}", "{v:{a:}}", "{v:}"):
        assert not accepted(bundle, write([("f", {"v": ["x"]})]).replace(f"{{v:[{mark}x{mark}]}}", text))


@pytest.mark.parametrize("protocol", ["glm47", "qwen3_coder", "minimax_m3"])
def test_strings_that_all_spell_another_value(protocol: str) -> None:
    schema = {"anyOf": [shut(k={"const": "a"}, v={"enum": ["1", "2"]}), shut(k={"const": "b"}, v={"type": "integer"})]}
    bundle, write = held(protocol, schema), FAMILIES[protocol].write
    assert accepted(bundle, write([("f", {"k": "b", "v": 1})]))
    for arguments in ({"k": "a"}, {"k": "a", "v": 1}):
        assert not accepted(bundle, write([("f", arguments)]))


@pytest.mark.parametrize("protocol", ["qwen3_coder", "kimi_k3", "gemma4", "pythonic"])
@pytest.mark.parametrize("least", [1, 2])
def test_keys_that_cannot_be_written(protocol: str, least: int) -> None:
    """Members that have to be there, and whose names no text has."""
    blank = {"type": "object", "patternProperties": {"^ +$": {}}, "additionalProperties": False}
    assert accepted(held(protocol, blank), FAMILIES[protocol].write([("f", {})]))
    with pytest.raises(UnsatisfiableError):
        held(protocol, blank | {"minProperties": least})


NAMED = ["qwen3_coder", "glm45", "kimi_k3", "pythonic", "minimax_m3", "cohere_cmd5", "gemma4", "functiongemma"]


@pytest.mark.parametrize("protocol", NAMED)
@pytest.mark.parametrize("name", ["$top", "filter[x]", "a b", "x/y", "a:b", ""])
def test_a_name_that_cannot_be_written(protocol: str, name: str) -> None:
    """Of a parameter or member that may be left out it is no reason to refuse the tool."""
    whole = {"type": "integer"}
    bundle = held(protocol, shut(name, q=whole, **{name: whole}))
    assert "writable" in bundle.meta["restrictions"]
    assert accepted(bundle, FAMILIES[protocol].write([("f", {"q": 1})]))
    assert not accepted(bundle, FAMILIES[protocol].write([("f", {"q": 1, name: 2})]))
    bundle = held(protocol, shut(o=shut(name, q=whole, **{name: whole})))
    for value in ({"q": 1}, {"q": 1, name: 2}):
        written = write_calls(Reader(bundle, "required"), [("f", {"o": value})])
        if written is None:
            assert name in value and protocol in IN_PARTS
        else:
            assert [call.arguments for call in read_calls(bundle, written.text, "required")] == [{"o": value}]
    with pytest.raises((UnsupportedError, UnsatisfiableError), match="written in this protocol") as caught:
        held(protocol, {"type": "object"}, shut(q=whole, **{name: whole}), named=False)
    place = str(caught.value.place)
    assert place.startswith("spec#/1/input_schema")
    if protocol not in ("gemma4", "functiongemma"):  # whose arguments are one object
        assert place == f"spec#/1/input_schema/properties/{name.replace('/', '~1')}" and "'f1'" in str(caught.value)


@pytest.mark.parametrize("protocol", ["pythonic", "lfm2", "olmo3", "llama3_builtin"])
def test_the_empty_key_of_a_dictionary(protocol: str) -> None:
    """It stands between quotes, and was left out."""
    write = FAMILIES[protocol].write
    for keys, empty, other in (({}, True, True), ({"enum": ["", "x"]}, True, False), ({"minLength": 1}, False, True)):
        schema = {"type": "object", "propertyNames": keys, "additionalProperties": {"type": "integer"}}
        bundle = held(protocol, shut(m=schema))
        for value, allowed in (({"": 1}, empty), ({"x": 1}, True), ({"x": 1, "": 2}, empty), ({"yy": 1}, other)):
            text = write([("f", {"m": value})])
            assert accepted(bundle, text) is allowed, text
            if allowed:
                assert [call.arguments for call in read_calls(bundle, text, "required")] == [{"m": value}]


def test_an_object_that_only_undeclared_members_complete() -> None:
    some = {"type": "object", "properties": {"k": {"type": "string"}}, "required": ["k"], "minProperties": 2}
    with pytest.raises(UnsatisfiableError):
        held("minimax_m3", shut(o=some))
    bundle = held("minimax_m3", shut(o={"anyOf": [some, {"type": "boolean"}]}))
    assert not accepted(bundle, m3("M<o>M</o>"))
    assert accepted(bundle, m3("M<o>trueM</o>"))


def test_arguments_that_are_not_declared_alone() -> None:
    with pytest.raises(UnsatisfiableError, match="declare those that are needed") as refused:
        held("minimax_m3", {"type": "object", "minProperties": 1})
    assert refused.value.place == "spec#/0/input_schema"


@pytest.mark.parametrize("protocol", ["minimax_m3", "cohere_cmd5"])
def test_a_list_of_arrays_is_refused_where_it_stands(protocol: str) -> None:
    some = {"enum": [[1], 2]}
    for schema, at in ((shut(a=some), "/properties/a"), (shut(o=shut(b=some)), "/properties/o/properties/b")):
        with pytest.raises(UnsupportedError, match="given by enum or const") as refused:
            held(protocol, schema)
        assert refused.value.place == f"spec#/0/input_schema{at}"


EMPTIES: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": "string", "minLength": 1},
    {"type": "array"},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "maxItems": 0},
    {"type": "array", "minItems": 1},
    {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True},
    {"type": "array", "contains": {"const": 1}, "minContains": 0, "maxContains": 1},
    {"type": "array", "items": {"enum": ["1", 1, "x"]}, "uniqueItems": True},
    {"type": "object"},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "maxProperties": 3},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"type": ["string", "array"]},
    {"type": ["array", "object"], "maxItems": 1},
    {"type": ["integer", "null"]},
    {},
]
VALUES = (
    "", "x", "1", "null", "[]", "{}", "[1]", "[ ]", '{"a": 1}', "M<a>1M</a>", "M<item>1M</item>", "M<item>xM</item>",
    "M<item>M</item>", "M<item>1M</item>M<item>1M</item>",
)  # fmt: skip


@pytest.mark.parametrize(("one", "two"), list(itertools.combinations(range(len(EMPTIES)), 2)))
def test_what_no_text_at_all_is(one: int, two: int) -> None:
    """Whoever reads knows a part by its name alone; whatever is accepted is read as what was meant."""
    schema = {"anyOf": [shut(k={"const": "a"}, v=EMPTIES[one]), shut(k={"const": "b"}, v=EMPTIES[two])]}
    bundle = held("minimax_m3", schema)
    reader = Reader(bundle, "required")
    for k, value in itertools.product("ab", VALUES):
        text = m3(f"M<k>{k}M</k>M<v>{value}M</v>")
        if accepted(bundle, text):
            call = read_calls(bundle, text, "required")[0]
            assert Draft202012Validator(schema).is_valid(call.arguments), (k, value, call.arguments)
            again = write_calls(reader, [("f", call.arguments)])
            if again is None:  # what may be anything has no names that could be written in parts
                assert {} in (EMPTIES[one], EMPTIES[two]) and isinstance(call.arguments["v"], dict)
            else:
                assert read_calls(bundle, again.text.decode(), "required")[0].arguments == call.arguments
    for k, number in (("a", one), ("b", two)):  # an empty array or object can be written in some way
        for empty in ([], {}):
            if Draft202012Validator(EMPTIES[number]).is_valid(empty):
                texts = [m3(f"M<k>{k}M</k>M<v>{value}M</v>") for value in ("", json.dumps(empty))]
                read = [read_calls(bundle, text, "required")[0] for text in texts if accepted(bundle, text)]
                assert {"k": k, "v": empty} in [call.arguments for call in read], (k, empty)


@pytest.mark.parametrize("value", ["abcdefghi]<", "abcdefgh]<]", "abcdefghij]", "]<]<]<]<]<]", "]<"])
@pytest.mark.parametrize("as_tokens", [True, False], ids=["tokens", "text"])
def test_a_value_that_ends_as_its_end_begins(value: str, as_tokens: bool) -> None:
    """At its longest, so that both where it ends and where it goes on are outside of it: neither is settled."""
    schema = shut(v={"type": "string", "maxLength": 11})
    tools = [{"name": "f", "input_schema": schema}]
    bundle = compile_tools(tools, vocab_for("minimax_m3", as_tokens), options=Options(protocol="minimax_m3")).bundle
    written = write_calls(Reader(bundle, "required"), [("f", {"v": value})])
    assert written is not None
    reader = Reader(bundle, "required")
    parts = set()
    for symbol in b"".join(one.encode() if isinstance(one, str) else one for one in written.pieces):
        if as_tokens:
            break
        reader.read(symbol)
        parts |= {part.text for part in reader.parts()}
    assert as_tokens or parts == {value}
    assert read_calls(bundle, written.text.decode(), "required")[0].arguments == {"v": value}


@pytest.mark.parametrize("protocol", sorted({*FAMILIES} - {"restgpt"}))
def test_fractions_that_are_listed(protocol: str) -> None:
    bundle = held(protocol, shut(v={"enum": [0.5, 1.5, 2]}))
    write = FAMILIES[protocol].write
    for value in (0.5, 2):
        assert read_calls(bundle, write([("f", {"v": value})]), "required")[0].arguments == {"v": value}
    assert not accepted(bundle, write([("f", {"v": 0.25})]))


def test_counts_by_position() -> None:
    one = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "minProperties": 1}
    for more in ({}, {"additionalProperties": False}, {"additionalProperties": {"type": "number"}}):
        bundle = held("toolkengpt", one | more)
        assert [accepted(bundle, f"<T>f({said})=") for said in ("", "1", "1, 2")] == [False, True, True]
    with pytest.raises(UnsupportedError, match="by their position"):
        held("toolkengpt", one | {"minProperties": 2})
    with pytest.raises(UnsupportedError, match="stands before others"):
        held("toolkengpt", {"type": "object", "properties": {"x": False, "y": {"type": "integer"}}, "required": ["y"]})


@pytest.mark.parametrize("protocol", ["gemma4", "functiongemma"])
def test_one_of_some_arguments_in_both_orders(protocol: str) -> None:
    """As they are declared, and by the alphabet, where templates of these models write them so."""
    names = {"zip": {"type": "string"}, "city": {"type": "string"}, "n": {"type": "integer"}}
    asked = {"anyOf": [{"required": ["zip"]}, {"required": ["city"]}], "additionalProperties": False}
    inside = {"type": "object", "properties": names, **asked}
    bundle = held(protocol, inside | {"properties": {**names, "of": inside}})
    reader = Reader(bundle, "required")
    for given in ({"zip": "a", "city": "b"}, {"city": "b", "n": 1, "zip": "a"}, {"city": "b"}):
        for whole in (given, {"city": "x", "of": given}):
            found = write_calls(reader, [("f", whole)])
            assert found is not None and read_calls(bundle, found.text.decode(), "required")[0].arguments == whole
    assert write_calls(reader, [("f", {"n": 1})]) is None


def test_one_of_some_arguments_by_position() -> None:
    names = {"type": "object", "properties": {name: {"type": "integer"} for name in "xyz"}}
    some = held("toolkengpt", names | {"anyOf": [{"required": ["x", "y"]}, {"required": ["x", "z"]}]})
    assert [accepted(some, f"<T>f({said})=") for said in ("", "1", "1, 2", "1, 2, 3")] == [False, False, True, True]
    any_one = held("toolkengpt", names | {"anyOf": [{"required": [name]} for name in "yzx"]})
    assert [accepted(any_one, f"<T>f({said})=") for said in ("", "1", "1, 2, 3")] == [False, True, True]


@pytest.mark.parametrize("name", ["x y", "a&b", "a=b", "a#b", "100%", "a+b", "é", "a?b", "filter[a]", "$top", "a/b"])
def test_names_in_a_query(name: str) -> None:
    declared = [{"name": one, "in": "query", "schema": {"type": "string"}} for one in (name, "z")]
    paths = {"/a": {"get": {"operationId": "f", "parameters": declared}}}
    document = {"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": paths}
    bundle = compile_tools(document, options=Options(protocol="restgpt")).bundle
    call = ("f", {name: "v&=w", "z": "1"})
    written = write_calls(Reader(bundle, "required"), [call])
    assert written is not None
    text = written.text.decode()
    assert text.count("&") == 1 and text.count("=") == 2 and "#" not in text and " " not in text.removeprefix("GET ")
    assert [(one.name, one.arguments) for one in read_calls(bundle, text, "required")] == [call]


def test_a_choice_that_could_run_into_a_dead_end() -> None:
    """Where a frame takes its lowest texts alone, they may be those of a tool that is left out."""
    node = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/n"}}]}
    deep = {**shut(l={"type": "array"}, n={"$ref": "#/$defs/n"}), "$defs": {"n": node}}
    flat = shut(x={"type": "integer"})
    bundle = held("hermes", deep, flat, soft_depth=4)
    assert subset(bundle, ["f1"]).min_tokens["required"] is not None
    with pytest.raises(DecodeError, match="larger soft_depth"):
        subset(bundle, ["f"])
    assert subset(held("hermes", deep, flat), ["f"]).min_tokens["required"] is not None
