"""Parents with a discriminator, read as their subtypes on request: ``--subtypes``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_tools
from toolc.compiler.cli import cli
from toolc.runtime import Matcher

NAME = {"type": "string"}


def _document(version: str, schemas: dict[str, Any], body: Any = None) -> dict[str, Any]:
    """An API with one operation that takes a pet."""
    home = "#/definitions/" if version == "2.0" else "#/components/schemas/"

    def placed(value: Any) -> Any:
        if isinstance(value, list):
            return [placed(one) for one in value]
        if isinstance(value, dict):
            return {key: placed(one) for key, one in value.items()}
        return home + value[1:] if isinstance(value, str) and value.startswith("@") else value

    body = placed({"$ref": "@Pet"} if body is None else body)
    if version == "2.0":
        operation = {
            "operationId": "add",
            "parameters": [{"name": "b", "in": "body", "required": True, "schema": body}],
        }
        return {"swagger": "2.0", "definitions": placed(schemas), "paths": {"/a": {"post": operation}}}
    content = {"required": True, "content": {"application/json": {"schema": body}}}
    paths = {"/a": {"post": {"operationId": "add", "requestBody": content}}}
    return {"openapi": version, "components": {"schemas": placed(schemas)}, "paths": paths}


def _pets(said: Any, **more: Any) -> dict[str, Any]:
    pet = {"type": "object", "properties": {"kind": NAME, "name": NAME}, "required": ["kind"], "discriminator": said}
    return {
        "Pet": pet,
        "Cat": {"allOf": [{"$ref": "@Pet"}, {"type": "object", "properties": {"lives": {"type": "integer"}}}]},
        "Dog": {"allOf": [{"$ref": "@Pet"}], "required": ["barks"], "properties": {"barks": {"type": "boolean"}}},
        "Pup": {"allOf": [{"$ref": "@Dog"}, {"properties": {"weeks": {"type": "integer"}}, "required": ["weeks"]}]},
        "Stone": {"type": "object"},
        **more,
    }


def _said(version: str, **mapping: str) -> Any:
    return "kind" if version == "2.0" else {"propertyName": "kind", **({"mapping": mapping} if mapping else {})}


def _accepts(document: dict[str, Any], *values: Any, subtypes: bool = True) -> list[bool]:
    made = compile_tools(document, "builtin", options=Options(jobs=1, subtypes=subtypes))
    found = []
    for value in values:
        text = json.dumps({"name": "add", "arguments": {"body": value}}).encode()
        matcher = Matcher(made.bundle)
        found.append(matcher.advance_bytes(text) == len(text) and matcher.is_complete)
    return found


CAT = {"kind": "Cat", "name": "a", "lives": 9}
RIGHT = CAT, {"kind": "Dog", "barks": True}, {"kind": "Pup", "barks": True, "weeks": 2}
WRONG = (
    {"kind": "Cat", "lives": "9"},
    {"kind": "Dog"},
    {"kind": "Pup", "barks": True},
    {"kind": "Fish"},
    {"kind": "Pet"},
)


@pytest.mark.parametrize("version", ["2.0", "3.0.3", "3.1.0"])
def test_a_parent_stands_for_its_subtypes(version: str) -> None:
    document = _document(version, _pets(_said(version)))
    assert _accepts(document, *RIGHT) == [True] * 3
    assert _accepts(document, *WRONG) == [False] * 5
    assert _accepts(document, *RIGHT, *WRONG, subtypes=False) == [True] * 8  # as what lies in it says nothing of others
    made = compile_tools(document, "builtin", options=Options(jobs=1, subtypes=True))
    assert [one["how"] for one in made.report["repaired"]] == ["stands for its subtypes Cat, Dog, Pup"]
    plain = compile_tools(document, "builtin", options=Options(jobs=1))
    assert made.bundle.meta["spec"]["digest"] != plain.bundle.meta["spec"]["digest"]


def test_mappings_name_subtypes() -> None:
    """Also such as refer to no parent, and the parent itself."""
    said = _said("3.1.0", c="@Cat", plain="@Pet", rock="Stone")
    values = {"kind": "c", "lives": 9}, {"kind": "plain"}, {"kind": "rock", "x": 1}, {"kind": "Stone"}
    wrong = {"kind": "Cat", "lives": "x"}, {"kind": "c", "lives": "x"}, {"kind": "x"}
    document = _document("3.1.0", _pets(said))
    assert _accepts(document, *values) == [True] * 4
    assert _accepts(document, *wrong) == [False] * 3


def test_parents_inside_of_parents() -> None:
    """A subtype that is a parent has a tag of its own, wherever it is referred to."""
    schemas = _pets(_said("3.0.3"), Dog2={"allOf": [{"$ref": "@Dog"}]})
    schemas["Dog"] = {**schemas["Dog"], "discriminator": _said("3.0.3")}
    assert _accepts(_document("3.0.3", schemas), *RIGHT, {"kind": "Dog2", "barks": True}) == [True] * 4
    dogs = _document("3.0.3", schemas, {"$ref": "@Dog"})
    assert _accepts(dogs, *RIGHT, {"kind": "Dog2", "barks": True}) == [False, True, True, True]


def test_references_inside_of_subtypes_are_of_any_subtype() -> None:
    """In properties, and in an ``allOf`` that is no subtype of the document."""
    friend = {
        "properties": {"friend": {"allOf": [{"$ref": "@Pet"}]}, "kids": {"type": "array", "items": {"$ref": "@Pet"}}}
    }
    schemas = _pets(_said("3.0.3"), Cow={"allOf": [{"$ref": "@Pet"}, friend]})
    document = _document("3.0.3", schemas, {"allOf": [{"$ref": "@Pet"}, {"maxProperties": 3}]})
    dog = {"kind": "Dog", "barks": True}
    assert _accepts(document, {"kind": "Cow", "friend": CAT, "kids": [dog, {"kind": "Cow"}]}) == [True]
    assert _accepts(document, {"kind": "Cow", "friend": {"kind": "Dog"}}, {"kind": "Cow", "kids": [{"kind": "x"}]}) == [
        False, False]  # fmt: skip


def test_what_a_parent_says_holds() -> None:
    """In the words of its version, with what its vendor adds, and where its name is one of a keyword."""
    pet = _pets(_said("3.0.3"))
    pet["Pet"]["properties"]["name"] = {"type": "string", "nullable": True}
    assert _accepts(_document("3.0.3", pet), {"kind": "Cat", "name": None}, {"kind": "Cat", "name": 1}) == [True, False]
    odd = {"default" if name == "Pet" else name: one for name, one in pet.items()}
    odd = json.loads(json.dumps(odd).replace("@Pet", "@default"))
    document = _document("3.0.3", odd, {"$ref": "@default"})
    assert _accepts(document, *RIGHT, {"kind": "Cat", "name": None}) == [True] * 4
    assert _accepts(document, {"kind": "Cat", "name": 1}, {"kind": "default"}) == [False, False]


def test_references_to_parts_of_a_parent() -> None:
    schemas = _pets(_said("3.0.3"), Bird={"properties": {"name": {"$ref": "@Pet/properties/name"}}})
    document = _document("3.0.3", schemas, {"$ref": "@Bird"})
    assert _accepts(document, {"name": "a"}, {"name": 1}) == [True, False]


def test_a_parent_without_subtypes_stays() -> None:
    pet = {**_pets(_said("3.0.3"))["Pet"]}
    document = _document("3.0.3", {"Pet": pet})
    assert _accepts(document, {"kind": "any"}) == [True]
    union = {"oneOf": [{"$ref": "@Cat"}], "discriminator": {"propertyName": "kind"}}
    schemas = {**_pets(_said("3.0.3")), "Pet": union, "Cat": {"type": "object", "properties": {"kind": NAME}}}
    del schemas["Dog"], schemas["Pup"]
    made = compile_tools(_document("3.0.3", schemas), "builtin", options=Options(jobs=1, subtypes=True))
    assert made.report["repaired"] == []


def test_the_command_and_projects(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(_document("3.0.3", _pets(_said("3.0.3")))))
    words = ["compile", str(tmp_path / "api.json"), "--tokenizer", "builtin", "-o", str(tmp_path / "a.toolc")]
    done = CliRunner().invoke(cli, [*words, "--subtypes"])
    assert done.exit_code == 0 and "/components/schemas/Pet: stands for its subtypes Cat, Dog, Pup" in done.stderr
    (tmp_path / "toolc.yaml").write_text("spec: api.json\ntokenizer: builtin\noptions: {subtypes: true}\n")
    done = CliRunner().invoke(cli, ["compile", str(tmp_path / "toolc.yaml"), "-o", str(tmp_path / "b.toolc")])
    assert done.exit_code == 0 and "stands for its subtypes" in done.stderr
