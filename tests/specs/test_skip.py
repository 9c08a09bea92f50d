"""Tools that cannot be compiled are left out on request, each with its reason; else the first is the error."""

from __future__ import annotations

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from toolc.compiler import Budget, Options, compile_tools
from toolc.compiler.cli import cli
from toolc.compiler.errors import BudgetError, RefusedTools, SchemaError, SpecError, ToolcError, UnsupportedError
from toolc.compiler.link.link import _Linker
from toolc.compiler.option_checks import checked_options
from toolc.compiler.pipeline import assembled_of
from toolc.compiler.schema.normalise import Normaliser
from toolc.compiler.specs import read_spec
from toolc.runtime import Matcher
from toolc.runtime.store.store import open_store

GOOD = {"name": "good", "input_schema": {"type": "object", "properties": {"q": {"type": "string"}}}}
ALSO = {"name": "also", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
MALFORMED = {"name": "malformed", "input_schema": {"type": "object", "properties": {"a": {"minLength": "3"}}}}
DANGLING = {"name": "dangling", "input_schema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}}}}
NAMELESS = {"name": "a name", "input_schema": {"type": "object"}}
UNREAD = {"type": "function", "function": "weather"}
MANY_VALUES = {f"key{n}": {"enum": [sha256(b"%d %d" % (n, m)).hexdigest() for m in range(20)]} for n in range(40)}
LARGE = {"name": "large", "input_schema": {"type": "object", "properties": MANY_VALUES}}


def skipping(**more: Any) -> Options:
    return Options(skip=True, jobs=1, **more)


@pytest.mark.parametrize("protocol", ["hermes", "qwen3_coder", "pythonic"])
def test_what_cannot_be_compiled_is_left_out(protocol: str) -> None:
    tools = [MALFORMED, GOOD, UNREAD, DANGLING, NAMELESS, ALSO, GOOD]
    made = compile_tools(tools, "builtin", options=skipping(protocol=protocol))
    assert made.report["tools"] == ["good", "also"]
    assert [(one["tool"], one["error"]) for one in made.report["skipped"]] == [
        ("", "SpecError"),
        ("a name", "SpecError"),
        ("good", "SpecError"),
        ("malformed", "SchemaError"),
        ("dangling", "SchemaError"),
    ]
    places = [one["place"] for one in made.report["skipped"]]
    assert places == [
        "spec#/2/function",
        "spec#/4/name",
        "spec#/6/name",
        "spec#/0/input_schema/properties/a/minLength",
        "spec#/3/input_schema/properties/a/$ref",
    ]
    alone = compile_tools([GOOD, ALSO], "builtin", options=Options(jobs=1, protocol=protocol))
    assert alone.bundle.tables.states == made.bundle.tables.states
    assert np.array_equal(Matcher(made.bundle).allowed_tokens(), Matcher(alone.bundle).allowed_tokens())


@pytest.mark.parametrize(("tool", "error"), [(MALFORMED, SchemaError), (UNREAD, SpecError)])
def test_without_skip_the_first_is_the_error(tool: dict[str, Any], error: type[ToolcError]) -> None:
    with pytest.raises(error):
        compile_tools([GOOD, tool], "builtin", options=Options(jobs=1, protocol="hermes"))


def test_where_no_tool_is_left_the_first_error_is_raised() -> None:
    with pytest.raises(SchemaError) as caught:
        compile_tools([MALFORMED, DANGLING], "builtin", options=skipping(protocol="hermes"))
    assert caught.value.place == "spec#/0/input_schema/properties/a/minLength"
    with pytest.raises(SpecError) as named:
        compile_tools([NAMELESS], "builtin", options=skipping(protocol="hermes"))
    assert named.value.place == "spec#/0/name"


def test_a_part_that_was_made_without_the_limit_is_left_out() -> None:
    assert compile_tools([GOOD, LARGE, ALSO], "builtin", options=skipping(protocol="hermes")).report["skipped"] == []
    made = compile_tools(
        [GOOD, LARGE, ALSO], "builtin", options=skipping(protocol="hermes", budget=Budget(states=20_000))
    )
    assert [one["tool"] for one in made.report["skipped"]] == ["large"]


def test_a_limit_and_a_refused_schema_leave_out_each_its_own_tool() -> None:
    """Schemas are refused before parts are made; the tools that are left are numbered anew."""
    tools = [MALFORMED, {**GOOD, "name": "first"}, LARGE, DANGLING, GOOD, {**LARGE, "name": "larger"}, ALSO]
    limit = Budget(states=20_000)
    made = compile_tools(tools, "builtin", options=skipping(protocol="hermes", budget=limit))
    assert made.report["tools"] == ["first", "good", "also"]
    errors = {one["tool"]: one["error"] for one in made.report["skipped"]}
    schema, budget = "SchemaError", "BudgetError"
    assert errors == {"malformed": schema, "dangling": schema, "large": budget, "larger": budget}


def test_an_error_that_is_kept_holds_nothing_of_its_part(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[ToolcError] = []
    real = _Linker._refused

    def refused(linker: _Linker) -> RefusedTools:
        kept.extend(linker._failed.values())
        return real(linker)

    monkeypatch.setattr(_Linker, "_refused", refused)
    tools = [GOOD, LARGE, {**LARGE, "name": "larger"}]
    compile_tools(tools, "builtin", options=skipping(protocol="hermes", budget=Budget(states=20_000)))
    assert kept and all(error.__traceback__ is None and error.__context__ is None for error in kept)


@pytest.mark.parametrize("fillers", [0, 40])  # alone, and in a group of tools
def test_a_limit_blames_one_tool(fillers: int) -> None:
    more = [{**GOOD, "name": f"good{n}"} for n in range(fillers)]
    tools, limit = [GOOD, LARGE, ALSO, *more], Budget(states=20_000)
    with pytest.raises(BudgetError) as caught:
        compile_tools(tools, "builtin", options=Options(jobs=1, protocol="hermes", budget=limit))
    assert "with --skip large is left out" in str(caught.value)
    assert "#/1/input_schema" in str(caught.value.place)
    made = compile_tools(tools, "builtin", options=skipping(protocol="hermes", budget=limit))
    assert "large" not in made.report["tools"] and len(made.report["tools"]) == 2 + fillers
    assert [one["tool"] for one in made.report["skipped"]] == ["large"]


def test_what_the_automaton_refuses_is_left_out() -> None:
    """No schema is wrong here; more lengths are told apart in one place than a bundle has room for."""
    lengths = [{"minItems": 3 * n, "maxItems": 3 * n} for n in range(1, 90)]
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "anyOf": lengths}}}
    tools = [GOOD, {"name": "lengths", "input_schema": schema}, ALSO]
    with pytest.raises(UnsupportedError, match="bounds of lengths"):
        compile_tools(tools, "builtin", options=Options(jobs=1, protocol="hermes"))
    made = compile_tools(tools, "builtin", options=skipping(protocol="hermes"))
    assert made.report["tools"] == ["good", "also"]
    assert [(one["tool"], one["error"]) for one in made.report["skipped"]] == [("lengths", "UnsupportedError")]
    assert sum(made.report["seconds"].values()) > 0 and "spec#/1/input_schema" in made.report["skipped"][0]["place"]


def test_operations_are_left_out() -> None:
    def operation(name: str, **more: Any) -> dict[str, Any]:
        return {"operationId": name, "responses": {}, **more}

    query = {"name": "q", "in": "query", "schema": {"type": "string"}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/a": {"get": operation("a", parameters=[query])},
            "/b/{id}": {
                "get": operation("b"),
                "put": operation("c", parameters=[{**query, "in": "path", "name": "id"}]),
            },
            "/d": {"$ref": "#/nowhere"},
            "/e": {"get": operation("e", parameters=[{**query, "schema": {"$ref": "#/components/schemas/Missing"}}])},
            "/f": {"get": 3},
        },
    }
    assert [tool.name for tool in read_spec(document, "api", skip=True).tools] == ["a", "c", "e"]
    made = compile_tools(document, "builtin", options=skipping(protocol="hermes"))
    assert made.report["tools"] == ["a", "c"]
    assert [(one["tool"], one["place"]) for one in made.report["skipped"]] == [
        ("b", "spec#/paths/~1b~1{id}/get"),
        ("/d", "spec#/paths/~1d/$ref"),
        ("get /f", "spec#/paths/~1f/get"),
        ("e", "spec#/paths/~1e/get/parameters/0/schema/$ref"),
    ]


def test_the_command_says_what_it_left_out(tmp_path: Path) -> None:
    spec = tmp_path / "tools.json"
    spec.write_text(json.dumps([GOOD, MALFORMED]))
    words = ["compile", str(spec), "--skip", "-o", str(tmp_path / "x.toolc"), "--tokenizer", "builtin"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 7 and (tmp_path / "x.toolc").exists()
    assert "left out: malformed, at tools.json#/1/input_schema/properties/a/minLength" in done.stderr
    told = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert told["ok"] and [one["tool"] for one in told["skipped"]] == ["malformed"]
    assert CliRunner().invoke(cli, [*words[:2], *words[3:]]).exit_code == 3


def test_all_refusals_are_told_in_one_run(tmp_path: Path) -> None:
    """What is wrong in reading, what is wrong in a schema; the first is the error, and knows of the others."""
    tools = [GOOD, MALFORMED, UNREAD, DANGLING, {"type": "web_search"}]
    with pytest.raises(SpecError) as hosted:
        compile_tools(tools, "builtin", options=Options(jobs=1))
    assert str(hosted.value.place) == "spec#/4/type"
    with pytest.raises(SpecError) as caught:
        compile_tools(tools[:4], "builtin", options=Options(jobs=1))
    assert [name for name, _ in caught.value.refused] == ["", "malformed", "dangling"]
    assert "with --skip these 3 tools are left out" in str(caught.value)
    spec = tmp_path / "tools.json"
    spec.write_text(json.dumps(tools[:4]))
    words = ["compile", str(spec), "-o", str(tmp_path / "x.toolc"), "--tokenizer", "builtin"]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 3 and not (tmp_path / "x.toolc").exists()
    for part in ("3 tools refused, for 3 reasons", "  malformed\n    at tools.json#/1/input_schema", "  dangling\n"):
        assert part in done.stderr
    told = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert [one["tool"] for one in told["refused"]] == ["", "malformed", "dangling"] and told["error"] == "SpecError"


def operations(schemas: dict[str, Any], bodies: list[str]) -> dict[str, Any]:
    """A document with an operation for each body, which is the name of a schema."""
    bodies_of = [{"schema": {"$ref": f"#/components/schemas/{name}"}} for name in bodies]
    paths = {
        f"/{n}": {
            "post": {
                "operationId": f"o{n}",
                "requestBody": {"content": {"application/json": body}, "required": True},
            }
        }
        for n, body in enumerate(bodies_of)
    }
    return {"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}}


def test_a_schema_of_many_operations_is_worked_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    real = Normaliser._all_shapes
    monkeypatch.setattr(Normaliser, "_all_shapes", lambda self, one: asked.append(one) or real(self, one))
    inner = {f"k{n}": {"type": "object", "properties": {f"m{n}": {"type": "string"}}} for n in range(20)}
    counts = []
    for many in (1, 8):
        asked.clear()
        made = compile_tools(operations({"A": {"properties": inner}}, ["A"] * many), "builtin", options=skipping())
        assert len(made.report["tools"]) == many
        counts.append(len(asked))
    assert counts[0] > 20 and counts[1] < counts[0] + 8 * 3


RECURSIVE = {
    "Query": {"type": "object", "properties": {"any": {"$ref": "#/components/schemas/List"}, "text": {"maxLength": 3}}},
    "List": {"type": "array", "items": {"oneOf": [{"$ref": "#/components/schemas/Query"}]}, "maxItems": 2},
}
UNIONS = {
    "Cat": {"type": "object", "properties": {"kind": {"const": "cat"}, "age": {"type": "integer"}}},
    "Dog": {"type": "object", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]},
    "Pet": {"oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]},
    "Owner": {"allOf": [{"properties": {"pet": {"allOf": [{"$ref": "#/components/schemas/Pet"}]}}}]},
}
SERVED = {
    "Thing": {"type": "object", "properties": {"id": {"type": "string", "readOnly": True}, "size": {"minimum": 0}}},
    "Box": {"type": "object", "properties": {"thing": {"anyOf": [{"$ref": "#/components/schemas/Thing"}]}}},
}


@pytest.mark.parametrize("schemas", [RECURSIVE, UNIONS, SERVED], ids=["recursive", "unions", "served"])
@pytest.mark.parametrize("whitespace", ["spaced", "flexible"])
def test_operations_together_have_the_masks_of_each_alone(schemas: dict[str, Any], whitespace: str) -> None:
    document = operations(schemas, [*schemas, *reversed(schemas)])
    made = compile_tools(document, "builtin", options=Options(jobs=1, whitespace=whitespace, named=True))
    choose = random.Random(1)
    for name in made.report["tools"]:
        alone = compile_tools(document, "builtin", options=Options(jobs=1, whitespace=whitespace, only=(name,)))
        for _ in range(8):
            one, other = (Matcher(each.bundle, f"tool:{name}") for each in (made, alone))
            for _ in range(60):
                allowed = one.allowed_tokens()
                assert np.array_equal(allowed, other.allowed_tokens())
                if not len(allowed):
                    break
                token = int(choose.choice(allowed.tolist()))
                one.advance(token)
                other.advance(token)


@pytest.mark.parametrize(
    "bad",
    [
        {"$ref": "#/components/schemas/Missing"},
        {"properties": {"b": {"type": "string", "pattern": "(a*)\\1"}}},
        {"properties": {"b": {"type": "array", "uniqueItems": True, "items": {"type": "string"}}}},
        {"type": "object", "properties": {"b": {"maxLength": 2, "minLength": 3, "type": "string"}}, "required": ["b"]},
        {"allOf": [{"properties": {"b": {"$ref": "#/components/schemas/Missing"}}}, {"required": ["b"]}]},
        {"oneOf": [{"properties": {"b": {"minLength": "3"}}}]},
    ],
)
@pytest.mark.parametrize("protocol", [None, "qwen3_coder"])
def test_an_error_of_a_shared_schema_is_one_of_each_operation(bad: dict[str, Any], protocol: str | None) -> None:
    schemas = {"Bad": bad, "Good": {"type": "object", "properties": {"a": {"type": "string"}}}}
    schemas["Holds"] = {
        "type": "object",
        "properties": {"g": {"$ref": "#/components/schemas/Good"}, "x": {"$ref": "#/components/schemas/Bad"}},
        "required": ["x"],
    }
    document = operations(schemas, ["Bad", "Good", "Holds", "Bad", "Good"])
    made = compile_tools(document, "builtin", options=skipping(protocol=protocol))
    assert made.report["tools"] == ["o1", "o4"]
    assert [one["tool"] for one in made.report["skipped"]] == ["o0", "o2", "o3"]
    with pytest.raises(ToolcError) as caught:
        compile_tools(document, "builtin", options=Options(jobs=1, protocol=protocol))
    assert [name for name, _ in caught.value.refused] == ["o0", "o2", "o3"]


def test_the_limit_on_rules_is_one_of_each_operation() -> None:
    inner = {f"k{n}": {"type": "object", "properties": {f"m{n}": {"type": "string"}}} for n in range(40)}
    schemas = {f"S{n}": {"type": "object", "properties": {f"{n}": {"properties": inner}}} for n in range(4)}
    schemas["L"] = {"type": "object", "properties": {f"p{n}": {"properties": {f"q{n}": {}}} for n in range(400)}}
    document = operations(schemas, ["S0", "S1", "L", "S2", "S3"])
    read = read_spec(document, skip=True)
    kept = assembled_of(read, checked_options(skipping(budget=Budget(states=300))))[1]
    assert [tool.name for tool in kept.tools] == ["o0", "o1", "o3", "o4"]


def test_into_a_store(tmp_path: Path) -> None:
    """What is left out is told, with an exit code of its own, also of a bundle that was there before; limits that can
    leave out a tool are a part of the key."""
    (tmp_path / "specs").mkdir()
    for name, tools in (("all", [GOOD, ALSO]), ("some", [GOOD, MALFORMED]), ("most", [GOOD, LARGE, ALSO])):
        (tmp_path / "specs" / f"{name}.json").write_text(json.dumps(tools))
    store = tmp_path / "store"
    limits = ["--skip", "--protocol", "hermes", "--max-states", "20000"]
    words = ["compile", str(tmp_path / "specs"), "--store", str(store), "--jobs", "1", "--tokenizer", "builtin"]

    def run(*more: str) -> tuple[int, dict[str, Any]]:
        done = CliRunner().invoke(cli, [*words, *more, "--json"])
        return done.exit_code, json.loads(done.stdout)

    for status in ("compiled", "reused"):
        code, told = run(*limits)
        assert code == 7 and told["ok"] and told[status] == 3 and told["skipped"] == 2
        rows = {Path(row["spec"]).stem: row for row in told["rows"]}
        assert {name: [one["tool"] for one in row["skipped"]] for name, row in rows.items()} == {
            "all": [], "some": ["malformed"], "most": ["large"],
        }  # fmt: skip
        assert rows["most"]["skipped"][0]["error"] == "BudgetError"
    bundle = open_store(str(store)).get(rows["most"]["key"])
    assert [tool["name"] for tool in bundle.tools] == ["good", "also"]
    assert bundle.meta["spec"]["skipped"] == rows["most"]["skipped"]
    shown = CliRunner().invoke(cli, [*words, *limits])
    assert shown.exit_code == 7 and "left out of" in shown.stderr and "malformed, at some.json#/1" in shown.stderr
    spec = str(tmp_path / "specs" / "most.json")
    for more, same in ((limits, True), (limits[:3], False)):
        key = CliRunner().invoke(cli, ["key", spec, "--tokenizer", "builtin", *more]).stdout.strip()
        assert (key == rows["most"]["key"]) is same
    code, told = run("--skip", "--protocol", "hermes")  # large is not too large then
    assert (code, told["compiled"], told["skipped"]) == (7, 3, 1)
    code, told = run("--protocol", "hermes")
    assert (code, told["refused"]) == (3, 1)
