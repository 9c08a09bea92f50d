"""Forced tokens: the only way on, as the tokenizer itself writes it, whatever comes after; on the host, in batches."""

from __future__ import annotations

import json
import os
import random
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from toolc.compiler import compile_schema, compile_tools
from toolc.compiler.budget import Budget
from toolc.compiler.errors import BudgetError
from toolc.compiler.lift import forced as forced_module
from toolc.compiler.options import Options
from toolc.compiler.vocab.builtin import builtin_path
from toolc.compiler.vocab.encode import encoder
from toolc.runtime import Bundle, Matcher, subset

LONG = {
    "type": "object",
    "properties": {
        "a_rather_long_name": {"enum": ["one of the long values", "one of the other values", "x"]},
        "list of flags": {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2},
        "naïve": {"const": "façade"},
    },
    "required": ["a_rather_long_name", "list of flags", "naïve"],
    "additionalProperties": False,
}


@cache
def made(name: str, canonical: bool = False) -> Bundle:
    options = Options(whitespace="compact", canonical=canonical)
    if name == "tools":
        return compile_tools("tools_specs/weather.json", options=options).bundle
    return compile_schema(LONG, options=options).bundle


@pytest.mark.parametrize("name", ["tools", "schema"])
def test_forced_tokens_are_those_of_the_tokenizer(name: str) -> None:
    source = made(name)
    encode = encoder(builtin_path())
    assert encode is not None
    pick = random.Random(4)
    seen = 0
    for _ in range(12):
        matcher = Matcher(source)
        text = b""
        starts: list[tuple[int, list[int]]] = []
        while not matcher.is_finished and len(text) < 2000:
            forced = matcher.forced().tolist()
            if forced:
                seen += 1
                starts.append((len(text), [t for t in forced if t not in source.tables.special_token]))
                probe = matcher.fork()
                for token in forced:
                    for byte in source.vocab.token(token):
                        assert probe.expected_bytes() == bytes([byte]) and not probe.expected_special()
                        assert probe.advance_bytes(bytes([byte])) == 1
            tokens = forced if forced and pick.random() < 0.5 else matcher.allowed_tokens().tolist()
            for token in tokens if tokens is forced else [pick.choice(tokens)]:
                matcher.advance(token)
                text += source.vocab.token(token)
        for start, forced in starts:
            try:
                rest = text[start:].decode()
            except UnicodeDecodeError:
                continue  # the decode was cut within a character
            ids, _ = encode([rest])[0]
            assert ids[: len(forced)] == forced, rest[:60]
    assert seen > 20


def test_the_batch_equals_the_host() -> None:
    torch = pytest.importorskip("torch", reason="the batch decoder needs torch")
    from toolc.runtime import Decoder

    bundles = [made("tools"), made("schema")]
    decoder = Decoder(bundles, 6, bundle_of_row=[0, 1, 0, 1, -1, 0], budget=[None, None, 40, 30, None, 200])
    matchers = [None if n < 0 else Matcher(bundles[n], budget=b) for n, b in
                zip([0, 1, 0, 1, -1, 0], [None, None, 40, 30, None, 200], strict=True)]  # fmt: skip
    pick = random.Random(1)
    lengths = 0
    for _ in range(40):
        tokens, count = decoder.forced()
        draft = decoder.draft(tokens)
        step = []
        for row, matcher in enumerate(matchers):
            want = [] if matcher is None else matcher.forced().tolist()
            assert tokens[row].tolist() == want + [-1] * (tokens.shape[1] - len(want)) and int(count[row]) == len(want)
            if matcher is None:
                step.append(0)
                continue
            assert bool(draft.legal[row, : len(want) + 1].all())
            lengths += len(want)
            if matcher.left is not None and want:
                probe = matcher.fork()
                for token in want:
                    probe.advance(token)
                assert probe.bound is not None and probe.left is not None and probe.bound <= probe.left
            step.append(int(pick.choice(matcher.allowed_tokens().tolist())))
            matcher.advance(step[-1])
        decoder.advance_(torch.tensor(step))
    assert lengths > 30


@pytest.mark.parametrize("name", ["tools", "schema"])
def test_canonical_masks_have_the_forced_token_alone(name: str) -> None:
    """Everywhere else they are the same, with a budget too, and every text ends in time."""
    pick = random.Random(7)
    narrowed = tight = 0
    for round_ in range(24):
        budget = None if round_ % 3 == 0 else Matcher(made(name)).bound + pick.randrange(20)  # type: ignore[operator]
        plain, narrow = Matcher(made(name), budget=budget), Matcher(made(name, True), budget=budget)
        while not narrow.is_finished and len(narrow) < 300:
            allowed, forced = plain.allowed_tokens().tolist(), narrow.forced().tolist()
            assert plain.closing == narrow.closing and forced == plain.forced().tolist()
            if forced and narrow.closing is None:
                assert narrow.allowed_tokens().tolist() == forced[:1] and forced[0] in allowed
                narrowed += len(allowed) > 1
            elif not forced:
                assert narrow.allowed_tokens().tolist() == allowed
            tight += narrow.closing is not None
            token = pick.choice(narrow.allowed_tokens().tolist())
            plain.advance(token)
            narrow.advance(token)
        assert narrow.is_finished or budget is None
    assert narrowed > 20 and tight > 20


@pytest.mark.parametrize("name", ["tools", "schema"])
def test_canonical_masks_allow_every_text_as_the_tokenizer_writes_it(name: str) -> None:
    encode = encoder(builtin_path())
    assert encode is not None
    pick = random.Random(9)
    checked = 0
    for _ in range(30):
        matcher, text = Matcher(made(name)), b""
        while not matcher.is_finished and len(matcher) < 200:
            token = pick.choice(matcher.allowed_tokens().tolist())
            matcher.advance(token)
            text += made(name).vocab.token(token)
        try:
            whole = text.decode()
        except UnicodeDecodeError:
            continue
        narrow = Matcher(made(name, True))
        for token in encode([whole])[0][0]:
            assert narrow.allows(token), (whole, narrow.allowed())
            narrow.advance(token)
        checked += 1
    assert checked > 15


@pytest.mark.parametrize("kept", [["current_weather"], ["weather_stations"], ["weather_stations", "current_weather"]])
def test_canonical_masks_after_a_choice_of_tools(kept: list[str]) -> None:
    """The choice of a canonical bundle allows what that of the usual one does, or one token of these: that which is
    forced in the whole bundle."""
    plain, narrow = subset(made("tools"), kept), subset(made("tools", True), kept)
    pick = random.Random(11)
    alone = finished = 0
    for round_ in range(16):
        budget = None if round_ % 3 == 0 else Matcher(narrow).bound + pick.randrange(20)  # type: ignore[operator]
        one, other, every = Matcher(plain, budget=budget), Matcher(narrow, budget=budget), Matcher(made("tools", True))
        while not other.is_finished and len(other) < 300:
            usual, allowed = one.allowed_tokens().tolist(), other.allowed_tokens().tolist()
            assert one.forced().tolist() == other.forced().tolist() == every.forced().tolist()[: len(other.forced())]
            if allowed != usual:
                assert allowed == every.forced().tolist()[:1] and allowed[0] in usual
                alone += 1
            token = pick.choice(allowed)
            for matcher in (one, other, every):
                matcher.advance(token)
        assert other.is_finished or budget is None
        finished += other.is_finished
    assert alone > 20 and finished > 8


def test_canonical_masks_are_the_same_on_every_backend(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="the batch decoder needs torch")
    from toolc.runtime import Decoder

    made("tools", True).write(tmp_path / "tools.toolc")
    bundle = Bundle.open(tmp_path / "tools.toolc")
    decoder, matcher = Decoder([bundle], 1), Matcher(bundle)
    pick = random.Random(3)
    while not matcher.is_finished and len(matcher) < 60:
        logits = decoder.mask_(torch.zeros(1, bundle.vocab.size))
        assert torch.isfinite(logits[0]).nonzero().flatten().tolist() == matcher.allowed_tokens().tolist()
        token = pick.choice(matcher.allowed_tokens().tolist())
        matcher.advance(token)
        decoder.advance_(torch.tensor([token]))
    assert len(matcher) > 10


def test_of_very_many_texts_the_first_are_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made("schema")
    few = 6
    monkeypatch.setattr(forced_module, "MOST", few)
    part = compile_schema(LONG, options=Options(whitespace="compact")).bundle
    lists = len(whole.tables.forced_offset) - 1
    assert 1 < len(part.tables.forced_offset) - 1 < lists
    some = np.flatnonzero(part.tables.state_forced)
    assert some.size and Matcher(part).forced().tolist() == Matcher(whole).forced().tolist() != []

    def of(bundle: Bundle, state: int) -> list[int]:
        t = bundle.tables
        begin, end = t.forced_offset[t.state_forced[state] :][:2]
        return t.forced_tokens[begin:end].tolist()

    assert all(of(part, state) == of(whole, state) for state in some.tolist())


def test_encoding_forced_texts_looks_at_the_budget() -> None:
    class Late(Budget):
        def check(self, what: str, count: int = 0, place: str | None = None) -> None:
            caller = sys._getframe(1).f_code
            if caller.co_name == "_encoded":
                raise BudgetError("late")

    with pytest.raises(BudgetError, match="late"):
        compile_schema(LONG, options=Options(budget=Late()))


def test_a_vocabulary_without_its_tokenizer_forces_nothing() -> None:
    again = compile_schema(LONG, made("schema").vocab).bundle
    assert not again.tables.state_forced.any()
    assert Matcher(again).forced().tolist() == []


def test_an_encoder_is_that_of_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    text = builtin_path().read_text()
    path.write_text(text)
    before, first = path.stat(), encoder(path)
    assert first is not None and encoder(path) is first
    entries = json.loads(text)
    entries["model"]["vocab"]["a"], entries["model"]["vocab"]["b"] = (entries["model"]["vocab"][x] for x in "ba")
    path.write_text(json.dumps(entries))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    other = encoder(path)
    assert other is not None and other(["a"])[0][0] == first(["b"])[0][0] != first(["a"])[0][0]
