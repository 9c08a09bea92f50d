"""Tools are chosen by name, tag, method or path; what is not chosen is not read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from toolc.compiler import Options, compile_tools, read_spec
from toolc.compiler.cli import cli
from toolc.compiler.errors import SpecError
from toolc.compiler.specs.project import joined_spec, read_project
from toolc.compiler.specs.selection import Selection

BROKEN = {"name": "broken one", "input_schema": 3}
LIST: list[Any] = [{"name": name, "input_schema": {"type": "object"}} for name in ("get_a", "get_b", "put_a")]


def _operation(name: str, *tags: str) -> dict[str, Any]:
    return {"operationId": name, "tags": list(tags), "responses": {}}


API = {
    "openapi": "3.0.3",
    "info": {"title": "t", "version": "1"},
    "paths": {
        "/v1/users": {"get": _operation("listUsers", "users"), "post": _operation("addUser", "users", "admin")},
        "/v1/teams": {"get": _operation("listTeams", "teams"), "delete": {"operationId": "dropTeams", "parameters": 3}},
        "/v2/users": {"get": {"responses": {}}},
    },
}
SWAGGER = {**API, "swagger": "2.0"}
del SWAGGER["openapi"]


@pytest.mark.parametrize("document", [API, SWAGGER], ids=["3.0", "2.0"])
@pytest.mark.parametrize(
    ("only", "but", "left"),
    [
        (["listUsers"], [], ["listUsers"]),
        (["list*"], [], ["listUsers", "listTeams"]),
        (["tag:users"], [], ["listUsers", "addUser"]),
        (["tag:users"], ["tag:admin"], ["listUsers"]),
        ([], ["dropTeams", "method:POST"], ["listUsers", "listTeams", "get_v2_users"]),
        (["method:get"], ["path:/v1/*"], ["get_v2_users"]),
        (["method:Post", "path:/v2/users"], [], ["addUser", "get_v2_users"]),
        (["get_v2_users"], [], ["get_v2_users"]),
    ],
)
def test_operations(document: Any, only: list[str], but: list[str], left: list[str]) -> None:
    """That of an operation that is wrong is of no matter where it is not chosen."""
    select = Selection(only, but)
    assert [tool.name for tool in read_spec(document, select=select).tools] == left
    select.check("spec")
    made = compile_tools(document, "builtin", options=Options(only=only, but=but, jobs=1))  # type: ignore[arg-type]
    assert made.report["tools"] == left and made.report["skipped"] == []


@pytest.mark.parametrize("form", [lambda tools: tools, lambda tools: {"tools": tools}])
def test_lists(form: Any) -> None:
    document = form([*LIST, BROKEN, {"type": "web_search"}])
    for only, but, left in (
        (["get_*"], [], ["get_a", "get_b"]),
        ([], ["broken*", "web_search"], ["get_a", "get_b", "put_a"]),
        (["*_a"], ["put_?"], ["get_a"]),
    ):
        made = compile_tools(document, "builtin", options=Options(only=only, but=but, jobs=1))  # type: ignore[arg-type]
        assert made.report["tools"] == left
    own = {"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": n}} for n in ("a", "b")]}
    assert [tool.name for tool in read_spec(own, select=Selection(["b"])).tools] == ["b"]
    spec = read_spec(LIST)
    from toolc.compiler import compile_spec

    assert compile_spec(spec, "builtin", options=Options(only=("put_a",), jobs=1)).report["tools"] == ["put_a"]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [("listUser", "a name like this; found \"listUser\""), ("tag:user", "a tag like this"), ("method:PATCH", "method"),
     ("path:/v3/*", "a path like this")],
)  # fmt: skip
def test_a_pattern_that_no_tool_has(pattern: str, words: str) -> None:
    for options in (Options(only=(pattern,)), Options(but=(pattern,))):
        with pytest.raises(SpecError, match="no tool has") as caught:
            compile_tools(API, "builtin", options=options)
        assert words in str(caught.value)
        if "user" in pattern.lower():
            assert "did you mean" in str(caught.value) and "users" in str(caught.value).lower()


def test_what_is_chosen_is_part_of_the_digest() -> None:
    digests = {read_spec(LIST, select=Selection(*how)).digest for how in ((), (["get_*"],), ([], ["get_*"]), (["a*"],))}
    assert len(digests) == 4 and read_spec(LIST).digest in digests


@pytest.mark.parametrize("options", [{"only": 3}, {"but": ("",)}, {"relax": ("minLength",)}])
def test_options_of_a_wrong_form(options: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="cannot be this"):
        Options(**options)


def test_the_command_and_project_files(tmp_path: Path) -> None:
    spec = tmp_path / "tools.json"
    spec.write_text(json.dumps([*LIST, BROKEN]))
    project = tmp_path / "toolc.yaml"
    project.write_text(
        "spec: tools.json\ntokenizer: builtin\noutput: x.toolc\noptions: {only: ['*_a'], except: put_a}\n"
    )
    said = read_project(project)
    assert said.options == {"only": ("*_a",), "except": ("put_a",)}
    assert [tool.name for tool in joined_spec(said.specs, select=Selection(["*_a"], ["put_a"])).tools] == ["get_a"]
    out = str(tmp_path / "y.toolc")
    every, plain = ["get_a", "get_b", "put_a"], [str(spec), "-o", out, "--tokenizer", "builtin"]
    for words, tools in (
        ([str(project), "-o", out], ["get_a"]),
        ([*plain, "--only", "get_*", "--only", "put_*"], every),
        ([*plain, "--except", "broken*"], every),
    ):
        done = CliRunner().invoke(cli, ["compile", *words, "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["tools"] == tools
    wrong = CliRunner().invoke(cli, ["compile", str(spec), "--only", "get", "-o", out])
    assert wrong.exit_code == 3 and "did you mean get_" in wrong.stderr
    bad = tmp_path / "toolc.json"
    bad.write_text('{"spec": "tools.json", "options": {"relax": ["pattern", "minLength"]}}')
    project.unlink()
    with pytest.raises(SpecError, match="minLength"):
        read_project(bad)
