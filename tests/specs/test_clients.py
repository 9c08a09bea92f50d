"""Arguments of operations are the values that a client takes, whatever it writes them as in its request.

The values of STYLES are what openapi-core 0.23.1 reads from these requests, but for bodies and the styles `label` and
`matrix`: these rows are from the OpenAPI specification. Request examples of vendors' documents are
accepted as calls where openapi-schema-validator accepts them.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.schema.recogniser import Compiled
from toolc.compiler import Options, compile_tools
from toolc.compiler.pipeline import assembled_of
from toolc.compiler.specs import Spec, ToolSpec, read_spec
from toolc.runtime import Matcher

DOCUMENTS = Path(__file__).parents[2].parent / "shared/data/specs/openapi"

NUMBERS = {"type": "array", "items": {"type": "integer"}}
PAIR = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a", "b"]}

STYLES: list[tuple[str, dict[str, Any], str, Any]] = [
    # place, the parameter but for its name, what a client sends, the value
    ("query", {"schema": NUMBERS}, "?v=1&v=2", [1, 2]),
    ("query", {"schema": NUMBERS, "explode": False}, "?v=1,2", [1, 2]),
    ("query", {"schema": NUMBERS, "style": "pipeDelimited", "explode": False}, "?v=1%7C2", [1, 2]),
    ("query", {"schema": NUMBERS, "style": "spaceDelimited", "explode": False}, "?v=1%202", [1, 2]),
    ("query", {"schema": PAIR, "style": "deepObject", "explode": True}, "?v[a]=1&v[b]=t", {"a": 1, "b": "t"}),
    ("query", {"schema": PAIR, "explode": False}, "?v=a,1,b,t", {"a": 1, "b": "t"}),
    ("query", {"content": {"application/json": {"schema": PAIR}}}, '?v={"a":1,"b":"t"}', {"a": 1, "b": "t"}),
    ("query", {"schema": {"type": "boolean"}}, "?v=true", True),
    ("query", {"schema": {"type": "string"}, "allowEmptyValue": True}, "?v=", ""),
    ("header", {"schema": NUMBERS}, "v: 1,2", [1, 2]),
    ("header", {"schema": PAIR, "explode": True}, "v: a=1,b=t", {"a": 1, "b": "t"}),
    ("cookie", {"schema": {"type": "integer"}}, "Cookie: v=1", 1),
    ("path", {"schema": NUMBERS, "style": "label"}, "/.1.2", [1, 2]),
    ("path", {"schema": PAIR, "style": "matrix", "explode": True}, "/;a=1;b=t", {"a": 1, "b": "t"}),
]

MEDIA = ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "*/*"]


def accepts(document: dict[str, Any], arguments: dict[str, Any]) -> bool:
    text = json.dumps({"name": "go", "arguments": arguments}).encode()
    matcher = Matcher(compile_tools(document, "builtin", options=Options(jobs=1)).bundle)
    return matcher.advance_bytes(text) == len(text) and matcher.is_complete


@pytest.mark.parametrize(("place", "parameter", "sent", "value"), STYLES)
def test_a_parameter_is_its_value(place: str, parameter: dict[str, Any], sent: str, value: Any) -> None:
    listed = [{"name": "v", "in": place, "required": True, **parameter}]
    path = "/x/{v}" if place == "path" else "/x"
    operation = {"operationId": "go", "parameters": listed}
    document = {"openapi": "3.1.0", "servers": [{"url": "https://{a}.org"}], "paths": {path: {"get": operation}}}
    assert accepts(document, {"v": value})
    text = value if isinstance(value, str) and value else sent.rpartition("v=")[2]
    assert accepts(document, {"v": text}) == (parameter.get("schema", {}).get("type") == "string")
    assert not accepts(document, {})


@pytest.mark.parametrize("media", MEDIA)
def test_a_body_is_its_value(media: str) -> None:
    """A file is text, whatever its encoding; how parts are encoded is no matter of the value."""
    fields = {"file": {"type": "string", "format": "binary"}, "tags": NUMBERS}
    schema = {"type": "object", "properties": fields, "required": ["file"], "additionalProperties": False}
    content = {media: {"schema": schema, "encoding": {"tags": {"style": "form", "explode": True}}}}
    body = {"required": True, "content": content}
    document = {"openapi": "3.0.3", "paths": {"/x": {"post": {"operationId": "go", "requestBody": body}}}}
    assert accepts(document, {"body": {"file": "…", "tags": [1]}})
    assert not accepts(document, {"body": "file=…"}) and not accepts(document, {"body": {"file": 1}})


# -- examples of requests


def _resolved(document: Any, value: Any) -> Any:
    for _ in range(20):
        ref = value.get("$ref") if isinstance(value, dict) else None
        if not isinstance(ref, str):
            break
        value = document
        for step in ref[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _examples(document: Any, where: dict[str, Any]) -> Iterator[Any]:
    if "example" in where:
        yield where["example"]
    for one in (_resolved(document, one) for one in where.get("examples", {}).values()):
        if isinstance(one, dict) and "value" in one:
            yield one["value"]


def _asked(document: Any, tool: ToolSpec) -> Iterator[tuple[str, Any, Any]]:
    """(argument, schema, value) of the examples of one operation."""
    assert tool.request is not None
    method, path, parts = tool.request
    item = _resolved(document, document["paths"][path])
    operation = item[method.lower()]
    argument_of = {part: argument for argument, part in parts.items()}
    for parameter in (*item.get("parameters", ()), *operation.get("parameters", ())):
        parameter = _resolved(document, parameter)
        argument = argument_of.get((parameter["in"], parameter["name"]))
        if argument is not None and "schema" in parameter:
            yield from ((argument, parameter["schema"], value) for value in _examples(document, parameter))
    content = _resolved(document, operation.get("requestBody", {})).get("content", {})
    if "application/json" in content:
        media = content["application/json"]
        yield from (("body", media["schema"], value) for value in _examples(document, media))


def _named(document: Any, schema: Any, found: dict[str, list[Any]], seen: set[int]) -> dict[str, list[Any]]:
    """The members that a schema declares, in its order."""
    schema = _resolved(document, schema)
    if isinstance(schema, dict) and id(schema) not in seen:
        seen.add(id(schema))
        for name, inner in schema.get("properties", {}).items():
            found.setdefault(name, []).append(inner)
        for keyword in ("allOf", "anyOf", "oneOf"):
            for inner in schema.get(keyword, ()):
                _named(document, inner, found, seen)
        if "items" in schema:
            found.setdefault("", []).append(schema["items"])
    return found


def _ordered(document: Any, value: Any, schemas: list[Any]) -> Any:
    """A value with its members in the order of its schemas."""
    named: dict[str, list[Any]] = {}
    for schema in schemas:
        _named(document, schema, named, set())
    if isinstance(value, list):
        return [_ordered(document, one, named.get("", [])) for one in value]
    if not isinstance(value, dict):
        return value
    place = {name: at for at, name in enumerate(named)}
    keys = sorted(value, key=lambda name: place.get(name, len(place)))
    return {name: _ordered(document, value[name], named.get(name, [])) for name in keys}


LARGE = 60_000
"""Characters of a grammar whose automaton takes a test too long."""


def _language(spec: Spec, tool: ToolSpec, argument: str, order: str) -> Compiled | None:
    """The calls of an operation with this argument alone; None of one that is large, or has too many keys."""
    schema = {**tool.schema, "properties": {argument: tool.schema["properties"][argument]}, "required": [argument]}
    options = Options(relax=("uniqueItems",), key_order=order)
    assembled = assembled_of(replace(spec, tools=(replace(tool, schema=schema),)), options, ruled_out=None)[0]
    if assembled.many_keys:
        return None
    text = assembled.text
    return Compiled(text) if len(text) < LARGE else None


@pytest.mark.parametrize(
    ("name", "most", "least"),
    [("adyen_checkout_v64", 4, 4), ("paypal_orders", 8, 2), ("box", 10, 5), ("pagerduty", 6, 3)],
)
def test_examples_of_requests_are_calls(name: str, most: int, least: int) -> None:
    """In an order that a branch declares; and as written, where keys are not too many for that."""
    validators = pytest.importorskip("openapi_schema_validator")
    if not DOCUMENTS.is_dir():
        pytest.skip(f"needs the documents of {DOCUMENTS}")
    text = gzip.decompress((DOCUMENTS / f"{name}.json.gz").read_bytes())
    document = json.loads(text)
    spec = replace(read_spec(text, name, skip=True), refused=())
    new = document["openapi"].startswith("3.1")
    validator = validators.OAS31Validator if new else validators.OAS30WriteValidator
    checker = validators.oas31_format_checker if new else validators.oas30_format_checker
    tools = [tool for tool in spec.tools if next(_asked(document, tool), None) is not None]
    judged = 0
    languages: dict[tuple[str, str], list[Compiled | None]] = {}
    for tool in tools[:: -(-len(tools) // most)]:
        for argument, schema, value in _asked(document, tool):
            whole = {"allOf": [schema], "components": document["components"]}
            if not validator(whole, format_checker=checker).is_valid(value):
                continue
            orders = value, _ordered(document, value, [schema]), json.loads(json.dumps(value, sort_keys=True))
            said = [json.dumps({"name": tool.name, "arguments": {argument: one}}) for one in orders]
            if (tool.name, argument) not in languages:
                both = [_language(spec, tool, argument, order) for order in ("declared", "any")]
                languages[tool.name, argument] = both
            declared, free = languages[tool.name, argument]
            if declared is None:
                continue
            assert any(declared.accepts(one) for one in said), said[1]
            assert free is None or free.accepts(said[0]), said[0]
            judged += 1
    assert judged >= least
