"""Blanks between tokens of JSON, read back whatever the masks allow: every protocol, by characters and by tokens."""

from __future__ import annotations

import functools
import itertools
import json
import random
import re
from typing import Any

import pytest

from tests.cases.codecs import Bare, Json, Positional, Raw
from tests.cases.protocols import FAMILIES
from toolc.compiler import Options, compile_grammar, compile_schema, compile_tools
from toolc.compiler.commands.check import check
from toolc.runtime import Call, DecodeError, Reader, read_calls
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.speculate.check import CallChecker

from .test_protocols import BOTH, bundle
from .vocabularies import vocab_for

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "n": {"type": "number"},
        "l": {"type": "array", "items": {"type": ["integer", "boolean", "null", "string"]}},
        "o": {"type": "object", "properties": {"k": {"type": "array", "items": {"type": "number"}}, "": {}},
              "required": ["k"], "additionalProperties": False},
    },
    "required": ["s", "n", "l", "o"],
    "additionalProperties": False,
}  # fmt: skip
TOOLS = [{"name": "f", "parameters": SCHEMA}, {"name": "ping", "parameters": {"type": "object", "properties": {}}}]
ARGUMENTS = {"s": 'a  "b" : , [c', "n": -1.5e-3, "l": [1, True, None, " x ", -20], "o": {"k": [0.5, 2], "": "{ }"}}
LAYOUTS = ("compact", "spaced", "pretty", "flexible", 0, 2)
WITH_JSON = [name for name, family in FAMILIES.items() if isinstance(family.codec, (Json, Positional, Raw))]
AROUND = [name for name, family in FAMILIES.items() if isinstance(family.codec, Json)]
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]+')


@functools.cache
def compiled(name: str, whitespace: str | int, as_tokens: bool = True) -> Bundle:
    return compile_tools(
        TOOLS, vocab_for(name, as_tokens), options=Options(protocol=name, whitespace=whitespace, named=False)
    ).bundle


def spans(text: str) -> list[tuple[int, int]]:
    """Where arrays and objects of JSON stand in a text, the outermost."""
    found, at = list[tuple[int, int]](), 0
    while at < len(text):
        try:
            _, length = json.JSONDecoder().raw_decode(text[at:]) if text[at] in "[{" else (None, 1)
        except ValueError:
            length = 1
        if length > 1:
            found.append((at, at + length))
        at += length
    return found


def laid_out(text: str, how: str, rng: random.Random) -> str:
    """The text with its JSON written in another way."""

    def one(piece: str) -> str:
        if how == "compact":
            return json.dumps(json.loads(piece), separators=(",", ":"), ensure_ascii=False)
        if how == "dumps":
            return json.dumps(json.loads(piece), ensure_ascii=False)
        if how == "indent":
            return json.dumps(json.loads(piece), ensure_ascii=False, indent=2)
        blanks = ("", "", " ", "\n", "\t", "\r\n", " " * 20, "\n\n\t ")
        tokens = TOKEN.findall(piece)
        return "".join(token + rng.choice(blanks) for token in tokens[:-1]) + tokens[-1]

    places = [0, *itertools.chain(*spans(text)), len(text)]
    pieces = [text[begin:end] for begin, end in itertools.pairwise(places)]
    return "".join(one(piece) if n % 2 else piece for n, piece in enumerate(pieces))


def read(held: Bundle, text: str, size: int) -> list[Call]:
    """Fed in pieces of so many characters; 0: in tokens of the vocabulary, cut at random."""
    reader = Reader(held, "required")
    if size:
        for begin in range(0, len(text), size):
            reader.feed_text(text[begin : begin + size])
    else:
        for token in cut(held, text):
            reader.feed(token)
    reader.finish()
    assert reader.is_whole
    return reader.calls


def cut(held: Bundle, text: str) -> list[int]:
    """A text as tokens, delimiters by their ids and the rest at random."""
    rng, found, rest = random.Random(text), list[int](), text.encode()
    known = {held.vocab.token(n): n for n in reversed(range(held.vocab.size)) if held.vocab.token(n)}
    special = {name.encode(): token for name, token in held.meta["delimiters"].items() if token is not None}
    while rest:
        own = next((name for name in special if rest.startswith(name)), None)
        end = min((rest.find(name) for name in special if name in rest), default=len(rest))
        piece = own or rest[: rng.choice([k for k in range(1, min(end, 12) + 1) if rest[:k] in known])]
        found.append(special[own] if own else known[piece])
        rest = rest[len(piece) :]
    return found


@BOTH
@pytest.mark.parametrize("name", sorted(WITH_JSON))
def test_any_layout_of_json_is_the_same_call(name: str, as_tokens: bool) -> None:
    family, rng = FAMILIES[name], random.Random(name)
    calls = [("f", ARGUMENTS), ("ping", {})][: 1 + family.many]
    usual = family.write(calls)
    assert spans(usual)
    for whitespace in ("compact", "spaced", "pretty", "flexible"):
        held = compiled(name, whitespace, as_tokens)
        for how in ("compact", "dumps", "indent", "random"):
            text = laid_out(usual, how, rng)
            for size in (1, 0):
                read_back = read(held, text, size)
                assert [(call.name, call.arguments) for call in read_back] == calls, (whitespace, how, text)
                assert [
                    text.encode()[slice(*call.span)].decode()[-len(call.text) :] for call in read_back if call.text
                ] == [call.text for call in read_back if call.text]
            assert check(held, text.encode(), "required")["accepted"]
            assert [call.arguments for call in read_calls(held, cut(held, text), "required")] == [
                one for _, one in calls
            ]


@BOTH
@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("whitespace", ["compact", "spaced"])
def test_a_blank_anywhere_is_read_as_strictly_as_before_or_stands_in_json(
    name: str, as_tokens: bool, whitespace: str
) -> None:
    """One blank put into each place: between two tokens of JSON it makes no difference; within one, and in what is no
    JSON, it is read as the masks allow, or refused."""
    family, held = FAMILIES[name], compiled(name, whitespace, as_tokens)
    rng = random.Random(name + whitespace)
    text = family.write([("f", ARGUMENTS)], whitespace == "compact")
    if name in WITH_JSON:
        text = laid_out(text, "compact" if whitespace == "compact" else "dumps", rng)
    gaps = set[int]()
    for begin, end in spans(text) if name in WITH_JSON else ():
        gaps |= {begin + found.start() for found in TOKEN.finditer(text[begin:end]) if found.start()}
        gaps |= {begin + found.end() for found in TOKEN.finditer(text[begin:end]) if begin + found.end() < end}
    sides = set(itertools.chain(*spans(text)))
    for at in sorted(rng.sample(range(len(text) + 1), 25)):
        if name == "toolkengpt" and "(" in text[:at] and text[:at].count("(") != text[:at].count(")"):
            continue  # all of it is JSON
        blank = rng.choice(" \n\t")
        changed = text[:at] + blank + text[at:]
        if at in gaps:
            assert [call.arguments for call in read_calls(held, changed, "required")] == [ARGUMENTS], (at, changed)
            continue
        if exactly(held, text) is None:
            continue  # the template of jamba, say, has blanks of its own, which this layout has not
        wanted = exactly(held, changed)
        try:
            found = read_calls(held, changed, "required")
        except DecodeError:
            found = None
        beside = at in sides or text[max(0, at - 1) : at + 1].strip() != text[max(0, at - 1) : at + 1]
        if wanted is None and (beside or isinstance(family.codec, PYTHON)):
            assert found is None or [call.arguments for call in found] == [ARGUMENTS], (at, changed)
        else:
            assert found == wanted, (at, blank, changed)


def exactly(held: Bundle, text: str) -> list[Call] | None:
    """The calls of a text that the masks allow as it is; None if they do not."""
    exact = Reader(held, "required")
    exact.be_exact()
    try:
        exact.feed_text(text)
        exact.finish()
    except DecodeError:
        return None
    return exact.calls if exact.is_whole else None


PYTHON = type(FAMILIES["pythonic"].codec)


@pytest.mark.parametrize("name", sorted(AROUND))
def test_blanks_before_and_after_arguments(name: str) -> None:
    for whitespace in ("compact", "spaced"):
        held = compiled(name, whitespace)
        text = FAMILIES[name].write([("f", {**ARGUMENTS, "s": "a"})], whitespace == "compact")
        begin = text.index('{"s"')
        _, length = json.JSONDecoder().raw_decode(text[begin:])
        for before, after in itertools.product(("", " ", "\n\t "), repeat=2):
            said = text[:begin] + before + text[begin : begin + length] + after + text[begin + length :]
            for size in (1, 0):
                (call,) = read(held, said, size)
                assert call.arguments == {**ARGUMENTS, "s": "a"} and call.text == text[begin : begin + length]


NEAR = [
    "1 2",
    "- 1",
    "1 .5",
    "1. 5",
    "1e 5",
    "1 e5",
    "tr ue",
    "nul l",
    "[1 2]",
    '"a" "b"',
    "[1,, 2]",
    "{ 1}",
    "[1, ]",
    "",
    " ",
    "1, 2",
]
VALUES = ["12", "-1.5e3", "true", "null", '"a b"', "[]", "{}", '[1, {"a": [null, "x y"]}, -0.5]', '{"a": 1, "b": {}}']


@pytest.mark.parametrize("whitespace", LAYOUTS)
def test_a_bare_schema(whitespace: str | int) -> None:
    """Numbers at the top level, too; `json.loads` is the judge."""
    held = compile_schema(True, vocab_for("hermes"), options=Options(whitespace=whitespace)).bundle
    rng = random.Random(str(whitespace))
    for value in VALUES:
        tokens = TOKEN.findall(value)
        for _ in range(10):
            blanks = [rng.choice(("", " ", "\n", "\t\r\n", " " * 12)) for _ in range(len(tokens) + 1)]
            text = blanks[0] + "".join(token + blank for token, blank in zip(tokens, blanks[1:], strict=True))
            assert json.loads(text) == json.loads(value)
            assert check(held, text.encode())["accepted"], text
            reader = Reader(held)
            for character in text:
                reader.feed_text(character)
            reader.finish()
            assert reader.is_whole and reader.data.decode() == text
    for text in NEAR:
        with pytest.raises(ValueError):
            json.loads(text)
        assert not check(held, text.encode())["accepted"], text
    for text in ('"a  b"', '" a"', '"\\u0020"'):
        assert check(held, text.encode())["accepted"]


def test_a_blank_in_a_string_is_the_string_s_own() -> None:
    held = compile_schema({"enum": ["a b", " "]}, vocab_for("hermes"), options=Options(whitespace="compact")).bundle
    for text, valid in (
        ('"a b"', True),
        (' "a b" ', True),
        ('"a  b"', False),
        ('"a b "', False),
        ('" "', True),
        ('""', False),
    ):
        assert check(held, text.encode())["accepted"] is valid, text


def test_a_grammar_has_no_json() -> None:
    held = compile_grammar('start: "{" "\\"a\\"" ":" "1" "}"\n', vocab_for("hermes")).bundle
    assert check(held, b'{"a":1}')["accepted"]
    for text in ('{"a": 1}', ' {"a":1}', '{"a":1} ', '{ "a":1}'):
        assert not check(held, text.encode())["accepted"]


@pytest.mark.parametrize(
    "name", ["hermes", "harmony", "cohere", "json", "qwen3_coder", "mistral", "llama3", "toolkengpt"]
)
@pytest.mark.parametrize("as_tokens", [True, False], ids=["tokens", "text"])
def test_a_structured_response(name: str, as_tokens: bool) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}, "required": ["a"]}
    options = Options(protocol=name, whitespace="compact", response=schema)
    held = compile_tools(TOOLS, vocab_for(name, as_tokens), options=options).bundle
    around = {"harmony": ("<|channel|>final<|message|>", ""), "cohere": ("<|START_RESPONSE|>", "<|END_RESPONSE|>")}
    before, after = around.get(name, ("", ""))
    for entry in ("response", "either"):
        for inner in ('{"a":[1,2]}', '{ "a" : [ 1 ,\n 2 ] }', ' {"a": [1, 2]}', '{"a": [1, 2]}\n'):
            for size in (1, 100):
                text, reader = before + inner + after, Reader(held, entry)
                for begin in range(0, len(text), size):
                    reader.feed_text(text[begin : begin + size])
                reader.finish()
                assert reader.is_whole and json.loads(reader.text) == {"a": [1, 2]} and not reader.calls
        for inner in ('{"a": [1 2]}', '{"a ": [1]}', '{"a": [1]} 3'):
            assert not check(held, (before + inner + after).encode(), entry)["accepted"]
    call = FAMILIES[name].write([("f", ARGUMENTS)])
    if isinstance(FAMILIES[name].codec, Json):
        call = laid_out(call, "indent", random.Random(name))
    if isinstance(FAMILIES[name].codec, (Json, Positional)):
        assert [one.arguments for one in read_calls(held, call, "either")] == [ARGUMENTS]


def test_raw_strings_that_look_like_json() -> None:
    """A parameter that may only be a string is one, however it looks."""
    properties = {"s": {"enum": ["[1,2]", '{"a":1}', "x"]}, "t": {"enum": ["[1,2]", 5]}}
    tool = {"name": "f", "parameters": {"type": "object", "properties": properties, "additionalProperties": False}}
    held = compile_tools(
        [tool], vocab_for("qwen3_coder"), options=Options(protocol="qwen3_coder", whitespace="compact")
    ).bundle
    family = FAMILIES["qwen3_coder"]
    for value in ("[1,2]", '{"a":1}', "x"):
        text = family.write([("f", {"s": value})])
        assert [call.arguments for call in read_calls(held, text, "required")] == [{"s": value}]
        for worse in (text.replace("1", " 1"), text.replace("x\n", "x \n"), text.replace("[", "[ ")):
            assert worse == text or not check(held, worse.encode(), "required")["accepted"]
    assert not check(held, family.write([("f", {"t": "[1, 2]"})]).encode(), "required")["accepted"]


def test_a_delimiter_with_a_new_line_stays_whole() -> None:
    """Blanks beside a value stand before or behind it, not within the delimiter next to it."""
    held = compiled("deepseek_v3", "compact")
    text = FAMILIES["deepseek_v3"].write([("ping", {})], True)
    for usual, other, valid in [
        ("}\n", "} \n", True), ("}\n", "}\n \n", True), ("}\n", "}\n ", False), ("}\n", "}", False),
        ("json\n", "json\n \n", True), ("json\n", "json \n", False), ("json\n", "json ", False),
    ]:  # fmt: skip
        assert check(held, text.replace(usual, other).encode(), "required")["accepted"] is valid, other


def test_bare_objects_have_no_blanks() -> None:
    assert any(isinstance(family.codec, Bare) for family in FAMILIES.values())
    text = FAMILIES["gemma4"].write([("get", {"place": "B", "days": 3})])
    held = bundle("gemma4")
    assert read_calls(held, text, "required")
    for worse in (text.replace("days:", "days: "), text.replace("{", "{ "), text.replace("3}", "3 }"), text + " x"):
        assert worse == text or not check(held, worse.encode(), "required")["accepted"]


def test_free_text_is_left_alone() -> None:
    held = compiled("hermes", "compact")
    for said in ('He said {"a" : [ 1 , 2 ]} . ', "{ ", "[ 1"):
        reader = Reader(held, "auto")
        reader.feed_text(said + FAMILIES["hermes"].write([("ping", {})], True))
        reader.finish()
        assert reader.text == said and [call.name for call in reader.calls] == ["ping"]


def test_the_end_of_a_long_text_is_found_in_time() -> None:
    """Every byte is scanned once: a text of 100,000 blanks and numbers takes seconds, not hours."""
    held = compile_schema({"type": "array", "items": {"type": "integer"}}, vocab_for("hermes"),
                          options=Options(whitespace="compact")).bundle  # fmt: skip
    text = json.dumps(list(range(20_000)), indent=2)
    assert check(held, text.encode())["accepted"]


def test_guessed_calls_are_checked_by_their_values() -> None:
    """Their arguments come as values, so blanks in the text that an endpoint gave make no difference."""
    for whitespace in ("compact", "spaced"):
        checker = CallChecker(compiled("hermes", whitespace))
        assert checker.accepts(Call("f", json.loads(json.dumps(ARGUMENTS, indent=3)), json.dumps(ARGUMENTS, indent=3)))


def test_what_is_written_has_the_blanks_that_masks_allow() -> None:
    from toolc.runtime import write_call

    for whitespace in ("compact", "spaced"):
        held = compiled("hermes", whitespace)
        written = write_call(Reader(held, "required"), "f", ARGUMENTS)
        assert written is not None
        exact = Reader(held, "required")
        exact.be_exact()
        exact.feed_text(written.text)
        exact.finish()
        assert [call.arguments for call in exact.calls] == [ARGUMENTS]


def test_the_body_of_a_request() -> None:
    body = {"content": {"application/json": {"schema": SCHEMA}}, "required": True}
    document = {
        "openapi": "3.0.3", "info": {"title": "x", "version": "1"},
        "paths": {"/a": {"post": {"operationId": "f", "requestBody": body, "responses": {}, "parameters": [
            {"name": "q[a]", "in": "query", "schema": {"type": "integer"}}]}}},
    }  # fmt: skip
    options = Options(protocol="restgpt", whitespace="compact")
    held = compile_tools(document, vocab_for("hermes"), options=options).bundle
    rng = random.Random(5)
    for head in ("POST /a ", "POST /a?q[a]=3 "):
        for how in ("compact", "dumps", "indent", "random"):
            text = head + laid_out(json.dumps(ARGUMENTS), how, rng)
            for said in (text, head + "\n " + text[len(head) :], text + " \n"):
                (call,) = read_calls(held, said, "required")
                assert call.arguments["body"] == ARGUMENTS, said
            for blanks in (" ", "  ", " \n"):
                (call,) = read_calls(held, text + blanks + "<|im_end|>", "required")
                assert call.arguments["body"] == ARGUMENTS, blanks
    text = head + json.dumps(ARGUMENTS)
    changes = [
        ("POST ", "POST  "),
        ("=3", "= 3"),
        ("q[a]", "q[ a]"),
        ("POST", "\nPOST"),
        ("-20", "- 20"),
        ('"k"', '"k "'),
    ]
    for usual, other in changes:
        worse = text.replace(usual, other)
        assert not check(held, worse.encode(), "required")["accepted"], worse


@pytest.mark.parametrize("name", ["pythonic", "lfm2", "olmo3", "llama3_builtin"])
def test_python_within_its_brackets(name: str) -> None:
    """What a parser of Python reads as the same call."""
    family = FAMILIES[name]
    for whitespace in ("compact", "spaced"):
        held = compiled(name, whitespace)
        for compact in (True, False):
            text = family.write([("f", ARGUMENTS)], compact)
            for said in (text, text.replace("=[", "=[ \n").replace("(s=", "( s=").replace("=-", " = -")):
                (call,) = read_calls(held, said, "required")
                assert call.arguments == ARGUMENTS, said
            for worse in (text.replace("None", "No ne"), text.replace("-20", "2 0"), text.replace("n=", "n n=")):
                assert not check(held, worse.encode(), "required")["accepted"], worse


def test_very_many_blanks_beside_a_value() -> None:
    held = compiled("deepseek_v3", "compact")
    text = FAMILIES["deepseek_v3"].write([("ping", {})], True)
    blanks = " " * 100_000
    for said in (text.replace("{}", "{}" + blanks), text.replace("{}", blanks + "{}")):
        assert [call.name for call in read_calls(held, said, "required")] == ["ping"]
    assert not check(held, (text + blanks + "x").encode(), "required")["accepted"]
