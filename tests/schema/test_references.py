"""References between documents, dynamic anchors, and what OpenAPI adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from toolc.compiler.errors import SchemaError, UnsupportedError
from toolc.compiler.schema import LarkWriter, SchemaOptions, schema_to_lark
from toolc.compiler.schema.references import folder_loader

from .judge import Judge
from .recogniser import Compiled


def test_a_folder_is_a_loader(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.json").write_text(json.dumps({"items": {"$ref": "sub/b.json#/$defs/x"}, "type": "array"}))
    (tmp_path / "sub" / "b.json").write_text(json.dumps({"$defs": {"x": {"$ref": "#/$defs/y"}, "y": {"const": 1}}}))
    (tmp_path.parent / "secret.json").write_text("{}")
    options = SchemaOptions(loader=folder_loader(tmp_path, "https://x.org/"))
    ours = Compiled(schema_to_lark({"$ref": "https://x.org/a.json"}, options)[0])
    assert ours.accepts("[1, 1]") and not ours.accepts("[2]")
    for outside in ("https://x.org/../secret.json", "https://y.org/a.json", "https://x.org/missing.json"):
        with pytest.raises(UnsupportedError):
            schema_to_lark({"$ref": outside}, options)


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        ({"$ref": "#/$defs/x"}, "define it under $defs"),
        ({"properties": {"child": {"$ref": "#/"}}}, "write # for the whole document"),
        ({"$defs": {"node": {}}, "$ref": "#/$defs/nod"}, "did you mean #/$defs/node?"),
    ],
)
def test_hints_where_a_reference_leads_nowhere(schema: Any, hint: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema_to_lark(schema)
    assert refused.value.hint == hint


def test_dynamic_references_go_to_the_outermost() -> None:
    tree = {"$id": "https://x.org/tree", "$dynamicAnchor": "node", "type": "object", "properties": {
        "data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}}}  # fmt: skip
    strict = {"$id": "https://x.org/strict", "$dynamicAnchor": "node", "$ref": "tree", "unevaluatedProperties": False,
              "$defs": {"tree": tree}}  # fmt: skip
    ours = Compiled(schema_to_lark(strict)[0])
    assert ours.accepts('{"children": [{"data": 1}]}') and not ours.accepts('{"children": [{"daat": 1}]}')
    assert Compiled(schema_to_lark(tree)[0]).accepts('{"children": [{"daat": 1}]}')


def _openapi(schema: Any, **schemas: Any) -> Compiled:
    document = {"openapi": "3.0.3", "components": {"schemas": {"root": schema, **schemas}}}
    writer = LarkWriter(SchemaOptions())
    rule = writer.add(schema, document=document, pointer="/components/schemas/root")
    return Compiled(f"start: {rule}\n" + writer.text())


def test_nullable_is_a_keyword_of_openapi_only() -> None:
    assert _openapi({"type": "string", "nullable": True}).accepts("null")
    assert not Compiled(schema_to_lark({"type": "string", "nullable": True})[0]).accepts("null")


def test_byte_is_a_format_of_openapi_only() -> None:
    schema = {"type": "string", "format": "byte"}
    assert not _openapi(schema).accepts('"?"') and _openapi(schema).accepts('"aGk="')
    assert Compiled(schema_to_lark(schema)[0]).accepts('"?"')


D4, D7 = "http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#"
D19, D20 = "https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"
TUPLE_7 = {"items": [{"type": "string"}], "additionalItems": False}
TUPLE_20 = {"prefixItems": [{"type": "string"}], "items": False}
TEXTS = [
    "{}", '{"x": 1}', '{"x": "a"}', '{"x": []}', '{"x": ["a"]}', '{"x": [1]}', '{"x": ["a", 1]}', '{"x": {}}',
    '{"x": {"y": ["a"]}}', '{"x": {"y": [1]}}', '{"x": {"y": ["a", "b"]}}', '{"x": {"y": "a"}}', '{"x": {"z": 1}}',
]  # fmt: skip
DRAFTS: list[tuple[str, dict[str, Any]]] = [  # the draft is that of the resource
    ("2020 inside of 7",
     {"$schema": D7, "properties": {"x": {"$ref": "http://e/in"}}, "definitions": {
         "in": {"$id": "http://e/in", "$schema": D20, "type": "array", **TUPLE_20}}}),
    ("7 inside of 2020",
     {"$schema": D20, "properties": {"x": {"$ref": "http://e/in"}}, "$defs": {
         "in": {"$id": "http://e/in", "$schema": D7, "type": "array", **TUPLE_7}}}),
    ("beside $ref, in 7 inside of 2020",
     {"$schema": D20, "properties": {"x": {"$ref": "http://e/in"}}, "$defs": {
         "in": {"$id": "http://e/in", "$schema": D7, "properties": {"y": {"$ref": "#/definitions/s", "maxItems": 0}},
                "definitions": {"s": {"type": "array", **TUPLE_7}}}}}),
    ("beside $ref, in 2020 inside of 7",
     {"$schema": D7, "properties": {"x": {"$ref": "http://e/in"}}, "definitions": {
         "in": {"$id": "http://e/in", "$schema": D20, "properties": {"y": {"$ref": "#/$defs/s", "maxItems": 0}},
                "$defs": {"s": {"type": "array", **TUPLE_20}}}}}),
    ("in place, without a reference",
     {"$schema": D7, "properties": {"x": {"$id": "in", "$schema": D20, "properties": {"y": TUPLE_20}}}}),
    ("a pointer into it, by way of its URI",
     {"$schema": D7, "properties": {"x": {"$ref": "http://e/in#/$defs/s"}}, "definitions": {
         "in": {"$id": "http://e/in", "$schema": D20, "$defs": {"s": {"type": "array", **TUPLE_20}}}}}),
    ("a pointer into it, by way of the root",
     {"$schema": D7, "properties": {"x": {"$ref": "#/definitions/in/$defs/s"}}, "definitions": {
         "in": {"$id": "http://e/in", "$schema": D20, "$defs": {"s": {"type": "array", **TUPLE_20}}}}}),
    ("and out of it again",
     {"$schema": D7, "$id": "http://e/out", "properties": {"x": {"$ref": "in"}}, "definitions": {
         "s": {"type": "array", **TUPLE_7},
         "in": {"$id": "http://e/in", "$schema": D20, "properties": {"y": {"$ref": "out#/definitions/s"}}}}}),
    ("an anchor of the inner draft",
     {"$schema": D7, "properties": {"x": {"$ref": "http://e/in#s"}}, "definitions": {
         "in": {"$id": "http://e/in", "$schema": D20, "$defs": {"s": {"$anchor": "s", "type": "array", **TUPLE_20}}}}}),
    ("4 inside of 2019, whose identifier is another keyword",
     {"$schema": D19, "properties": {"x": {"$ref": "http://e/in"}}, "$defs": {
         "in": {"id": "http://e/in", "$schema": D4, "type": "array", "items": [{"$ref": "in#/definitions/s"}],
                "additionalItems": False, "definitions": {"s": {"type": "string", "const": 1}}}}}),
]  # fmt: skip


@pytest.mark.parametrize("name, schema", DRAFTS, ids=[name for name, _ in DRAFTS])
def test_a_resource_has_its_own_draft(name: str, schema: dict[str, Any]) -> None:
    ours, judge = Compiled(schema_to_lark(schema)[0]), Judge(schema)
    theirs = jsonschema.validators.validator_for(schema)(schema)
    blind = {"a pointer into it, by way of its URI", "a pointer into it, by way of the root", "and out of it again",
             "an anchor of the inner draft"}  # fmt: skip
    accepted = [text for text in TEXTS if ours.accepts(text)]
    assert accepted == [text for text in TEXTS if judge.accepts(text)]
    if name not in blind:  # jsonschema goes by the $schema that it meets, not by the resource that a target is in
        assert accepted == [text for text in TEXTS if theirs.is_valid(json.loads(text))]
    assert '{"x": [1]}' not in accepted or '{"x": {"y": [1]}}' not in accepted


def test_a_dialect_is_named_at_the_root_of_a_resource_only() -> None:
    schema = {"$schema": D7, "properties": {"x": {"$schema": D20, "type": "array", **TUPLE_20}}}
    text, writer = schema_to_lark(schema)
    ours = Compiled(text)
    assert ("#/properties/x", "$schema", "annotation") in writer.keywords
    assert ("#/properties/x", "prefixItems", "later") in writer.keywords
    assert ours.accepts('{"x": []}') and not ours.accepts('{"x": ["a"]}')  # items: false of draft 7
    assert Judge(schema).accepts('{"x": []}') and not Judge(schema).accepts('{"x": ["a"]}')


METASCHEMAS = [
    *(f"{scheme}://json-schema.org/draft-0{draft}/schema#" for scheme in ("http", "https") for draft in (4, 6, 7)),
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]


@pytest.mark.parametrize("uri", METASCHEMAS)
def test_metaschemas_are_built_in(uri: str) -> None:
    """Also as they refer to themselves, and beside another draft."""
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": False,
              "properties": {"s": {"$ref": uri}}}  # fmt: skip
    ours = Compiled(schema_to_lark(schema, SchemaOptions(relax=("uniqueItems",)))[0])
    assert ours.accepts('{"s": {"type": "string"}}')
    assert ours.accepts('{"s": {"properties": {"a": {"items": {"minimum": 2}, "type": ["null", "array"]}}}}')
    assert not ours.accepts('{"s": {"type": "strin"}}')
    assert not ours.accepts('{"s": {"properties": {"a": {"items": {"minimum": "2"}}}}}')
    parts = Compiled(schema_to_lark({"$ref": METASCHEMAS[2].replace("#", "#/definitions/simpleTypes")})[0])
    assert parts.accepts('"null"') and not parts.accepts('"nil"')


def test_other_documents_are_not() -> None:
    with pytest.raises(UnsupportedError, match="leads outside the document"):
        schema_to_lark({"$ref": "http://json-schema.org/draft-03/schema#"})
