"""References between documents, dynamic anchors, and what OpenAPI adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from toolc.compiler.errors import UnsupportedError
from toolc.compiler.schema import LarkWriter, SchemaOptions, schema_to_lark
from toolc.compiler.schema.references import folder_loader

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


def test_discriminator() -> None:
    kind = {"type": "object", "properties": {"kind": {"type": "string"}}, "additionalProperties": {"type": "integer"}}
    refs = [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]
    root = {"oneOf": refs, "discriminator": {"propertyName": "kind", "mapping": {"puppy": "#/components/schemas/Dog"}}}
    cat = {**kind, "required": ["lives"], "properties": {**kind["properties"], "lives": {"type": "integer"}}}
    ours = _openapi(root, Cat=cat, Dog=kind)
    assert ours.accepts('{"kind": "Cat", "lives": 9}') and ours.accepts('{"kind": "puppy"}')
    assert ours.accepts('{"kind": "Dog", "lives": 1}')
    assert not ours.accepts('{"kind": "Cat"}') and not ours.accepts("{}") and not ours.accepts('{"kind": "Cow"}')
