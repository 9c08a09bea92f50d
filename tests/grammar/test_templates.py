"""Rules of schemas among the templates of a protocol."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.grammar.test_printed import PLAIN, _check
from toolc.compiler import compile_tools
from toolc.compiler.budget import Budget
from toolc.compiler.errors import GrammarError
from toolc.compiler.grammar.cached_reader import read_pieces
from toolc.compiler.ir.nodes import Literal, Mark, Ref, Use, choice, sequence, string
from toolc.compiler.options import Options
from toolc.compiler.specs import read_spec

CALL = 'tool{name, arguments}: "<call " name ">" arguments "</call>"\ncall{tools}: tools\n'
PAIRS = 'tool{name, pair}: pair\n_pair{key, value}: key "=" _twice{value}\n_twice{one}: one | one "," one\n'


def _grammar(text: str, **rules: Use) -> dict[str, object]:
    names = {"a": string("a"), "b": choice(string("b"), string("c"))}
    return dict(read_pieces(text, {**rules, **names}, {}, {}, "x", Budget()).rules)


def test_a_rule_that_is_one_use_is_what_the_template_says() -> None:
    rules = _grammar(PAIRS, start=Use("_pair", (Ref("a"), Ref("b"))))
    inner = "_twice{b}"
    assert rules["start"] == sequence(Ref("a"), Literal(b"="), Ref(inner))
    assert rules[inner] == choice(Ref("b"), sequence(Ref("b"), Literal(b","), Ref("b")))


def test_one_rule_for_equal_arguments() -> None:
    twice = Use("_twice", (string("k"),))
    rules = _grammar(PAIRS, start=sequence(twice, twice, Use("_twice", (Ref("a"),))))  # type: ignore[arg-type]
    assert rules["start"] == sequence(Ref('_twice{"k"}'), Ref('_twice{"k"}'), Ref("_twice{a}"))


def test_instances_grow_with_the_uses() -> None:
    """Each parameter of thousands of tools is one use."""
    count = 11_000
    uses = {f"rule{n}": sequence(Use("_pair", (string(f"k{n}"), string(f"v{n}"))), string("x")) for n in range(count)}
    rules = _grammar(PAIRS, start=choice(*map(Ref, uses)), **uses)  # type: ignore[arg-type]
    assert sum(name.startswith("_pair") for name in rules) == sum(name.startswith("_twice") for name in rules) == count


def test_instances_that_double_are_without_end() -> None:
    text = 'twice{x}: twice{one{x}} twice{two{x}} | x\none{x}: x "1"\ntwo{x}: x "2"\n'
    with pytest.raises(GrammarError, match="without end") as raised:
        _grammar(text, start=Use("twice", (string("k"),)))
    assert "10000 instances" in str(raised.value)


def test_what_is_ignored_stands_before_the_terminals_of_schemas_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spaced.lark"
    path.write_text(CALL + 'text: /[a-z]+/\n%ignore " "\n%ignore /\\t/\n')
    assert _check(read_spec([PLAIN]), Options(protocol=str(path)), monkeypatch)


@pytest.mark.parametrize(
    "text, message, place",
    [
        (CALL.replace('arguments "</call>', 'foo "</call>'), "'foo' used but not defined", ":1:42"),
        (CALL.replace('"</call>"', '"</call>'), "malformed grammar", ":1:52"),
        (CALL.replace('"</call>"', "_tag{name, name}") + "_tag{token_or_text}: token_or_text\n", "_tag", ":1:52"),
        (CALL.replace('"</call>"', "_tag{arguments}") + "_tag{token_or_text}: token_or_text\n", "_tag", ":1:52"),
    ],
)
def test_errors_name_the_text_of_each_compile(tmp_path: Path, text: str, message: str, place: str) -> None:
    path = tmp_path / "one.lark"
    path.write_text(text)
    for name in ("first", "second"):
        spec = tmp_path / f"{name}.json"
        spec.write_text('[{"name": "t", "parameters": {"type": "object"}}]')
        with pytest.raises(GrammarError, match=message) as caught:
            compile_tools(spec, "builtin", options=Options(protocol=str(path)))
        assert str(caught.value.place).endswith(f"{name}.json{place}")


def test_marks_of_parameters_are_kept() -> None:
    text = "tool{name, pair}: pair\n_value{value_of_a_parameter}: value_of_a_parameter\n"
    grammar = read_pieces(text, {"start": Use("_value", (Ref("a"),)), "a": string("x")}, {}, {}, "x", Budget())
    assert grammar.rules["start"] == Ref("_value{a}") and grammar.marks == {"_value{a}": Mark("value")}


def test_a_bare_schema_needs_no_lark() -> None:
    code = (
        "import sys; from toolc.compiler import compile_schema; compile_schema({'type': 'integer'}, 'builtin');"
        "print('lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
