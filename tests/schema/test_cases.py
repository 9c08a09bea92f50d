"""The tables of schemas: accepted and refused texts, and errors by type, place and words."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest

from tests.cases.schemas import SCHEMAS
from toolc.compiler.errors import BudgetError, SchemaError, ToolcError, UnsatisfiableError, UnsupportedError
from toolc.compiler.options import RELAXABLE
from toolc.compiler.schema import LarkWriter, SchemaOptions, schema_to_lark

from .recogniser import Compiled, Recogniser


@pytest.mark.parametrize("name, schema, accepted, refused", SCHEMAS, ids=[row[0] for row in SCHEMAS])
def test_schema(name: str, schema: Any, accepted: list[str], refused: list[str]) -> None:
    ours = Compiled(schema_to_lark(schema, SchemaOptions(whitespace="flexible"))[0])
    spaced = Compiled(schema_to_lark(schema)[0])
    assert [text for text in accepted if not ours.accepts(text)] == []
    assert [text for text in refused if ours.accepts(text)] == []
    for text in accepted:
        if name == "bounds/boolean without a draft":
            continue  # jsonschema takes true for 1 there
        jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema).validate(json.loads(text))
        for layout in ({}, {"indent": 2}, {"separators": (",", ":")}):
            again = json.dumps(json.loads(text), ensure_ascii=False, **layout)  # type: ignore[arg-type]
            if "\\" not in text and "." not in text:
                assert ours.accepts(again), again
                assert spaced.accepts(again) is (again == json.dumps(json.loads(text), ensure_ascii=False)), again


ERRORS: list[tuple[str, Any, type[ToolcError], str, str]] = [
    ("minimum/string", {"properties": {"day": {"minimum": "3"}}}, SchemaError, "#/properties/day/minimum",
     'found "3" (string), expected a number; write 3 without quotes'),
    ("minimum/boolean", {"minimum": True}, SchemaError, "#/minimum", "expected a number"),
    ("minLength/negative", {"minLength": -1}, SchemaError, "#/minLength", "expected a whole number, at least 0"),
    ("type/unknown", {"type": "strin"}, SchemaError, "#/type", "did you mean string?"),
    ("type/number", {"type": 3}, SchemaError, "#/type", "expected one of"),
    ("required/true", {"properties": {"a": {"required": True}}}, SchemaError, "#/properties/a/required",
     "a list of strings"),
    ("required/number", {"required": ["a", 1]}, SchemaError, "#/required/1", "expected a string"),
    ("properties/list", {"properties": []}, SchemaError, "#/properties", "expected an object"),
    ("schema/number", {"properties": {"a/b": 3}}, SchemaError, "#/properties/a~1b", "expected a schema"),
    ("anyOf/empty", {"anyOf": []}, SchemaError, "#/anyOf", "at least one schema"),
    ("enum/text", {"enum": "a"}, SchemaError, "#/enum", "expected a list of values"),
    ("pattern/broken", {"pattern": "a("}, SchemaError, "#/pattern", "a("),
    ("pattern/back reference", {"pattern": "(a*)\\1"}, UnsupportedError, "#/pattern", "not supported"),
    ("ref/dangling", {"$defs": {"city": {}}, "properties": {"a": {"$ref": "#/$defs/citi"}}}, SchemaError,
     "#/properties/a/$ref", "did you mean #/$defs/city?"),
    ("ref/number", {"$ref": 1}, SchemaError, "#/$ref", "a reference as a string"),
    ("ref/itself", {"$ref": "#"}, SchemaError, "#", "refers to itself"),
    ("ref/ring", {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, SchemaError,
     "#", "refers to itself"),
    ("ref/in anyOf", {"anyOf": [{"type": "null"}, {"$ref": "#"}]}, SchemaError, "#", "refers to itself"),
    ("ref/remote", {"$ref": "http://x.org/a.json"}, UnsupportedError, "#/$ref", "outside the document"),
    ("false", False, UnsatisfiableError, "#", "no value"),
    ("empty/bounds", {"properties": {"a": {"type": "integer", "minimum": 3, "maximum": 2}}, "required": ["a"],
                      "type": "object"}, UnsatisfiableError, "#/properties/a", "no value"),
    ("empty/required false", {"type": "object", "additionalProperties": False, "required": ["a"]}, UnsatisfiableError,
     "#", ""),
    ("empty/enum", {"type": "string", "enum": [1]}, UnsatisfiableError, "#", ""),
    ("empty/types", {"allOf": [{"type": "string"}, {"type": "null"}]}, UnsatisfiableError, "#", ""),
    ("empty/items", {"type": "array", "minItems": 3, "maxItems": 2}, UnsatisfiableError, "#", ""),
    ("empty/item", {"type": "array", "items": {"type": "string", "minLength": 3, "maxLength": 2}, "minItems": 1},
     UnsatisfiableError, "#/items", ""),
    ("empty/endless", {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}, UnsatisfiableError,
     "#", ""),
    ("unsupported/negated format", {"not": {"format": "idn-hostname"}, "type": "string"}, UnsupportedError,
     "#/not/format", "complement"),
    ("unsupported/multipleOf", {"multipleOf": 99991}, UnsupportedError, "#", "too many residues"),
    ("unsupported/unique", {"uniqueItems": True}, UnsupportedError, "#/uniqueItems", ""),
]  # fmt: skip


@pytest.mark.parametrize("name, schema, kind, place, words", ERRORS, ids=[row[0] for row in ERRORS])
def test_error(name: str, schema: Any, kind: type[ToolcError], place: str, words: str) -> None:
    with pytest.raises(ToolcError) as caught:
        schema_to_lark(schema)
    assert type(caught.value) is kind, caught.value
    assert caught.value.place is not None and caught.value.place.startswith(place), caught.value
    assert words in str(caught.value), caught.value


def test_places_name_file_and_pointer() -> None:
    with pytest.raises(SchemaError) as caught:
        LarkWriter(SchemaOptions()).add({"minimum": "3"}, base="weather.json", pointer="/tools/2/parameters")
    assert caught.value.place == "weather.json#/tools/2/parameters/minimum"


def test_two_schemas_share_rules() -> None:
    writer = LarkWriter(SchemaOptions())
    shape = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3}}}
    first, second = writer.add(shape, name="one"), writer.add(dict(shape, title="again"), name="two")
    assert first == second
    third = writer.add({"type": "array", "items": shape}, name="three")
    assert third != first and first in writer.text().split(f"{third}: ")[1].splitlines()[0]


def test_a_chain_of_a_thousand_references() -> None:
    schema = {"$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(1000)}, "items": {"$ref": "#/$defs/d0"}}
    schema["$defs"]["d1000"] = {"type": "null"}
    assert Recogniser(schema_to_lark(schema)[0]).accepts("[null]")
    schema["$defs"].update({f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(1000)})
    assert Recogniser(schema_to_lark(schema)[0]).accepts("[null]")
    schema["$defs"].update({f"d{n}": {"properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}}} for n in range(1000)})
    assert Recogniser(schema_to_lark(schema)[0]).accepts("[{}]")


@pytest.mark.parametrize("key", ["properties", "items", "anyOf", "allOf", "not", "const"])
def test_deep_nesting_is_one_clear_error(key: str) -> None:
    schema: Any = {}
    for _ in range(10_000):
        schema = {key: {"a": schema} if key in ("properties", "const") else [schema] if key.endswith("Of") else schema}
    with pytest.raises(SchemaError, match="nests deeper than"):
        schema_to_lark(schema)
    schema = {}
    for _ in range(190):
        schema = {key: {"a": schema} if key in ("properties",) else [schema] if key.endswith("Of") else schema}
    if key != "const":
        schema_to_lark({"type": "object", **schema} if key == "not" else schema)


def test_alternatives_that_multiply_are_refused_in_time() -> None:
    schema = {"allOf": [{"anyOf": [{"required": [f"a{n}"]}, {"required": [f"b{n}"]}]} for n in range(40)]}
    with pytest.raises(BudgetError):
        schema_to_lark(schema)


def test_fifty_thousand_values_are_linear() -> None:
    text, _ = schema_to_lark({"enum": [f"value {n}" for n in range(50_000)]})
    assert len(text) < 50_000 * 20


def test_two_hundred_optional_keys_are_linear() -> None:
    text, _ = schema_to_lark({"type": "object", "properties": {f"key{n}": {"type": "string"} for n in range(200)}})
    assert len(text) < 200 * 120
    ours = Recogniser(text)
    assert ours.accepts('{"key3": "a", "key77": "b", "key199": "c", "z": 1}') and not ours.accepts(
        '{"key7": "", "key3": ""}'
    )


def test_lenient_drops_and_reports() -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "integer", "multipleOf": 7}}
    with pytest.raises(UnsupportedError):
        schema_to_lark(schema)
    text, writer = schema_to_lark(schema, SchemaOptions(relax=RELAXABLE))
    assert Recogniser(text).accepts("[7, 7]")
    assert ("#", "uniqueItems", "dropped") in writer.keywords


def test_report() -> None:
    _, writer = schema_to_lark({"title": "t", "type": "object", "properties": {"a": {"type": "integer"}}})
    assert ("#", "title", "annotation") in writer.keywords
    assert ("#/properties/a", "type", "enforced") in writer.keywords
    assert {"plain-integers", "open-keys", "key-order"} <= writer.restrictions
