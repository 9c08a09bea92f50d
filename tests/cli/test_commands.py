"""The commands end to end: outputs, exit codes, no file left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.cases.broken_specs import ROWS, as_bytes
from toolc.compiler import Options, compile_tools
from toolc.compiler.commands import compile_many, terminal
from toolc.compiler.commands.terminal import Progress
from toolc.compiler.specs.project import joined_spec
from toolc.runtime import Bundle, Matcher

Toolc = Callable[..., "subprocess.CompletedProcess[str]"]
GOOD = '{"name": "current_weather", "arguments": {"place": "Basel", "units": "celsius"}}'


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """The weather tools, compiled for the built-in tokenizer."""
    from toolc.compiler import compile_tools

    path = tmp_path_factory.mktemp("bundles") / "weather.toolc"
    compile_tools(repository / "tools_specs" / "weather.json").write(path)
    return path


def test_help_is_quick_to_import() -> None:
    code = "import sys, toolc.compiler.cli; print([m for m in ('numpy', 'lark', 'numba', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_inspect_loads_nothing_heavy(bundle: Path) -> None:
    code = (
        "import sys; from toolc.compiler.commands import inspect; inspect.run(sys.argv[1], None, False, None, True);"
        "print([m for m in ('lark', 'numba', 'tokenizers', 'torch', 'toolc.compiler.schema') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, bundle], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_and_version(process: Toolc) -> None:
    assert "compile" in process("--help").stdout
    assert process("--version").stdout.startswith("toolc ")
    for command in ("compile", "grammar", "inspect", "check", "demo"):
        assert "--json" in process(command, "-h").stdout
    assert process("compile").returncode == 2
    assert process("compile", "x.json", "--whitespace", "tight").returncode == 2
    assert process("demo", "--seed", "9" * 23).returncode == 2  # more than 64 bits


@pytest.mark.parametrize("spec", ["weather", "calculator", "funcqa", "shop_openapi", "tree_schema"])
def test_compile_then_inspect(process: Toolc, repository: Path, tmp_path: Path, spec: str) -> None:
    done = process("compile", repository / "tools_specs" / f"{spec}.json", "--json")
    assert done.returncode == 0, done.stderr
    assert "built-in" in done.stderr
    report = json.loads(done.stdout)
    path = tmp_path / f"{spec}.toolc"
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert report["ok"] and report["output"] == path.name and report["file_bytes"] == path.stat().st_size
    assert report["counts"]["states"] > 2 and report["counts"]["rows"] > 2
    stages = set() if report["parts"] else {"automaton", "tables", "close"}
    assert set(report["seconds"]) == {"schema", "grammar", "tokenizer", "parts", "bundle"} | stages
    assert (report["parts"] is None) == (spec == "tree_schema")
    assert "blanks" in report["restrictions"]
    rows = json.loads(process("inspect", path, "--keywords", "--json").stdout)["keywords"]
    assert {"enforced"} <= {row["status"] for row in rows} and all("#" in row["place"] for row in rows)
    assert rows[0]["keyword"] in process("inspect", path, "--keywords").stdout
    about = json.loads(process("inspect", path, "--json").stdout)
    assert [tool["name"] for tool in about["tools"]] == report["tools"]
    assert about["digest"] == report["digest"]
    shown = process("inspect", path)
    assert shown.returncode == 0 and all(name in shown.stdout for name in report["tools"])


def test_compile_prints_a_table(toolc: Toolc, repository: Path) -> None:
    done = toolc("compile", repository / "tools_specs" / "weather.json", "-o", "w.toolc", "--standalone")
    assert done.returncode == 0, done.stderr
    assert "3 tools" in done.stdout and "w.toolc" in done.stdout and "blanks (--whitespace)" in done.stdout


def test_compile_reads_standard_input_and_grammars(toolc: Toolc, tmp_path: Path) -> None:
    assert toolc("compile", "-", stdin=b'{"type": "integer"}').returncode == 0
    assert toolc("check", "stdin.toolc", "12").returncode == 0
    (tmp_path / "ab.lark").write_text('start: "a" start "b" | "c"\n')
    done = toolc("compile", "ab.lark")
    assert done.returncode in (0, 3), done.stderr
    (tmp_path / "list.lark").write_text('start: "[" (start ("," start)*)? "]"\n')
    done = toolc("compile", "list.lark")
    assert done.returncode == 0, done.stderr
    assert toolc("check", "list.toolc", "[[],[[]]]").returncode == 0
    assert toolc("check", "list.toolc", "[[],]").returncode == 1


def test_whitespace_option(toolc: Toolc) -> None:
    texts = ['{"a":[1,2]}', '{"a": [1, 2]}', '{"a":  [1,   2]}', '{"a":' + " " * 99 + "[1,2]}"]
    schema = b'{"properties": {"a": {"type": "array", "items": {"enum": [1, 2]}}}, "type": "object"}'
    for whitespace, accepted in [("compact", "1000"), ("spaced", "0100"), ("3", "1110"), ("flexible", "1111")]:
        assert toolc("compile", "-", "--whitespace", whitespace, stdin=schema).returncode == 0
        assert not any(toolc("check", "stdin.toolc", text).returncode for text in texts)  # reading takes any blanks
        held = Bundle.open("stdin.toolc")
        for text, bit in zip(texts, accepted, strict=True):
            matcher = Matcher(held)
            assert (matcher.advance_bytes(text.encode()) == len(text) and matcher.is_complete) == (bit == "1")


def test_strict_and_response(toolc: Toolc, repository: Path, tmp_path: Path) -> None:
    spec = repository / "tools_specs" / "weather.json"
    (tmp_path / "answer.json").write_text(
        '{"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}'
    )
    assert toolc("compile", spec, "-o", "s.toolc", "--response", "answer.json").returncode == 0
    assert toolc("check", "s.toolc", '{"ok": true}', "--entry", "response").returncode == 0
    assert toolc("check", "s.toolc", GOOD, "--entry", "either").returncode == 0
    loose = GOOD.replace("celsius", "kelvin")
    assert toolc("check", "s.toolc", loose).returncode == 1
    assert toolc("compile", spec, "-o", "l.toolc", "--no-strict").returncode == 0
    assert toolc("check", "l.toolc", loose).returncode == 0
    (tmp_path / "list.lark").write_text('start: "a"\n')
    (tmp_path / "three.json").write_text("[3]")
    assert toolc("compile", "list.lark", "--no-strict").returncode == 3
    done = toolc("compile", spec, "--response", "three.json", "--json")
    assert done.returncode == 3 and json.loads(done.stdout)["place"] == "three.json#"
    assert toolc("compile", spec, "--response", "nowhere.json").returncode == 3


def test_a_project_file_is_no_spec(toolc: Toolc, tmp_path: Path) -> None:
    """But for `compile`; the others say so."""
    (tmp_path / "a.json").write_text('[{"name": "f", "parameters": {"type": "object"}}]')
    (tmp_path / "toolc.yaml").write_text("spec: a.json\n")
    for command in (["key"], ["grammar"], ["compile", "--store", "s", "--jobs", "1"]):
        done = toolc(*command, "toolc.yaml")
        assert done.returncode == 3 and "this is a project file" in done.stdout + done.stderr
    done = toolc("compile", "toolc.yaml")
    assert done.returncode == 0 and "\n1 tool " in done.stdout and "\n1 tool " in toolc("inspect", "a.toolc").stdout


def test_grammar(toolc: Toolc, repository: Path) -> None:
    spec = repository / "tools_specs" / "tree_schema.json"
    text = toolc("grammar", spec).stdout
    assert text.startswith("start: ") and "children" in text
    report = json.loads(toolc("grammar", spec, "--json").stdout)
    assert report["ok"] and report["grammar"] == text and "key-order" in report["restrictions"]


@pytest.mark.parametrize(
    ("text", "at", "found", "expected"),
    [
        ("", 0, "the end of the text", ["{"]),
        ("[", 0, "'['", ["{"]),
        ('{"name": "c', 11, "the end of the text", ['urrent_weather"']),
        ('{"name": "x"', 10, "'x'", ['current_weather"', 'weather_forecast"', 'weather_stations"']),
        (GOOD[:-1], len(GOOD) - 1, "the end of the text", ["}"]),
        (GOOD + "x", len(GOOD), "'x'", ["the end of the text"]),
        (GOOD.replace("Basel", "Zürich" * 4 + "é"), 80, "'é'", ['",']),
    ],
)  # fmt: skip
def test_check_says_where_and_what(
    toolc: Toolc, bundle: Path, text: str, at: int, found: str, expected: list[str]
) -> None:
    done = toolc("check", bundle, text, "--json")
    assert done.returncode == 1, done.stderr
    result = json.loads(done.stdout)
    assert (result["ok"], result["offset"], result["found"]) == (False, at, found)
    assert sorted(result["expected"]) == expected


def test_check_shows_a_caret(toolc: Toolc, bundle: Path, repository: Path, tmp_path: Path) -> None:
    assert toolc("compile", repository / "tools_specs" / "weather.json", "--whitespace", "flexible").returncode == 0
    done = toolc("check", "weather.toolc", '{"name":\n"current_weather", "é": 1}')
    assert (done.returncode, done.stdout) == (1, "")
    head, line, caret, wanted = done.stderr.splitlines()
    assert head == "not accepted at line 2, column 21 (byte 29)"
    assert line[caret.index("^")] == "é"
    assert wanted == "  found 'é', expected arguments\""
    (tmp_path / "call.json").write_text(GOOD + "\n")
    assert toolc("check", bundle, "@call.json").stdout == f"accepted: {len(GOOD)} bytes\n"
    assert toolc("check", bundle, "-", stdin=GOOD.encode()).returncode == 0
    assert toolc("check", bundle, "@none.json").returncode == 2


BROKEN = [row for row in ROWS if row[0] not in ("json/50MB",)]
BROKEN_SCHEMAS = [
    ("schema/dangling", {"$ref": "#/$defs/x"}, "SchemaError", "/$ref"),
    ("schema/never", {"type": "string", "enum": [1]}, "UnsatisfiableError", "#"),
    ("schema/false", False, "UnsatisfiableError", "#"),
    ("schema/type", {"type": "strnig"}, "SchemaError", "/type"),
    ("schema/minimum", {"type": "number", "minimum": "3"}, "SchemaError", "/minimum"),
    ("schema/refused", {"type": "array", "uniqueItems": True}, "UnsupportedError", "/uniqueItems"),
]


def told(stderr: str) -> list[str]:
    """The lines of stderr without the stages that a command shows once it has taken a second."""
    return [line for line in stderr.splitlines() if not line.startswith("toolc: ")]


@pytest.mark.parametrize(("document", "kind", "place"), [pytest.param(*row[1:4], id=row[0]) for row in BROKEN])
def test_broken_spec_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: object, kind: str, place: str
) -> None:
    from toolc.compiler.cli import cli

    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    spec = tmp_path / "spec.json"
    spec.write_bytes(as_bytes(document))
    done = CliRunner().invoke(cli, ["compile", str(spec)])
    assert done.exit_code == 3, done.output
    assert done.stdout == "" and told(done.stderr)[0].startswith(kind)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(("schema", "kind", "place"), [pytest.param(*row[1:], id=row[0]) for row in BROKEN_SCHEMAS])
def test_broken_schema_leaves_no_file(process: Toolc, tmp_path: Path, schema: object, kind: str, place: str) -> None:
    done = process("compile", "-", "--json", stdin=json.dumps(schema).encode())
    assert done.returncode == 3, done.stderr
    error = json.loads(done.stdout)
    assert (error["ok"], error["error"]) == (False, kind)
    assert error["place"].startswith("stdin") and error["place"].endswith(place)
    assert done.stderr.startswith(kind)
    assert list(tmp_path.iterdir()) == []


WARNED = {
    "type": "object",
    "properties": {"a": {"type": "string", "enum": [1]}, "b": {"type": "string", "maxlength": 3}},
    "required": ["b"],
}
WARNINGS = [
    "toolc: warning: spec.json#/properties/a: never written: no value meets type and enum",
    "toolc: warning: spec.json#/properties/b: 'maxlength' is no keyword, and constrains nothing; "
    "did you mean 'maxLength'?",
]


def test_warnings(toolc: Toolc, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(WARNED))
    done = toolc("compile", "spec.json", "--json")
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if "warning" in line] == WARNINGS
    report = json.loads(done.stdout)
    assert report["unwritable"] == [
        {"pointer": "spec.json#/properties/a", "keywords": ["type", "enum"], "why": "no value meets type and enum"}
    ]
    assert report["misspelt"] == [{"pointer": "spec.json#/properties/b", "keyword": "maxlength", "meant": "maxLength"}]
    (tmp_path / "spec.json").write_text(json.dumps({"type": "object"}))
    assert "warning" not in toolc("compile", "spec.json").stderr


def test_strict_report(toolc: Toolc, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text(json.dumps(WARNED))
    done = toolc("compile", "spec.json", "--strict-report", "--json")
    assert done.returncode == 6
    error = json.loads(done.stdout)
    assert (error["error"], error["place"]) == ("ReportError", "spec.json#/properties/a")
    assert "type and enum" in error["message"] and "1 more" in error["message"]
    assert not (tmp_path / "spec.toolc").exists()
    (tmp_path / "spec.json").write_text(json.dumps({"type": "object"}))
    assert toolc("compile", "spec.json", "--strict-report").returncode == 0
    assert toolc("compile", "spec.json", "--strict-report", "--store", "here").returncode == 2


def test_big_and_deep_specs(toolc: Toolc, tmp_path: Path) -> None:
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "big.json").write_bytes(b'{"description": "' + b"a" * (50 << 20) + b'"}')
    (folder / "deep.json").write_bytes(b'{"items":' * 10_000 + b"{}" + b"}" * 10_000)
    for name, words in [("big.json", "too large"), ("deep.json", "more than 500 deep")]:
        done = toolc("compile", folder / name)
        assert (done.returncode, done.stdout) == (3, "")
        assert words in done.stderr and "Traceback" not in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["specs"]


def test_openapi_errors_name_the_place_in_the_document(toolc: Toolc) -> None:
    parameter = {"name": "q", "in": "query", "schema": {"type": "string", "minLength": -1}}
    document = {"openapi": "3.1.0", "paths": {"/a": {"get": {"parameters": [parameter]}}}}
    done = toolc("compile", "-", stdin=json.dumps(document).encode())
    assert done.returncode == 3
    assert told(done.stderr)[0] == "SchemaError [TC202] at stdin#/paths/~1a/get/parameters/0/schema/minLength"


@pytest.mark.parametrize("limit", ["--max-states=5", "--max-rows=2", "--max-seconds=0.000001", "--max-bytes=100"])
def test_budgets(toolc: Toolc, repository: Path, tmp_path: Path, limit: str) -> None:
    done = toolc("compile", repository / "tools_specs" / "calculator.json", limit)
    assert done.returncode == 4, done.stderr
    assert told(done.stderr)[0].startswith("BudgetError") and limit.split("=")[0] in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_pattern_that_explodes(toolc: Toolc, tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^[ab]*a[ab]{12}$"}}}
    done = toolc("compile", "-", "--max-pattern-states=1000", stdin=json.dumps(schema).encode())
    assert done.returncode == 4 and "--max-pattern-states" in done.stderr
    assert told(done.stderr)[0] == "BudgetError [TC501] at terminal A (stdin#/properties/a)"
    assert list(tmp_path.iterdir()) == []


def test_other_refusals(toolc: Toolc, repository: Path, bundle: Path, tmp_path: Path) -> None:
    weather = repository / "tools_specs" / "weather.json"
    assert toolc("compile", weather, "--tokenizer", "nothing-here").returncode == 3
    assert toolc("compile", weather, "--eos", "<|nothing|>").returncode == 3
    assert toolc("compile", weather, "-o", "no/such/folder.toolc").returncode == 2
    assert toolc("compile", weather, "-o", ".").returncode == 2
    assert toolc("compile", "none.json").returncode == 3
    assert toolc("inspect", "none.toolc").returncode == 5
    (tmp_path / "cut.toolc").write_bytes(bundle.read_bytes()[:-100])
    for command in (["inspect", "cut.toolc"], ["check", "cut.toolc", "x"]):
        done = toolc(*command)
        assert done.returncode == 5 and "BundleError [TC601] at" in done.stderr, done.stderr
    edited = bytearray(bundle.read_bytes())
    edited[-1] ^= 1
    (tmp_path / "edited.toolc").write_bytes(edited)
    assert toolc("inspect", "edited.toolc").returncode == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut.toolc", "edited.toolc"]


def test_a_bug_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolc.compiler.cli import cli
    from toolc.compiler.commands import grammar

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(grammar, "read_source", broken)
    done = CliRunner().invoke(cli, ["grammar", "x.json", "--json"])
    assert done.exit_code == 70
    assert "This is a bug in toolc (ZeroDivisionError)" in done.stderr and "Traceback" in done.stderr
    assert json.loads(done.stdout) == {"ok": False, "error": "bug", "message": "ZeroDivisionError: oh"}


@pytest.mark.slow
def test_demo(process: Toolc, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = process("demo", "--rows", "6", "--json")
    assert done.returncode == 0 and done.stderr == ""
    report = json.loads(done.stdout)
    assert report["ok"] and report["with"]["valid"] == 6 and report["with"]["ended"] == 6
    assert report["without"]["valid"] < 6
    assert list(tmp_path.iterdir()) == []
    shown = process("demo", "--rows", "3")
    assert shown.returncode == 0 and "valid" in shown.stdout and "raised by" in shown.stdout


def test_protocols(toolc: Toolc, repository: Path) -> None:
    spec = repository / "tools_specs" / "weather.json"
    listed = json.loads(toolc("protocols", "--json").stdout)["protocols"]
    assert "hermes" in listed and "Source: " in listed["hermes"]
    assert "hermes" in toolc("protocols").stdout
    done = toolc("compile", spec, "--protocol", "hermes", "-o", "h.toolc", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["protocol"], report["delimiters"]["<tool_call>"]) == ("hermes", 8185)
    assert "required/one/inside" in report["entries"] and "tool:current_weather" in report["entries"]
    call = f"<tool_call>{GOOD}</tool_call>"
    for entry, text, code in (
        ("required", call, 0),
        ("required", "Hm. " + call, 1),
        ("auto", "Hm. " + call, 0),
        ("none", call, 1),
        ("auto/inside", "Hm.</think>" + call, 0),
        ("never", call, 3),
    ):
        done = toolc("check", "h.toolc", "--entry", entry, text)
        assert done.returncode == code or code == 3 and done.returncode not in (0, 1), (entry, done.stderr)
    assert "found the token <tool_call>" in toolc("check", "h.toolc", "--entry", "none", call).stderr
    assert "call{tools}" in toolc("grammar", spec, "--protocol", "kimi_k2").stdout
    assert toolc("compile", spec, "--protocol", "hermse").returncode == 3
    assert "required/one" not in toolc("compile", spec, "--no-named").stdout.partition("tool:")[2]


def test_project_file(toolc: Toolc, repository: Path, tmp_path: Path) -> None:
    assert toolc("compile").returncode == 2
    (tmp_path / "w.json").write_bytes((repository / "tools_specs" / "weather.json").read_bytes())
    (tmp_path / "toolc.json").write_text('{"spec": "w.json", "protocol": "hermes", "output": "x.toolc"}')
    report = json.loads(toolc("compile", "--json").stdout)
    assert (report["output"], report["protocol"]) == ("x.toolc", "hermes")
    report = json.loads(toolc("compile", "toolc.json", "--protocol", "json", "-o", "y.toolc", "--json").stdout)
    assert (report["output"], report["protocol"]) == ("y.toolc", "json")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("soft_depth: true", "from 1 to 512"),
        ("soft_depth: 100000000", "from 1 to 512"),
        ("soft_depth: -1", "from 1 to 512"),
        ("soft_depth: 0", "from 1 to 512"),
        ("digits: -3", "from 1 to 300"),
        ("digits: 0", "from 1 to 300"),
        ("digits: true", "from 1 to 300"),
        ("digits: 100000", "from 1 to 300"),
        ("whitespace: -1", "from 0 to 9999"),
        ("whitespace: '8'", "compact, spaced, pretty, flexible"),
        ("key_order: sorted", "declared, any"),
        ("named: 1", "true or false"),
    ],
)
def test_options_out_of_range(toolc: Toolc, tmp_path: Path, option: str, words: str) -> None:
    from toolc.compiler import Options
    from toolc.compiler.errors import SpecError

    (tmp_path / "a.json").write_text('{"type": "integer"}')
    (tmp_path / "toolc.yaml").write_text(f"spec: a.json\noptions: {{{option}}}\n")
    done = toolc("compile")
    name, _, value = option.partition(": ")
    assert (
        done.returncode == 3
        and f"SpecError [TC201] at toolc.yaml#/options/{name}\n" in done.stderr
        and words in done.stderr
    )
    with pytest.raises(SpecError, match=words):
        Options(**{name: json.loads(value.replace("'", '"')) if value != "sorted" else value})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["compile", "x" * 300], "File name too long"),
        (["compile", "x" * 300, "--store", "st"], "no such file or folder"),
        (["compile", "", "--store", "st"], 'SpecError [TC201] at ""'),
        (["compile", "a.json", "--protocol", "x" * 300], "no such protocol"),
        (["compile", "a.json", "--tokenizer", "x" * 300], "no such tokenizer"),
    ],
)
def test_names_that_cannot_be_files(toolc: Toolc, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "a.json").write_text('[{"name": "a", "parameters": {}}]')
    done = toolc(*words)
    assert done.returncode == 3 and said in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["key", "a.json", "--max-spec-bytes", str(2**63 - 1)], "--max-spec-bytes"),
        (["compile", "a.json", "--max-seconds", "nan"], "'nan'"),
        (["compile", "a.json", "--max-seconds", "inf"], "'inf'"),
        (["compile", "a.json", "--max-seconds", "-1"], "--max-seconds"),
        (["prune", ".", "--older-than", "nan"], "'nan'"),
        (["prune", ".", "--older-than", "inf"], "'inf'"),
        (["check", "BUNDLE", "x", "--entry", "zz"], "no entry 'zz'; it has"),
        (["pull", ".", "zz"], "this is no key"),
        (["pull", ".", "0" * 32, "--allow", "nope.pub"], "--allow: nope.pub"),
        (["push", ".", "BUNDLE", "--sign", "nope.pem"], "--sign: nope.pem"),
    ],
)
def test_wrong_usage(toolc: Toolc, bundle: Path, tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "a.json").write_text('{"type": "integer"}')
    done = toolc(*(str(bundle) if word == "BUNDLE" else word for word in words))
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_what_a_grammar_is_written_in(toolc: Toolc, tmp_path: Path) -> None:
    for name in ("a.gbnf", "a.txt"):
        (tmp_path / name).write_text('root ::= "a"+\n')
    for arguments in (("a.gbnf",), ("a.txt", "--syntax", "gbnf"), ("-", "--syntax", "gbnf")):
        stdin = b'root ::= "a"+\n' if arguments[0] == "-" else None
        assert toolc("compile", *arguments, "-o", "a.toolc", stdin=stdin).returncode == 0
        assert toolc("check", "a.toolc", "aaa").returncode == 0
        assert toolc("check", "a.toolc", "b").returncode == 1
        assert toolc("grammar", *arguments, stdin=stdin).stdout == 'start: "a"+\n'
        assert len({toolc("key", "a.gbnf").stdout, toolc("key", *arguments, stdin=stdin).stdout}) == 1
    (tmp_path / "b.gbnf").write_text("root ::= b\n")
    assert "GrammarError [TC301] at b.gbnf:1:10\n  there is no rule b" in toolc("compile", "b.gbnf").stderr
    done = toolc("compile", "a.txt", "--syntax", "gbnf", "--store", "store")
    assert done.returncode == 2 and "the ending of a file says what a grammar is written in" in done.stderr
    assert toolc("compile", "a.gbnf", "--store", "store").returncode == 0


def test_a_lone_surrogate_in_lark_text() -> None:
    from toolc.compiler import compile_grammar
    from toolc.compiler.errors import GrammarError

    with pytest.raises(GrammarError) as caught:
        compile_grammar('start: "a"\n// \ud800', name="g.lark")
    assert caught.value.place == "g.lark:2:4"


@pytest.mark.parametrize(
    "schema",
    [r'{"type": "object", "properties": {"a": {"pattern": "\ud800"}}}', r'{"$ref": "#/\ud800"}', r'{"type": "\ud800"}'],
)
@pytest.mark.parametrize("command", ["compile", "grammar", "key"])
def test_a_lone_surrogate_in_a_schema(process: Toolc, tmp_path: Path, command: str, schema: str) -> None:
    """Text with half of a surrogate pair cannot be written: what said so was a traceback."""
    (tmp_path / "s.json").write_text(schema)
    done = process(command, "s.json", "--json")
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert json.loads(done.stdout)["ok"] is False


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_json_that_stdout_cannot_write(encoding: str) -> None:
    value = {"place": "#/\ud800/é", "text": "\\ud800"}
    code = f"from toolc.compiler.commands.terminal import print_json; print_json({value!a})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}, check=True
    )
    assert json.loads(done.stdout) == value


def test_names_of_files_that_are_no_text(toolc: Toolc, bundle: Path, tmp_path: Path) -> None:
    name = os.fsdecode(b"\xff.toolc")
    shutil.copy(bundle, tmp_path / name)
    shutil.copytree(bundle.parent, tmp_path, dirs_exist_ok=True)
    for words in (["inspect", name], ["inspect", name, "--json"], ["push", "store", name], ["list", "store"]):
        done = toolc(*words)
        assert done.returncode == 0, done.stderr


def test_jobs_change_no_byte(process: Toolc, repository: Path, tmp_path: Path) -> None:
    spec = repository / "tools_specs" / "weather.json"
    for name, jobs in (("one", ("--jobs", "1")), ("three", ("--jobs", "3")), ("all", ())):
        assert process("compile", spec, *jobs, "-o", tmp_path / name).returncode == 0
    assert len({path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}) == 1


def test_progress_says_that_a_fork_waits_for_it() -> None:
    before = set(threading.enumerate())
    with Progress():
        assert [getattr(thread, "fork_waits", False) for thread in set(threading.enumerate()) - before] == [True]


def test_a_long_compile_tells_of_its_tools(
    toolc: Toolc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On the logger; and on stderr, where it takes long and nobody wants quiet."""
    tools = [{"name": name, "parameters": {"type": "object", "properties": {name: {}}}} for name in ("one", "two")]
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    with caplog.at_level("INFO", "toolc.compiler.progress"):
        compile_tools(tools, "builtin", options=Options(jobs=1))
        said = list(caplog.messages)
        compile_tools(tools[:1], "builtin", options=Options(jobs=1))
    assert said[:2] == ["schema: one (1 of 2)", "schema: two (2 of 2)"]
    assert [one for one in caplog.messages[len(said) :] if one.startswith("schema")] == []
    words = ("compile", "tools.json", "--tokenizer", "builtin", "-o", "a.toolc")
    assert "(1 of 2)" not in toolc(*words).stderr
    monkeypatch.setattr(terminal, "DETAILS", 0.0)
    monkeypatch.setattr(Progress, "_follow", Progress._draw)
    assert "toolc: schema: two (2 of 2) …" in toolc(*words).stderr
    assert "toolc:" not in toolc(*words, "-q").stderr
    monkeypatch.setattr(compile_many, "PATIENCE", 0.0)
    words = ("compile", "tools.json", "--tokenizer", "builtin", "--jobs", "1", "--store")
    assert "toolc: 1 of 1: 1 compiled" in toolc(*words, "loud").stderr
    assert toolc(*words, "quiet", "-q").stderr == ""


def test_names_that_are_no_utf8(toolc: Toolc, repository: Path, tmp_path: Path) -> None:
    """Files can have them; what says their names has escapes."""
    strange = os.fsdecode(b"bad\xff\xfe")
    (tmp_path / f"{strange}.json").write_text('[{"name": "f", "parameters": {"type": "object"}}]')
    (tmp_path / f"{strange}.lark").write_text('start: "yes"\n')
    shutil.copy(repository / "grammars" / "hermes.lark", tmp_path / f"{strange}p.lark")
    folder = tmp_path / strange
    folder.mkdir()
    shutil.copy(repository / "compiler" / "vocab" / "data" / "builtin.json", folder / "tokenizer.json")
    for spec, *more in (
        (f"{strange}.json", "--protocol", f"./{strange}p.lark", "--tokenizer", strange),
        (f"{strange}.json", "--tokenizer", f"{strange}/tokenizer.json"),
        (f"{strange}.lark",),
    ):
        done = toolc("compile", spec, "--json", *more)
        said = json.loads(done.stdout)
        assert done.returncode == 0 and said["spec"]["name"] == spec.replace(strange, r"bad\udcff\udcfe")
        assert toolc("inspect", f"{strange}.toolc", "--html", f"{strange}.html").returncode == 0
    assert r"bad\udcff\udcfe" in (tmp_path / f"{strange}.html").read_text()


def test_files_that_are_joined_may_have_any_name(tmp_path: Path) -> None:
    for name in (b"a\xff", b"b"):
        (tmp_path / os.fsdecode(name)).mkdir()
        tool = {"name": name.decode(errors="replace")[0], "parameters": {"type": "object"}}
        (tmp_path / os.fsdecode(name) / "x.json").write_text(json.dumps([tool]))
    files = [tmp_path / os.fsdecode(name) / "x.json" for name in (b"a\xff", b"b")]
    tools = joined_spec((files[0], files[1])).tools
    assert [tool.file for tool in tools] == [r"a\udcff/x.json", "b/x.json"]


def test_no_tokenizer_is_not_this_folder(toolc: Toolc, tmp_path: Path, repository: Path) -> None:
    shutil.copy(repository / "compiler" / "vocab" / "data" / "builtin.json", tmp_path / "tokenizer.json")
    (tmp_path / "x.json").write_text('{"const": 1}')
    done = toolc("compile", "x.json", "--tokenizer", "")
    assert done.returncode == 3 and "no such tokenizer" in done.stderr and "written ." in done.stderr
    assert toolc("key", "x.json", "--tokenizer", ".").returncode == 0


def test_responses_and_requests(toolc: Toolc, tmp_path: Path) -> None:
    """A schema in a protocol and the body of a request, from their files to a text that is accepted."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    done = toolc("compile", "schema.json", "--tokenizer", "builtin", "--protocol", "hermes", "--json")
    report = json.loads(done.stdout)
    assert report["begins"] == "response" and report["entries"][1:] == [
        "response", "response/outside", "response/inside",
    ]  # fmt: skip
    for text, code in (('{"a": "x"}', 0), ('<think>So.</think>{"a": "x"}', 0), ("x", 1), ('{"a": 1}', 1)):
        assert toolc("check", "schema.toolc", text).returncode == code, text
    assert "begins at" in toolc("inspect", "schema.toolc").stdout
    tool = {"type": "function", "name": "f", "parameters": schema}
    body = {
        "model": "m",
        "input": "Hi",
        "tools": [tool, {**tool, "name": "g"}],
        "tool_choice": {"type": "function", "name": "g"},
    }
    (tmp_path / "request.json").write_text(json.dumps(body | {"tolo_choice": "none"}))
    done = toolc("compile", "request.json", "--tokenizer", "builtin", "--protocol", "hermes", "--json")
    report = json.loads(done.stdout)
    assert report["begins"] == "tool:g" and report["unread"] == ["request.json#/tolo_choice"]
    assert "request.json#/tolo_choice" in done.stderr
    assert json.loads(toolc("key", "request.json", "--tokenizer", "builtin", "--protocol", "hermes", "--json").stdout)
    call = '<tool_call>\n{"name": "%s", "arguments": {"a": "x"}}\n</tool_call>'
    assert toolc("check", "request.toolc", call % "g").returncode == 0
    assert toolc("check", "request.toolc", call % "f").returncode == 1
    assert toolc("check", "request.toolc", call % "f", "--entry", "required").returncode == 0
    refused = toolc("compile", "request.json", "--tokenizer", "builtin", "--protocol", "hermes", "--strict-report")
    assert refused.returncode == 6
    (tmp_path / "request.json").write_text(json.dumps(body | {"tool_choice": "auto"}))
    refused = toolc("compile", "request.json", "--tokenizer", "builtin")
    assert refused.returncode == 3 and "--protocol" in refused.stderr
    (tmp_path / "format.json").write_text('{"type": "json_schema", "json_schema": {"name": "x"}}')
    refused = toolc("compile", "format.json", "--tokenizer", "builtin")
    assert refused.returncode == 3 and "format.json#/json_schema" in refused.stderr


def test_inspect_shows_what_is_never_written(toolc: Toolc, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(
        '{"type": "object", "properties": {"n": {"type": "integer", "minimum": 5, "maximum": 3}}}'
    )
    assert toolc("compile", "s.json", "-o", "b.toolc", "--tokenizer", "builtin").returncode == 0
    (row,) = json.loads(toolc("inspect", "b.toolc", "--json").stdout)["unwritable"]
    assert row["pointer"] == "s.json#/properties/n" and row["keywords"] == ["type", "minimum", "maximum"]
    shown = " ".join(toolc("inspect", "b.toolc").stdout.split())
    assert "never written s.json#/properties/n: no value meets type, minimum and maximum" in shown


def test_what_stands_in_declared_order_nevertheless(toolc: Toolc, tmp_path: Path) -> None:
    large = {"type": "object", "properties": {f"k{n}": {"type": "null"} for n in range(11)}, "maxProperties": 9}
    room = "more keys than any order has room for"
    for count, said in (
        (1, f"1 object has {room}; its keys stand in declared order: s.json#/properties/p0"),
        (2, f"2 objects have {room}; their keys stand in declared order: s.json#/properties/p0, s.json#/properties/p1"),
    ):
        schema = {"type": "object", "properties": {f"p{n}": large for n in range(count)}}
        (tmp_path / "s.json").write_text(json.dumps(schema))
        words = "s.json", "-o", "b.toolc", "--tokenizer", "builtin", "--key-order", "any"
        done = toolc("compile", *words)
        assert done.returncode == 0 and said in " ".join(done.stdout.split()) and "many-keys" in done.stdout
        assert said in " ".join(toolc("inspect", "b.toolc").stdout.split())
        report = json.loads(toolc("compile", *words, "--json").stdout)
        assert report["many_keys"] == [f"s.json#/properties/p{n}" for n in range(count)]
        assert toolc("inspect", "b.toolc", "--html", "b.html").returncode == 0
        assert "than any order has room for" in (tmp_path / "b.html").read_text()
    done = toolc("compile", *words[:-2])
    assert "many-keys" not in done.stdout and "any order" not in done.stdout
