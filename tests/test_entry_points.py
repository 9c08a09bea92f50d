"""What a user sees who gives a public function the wrong kind of thing: an error of toolc that says what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import toolc.compiler
import toolc.runtime
from toolc.compiler import (
    Budget,
    Compiled,
    Options,
    compile_grammar,
    compile_regex,
    compile_request,
    compile_schema,
    compile_spec,
    compile_tools,
    grammar_of,
    read_spec,
    source_key,
)
from toolc.runtime import (
    BatchMatcher,
    Bundle,
    DecodeError,
    Matcher,
    Reader,
    RequestError,
    TextStream,
    ToolcError,
    Vocab,
    load,
    open_store,
    read_calls,
    read_request,
    read_value,
    run,
    subset,
    write_calls,
)

TOOL = {"type": "function", "function": {"name": "look_around", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_tools([TOOL], "builtin")


def entry_points(compiled: Compiled) -> dict[str, Callable[[Any], Any]]:
    bundle = compiled.bundle
    reader = Reader(bundle)
    return {
        "compile_tools": lambda x: compile_tools(x, "builtin"),
        "compile_schema": lambda x: compile_schema(x, "builtin"),
        "compile_spec": lambda x: compile_spec(x, "builtin"),
        "compile_grammar": lambda x: compile_grammar(x, "builtin"),
        "compile_regex": lambda x: compile_regex(x, "builtin"),
        "compile_request": lambda x: compile_request(x, "builtin"),
        "grammar_of": grammar_of,
        "source_key": lambda x: source_key(x, bundle.vocab),
        "tokenizer": lambda x: compile_schema({"type": "null"}, x),
        "options": lambda x: compile_schema({"type": "null"}, "builtin", options=x),
        "eos": lambda x: compile_schema({"type": "null"}, "builtin", eos=x),
        "logits_width": lambda x: compile_schema({"type": "null"}, "builtin", logits_width=x),
        "Options.protocol": lambda x: compile_tools([TOOL], "builtin", options=Options(protocol=x)),
        "Options.response": lambda x: compile_tools([TOOL], "builtin", options=Options(protocol="hermes", response=x)),
        "Options.budget": lambda x: Options(budget=x),
        "Matcher": Matcher,
        "BatchMatcher": BatchMatcher,
        "BatchMatcher([])": lambda x: BatchMatcher([x]),
        "set_row": lambda x: BatchMatcher([bundle]).set_row(0, x, "nowhere"),
        "Reader": Reader,
        "entry": lambda x: Matcher(bundle, x),
        "entry of Reader": lambda x: Reader(bundle, x),
        "budget": lambda x: Matcher(bundle, budget=x if x is not None else 0),
        "Bundle.open": Bundle.open,
        "Vocab.open": Vocab.open,
        "read_calls": lambda x: read_calls(x, "{}"),
        "text": lambda x: read_calls(bundle, x),
        "subset": lambda x: subset(x, ["look_around"]),
        "tools": lambda x: subset(bundle, x),
        "load": lambda x: load(x, "0" * 32),
        "key": lambda x: load(".", x),
        "open_store": lambda x: open_store(x).get("0" * 32),
        "read_request": read_request,
        "write_calls": lambda x: write_calls(x, []),
        "calls": lambda x: write_calls(reader, x),
        "TextStream": TextStream,
        "advance": lambda x: Matcher(bundle).advance(x),
        "fill": lambda x: Matcher(bundle).fill(x),
        "rollback": lambda x: Matcher(bundle).rollback(x if not isinstance(x, int) else -1),
        "feed": lambda x: Reader(bundle).feed(x if not isinstance(x, int) else -1),
        "feed_text": lambda x: Reader(bundle).feed_text(x),
        "run": run,
        "read_value": lambda x: read_value(str, x),
        "write": lambda x: compiled.write(x) if not isinstance(x, (str, Path)) else compiled.write(""),
    }


def wrong(compiled: Compiled, folder: Path) -> dict[str, Any]:
    (folder / "w.toolc").write_bytes(b"TOOLCBND" + b"\0" * 80)
    (folder / "g.lark").write_text('start: "a"\n')
    return {
        "None": None,
        "float": 1.5,
        "object": object(),
        "Compiled": compiled,
        "Bundle": compiled.bundle,
        "Vocab": compiled.bundle.vocab,
        "Spec": read_spec([TOOL]),
        "set": {1},
        "generator": (x for x in ()),
        "function": lambda: 1,
        "folder": folder,
        "missing": "missing.json",
        "bundle": folder / "w.toolc",
        "bytes": b"\xff",
        "memoryview": memoryview(b"x"),
    }


FINE = {
    ("compile_spec", "Spec"), ("grammar_of", "Spec"), ("source_key", "Spec"), ("tokenizer", "Vocab"),
    ("eos", "None"), ("eos", "generator"), ("source_key", "missing"), ("tokenizer", "None"),
    ("options", "None"), ("logits_width", "None"), ("Options.protocol", "None"), ("Options.response", "None"),
    ("Matcher", "Bundle"), ("BatchMatcher([])", "Bundle"), ("set_row", "None"), ("Reader", "Bundle"),
    ("TextStream", "Vocab"), ("calls", "generator"), ("run", "generator"), ("subset", "Bundle"),
    ("compile_regex", "missing"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:no tokenizer is given")
def test_every_wrong_kind_of_thing_is_told(compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bad = []
    for name, call in entry_points(compiled).items():
        for kind, value in wrong(compiled, tmp_path).items():
            try:
                call(value)
                if (name, kind) not in FINE:
                    bad.append(f"{name}({kind}) passes")
            except ToolcError as error:
                if (name, kind) in FINE:
                    bad.append(f"{name}({kind}): {error}")
                if len(str(error)) > 1_000 or " at 0x" in str(error):
                    bad.append(f"{name}({kind}): too long, or an address: {str(error)[:200]}")
            except Exception as error:
                bad.append(f"{name}({kind}): {type(error).__name__}: {error}")
    assert not bad, "\n".join(bad)


# id; call; words
MESSAGES: list[tuple[str, Callable[[Compiled], Any], str]] = [
    ("compiled", lambda c: Matcher(c), "at bundle\n  found a Compiled, expected a Bundle; write compiled.bundle"),
    ("path", lambda c: Reader("w.toolc"), "open it: Bundle.open(path)"),
    ("one", lambda c: BatchMatcher(c.bundle), "found one Bundle, expected a list, one for each row; write [bundle]"),
    ("vocab", lambda c: TextStream(c.bundle), "expected a Vocab; write bundle.vocab"),
    ("dict", lambda c: compile_tools([TOOL], "builtin", options={"protocol": "x"}), "write Options(**options)"),
    ("spec", lambda c: compile_spec([TOOL], "builtin"), "compile_tools reads and compiles"),
    ("spec-again", lambda c: compile_tools(read_spec([TOOL]), "builtin"), "give it to compile_spec"),
    ("budget", lambda c: Options(budget=5), "found 5, expected a Budget; write Budget(seconds=…)"),
    ("tools", lambda c: subset(c.bundle, "look_around"), "write ['look_around']"),
    ("token", lambda c: Reader(c.bundle).feed("a"), "read text with feed_text"),
    ("pairs", lambda c: write_calls(Reader(c.bundle), ["look"]), "expected pairs of a name and arguments"),
    ("texts", lambda c: run("look()"), "read it first: run(read_calls(bundle, text))"),
    ("lark-as-spec", lambda c: compile_tools("g.lark", "builtin"), "compile it with compile_grammar"),
    ("lark-as-schema", lambda c: compile_schema(Path("g.lark"), "builtin"), "this is a grammar, not a spec"),
    ("rules-as-spec", lambda c: compile_tools('start: "a"', "builtin"), "a grammar is compiled by compile_grammar"),
    ("path-as-rules", lambda c: compile_grammar("rules.txt", "builtin"), "a file of another name is given as a Path"),
    ("no-lark", lambda c: compile_grammar("no.lark", "builtin"), "cannot read this file: No such file or directory"),
    ("bundle-as-spec", lambda c: compile_tools("w.toolc", "builtin"), "this is a bundle, not a spec, expected what it"),
    ("spec-as-bundle", lambda c: Bundle.open("s.json"), "is compiled first: `toolc compile`, or compile_tools"),
    ("vocab-as-bundle", lambda c: Bundle.open("v.vocab"), "found a vocab of toolc, expected a bundle of toolc"),
    ("noise-as-bundle", lambda c: Bundle.open("n.bin"), "this is not a bundle, or it was damaged"),
    ("entry", lambda c: Matcher(c.bundle, "strat"), "did you mean 'start'?"),
    ("entry-reader", lambda c: Reader(c.bundle, "strat"), "did you mean 'start'?"),
    ("entry-batch", lambda c: BatchMatcher([c.bundle], "tool:look_aroun"), "did you mean 'tool:look_around'?"),
    ("tool", lambda c: subset(c.bundle, ["lookaround"]), "did you mean 'look_around'?"),
    ("choice", lambda c: read_request({"tools": [TOOL], "tool_choice": "requierd"}), "did you mean 'required'?"),
    ("choice-name", lambda c: read_request({"tools": [TOOL], "tool_choice": "look_around"}), '"name": "look_around"'),
    (
        "choice-tool",
        lambda c: read_request(
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look_arround"}}}
        ),
        "did you mean 'look_around'?",
    ),
    (
        "protocol",
        lambda c: compile_tools([TOOL], "builtin", options=Options(protocol="hermez")),
        "did you mean hermes",
    ),
    (
        "middle",
        lambda c: compile_grammar('start: "a" start "a" | "b" start "b" | "a" | "b"', "builtin"),
        "--max-depth",
    ),
]


@pytest.mark.parametrize(("call", "words"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_messages_say_what_to_do(
    call: Callable[[Compiled], Any],
    words: str,
    compiled: Compiled,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    compiled.write("w.toolc")
    compiled.bundle.vocab.write("v.vocab")
    Path("g.lark").write_text('start: "a"\n')
    Path("s.json").write_text("[]")
    Path("n.bin").write_bytes(os.urandom(200))
    with pytest.raises(ToolcError, match=re.escape(words)) as caught:
        call(compiled)
    assert type(caught.value).__name__ not in str(caught.value)
    assert caught.value.titled.startswith(type(caught.value).__name__)


def test_an_argument_error_is_a_type_error(compiled: Compiled) -> None:
    with pytest.raises(TypeError):
        Matcher(compiled)  # type: ignore[arg-type]
    with pytest.raises(DecodeError):
        Matcher(compiled.bundle, "nowhere")
    with pytest.raises(RequestError):
        read_request([])


def test_one_rule_for_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Path is a file; text is JSON, rules, or else a path; an object is itself."""
    monkeypatch.chdir(tmp_path)
    Path("t.json").write_text('[{"type": "function", "function": {"name": "f"}}]')
    Path("s.json").write_text('{"type": "null"}')
    Path("g.lark").write_text('start: "a"\n')
    Path("rules").write_text('start: "a"\n')
    groups: list[tuple[Any, list[Any]]] = [
        (compile_tools, ["t.json", Path("t.json"), Path("t.json").read_text(), Path("t.json").read_bytes()]),
        (compile_schema, ["s.json", Path("s.json"), '{"type": "null"}', {"type": "null"}]),
        (compile_grammar, ["g.lark", Path("g.lark"), 'start: "a"', 'start: "a"\n', b'start: "a"\n', Path("rules")]),
    ]
    for compile_, sources in groups:
        made = [compile_(source, "builtin").bundle for source in sources]
        assert len({str(one.tables.delta.tolist()) for one in made}) == 1
    keys = [Options(response=one).response for one in ("s.json", Path("s.json"), '{"type": "null"}', {"type": "null"})]
    assert keys == [{"type": "null"}] * 4
    with pytest.raises(ToolcError, match="the response is no schema"):
        Options(response=3)


def test_versions() -> None:
    assert toolc.compiler.__version__ == toolc.runtime.__version__ == version("toolc")


def test_the_warning_of_no_tokenizer_names_the_caller() -> None:
    with pytest.warns(UserWarning, match="no tokenizer is given") as caught:
        compile_schema({"type": "null"})
    assert caught[0].filename == __file__


def test_budget_values() -> None:
    with pytest.raises(ToolcError):
        Budget(seconds="5")  # type: ignore[arg-type]
