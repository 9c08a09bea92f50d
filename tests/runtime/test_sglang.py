"""The SGLang backend, driven by SGLang's own base class, draft tree walk and grammar masks."""

from __future__ import annotations

import json
import random
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional

import pytest
import torch

from toolc.compiler.lift.vocab import load_vocab
from toolc.runtime.reference import Sequence

from .handmade import bundle
from .peers import function, peer

base = peer("sglang", "sglang.srt.constrained.base_grammar_backend")

from toolc.runtime.adapters.sglang import ToolcBackend, ToolcGrammar, make, register  # noqa: E402

PADDED = 104


@pytest.fixture
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToolcBackend:
    monkeypatch.setenv("TOOLC_BUNDLES", str(tmp_path))
    for kind in ("brackets", "counted", "words"):
        bundle(kind).write(tmp_path / f"{kind}.toolc", standalone=True)
    return ToolcBackend(SimpleNamespace(name_or_path="builtin"), PADDED)


def request(backend: Any, kind: str, **more: Any) -> Any:
    """As the scheduler gets a grammar: from the thread pool the first time, then as copies from the cache."""
    key = ("json", json.dumps({"toolc_bundle": kind, **more}))
    value, hit = backend.get_cached_or_future_value(key, False)
    if not hit:
        assert isinstance(value, Future)
        value = value.result()
        backend.set_cache(key, value.copy())
    return value


def allowed(row: torch.Tensor) -> list[int]:
    return torch.isfinite(row).nonzero().view(-1).tolist()


@pytest.mark.parametrize("form", ["bits", "rows"])
@pytest.mark.parametrize("seed", range(3))
def test_walks(backend: ToolcBackend, form: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks in both forms; requests come, roll back and go."""
    pick = random.Random(seed)
    kinds = [pick.choice(["brackets", "counted", "words", None]) for _ in range(5)]
    kinds[0] = "brackets"
    budgets = [pick.choice([0, 6, 15]) for _ in kinds]
    grammars = [
        None if kind is None else request(backend, kind, toolc_budget=budget)
        for kind, budget in zip(kinds, budgets, strict=True)
    ]
    oracles = [
        None if kind is None else Sequence.start(bundle(kind), budget=budget or None)
        for kind, budget in zip(kinds, budgets, strict=True)
    ]
    trails: list[list[Sequence]] = [[] for _ in kinds]
    if form == "rows":  # the device's form, on the CPU
        table = backend.table(torch.device("cpu"))
        monkeypatch.setattr(
            ToolcBackend, "allocate_vocab_mask", lambda self, vocab, rows, device: table.blank(rows, self._width)
        )
    for _ in range(25):
        first = next(g for g in grammars if g)
        mask = first.allocate_vocab_mask(PADDED, len(kinds), "cpu")
        entries = [base.GrammarRow(row, g) for row, g in enumerate(grammars) if g and not g.is_terminated()]
        first.fill_vocab_mask_batched(entries, mask)
        mask = first.move_vocab_mask(mask, "cpu")
        logits = torch.zeros(len(kinds), PADDED)
        base.GrammarMask(first, mask).apply(logits)
        for row, (grammar, oracle) in enumerate(zip(grammars, oracles, strict=True)):
            if grammar is None or oracle is None or grammar.is_terminated():
                assert allowed(logits[row]) == list(range(PADDED))
                continue
            live = sorted(oracle.mask_in_budget())
            assert allowed(logits[row]) == live
            if trails[row] and pick.random() < 0.3:
                back = pick.randint(1, len(trails[row]))
                grammar.rollback(back)
                oracles[row] = trails[row][-back]
                del trails[row][-back:]
                continue
            if len(oracle.stack) > 20:
                live = [t for t in live if t == 6 or t < 4] or live
            token = pick.choice(live)
            trails[row].append(oracle.copy())
            grammar.accept_token(token)
            assert oracle.advance(token)
            twin = grammar.copy()
            twin.rollback(1)
            assert len(twin.matcher) == len(grammar.matcher) - 1


def test_draft_tree(backend: ToolcBackend) -> None:
    """SGLang's own walk: bits read on the host, tokens accepted and rolled back."""
    names = {"torch": torch, "Optional": Optional, "BaseGrammarObject": base.BaseGrammarObject}
    traverse_tree = function(base, "srt/speculative/spec_utils.py", "traverse_tree", names)
    grammar = request(backend, "brackets")
    grammar.accept_token(4)
    #           0 -> 1 ([) -> 2 (a)      0 -> 3 (,: refused) -> 4
    tokens = torch.tensor([4, 4, 7, 6, 7])
    child = torch.tensor([1, 2, -1, 4, -1])
    sibling = torch.tensor([-1, 3, -1, -1, -1])
    mask = grammar.allocate_vocab_mask(PADDED, 5, "cpu")
    traverse_tree(child, sibling, tokens, grammar, mask, PADDED)
    logits = torch.zeros(5, PADDED)
    grammar.apply_vocab_mask(logits, mask)
    for node, path in ((0, [4]), (1, [4, 4]), (2, [4, 4, 7])):
        oracle = Sequence.start(bundle("brackets"))
        assert all(oracle.advance(t) for t in path)
        assert allowed(logits[node]) == sorted(oracle.mask())
    assert allowed(logits[4]) == list(range(PADDED))  # below a refused node nothing is filled
    assert len(grammar.matcher) == 1


def test_refusals(backend: ToolcBackend) -> None:
    grammar = request(backend, "words")
    with pytest.raises(ValueError, match="not allowed here"):
        grammar.accept_token(5)
    assert len(grammar.matcher) == 0
    for found, message in (
        (backend.dispatch_json('{"toolc_bundle": "nothing"}'), "no such bundle"),
        (backend.dispatch_json('{"toolc_bundle": "counted", "toolc_budget": 2}'), "at least 3"),
        (backend.dispatch_json("{"), "Expecting"),
        (backend.dispatch_json('{"type": "array", "uniqueItems": true}'), "uniqueItems"),
        (backend.dispatch_structural_tag('{"type": "structural_tag", "format": {}}'), "type"),
        (backend.dispatch_regex("a("), "a("),
        (backend.dispatch_ebnf("root ::= other"), "other"),
        (ToolcBackend(None, 64).dispatch_json('{"toolc_bundle": "words"}'), "too narrow"),
        (ToolcBackend(None, 4096).dispatch_json('{"toolc_bundle": "words"}'), "too wide"),
    ):
        assert isinstance(found, base.InvalidGrammarObject) and message in found.error_message


def test_what_sglang_makes_of_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tools with a parser of calls, in its older form of tags; of a pattern; of a grammar."""
    monkeypatch.setenv("TOOLC_BUNDLES", str(tmp_path))
    size = load_vocab("builtin").size
    backend = ToolcBackend(SimpleNamespace(name_or_path="builtin"), size)
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    structures = [
        {"begin": '[call]{"name": "add", "arguments": ', "schema": schema, "end": "}[/call]"},
        {"begin": '[call]{"name": "any", "arguments": ', "schema": None, "end": "}[/call]"},
    ]
    tag = {"type": "structural_tag", "structures": structures, "triggers": ["[call]"]}
    call = '[call]{"name": "add", "arguments": {"a": 1}}[/call]'
    wrong, free = call.replace("1", '"1"'), call.replace("add", "any").replace("1", '"1"')
    for needed in (False, True):
        grammar = backend.dispatch_structural_tag(json.dumps({**tag, "at_least_one": needed}))
        assert isinstance(grammar, ToolcGrammar), grammar.error_message
        assert may_end(grammar, call) and may_end(grammar, free) and not may_end(grammar, wrong)
        assert may_end(grammar, "Hello") is not needed
    for grammar in (backend.dispatch_regex("[ab]{3}"), backend.dispatch_ebnf('root ::= ("a" | "b")+')):
        assert isinstance(grammar, ToolcGrammar), grammar.error_message
        assert may_end(grammar, "aba") and not may_end(grammar, "abc")


def test_what_its_parsers_make_of_tools(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each `--tool-call-parser`: the constraint that SGLang gives its backend compiles."""
    pytest.importorskip("xgrammar")  # which SGLang asks for the tags
    from sglang.srt.entrypoints.openai.protocol import Function, Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser

    monkeypatch.setenv("TOOLC_BUNDLES", str(tmp_path))
    tokenizer = str(shared / "tokenizers" / "qwen3.json")
    size = load_vocab(tokenizer).size
    backend = ToolcBackend(SimpleNamespace(name_or_path=tokenizer), size, [151645])
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "s": {"type": "string"}}, "required": ["a"]}
    tools = [Tool(type="function", function=Function(name=name, parameters=schema, strict=True)) for name in ("f", "g")]
    dispatch = {"json_schema": backend.dispatch_json, "structural_tag": backend.dispatch_structural_tag}
    made = 0
    for name in FunctionCallParser.ToolCallParserEnum:
        if name in ("response_template", "kimi_k3"):  # needs a template; its tag has strings of XML without a parameter
            continue
        for choice in ("auto", "required"):
            found = FunctionCallParser(tools, name).get_structure_constraint(choice)
            if found is not None:
                kind, value = found
                text = json.dumps(value if isinstance(value, (dict, list)) else value.model_dump(by_alias=True))
                grammar = dispatch[kind](text)
                assert isinstance(grammar, ToolcGrammar), f"{name}, {choice}: {grammar.error_message}"
                made += 1
    assert made > 50


def may_end(grammar: ToolcGrammar, text: str) -> bool:
    """Whether a request's grammar accepts a whole text."""
    matcher = grammar.matcher.fork()
    return matcher.advance_bytes(text.encode()) == len(text) and matcher.is_complete


def test_what_strangers_send(backend: ToolcBackend, tmp_path: Path) -> None:
    """Not errors of files or of Python, which the scheduler does not expect."""
    long = json.dumps({"toolc_bundle": "a" * 300})
    for key in (long, "[" * 100_000, "{}" * 3, '{"a": "\\ud800"}'):
        for dispatch in (backend.dispatch_json, backend.dispatch_structural_tag):
            assert isinstance(dispatch(key), base.InvalidGrammarObject), key[:60]
    bundle("brackets", 64).write(tmp_path / "other.toolc", standalone=True)
    first = '{"toolc_bundle": "other"}'
    assert isinstance(backend.dispatch_json('{"toolc_bundle": "counted"}'), ToolcGrammar)
    refused = backend.dispatch_json(first)
    assert isinstance(refused, base.InvalidGrammarObject) and "another tokenizer" in refused.error_message
    assert isinstance(backend.dispatch_json('{"toolc_bundle": "words"}'), ToolcGrammar)
    narrow = ToolcBackend(SimpleNamespace(name_or_path="builtin"), 80)
    assert isinstance(narrow.dispatch_json('{"toolc_bundle": "words"}'), base.InvalidGrammarObject)  # too wide
    assert isinstance(narrow.dispatch_json(first), ToolcGrammar)  # so it says nothing of the tokenizer


def test_a_name_means_what_its_file_holds(backend: ToolcBackend, tmp_path: Path) -> None:
    """Grammars in SGLang's cache count while the file is the same; requests that were admitted keep their bundle."""
    file = tmp_path / "moving.toolc"
    gone = request(backend, "moving")
    assert isinstance(gone, base.InvalidGrammarObject) and "no such bundle" in gone.error_message
    bundle("words").write(file, standalone=True)
    first = request(backend, "moving")
    assert request(backend, "moving").matcher.bundle is first.matcher.bundle
    assert backend.get_cached_or_future_value(("json", '{"toolc_bundle": "moving"}'), False)[1]  # from the cache
    bundle("counted").write(file, standalone=True)
    second = request(backend, "moving")
    assert second.matcher.bundle.digest == bundle("counted").digest != first.matcher.bundle.digest
    file.unlink()
    assert isinstance(request(backend, "moving"), base.InvalidGrammarObject)
    assert first.copy().matcher.allowed_tokens().size and second.matcher.allowed_tokens().size


def test_no_text_is_jumped_to_within_a_budget(backend: ToolcBackend) -> None:
    wide = ToolcBackend(SimpleNamespace(name_or_path="builtin"), 1 << 17)
    grammar = wide.dispatch_json('{"enum": ["über"]}')
    assert isinstance(grammar, ToolcGrammar)
    vocab = grammar.matcher.bundle.vocab
    grammar.accept_token(next(t for t in range(vocab.size) if vocab.token(t) == b'"'))
    assert grammar.try_jump_forward(None) is not None
    grammar.matcher.limit(20)
    assert grammar.try_jump_forward(None) is None


def test_a_schema_is_compiled(backend: ToolcBackend) -> None:
    wide = ToolcBackend(SimpleNamespace(name_or_path="builtin"), 1 << 17)
    grammar = wide.dispatch_json('{"enum": ["über"]}')
    assert isinstance(grammar, ToolcGrammar)
    assert grammar.try_jump_forward(None) == ([], '"über"')
    assert grammar.jump_forward_str_state(([], "x")) == ("x", -1)
    vocab = grammar.matcher.bundle.vocab
    quote, long = (next(t for t in range(vocab.size) if vocab.token(t) == b) for b in (b'"', b"b"))
    grammar.accept_token(quote)
    assert grammar.try_jump_forward(None) == ([], 'über"')
    grammar.jump_and_retokenize([quote], [quote], -1)
    assert len(grammar.matcher) == 1
    with pytest.raises(ValueError, match="not allowed here"):
        grammar.jump_and_retokenize([quote], [quote, long], -1)


def test_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    context = peer("sglang", "sglang.srt.runtime_context")
    choices = peer("sglang", "sglang.srt.arg_groups.choices")
    register()
    register()
    assert choices.GRAMMAR_BACKEND_CHOICES.count("toolc") == 1 and base.GRAMMAR_BACKEND_REGISTRY["toolc"] is make
    monkeypatch.setattr(context, "get_serving", lambda: SimpleNamespace(reasoning_parser=None))
    monkeypatch.setattr(
        base, "get_exec", lambda: SimpleNamespace(kernel=SimpleNamespace(grammar_backend="toolc")), raising=True
    )
    assert isinstance(base.create_grammar_backend(None, None, PADDED, {0}), ToolcBackend)
