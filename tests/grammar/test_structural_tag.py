"""Structural tags: texts, masks against every token, tokens in strings, places of refusals, bodies of requests."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.cases.structural_tags import OLDER, REFUSED, STRUCTURAL_TAGS
from tests.lift.brute import brute_mask
from tests.protocols.vocabularies import vocab_for
from toolc.compiler import Options, compile_grammar, compile_request, compile_schema, compile_tools
from toolc.compiler.cli import cli
from toolc.compiler.errors import SpecError, ToolcError, VocabError
from toolc.compiler.random_tests import targets_of
from toolc.compiler.specs import read_spec
from toolc.runtime import Bundle, Matcher
from toolc.runtime.calls.whole_text import read_whole
from toolc.runtime.errors import RequestError
from toolc.runtime.serving.requests import read_request

TAG = "structural_tag"
IDS = [row[0] for row in STRUCTURAL_TAGS]


def compiled(form: dict[str, Any], **options: Any) -> Bundle:
    return compile_tools({"type": TAG, "format": form}, "builtin", options=Options(**options)).bundle


def accepts(bundle: Bundle, text: str, entry: str = "start") -> bool:
    return read_whole(bundle, text.encode(), entry)[1] is None


def allowed(matcher: Matcher) -> np.ndarray:
    mask = np.zeros(matcher.bundle.vocab.words, np.uint32)
    matcher.fill(mask)
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[: matcher.bundle.vocab.size]


@pytest.mark.parametrize(
    ("form", "texts", "others"), [row[1:] for row in STRUCTURAL_TAGS], ids=[r[0] for r in STRUCTURAL_TAGS]
)
def test_texts(form: dict[str, Any], texts: list[str], others: list[str]) -> None:
    bundle = compiled(form)
    assert [text for text in texts if not accepts(bundle, text)] == []
    assert [text for text in others if accepts(bundle, text)] == []


@pytest.mark.parametrize("form", [row[1] for row in STRUCTURAL_TAGS], ids=IDS)
def test_masks_against_every_token(form: dict[str, Any]) -> None:
    bundle = compiled(form)
    rng = random.Random(json.dumps(form))
    for _ in range(3):
        matcher = Matcher(bundle)
        for _ in range(12):
            mask = allowed(matcher).astype(bool)
            assert np.array_equal(mask, brute_mask(bundle, matcher))
            matcher.advance(rng.choice(np.flatnonzero(mask).tolist()))
            if matcher.is_finished:
                break


def test_a_grammar_is_read_as_lark_reads_it() -> None:
    grammar = 'start: "x" start "y" | WORD\nWORD: /[a-c]+/'
    bundle = compiled({"type": "tag", "begin": "[", "content": {"type": "grammar", "grammar": grammar}, "end": "]"})
    for text, whole in (("[abc]", True), ("[xxcyy]", True), ("[xxcy]", False), ("[]", False)):
        assert accepts(bundle, text) is whole
    left = compiled({"type": "grammar", "grammar": 'start: start "+" "n" | "n"'})
    assert accepts(left, "n+n+n") and not accepts(left, "n+")


def test_a_grammar_of_xgrammar_is_read_too() -> None:
    bundle = compiled({"type": "grammar", "grammar": 'root ::= "[" item* "]"\nitem ::= [a-c]+ ","'})
    assert accepts(bundle, "[abc,b,]") and not accepts(bundle, "[abc]")
    with pytest.raises(ToolcError) as caught:
        compiled({"type": "grammar", "grammar": 'root ::= ("a"'})
    assert (caught.value.place or "").startswith("spec#/format/grammar (grammar:1")


def test_a_declared_terminal_of_a_grammar_is_a_token() -> None:
    got = compile_tools(
        {"type": TAG, "format": {"type": "grammar", "grammar": "%declare THINK\nstart: THINK /a+/"}}, "builtin"
    )
    assert accepts(got.bundle, "<think>aa") and not accepts(got.bundle, "<think>")
    assert accepts(compile_grammar(got.grammar_text, "builtin").bundle, "<think>a")


@pytest.mark.parametrize("typed", [True, False])
def test_the_older_form(typed: bool) -> None:
    document = {"type": TAG, **OLDER} if typed else OLDER
    for bundle in (compile_tools(document, "builtin").bundle, compile_schema(document, "builtin").bundle):
        assert accepts(bundle, 'hi <f=a>{"city": "B"}</f> x')
        assert not accepts(bundle, "<f=b>")
    text = {"type": TAG, **OLDER, "structures": [{**OLDER["structures"][0], "schema": '{"type": "integer"}'}]}
    assert accepts(compile_tools(text, "builtin").bundle, "<f=a>3</f>")


def test_what_sglang_adds_to_the_older_form() -> None:
    """A call that has to come, and arguments that may be anything."""
    free = {"type": TAG, **OLDER, "structures": [{**OLDER["structures"][0], "schema": None}], "at_least_one": True}
    bundle = compile_tools(free, "builtin").bundle
    assert accepts(bundle, "<f=a>[3]</f>") and accepts(bundle, "<f=a>3</f> x")
    assert not accepts(bundle, "hi") and not accepts(bundle, "<f=a></f>")
    assert accepts(compile_tools({**free, "at_least_one": False}, "builtin").bundle, "hi")


def test_tokens_in_strings_are_tokens() -> None:
    begin = '<tool_call>\n{"name": "f", "arguments": '
    form = {
        "type": "triggered_tags",
        "triggers": ["<tool_call>"],
        "tags": [
            {
                "type": "tag",
                "begin": begin,
                "content": {"type": "json_schema", "json_schema": True},
                "end": "}\n</tool_call>",
            }
        ],
    }
    bundle = compiled(form)
    special = bundle.vocab.special
    matcher = Matcher(bundle)
    assert allowed(matcher)[special["<tool_call>"]]
    assert not accepts(bundle, "<tool_call>x") and accepts(bundle, f"hi{begin}3}}\n</tool_call>.")
    assert matcher.advance_bytes(b"<tool_call") == 10
    assert matcher.advance_bytes(b">") == 0, "its bytes would look the same to a parser that reads text"
    cut = compiled({**form, "triggers": ["<tool"]})
    assert accepts(cut, f"hi{begin}3}}\n</tool_call>.")


def test_tokens_by_name() -> None:
    think, end = ({"type": "token", "token": token} for token in ("<think>", "</think>"))
    form: dict[str, Any] = {"type": "tag", "begin": think, "content": {"type": "any_text"}, "end": end}
    assert accepts(compiled(form), "<think>hm</think>")
    with pytest.raises(VocabError, match="needs the token <nope>"):
        compiled({**form, "end": {"type": "token", "token": "<nope>"}})


def test_a_token_that_ends_the_turn_is_left_out_at_its_end() -> None:
    form: dict[str, Any] = {"type": "tag", "begin": "<t>", "content": {"type": "any_text"}, "end": "</t><|end|>"}
    assert accepts(compiled(form), "<t>x</t>")
    last = {**form, "end": {"type": "token", "token": "<|end|>"}}
    assert accepts(compiled(last), "<t>x")
    tags = [form, {"type": "tag", "begin": "<u>", "content": {"type": "any_text"}, "end": "</u>"}]
    listed = compiled({"type": "tags_with_separator", "tags": tags, "separator": ","})
    for text, whole in (("<t>x</t>", True), ("<u>x</u>,<t>y</t>", True), ("<t>x</t>,<u>y</u>", False)):
        assert accepts(listed, text) is whole
    for needed in (False, True):
        free = compiled({"type": "triggered_tags", "tags": tags, "triggers": ["<"], "at_least_one": needed})
        for text, whole in (("<t>x</t>", True), ("<u>x</u>a<t>y</t>", True), ("<t>x</t>a", False)):
            assert accepts(free, text) is whole
    with pytest.raises(VocabError, match="ends a turn"):
        compiled({"type": "sequence", "elements": [form, {"type": "const_string", "value": "x"}]})


@pytest.mark.parametrize(("form", "place", "words"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_what_is_refused(form: Any, place: str, words: str) -> None:
    with pytest.raises(ToolcError) as caught:
        compile_tools({"type": TAG, "format": form}, "builtin")
    error = caught.value
    assert (error.place or "").startswith(f"spec{place}")
    assert words in str(error)


def test_documents_that_are_refused() -> None:
    with pytest.raises(RequestError, match="no format"):
        compile_tools({"type": TAG}, "builtin")
    with pytest.raises(SpecError, match="spec#/name"):
        compile_tools({"type": TAG, "format": {"type": "any_text"}, "name": "x"}, "builtin")
    body = {"model": "m", "messages": [], "response_format": {"type": TAG, "format": {"type": "nope"}}}
    with pytest.raises(SpecError) as caught:
        compile_request(body, "builtin")
    assert caught.value.place == "request#/response_format/format/type"


CALL = 'Hi <tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
ANSWER = {
    "type": TAG,
    "format": {
        "type": "triggered_tags",
        "triggers": ["<tool_call>"],
        "tags": [
            {
                "type": "tag",
                "begin": '<tool_call>\n{"name": "f", "arguments": ',
                "end": "}\n</tool_call>",
                "content": {
                    "type": "json_schema",
                    "json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
                },
            }
        ],
    },
}


@pytest.mark.parametrize("tools", [False, True])
def test_as_a_response_format(tools: bool) -> None:
    function = {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}}
    body: dict[str, Any] = {"model": "m", "messages": [], "response_format": ANSWER}
    body |= {"tools": [function]} if tools else {}
    for protocol in ("hermes", "harmony"):
        bundle = compile_request(body, vocab_for(protocol), options=Options(protocol=protocol)).bundle
        start = read_request(body).start(bundle)
        assert start.entry.startswith("response")
        reader, fault = read_whole(bundle, CALL, "response")
        assert fault is None and reader.text == CALL and not reader.calls
        reader, fault = read_whole(bundle, "{ }", "response")
        assert fault is None and reader.text == "{ }", "what looks like JSON in free text is text"
    flat = {"model": "m", "input": "x", "text": {"format": ANSWER}}
    assert read_request(flat).content == read_request(body | {"tools": None}).content
    again = read_request(flat).content
    assert again is not None and read_request(again.document).content == again


def test_as_the_response_beside_tools() -> None:
    bundle = compile_tools(
        [{"name": "g", "input_schema": {"type": "object"}}],
        "builtin",
        options=Options(protocol="hermes", response=ANSWER),
    ).bundle
    assert accepts(bundle, CALL, "response")


def test_its_text_is_a_grammar(tmp_path: Path) -> None:
    for name, form, texts, others in STRUCTURAL_TAGS:
        if "xml" in name or "excludes" in name:  # look-aheads keep strings out, and a Lark text sees on
            continue
        got = compile_tools({"type": TAG, "format": form}, "builtin")
        again = compile_grammar(got.grammar_text, "builtin").bundle
        assert all(accepts(again, text) for text in texts), name
        assert not any(accepts(again, text) for text in others), name
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(ANSWER), encoding="utf-8")
    result = CliRunner().invoke(cli, ["compile", str(path), "-o", str(tmp_path / "answer.toolc")])
    assert result.exit_code == 0, result.output
    bundle = Bundle.open(tmp_path / "answer.toolc")
    assert accepts(bundle, CALL) and bundle.meta["spec"]["answer"] == TAG


def test_it_says_no_value_to_validate() -> None:
    spec = read_spec(ANSWER)
    with pytest.raises(SpecError, match="no value to validate"):
        targets_of(spec, compile_tools(ANSWER, "builtin").bundle)


def test_objects_of_too_many_keys_for_any_order_are_told() -> None:
    large = {"type": "object", "properties": {f"k{n}": {"type": "null"} for n in range(11)}}
    schema = {"type": "object", "properties": {"a": large, "b": {"const": dict.fromkeys(large["properties"])}}}
    free = {"type": "json_schema", "json_schema": schema, "any_order": True}
    plain = {"type": "json_schema", "json_schema": {"type": "array", "items": large}}
    bundle = compiled({"type": "sequence", "elements": [free, plain]})
    inside = "#/format/elements/0/json_schema/properties"
    assert [place[place.index("#") :] for place in bundle.meta["many_keys"]] == [f"{inside}/b"]
    assert accepts(bundle, '{"b": {' + ", ".join(f'"k{n}": null' for n in range(11)) + '}, "a": {"k2": null}}[]')
