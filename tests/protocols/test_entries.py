"""What a request may ask for beside calls: structured responses, and tools that are not strict."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from tests.cases.protocols import FAMILIES
from toolc.compiler import Options, compile_schema, compile_tools
from toolc.compiler.errors import SpecError
from toolc.compiler.grammar.protocol import load_protocol
from toolc.runtime import Matcher, Reader, read_calls

from .test_masks import equal_walks
from .test_protocols import EACH, TOOLS, accepts, allowed, bundle
from .vocabularies import vocab_for

RESPONSE = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 40}, "sure": {"type": "boolean"}},
    "required": ["answer"],
    "additionalProperties": False,
}
BARE = {"answer": "It is [12] <tool_call>.", "sure": True}
WRAPPED = {
    "harmony": "<|channel|>final<|message|>{}",
    "cohere": "<|START_RESPONSE|>{}<|END_RESPONSE|>",
    "cohere_cmd5": "<|START_TEXT|>{}<|END_TEXT|>",
    "functionary_v32": "all\n{}",
    "inkling": "<|content_text|>{}<|end_message|>",
    "kimi_k3": "{}<|close|>response<|sep|>",
    "muse": " to=user<|message|>{}",
    "react": 'Action: Finish\nAction Input: {"return_type": "give_answer", "final_answer": {}}',
}


@EACH
def test_response_or_calls(name: str) -> None:
    as_tokens = sorted(FAMILIES).index(name) % 2 == 0
    family, vocab = FAMILIES[name], vocab_for(name, as_tokens)
    options = Options(protocol=name, named=False, response=RESPONSE)
    held = compile_tools(TOOLS, vocab, options=options).bundle
    plain = bundle(name, as_tokens)
    assert {"response", "either", "either/one"} <= set(held.entry)
    said = '{"answer": "It is [12].", "sure": true}'
    text = WRAPPED.get(name, "{}").replace("{}", said, 1)
    call = family.write([("get", {"place": "Basel"})])
    for entry in ("response", "either", "either/one"):
        assert accepts(held, text, entry)
        assert not accepts(held, text.replace('"sure"', '"sire"'), entry)
        assert accepts(held, call, entry) is (entry != "response")
        reader = Reader(held, entry)
        reader.feed_text(text)
        reader.finish()
        assert reader.text == said and reader.is_whole and not reader.calls
    assert [one.name for one in read_calls(held, call, "either")] == ["get"]
    assert not accepts(held, text, "required")
    equal_walks(held, "required", plain, "required", name, walks=2)
    if "auto" in plain.entry:
        equal_walks(held, "auto", plain, "auto", name, walks=2)
    if name not in WRAPPED:
        same, whitespace = held, "spaced"
        if load_protocol(name).gaps:  # a schema alone has those of json.dumps
            whitespace = "compact"
            same = compile_tools(TOOLS, vocab, options=replace(options, whitespace=whitespace)).bundle
        alone = compile_schema(RESPONSE, vocab, options=Options(whitespace=whitespace)).bundle
        equal_walks(same, "response", alone, "start", name, walks=3)
    rng = random.Random(name)
    for _ in range(3):  # either is the union of both, as long as both are possible
        both, parts = Matcher(held, "either"), [Matcher(held, "response"), Matcher(held, "required")]
        for _ in range(40):
            mask = allowed(both)
            assert np.array_equal(mask, np.bitwise_or.reduce([allowed(one) for one in parts]))
            token = int(rng.choice(np.flatnonzero(mask)))
            both.advance(token)
            parts = [one for one in parts if one.try_advance(token)]
            if both.is_finished:
                break


def test_a_schema_alone_has_no_alternative() -> None:
    with pytest.raises(SpecError, match="no tools"):
        compile_schema({"type": "object"}, vocab_for("json"), options=Options(response=RESPONSE))


def test_strict_is_of_a_tool_or_of_all() -> None:
    def tools(first: bool | None) -> list[dict[str, object]]:
        parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
        marks = {} if first is None else {"strict": first}
        return [
            {"type": "function", "function": {"name": "one", "parameters": parameters, **marks}},
            {"type": "function", "function": {"name": "two", "parameters": parameters}},
        ]

    vocab, write = vocab_for("hermes"), FAMILIES["hermes"].write

    def held(first: bool | None, strict: bool | None = None):  # type: ignore[no-untyped-def]
        return compile_tools(tools(first), vocab, options=Options(protocol="hermes", strict=strict)).bundle

    loose, tight = held(False), held(None)
    odd = {"n": "x", "more": [None]}
    for one, two, made in (
        (True, False, loose), (False, False, tight), (False, False, held(True)), (True, True, held(True, False)),
        (False, False, held(False, True)),
    ):  # fmt: skip
        assert accepts(made, write([("one", odd)]), "required") is one
        assert accepts(made, write([("two", odd)]), "required") is two
        assert accepts(made, write([("one", {"n": 1}), ("two", {"n": 2})]), "required")
    assert read_calls(loose, write([("one", odd)]), "required")[0].arguments == odd
    assert [tool.get("strict") for tool in loose.tools] == [False, None]
    any_object = [{"name": "one", "parameters": {"type": "object"}}, tools(None)[1]["function"]]
    alone = compile_tools(any_object, vocab, options=Options(protocol="hermes")).bundle
    equal_walks(loose, "required", alone, "required", "strict")
    assert not accepts(loose, write([("one", {})]).replace("{}", "[]"), "required")
