"""Tokenizers without a token for every byte: no mask runs into nothing; what cannot be written is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from toolc.compiler import Options, compile_grammar, compile_schema, compile_tools
from toolc.compiler.errors import VocabError
from toolc.compiler.vocab.hf_json import byte_alphabet
from toolc.runtime import Matcher

Made = Callable[..., str]


@pytest.fixture
def without(tmp_path: Path) -> Made:
    """A byte-level tokenizer without tokens for some bytes, but with some longer ones."""

    def made(missing: bytes, *more: str) -> str:
        alphabet = byte_alphabet()
        names = [char for byte, char in enumerate(alphabet) if byte not in missing]
        names += ["".join(alphabet[byte] for byte in text.encode()) for text in more]
        document = {
            "model": {"type": "BPE", "vocab": {name: n for n, name in enumerate(names)}, "merges": []},
            "added_tokens": [{"id": len(names), "content": "</s>", "special": True}],
            "decoder": {"type": "ByteLevel"},
        }
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(document))
        return str(path)

    return made


def texts(matcher: Matcher, most: int = 12) -> set[str]:
    """All texts of so many tokens; every mask on the way allows something."""
    allowed = matcher.allowed_tokens().tolist()
    assert allowed, f"nothing after {most}"
    found = {""} if matcher.is_complete else set()
    for token in allowed if most else []:
        if token not in matcher.bundle.vocab.end_of_turn:
            matcher.advance(token)
            begun = matcher.bundle.vocab.token(token).decode("latin-1")
            found |= {begun + rest for rest in texts(matcher, most - 1)}
            matcher.rollback()
    return found


@pytest.mark.parametrize(
    ("grammar", "missing", "left"),
    [
        ('start: "a\\\\b" | "c"', b"\\", {"c"}),
        ('start: ("a" | "(" start ")")~1..2', b")", {"a", "aa"}),
        ("start: /a?{?b/", b"{", {"ab", "b"}),
        ("start: /a(\\{|x[{}]|y(?!\\{)|z(?=\\{))/", b"{", {"ax}", "ay"}),
        ('start: "x" [A] B*\nA: "[" /./\nB: /\\[{2}/', b"[", {"x"}),
        ("start: /[中a]b/", b"\xad", {"ab"}),  # a token for the first two bytes of it is there
        ("start: /[中上]b/", b"\xad", {"上b"}),
        ("start: /[中a]b/", b"\xe4", {"ab"}),
        ('start: /"[^\\\\0-9]"/ | "中"', bytes(range(1 << 7, 256)), set("".join(map(chr, range(128))))),
    ],
)
def test_what_can_be_written_is_left(without: Made, grammar: str, missing: bytes, left: set[str]) -> None:
    compiled = compile_grammar(grammar, without(missing))
    found = {text.encode("latin-1").decode() for text in texts(Matcher(compiled.bundle))}
    if len(left) > 9:
        left = {f'"{one}"' for one in left if not one.isdigit() and one not in "\\\n"} | {'"\n"'}
    assert found == left


def test_a_longer_token_may_write_it(without: Made) -> None:
    compiled = compile_grammar('start: "<{}>" | "<>"', without(b"{", "{}"))
    assert texts(Matcher(compiled.bundle)) == {"<{}>", "<>"}
    assert compiled.report["unwritten"] == ""


def test_values_that_cannot_be_written_are_left_out_and_told(without: Made) -> None:
    compact = Options(whitespace="compact")
    compiled = compile_schema({"enum": ['a"b', "c"]}, without(b"\\"), options=compact)
    assert texts(Matcher(compiled.bundle)) == {'"c"'}
    assert compiled.report["unwritten"] == "\\"


def test_an_entry_that_cannot_be_written_is_refused(without: Made) -> None:
    with pytest.raises(VocabError, match=r"can write no text of this entry; found no tokens for '{' '}'") as caught:
        compile_tools("tools_specs/weather.json", without(b"{}"))
    assert caught.value.place == "tokenizer.json, entry start"
    tools = [{"name": name, "parameters": {"properties": {"x": {"const": name}}, "required": ["x"]}} for name in "a|"]
    tools[1]["name"] = "b"
    with pytest.raises(VocabError, match=r"found no tokens for '\|'") as caught:
        compile_tools(tools, without(b"|"))
    assert caught.value.place == "tokenizer.json, entry tool:b"


def test_bytes_that_a_spec_does_not_need_change_nothing(without: Made) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    compiled = compile_schema(schema, without(b"|\xf4"), options=Options(whitespace="compact"))
    assert compiled.report["unwritten"] == "" and compiled.bundle.min_tokens["start"] == len('{"a":0}') + 1


def test_a_byte_that_no_character_needs_leaves_the_parts(without: Made) -> None:
    compiled = compile_schema({"type": "object", "properties": {"a": {"type": "string"}}}, without(b"\xf4"))
    assert compiled.report["parts"] is not None and compiled.report["unwritten"] == ""


def test_counts_without_a_known_bound_compile_as_before(without: Made) -> None:
    compiled = compile_grammar('start: "[" X~300000 "]" | "|"\nX: "x"', without(b"|"))
    assert compiled.bundle.min_tokens == {"start": None} and compiled.report["unwritten"] == "|"
