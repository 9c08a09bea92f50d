"""The strategies of toolc.compiler.testing keep their promises; `toolc test` and the pytest plugin show what fails."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import fields
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import find, given, settings

from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.cli import cli
from toolc.compiler.testing import calls, near_misses, token_walks, valid_texts
from toolc.runtime import Bundle, Call, DecodeError, Matcher, read_calls
from toolc.runtime.format.tables import without_close

pytest_plugins = "pytester"

BOOK = {
    "type": "object",
    "properties": {"place": {"type": "string", "minLength": 1}, "nights": {"type": "integer", "minimum": 1}},
    "required": ["place", "nights"],
    "additionalProperties": False,
}
TOOLS = [
    {"type": "function", "function": {"name": "book", "parameters": BOOK}},
    {"type": "function", "function": {"name": "leave"}},
]
few = settings(max_examples=12, deadline=None)


def bundles() -> list[tuple[str, Bundle, str]]:
    tree = {"$ref": "#/$defs/t", "$defs": {"t": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}
    return [
        ("json", compile_tools(TOOLS, "builtin").bundle, "start"),
        ("hermes", compile_tools(TOOLS, "builtin", options=Options(protocol="hermes")).bundle, "required"),
        ("tags", compile_tools(TOOLS, "builtin", options=Options(protocol="qwen3_coder")).bundle, "required"),
        ("schema", compile_schema(tree, "builtin").bundle, "start"),
    ]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("opened", [False, True])
def test_walks_of_keys_in_any_order_end(opened: bool, known: bool) -> None:
    """Also where no close tokens are known. Some objects recur here."""
    keys = {f"key{n}": {"type": ["integer", "string", "boolean"][n % 3]} for n in range(12)}
    tree = {"properties": {**keys, "next": {"$ref": "#"}}, "required": ["key3", "key8"], "type": "object"}
    schema = tree if opened else {**tree, "additionalProperties": False}
    bundle = compile_schema(schema, "builtin", options=Options(key_order="any")).bundle
    if not known:
        held = {field.name: getattr(bundle.tables, field.name) for field in fields(bundle.tables)}
        bundle = Bundle(without_close(held), bundle.meta, bundle.vocab, bundle.name)
    assert bundle.tables.has_registers and (bundle.min_tokens["start"] is not None) == known

    @few
    @given(valid_texts(bundle))
    def texts(text: str) -> None:
        assert {"key3", "key8"} <= json.loads(text).keys()

    texts()


@pytest.mark.parametrize(("name", "bundle", "entry"), bundles(), ids=[row[0] for row in bundles()])
def test_strategies(name: str, bundle: Bundle, entry: str) -> None:
    @few
    @given(token_walks(bundle, entry=entry))
    def walks(tokens: list[int]) -> None:
        matcher = Matcher.from_tokens(bundle, tokens, entry)
        least = bundle.min_tokens[entry]
        assert matcher.is_finished and least is not None and len(tokens) <= least + 40
        read_calls(bundle, tokens, entry)

    @few
    @given(valid_texts(bundle, entry=entry))
    def texts(text: str) -> None:
        read_calls(bundle, text, entry)

    @few
    @given(near_misses(bundle, entry=entry))
    def misses(text: str) -> None:
        with pytest.raises(DecodeError):
            read_calls(bundle, text, entry)

    walks()
    texts()
    misses()


def test_calls_of_one_tool() -> None:
    seen = set()

    @few
    @given(calls(TOOLS, "book"))
    def book(call: Call) -> None:
        assert call.name == "book" and call.arguments["nights"] >= 1 and call.arguments["place"]

    @few
    @given(calls(TOOLS))
    def every(call: Call) -> None:
        seen.add(call.name)

    book()
    every()
    assert seen == {"book", "leave"}


def test_examples_shrink_to_the_shortest() -> None:
    bundle = compile_tools(TOOLS, "builtin").bundle
    least = find(token_walks(bundle), lambda tokens: True)
    assert len(least) == bundle.min_tokens["start"]
    call = find(calls(bundle, "book"), lambda call: call.arguments["nights"] >= 20)
    assert len(call.text) <= len('{"place": "!", "nights": 20}') + 1, call.text


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    (tmp_path / "schema.json").write_text(json.dumps(BOOK))
    (tmp_path / "shop.py").write_text(
        "import dataclasses\n\n"
        "def few(call):\n    if call.name == 'book' and call.arguments['nights'] > 9:\n"
        "        raise ValueError('too long')\n\n"
        "def never(value):\n    return False\n\n"
        "@dataclasses.dataclass\nclass Book:\n    place: str\n    nights: int\n"
    )
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    return tmp_path


def toolc(*arguments: str) -> Any:
    return CliRunner().invoke(cli, ["test", *arguments])


def test_the_command(project: Path) -> None:
    done = toolc("tools.json", "--examples", "30")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == ["book: 30 examples, all valid", "leave: 30 examples, all valid"]
    done = toolc("tools.json", "--validator", "shop:few", "--examples", "200")
    assert done.exit_code == 1 and "leave: 200 examples, all valid" in done.stdout
    shown = re.search(r'not valid: book: \{"place": "(.*)", "nights": (\d+)\}\n  ValueError: too long', done.stdout)
    assert shown is not None and len(shown[1]) <= 2 and len(shown[2]) == 2, done.stdout  # it is shrunk
    done = toolc("schema.json", "--validator", "shop:Book", "--examples", "30")
    assert done.stdout == "the schema: 30 examples, all valid\n", done.output
    done = toolc("schema.json", "--validator", "shop:never", "--examples", "30", "--json")
    assert done.exit_code == 1 and "the validator says False" in done.stdout
    assert toolc("tools.json", "--validator", "shop:nothing").exit_code == 3
    done = toolc("tools.json", "--protocol", "hermes", "--response", "schema.json", "--examples", "10")
    assert done.exit_code == 0, done.output


def test_the_plugin(project: Path, pytester: pytest.Pytester) -> None:
    points = [one for held in distributions() for one in held.entry_points]  # pytest, too, looks at all of them
    known = any((one.group, one.name) == ("pytest11", "toolc") for one in points)
    plugin = () if known else ("-p", "toolc.compiler.pytest_plugin")
    spec = str(project / "tools.json")
    pytester.copy_example(str(project / "shop.py"))
    done = pytester.runpytest_inprocess(*plugin, "--toolc", spec, "--toolc-examples", "20")
    done.assert_outcomes(passed=2)
    more = "--toolc-validator", "shop:never", "--toolc-examples", "20"
    done = pytester.runpytest_inprocess(*plugin, "--toolc", spec, *more)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(["*the validator says False*"])


def test_the_page(repository: Path) -> None:
    page = (repository / "docs" / "testing.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "page"}
    for block in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
        exec(compile(block, "testing.md", "exec"), names)
