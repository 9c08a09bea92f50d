"""References to other files: beside the spec, in a folder that is named, or from a loader; never the network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_schema, compile_tools, read_spec
from toolc.compiler.cli import cli
from toolc.compiler.errors import SpecError, UnsupportedError
from toolc.runtime import Matcher

MODELS: dict[str, Any] = {
    "models/Faction.json": {"type": "object", "properties": {"name": {"$ref": "Symbol.json"}}, "required": ["name"]},
    "models/Symbol.json": {"enum": ["COSMIC", "VOID"]},
    "models/common.json": {"$defs": {"n": {"type": "integer", "nullable": True}}},
}
SCHEMA = {"type": "object", "properties": {"f": {"$ref": "models/Faction.json"}}, "required": ["f"]}
API = {
    "openapi": "3.0.3",
    "paths": {
        "/f": {
            "post": {
                "operationId": "add",
                "parameters": [{"$ref": "parts/q.yaml#/q"}],
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "models/Faction.json"}}}},
            }
        },
        "/g": {"$ref": "parts/g.yaml"},
    },
    "components": {"schemas": {"Own": {"enum": ["own"]}}},
}
PARTS = {
    "parts/q.yaml": "q: {name: q, in: query, schema: {$ref: '../models/common.json#/$defs/n'}}\n",
    "parts/g.yaml": "get: {operationId: get, parameters: [{name: o, in: query, schema: {$ref: "
    "'../api.json#/components/schemas/Own'}}]}\n",
}


def _write(folder: Path, name: str, document: Any) -> Path:
    files = {**{name: json.dumps(text) for name, text in MODELS.items()}, **PARTS, name: json.dumps(document)}
    for file, text in files.items():
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        (folder / file).write_text(text)
    return folder / name


def _accepts(bundle: Any, value: Any) -> bool:
    matcher, text = Matcher(bundle), json.dumps(value).encode()
    return matcher.advance_bytes(text) == len(text) and matcher.is_complete


def test_files_beside_a_schema(tmp_path: Path) -> None:
    path = _write(tmp_path, "root.json", SCHEMA)
    bundle = compile_tools(path, "builtin", options=Options(jobs=1)).bundle
    assert _accepts(bundle, {"f": {"name": "VOID"}}) and not _accepts(bundle, {"f": {"name": "X"}})
    digest = read_spec(path).digest
    (tmp_path / "models/Symbol.json").write_text('{"enum": ["OTHER"]}')
    assert read_spec(path).digest != digest  # what it refers to is part of what it says
    with pytest.raises(UnsupportedError, match="--schemas"):
        compile_tools(json.dumps(SCHEMA), "builtin")


@pytest.mark.parametrize("how", ["folder", "loader"])
def test_a_folder_and_a_loader(how: str, tmp_path: Path) -> None:
    _write(tmp_path, "root.json", SCHEMA)
    asked: list[str] = []

    def load(uri: str) -> Any:
        asked.append(uri)
        return MODELS.get(uri)

    schemas: Any = tmp_path if how == "folder" else load
    bundle = compile_schema(SCHEMA, "builtin", options=Options(jobs=1, schemas=schemas)).bundle
    assert _accepts(bundle, {"f": {"name": "VOID"}}) and not _accepts(bundle, {"f": {"name": "X"}})
    assert asked == ([] if how == "folder" else ["models/Faction.json", "models/Symbol.json"])
    tools = [{"name": "t", "input_schema": SCHEMA}]
    assert compile_tools(tools, "builtin", options=Options(jobs=1, schemas=schemas)).report["tools"] == ["t"]


def test_identifiers_say_where_files_are(tmp_path: Path) -> None:
    """What a reference means depends on the identifier of the document that holds it."""
    root = {"$id": "https://x.test/schemas/root.json", "properties": {"a": {"$ref": "sub/a.json"}}, "required": ["a"]}
    for name, schema in {
        "root.json": root,
        "sub/a.json": {"$ref": "b.json"},
        "sub/b.json": {"$ref": "https://y.test/c"},
        "deep/er/c.json": {"$id": "https://y.test/c", "const": 3},
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(schema))
    spec = read_spec(tmp_path / "root.json", schemas=tmp_path)
    assert list(spec.documents) == [
        "https://x.test/schemas/sub/a.json",
        "https://x.test/schemas/sub/b.json",
        "https://y.test/c",
    ]
    bundle = compile_tools(tmp_path / "root.json", "builtin", options=Options(jobs=1, schemas=tmp_path)).bundle
    assert _accepts(bundle, {"a": 3}) and not _accepts(bundle, {"a": 4})
    assert list(read_spec(tmp_path / "root.json").documents)[-1] == "https://x.test/schemas/sub/b.json"


def test_nothing_above_the_folders(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"const": 1}')
    (tmp_path / "in").mkdir()
    absolute = str(tmp_path / "secret.json")
    for ref in ("../secret.json", absolute, f"file://{tmp_path}/secret.json", "%2e%2e/secret.json"):
        (tmp_path / "in/root.json").write_text(json.dumps({"properties": {"a": {"$ref": ref}}}))
        assert read_spec(tmp_path / "in/root.json", schemas=tmp_path / "in").documents == {}
    (tmp_path / "in/root.json").write_text('{"properties": {"a": {"$ref": "../secret.json"}}}')
    assert list(read_spec(tmp_path / "in/root.json", schemas=tmp_path).documents) == ["../secret.json"]


def test_openapi_in_several_files(tmp_path: Path) -> None:
    """Schemas, parameters and path items; what they refer to is theirs, and the dialect that of the description."""
    path = _write(tmp_path, "api.json", API)
    made = compile_tools(path, "builtin", options=Options(jobs=1))
    assert made.report["tools"] == ["add", "get"] and made.report["skipped"] == []
    for call, right in (
        ({"name": "add", "arguments": {"q": None, "body": {"name": "VOID"}}}, True),
        ({"name": "add", "arguments": {"q": "1", "body": {"name": "VOID"}}}, False),
        ({"name": "add", "arguments": {"body": {"name": "X"}}}, False),
        ({"name": "get", "arguments": {"o": "own"}}, True),
        ({"name": "get", "arguments": {"o": "other"}}, False),
    ):
        assert _accepts(made.bundle, call) == right, call
    (tmp_path / "parts/q.yaml").unlink()
    with pytest.raises(SpecError, match="--schemas"):
        compile_tools(path, "builtin", options=Options(jobs=1))
    skipped = compile_tools(path, "builtin", options=Options(jobs=1, skip=True)).report
    assert skipped["tools"] == ["get"] and [one["tool"] for one in skipped["skipped"]] == ["add"]


def test_the_command_and_project_files(tmp_path: Path) -> None:
    _write(tmp_path / "schemas", "unused.json", True)
    (tmp_path / "root.json").write_text(json.dumps(SCHEMA))
    out = str(tmp_path / "x.toolc")
    words = ["compile", str(tmp_path / "root.json"), "--tokenizer", "builtin", "-o", out]
    refused = CliRunner().invoke(cli, words)
    assert refused.exit_code == 3 and "--schemas" in refused.stderr
    assert CliRunner().invoke(cli, [*words, "--schemas", str(tmp_path / "schemas")]).exit_code == 0
    keys = {CliRunner().invoke(cli, ["key", words[1], *more]).stdout for more in ([], ["--schemas", str(tmp_path)])}
    assert len(keys) == 1  # where nothing is found there is no difference
    project = tmp_path / "toolc.yaml"
    project.write_text("spec: root.json\ntokenizer: builtin\nschemas: schemas\noutput: y.toolc\n")
    assert CliRunner().invoke(cli, ["compile", str(project), "-o", out]).exit_code == 0
    with pytest.raises(SpecError, match="no folder of schemas"):
        read_spec(tmp_path / "root.json", schemas=tmp_path / "nowhere")
