"""Some of the tools, chosen at run time: the masks of a bundle that was compiled for these alone, bit for bit."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.cases.protocols import FAMILIES
from tests.runtime.test_budget import copy, promised
from toolc.compiler import Options, compile_grammar, compile_tools
from toolc.compiler.lift.lift import Lifted, _Lift
from toolc.compiler.lift.region_rows import Regions
from toolc.compiler.link import link
from toolc.runtime import BatchMatcher, BundleError, DecodeError, Decoder, Matcher, read_calls, subset
from toolc.runtime.format.bundle import Bundle
from toolc.runtime.reference import Sequence
from toolc.runtime.selection.stack_depths import depths_of, moves_of

from .test_masks import LONG, equal_walks
from .test_protocols import BOTH, CALLS, EACH, TOOLS
from .vocabularies import vocab_for

TREE = {
    "name": "getter",
    "input_schema": {"$ref": "#/$defs/t", "$defs": {"t": {"type": "object", "properties": {
        "s": {"type": "string", "maxLength": 70}, "t": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
        "additionalProperties": False}}},
}  # fmt: skip
SHORT = {  # a whole call, perhaps, where the names of others go on
    "name": "ge",
    "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
}
MORE = [*TOOLS, TREE, SHORT]
CHOICES = (
    ("get",), ("get_all", "get"), ("getter", "get"), ("stop.now-1",), ("get", "get_all", "stop.now-1"),
    ("ge", "getter"),
)  # fmt: skip


def long_tokens(name: str) -> tuple[bytes, ...]:
    """Tokens that begin before the name of a tool and end after it has told the tool apart, or the call."""
    family = FAMILIES[name]
    found: dict[bytes, None] = {}
    for call in [*CALLS, ("getter", {}), ("get_all", {}), ("ge", {})]:
        text = family.write([call, call] if family.many else [call], compact=call[1] == {})
        at = [i for i in range(len(text)) if text.startswith(call[0], i)]
        for i in at:
            for begin in (i, i - 1, i - 9, i - 30, i - 60):
                for end in (i + 3, i + 5, i + len(call[0]) + 1, i + len(call[0]) + 24):
                    piece = text[max(begin, 0) : end]
                    if not any(token in piece for token in (*family.tokens, *family.ends)):
                        found.setdefault(piece.encode())
    return tuple(piece for piece in found if len(piece) > 1)


@functools.cache
def compiled(name: str, as_tokens: bool, tools: tuple[str, ...]) -> Bundle:
    chosen = [tool for tool in MORE if tool["name"] in tools]
    vocab = vocab_for(name, as_tokens, long_tokens(name))
    return compile_tools(chosen, vocab, options=Options(protocol=name)).bundle


@BOTH
@EACH
def test_masks_are_those_of_a_bundle_for_these_tools_alone(name: str, as_tokens: bool) -> None:
    whole = compiled(name, as_tokens, tuple(str(tool["name"]) for tool in MORE))
    tools = CHOICES[(sorted(FAMILIES).index(name) + as_tokens) % len(CHOICES)]
    some, alone = subset(whole, tools), compiled(name, as_tokens, tools)
    assert set(some.entry) == set(alone.entry)
    for entry in some.entry:
        equal_walks(some, entry, alone, entry, f"{name}{tools}{entry}", walks=1 if "/" in entry else 2)
    budgets_are_kept(some, f"{name}{as_tokens}")
    if "get" in tools and len(tools) > 1:
        budgets_are_kept(subset(some, ["get"]), name)  # what closed soonest is gone once more


def budgets_are_kept(some: Bundle, seed: str) -> None:
    """The promises of the shortest close, at states of random texts; texts that end in time, of chosen tools alone."""
    pick = random.Random(seed)
    chosen = {str(tool["name"]) for tool in some.tools}
    assert None not in some.min_tokens.values()
    entries = sorted(entry for entry in some.entry if "/" not in entry)
    for entry in pick.sample(entries, min(len(entries), 2)):
        need = some.min_tokens[entry] or 0
        oracle = Sequence.start(some, entry)
        for _ in range(8):
            if oracle.state == 1 or len(oracle.stack) > some.meta["capacity"] - 6:
                break
            before, most, live = oracle.bound(), promised(oracle), sorted(oracle.mask())
            closing = int(oracle.bundle.tables.close_token[oracle.close_cell(), oracle.mode])
            assert closing in live
            for token in {closing, *pick.sample(live, min(len(live), 12))}:
                after = copy(oracle)
                assert after.advance(token) and after.bound() <= most
                assert token != closing or after.bound() < before
            oracle.advance(closing if pick.random() < 0.4 else pick.choice(live))
        for budget in (need, need + pick.randrange(40)):
            matcher, tokens = Matcher(some, entry, budget), []
            while not matcher.is_finished:
                tokens.append(int(pick.choice(matcher.allowed_tokens().tolist())))
                matcher.advance(tokens[-1])
            assert len(tokens) <= budget
            assert {call.name for call in read_calls(some, tokens, entry)} <= chosen


def test_states_of_a_region_that_decides_are_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No walk sees what tokens inside of a region do: any of its states may decide against a tool."""
    of_region, decide, seen = Regions._of_region, list[np.ndarray](), list[np.ndarray]()

    def watched(self, home, jobs, own, classes, narrows):  # type: ignore[no-untyped-def]
        if narrows:
            decide.append(np.unique(jobs[own, 0]))
        return of_region(self, home, jobs, own, classes, narrows)

    def lifted(self: _Lift) -> Lifted:
        made = lift(self)
        for states in decide:
            assert np.isin(states, made.tables.narrowing).all()
        seen.extend(decide)
        decide.clear()
        return made

    lift = _Lift.lifted
    monkeypatch.setattr(link, "split", lambda *_: None)  # one automaton of all tools
    monkeypatch.setattr(_Lift, "lifted", lifted)
    monkeypatch.setattr(Regions, "_of_region", watched)
    vocab, options = vocab_for("qwen3_coder", False), Options(protocol="qwen3_coder")
    two = [{"name": name, "input_schema": LONG} for name in ("f", "fg")]
    whole = compile_tools(two, vocab, options=options).bundle
    assert sum(states.size for states in seen) > 100
    alone = compile_tools(two[1:], vocab, options=options).bundle
    equal_walks(subset(whole, ["fg"]), "required", alone, "required", "decides", walks=3)


def test_close_cells_out_of_order_are_refused() -> None:
    whole = compiled("hermes", False, tuple(str(tool["name"]) for tool in MORE))
    for field in ("state_close", "owed_first"):
        first = getattr(whole.tables, field).copy()
        first[-1] = 0
        with pytest.raises(BundleError, match=field):
            Bundle(replace(whole.tables, **{field: first}), whole.meta, whole.vocab)


@pytest.mark.parametrize("name", ["hermes", "mistral_v11"])
def test_of_real_size(name: str) -> None:
    """Many tools whose names begin alike; a subset of a subset; batches; reading back."""
    tools = [
        {"name": f"{verb}_{noun}", "parameters": {"type": "object", "properties": {noun: {"type": "integer"}},
         "additionalProperties": False}}
        for verb in ("get", "get_all", "set") for noun in ("user", "users", "file", "a")
    ]  # fmt: skip
    vocab = vocab_for(name, True, (b'": "get', b"_user", b"get_al", b"t_us"))
    whole = compile_tools(tools, vocab, options=Options(protocol=name)).bundle
    chosen = ("get_all_a", "get_user", "set_file")
    alone = compile_tools([t for t in tools if t["name"] in chosen], vocab, options=Options(protocol=name)).bundle
    some = subset(subset(whole, (*chosen, "set_a")), chosen)
    assert [tool["name"] for tool in some.tools] == ["get_user", "get_all_a", "set_file"]
    for entry in ("auto", "required", "required/one"):
        equal_walks(some, entry, alone, entry, name + entry)
    assert subset(whole, [str(tool["name"]) for tool in tools]) is whole
    t = some.tables  # no more than texts can reach
    assert depths_of(t, moves_of(t), some.vocab, some.entry.values(), 1 << 16).reached[1:].all() and t.modes == 1
    assert t.states < whole.tables.states // 2 and t.delta.size < whole.tables.delta.size
    assert set(t.row_list.tolist()) | set(t.list_base.tolist()) >= set(range(t.list_base.size))
    batch = BatchMatcher([some, whole, alone], "required")
    masks = batch.new_masks()
    batch.fill(masks)
    assert np.array_equal(masks[0], masks[2])
    decoder = Decoder([some, alone], 2, entry="required", bundle_of_row=[0, 1])
    logits = decoder.mask_(torch.zeros(2, some.vocab.size))
    assert torch.equal(logits[0], logits[1])
    assert int((logits[0] == 0).sum()) == int(np.unpackbits(masks[0].view(np.uint8)).sum())
    text = FAMILIES[name].write([("get_all_a", {"a": 3})])
    assert [call.arguments for call in read_calls(some, text, "required")] == [{"a": 3}]
    with pytest.raises(DecodeError):
        read_calls(some, FAMILIES[name].write([("set_user", {"user": 3})]), "required")


def test_errors() -> None:
    names = tuple(str(tool["name"]) for tool in MORE)
    whole = compiled("hermes", True, names)
    with pytest.raises(DecodeError, match="no such tool"):
        subset(whole, ["get", "gat"])
    with pytest.raises(DecodeError, match="no tools selected"):
        subset(whole, [])
    some = subset(whole, ["get"])
    with pytest.raises(DecodeError, match="no such tool"):
        subset(some, ["get_all"])
    with pytest.raises(DecodeError, match="no such entry"):
        Matcher(some, "tool:getter")
    assert "tool:get" in some.entry and "tool:getter" in whole.entry
    matcher = Matcher(some, "required")
    text = '<tool_call>\n{"name": "get'
    matcher.advance(some.vocab.special["<tool_call>"])
    assert matcher.advance_bytes(text[len("<tool_call>") :].encode()) == len(text) - len("<tool_call>")
    assert matcher.expected_bytes() == b'"'
    plain = compile_grammar('start: "a"\n', vocab_for("hermes")).bundle
    with pytest.raises(DecodeError, match="no such tool"):
        subset(plain, ["a"])


def test_tools_that_cannot_be_told_apart_in_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A call without any end: where one name is the beginning of another, nothing tells which call it was."""
    path = tmp_path_factory.mktemp("own") / "bare.lark"
    path.write_text(
        'tool{name, arguments}: "!" name\ncall{tools}: tools\ncalls{tools}: call{tools} ("a" call{tools})*\n'
    )
    tools = [{"name": name, "parameters": {"type": "object"}} for name in ("go", "goa")]
    whole = compile_tools(tools, vocab_for("hermes"), options=Options(protocol=path)).bundle
    with pytest.raises(DecodeError, match="cannot be chosen from"):
        subset(whole, ["go"])
