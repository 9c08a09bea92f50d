"""What OpenAPI says of requests: properties that are read-only, and ``nullable``, which is of some versions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.schema.recogniser import Compiled
from toolc.compiler import compile_tools
from toolc.compiler.schema import LarkWriter, SchemaOptions
from toolc.compiler.specs import read_spec
from toolc.runtime import Matcher

ID: dict[str, Any] = {"type": "integer", "readOnly": True}
NAME: dict[str, Any] = {"type": "string"}
PET: dict[str, Any] = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": ID, "name": NAME, "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}},
}
BASE: dict[str, Any] = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}

#: id, schemas of the components, schema of the body, bodies that may be sent, bodies that may not
ROWS: list[tuple[str, dict[str, Any], dict[str, Any], list[Any], list[Any]]] = [
    ("inline", {}, {**PET, "properties": {"id": ID, "name": NAME}}, [{"name": "a"}, {"name": "a", "x": 1}],
     [{"id": 1, "name": "a"}, {}, {"name": "a", "id": None}]),
    ("component", {"Pet": PET}, {"$ref": "#/components/schemas/Pet"},
     [{"name": "a"}, {"name": "a", "parts": [{"name": "b"}]}],
     [{"id": 1, "name": "a"}, {"name": "a", "parts": [{"name": "b", "id": 1}]}, {"name": "a", "parts": [{}]}]),
    ("closed", {}, {**PET, "properties": {"id": ID, "name": NAME}, "additionalProperties": False}, [{"name": "a"}],
     [{"id": 1, "name": "a"}, {"name": "a", "x": 1}]),
    ("the property is a reference", {"Id": ID}, {**PET, "properties": {
        "id": {"$ref": "#/components/schemas/Id"}, "name": NAME}}, [{"name": "a"}], [{"id": 1, "name": "a"}]),
    ("the property is an allOf", {"Id": {"type": "integer"}}, {**PET, "properties": {
        "id": {"allOf": [{"$ref": "#/components/schemas/Id"}], "readOnly": True}, "name": NAME}},
     [{"name": "a"}], [{"id": 1, "name": "a"}]),
    ("required beside", {"Pet": {"type": "object", "properties": {"id": ID, "name": NAME}}},
     {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"required": ["id", "name"]}]}, [{"name": "a"}],
     [{"id": 1, "name": "a"}, {}]),
    ("required in what is extended", {"Base": BASE}, {"allOf": [
        {"$ref": "#/components/schemas/Base"}, {"properties": {"id": {"readOnly": True}}}]},
     [{}, {"x": 1}], [{"id": 1}]),
    ("what is extended means what it meant", {"Base": BASE, "Pet": {"allOf": [
        {"$ref": "#/components/schemas/Base"}, {"properties": {"id": {"readOnly": True}}}]}},
     {"type": "object", "required": ["base", "pet"], "properties": {
         "base": {"$ref": "#/components/schemas/Base"}, "pet": {"$ref": "#/components/schemas/Pet"}}},
     [{"base": {"id": 1}, "pet": {}}], [{"base": {}, "pet": {}}, {"base": {"id": 1}, "pet": {"id": 1}}]),
    ("one branch", {}, {"type": "object", "properties": {"name": NAME}, "oneOf": [
        {"required": ["id", "name"], "properties": {"id": ID}}, {"required": ["key"]}]},
     [{"name": "a"}, {"key": 1}], [{"id": 1, "name": "a"}, {}]),
    ("below the same name", {}, {**PET, "properties": {"id": ID, "name": {
        "type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}}},
     [{"name": {"id": 1}}], [{"name": {}}, {"name": {"id": 1}, "id": 2}]),
    ("false is not true", {}, {**PET, "properties": {"id": {"type": "integer", "readOnly": False}, "name": NAME}},
     [{"id": 1, "name": "a"}], [{"name": "a"}]),
    ("written only", {}, {"type": "object", "required": ["id"], "properties": {"id": {**NAME, "writeOnly": True}}},
     [{"id": "a"}], [{}]),
]  # fmt: skip


def document(version: str, body: Any, schemas: dict[str, Any], **operation: Any) -> dict[str, Any]:
    made = {
        "openapi": version,
        "info": {},
        "components": {"schemas": schemas},
        "paths": {"/pets": {"post": {"operationId": "add", **operation, "requestBody": {
            "required": True, "content": {"application/json": {"schema": body}}}}}},
    }  # fmt: skip
    if version == "2.0":
        text = json.dumps(made["components"]["schemas"]).replace("#/components/schemas/", "#/definitions/")
        place = json.dumps(body).replace("#/components/schemas/", "#/definitions/")
        parameter = {"in": "body", "name": "body", "required": True, "schema": json.loads(place)}
        made = {"swagger": "2.0", "info": {}, "definitions": json.loads(text), "paths": {
            "/pets": {"post": {"operationId": "add", **operation, "parameters": [parameter]}}}}  # fmt: skip
    return made


def compiled(spec: dict[str, Any]) -> tuple[Compiled, LarkWriter]:
    (tool,) = read_spec(spec).tools
    writer = LarkWriter(SchemaOptions())
    rule = writer.add(tool.schema, document=tool.document, pointer=tool.pointer)
    return Compiled(f"start: {rule}\n" + writer.text()), writer


@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
@pytest.mark.parametrize("name, schemas, body, sent, unsent", ROWS, ids=[row[0] for row in ROWS])
def test_read_only(
    name: str, schemas: dict[str, Any], body: Any, sent: list[Any], unsent: list[Any], version: str
) -> None:
    ours, _ = compiled(document(version, body, schemas))
    assert [one for one in sent if not ours.accepts(json.dumps({"body": one}))] == []
    assert [one for one in unsent if ours.accepts(json.dumps({"body": one}))] == []


def test_read_only_beside_a_reference_counts_where_the_draft_says_so() -> None:
    schemas = {"Id": {"type": "integer"}}
    body = {**PET, "properties": {"id": {"$ref": "#/components/schemas/Id", "readOnly": True}, "name": NAME}}
    for version, text in (("3.0.3", '{"body": {"id": 1, "name": "a"}}'), ("3.1.0", '{"body": {"name": "a"}}')):
        other = '{"body": {"name": "a"}}' if version == "3.0.3" else '{"body": {"id": 1, "name": "a"}}'
        ours, _ = compiled(document(version, body, schemas))
        assert ours.accepts(text) and not ours.accepts(other)


def test_parameters_and_bodies_are_sent_whatever_their_schema_says() -> None:
    """``readOnly`` says something of a property; a path that needs the id of a pet has it."""
    item: dict[str, Any] = {
        "operationId": "get",
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {
            "$ref": "#/components/schemas/Pet/properties/id"}}],
        "requestBody": {"content": {"application/json": {"schema": ID}}},
    }  # fmt: skip
    spec = {"openapi": "3.1.0", "components": {"schemas": {"Pet": PET}}, "paths": {"/pets/{id}": {"put": item}}}
    ours, _ = compiled(spec)
    assert ours.accepts('{"id": 1, "body": 2}') and not ours.accepts("{}")


def test_a_discriminator_that_is_read_only_demands_nothing() -> None:
    schemas = {"Cat": {"type": "object", "required": ["kind"], "properties": {"kind": {**NAME, "readOnly": True}}}}
    body = {"oneOf": [{"$ref": "#/components/schemas/Cat"}], "discriminator": {"propertyName": "kind"}}
    ours, _ = compiled(document("3.0.3", body, schemas))
    assert ours.accepts('{"body": {}}') and not ours.accepts('{"body": {"kind": "Cat"}}')


def test_it_is_reported() -> None:
    _, writer = compiled(document("3.1.0", {"$ref": "#/components/schemas/Pet"}, {"Pet": PET}))
    place = "#/components/schemas/Pet/properties/id"
    assert [row for row in writer.report() if row[:2] == (place, "readOnly")] == [(place, "readOnly", "enforced", ())]
    assert writer.keywords.count((place, "readOnly", "enforced")) == 1
    assert (place, "readOnly", "annotation") not in writer.keywords


def test_a_call_does_not_invent_an_id() -> None:
    bundle = compile_tools(document("3.0.3", {"$ref": "#/components/schemas/Pet"}, {"Pet": PET})).bundle
    for body, allowed in (('{"name": "a"}', True), ('{"id": 1, "name": "a"}', False)):
        text = f'{{"name": "add", "arguments": {{"body": {body}}}}}'.encode()
        matcher = Matcher(bundle)
        assert (matcher.advance_bytes(text) == len(text) and matcher.is_complete) is allowed


@pytest.mark.parametrize(
    ("version", "keyword", "enforced"),
    [("2.0", "nullable", False), ("2.0", "x-nullable", True), ("3.0.3", "nullable", True), ("3.1.0", "nullable", False),
     ("3.0.3", "x-nullable", False)],
)  # fmt: skip
def test_nullable(version: str, keyword: str, enforced: bool) -> None:
    """3.1 has no ``nullable``: there null is a type like others."""
    body = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", keyword: True}}}
    ours, writer = compiled(document(version, body, {}))
    assert ours.accepts('{"body": {"a": null}}') is enforced
    if keyword == "nullable":
        statuses = [status for place, one, status, _ in writer.report() if one == "nullable"]
        assert statuses == ["enforced" if enforced else "annotation"]
