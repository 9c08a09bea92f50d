"""States within a unit of a slice: where their tokens are not walked, there was nothing to find."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from toolc.compiler import compile_grammar, compile_schema
from toolc.compiler.lift import lift
from toolc.compiler.lift.slices import DEAD, unit_automata
from toolc.compiler.lift.vocab import build_vocab
from toolc.compiler.lift.vocab_tries import STRAYS_TOO, Words
from toolc.compiler.passes import Pass, without
from toolc.compiler.vocab.table import TokenTable
from toolc.runtime import Matcher, Vocab
from toolc.runtime.format.bundle import Bundle

from ..cases.grammars import GRAMMARS
from .brute import brute_mask, rows_by_cell
from .test_masks import bits

ENDS = [b'"', b'",', b'"}', b"\\", b"\\u", b"\n", b"\xc3", b"x", b" ", b"\xff", b"0", b"a", b":", b"[", b"<"]
MIDDLES = [b"\x80", b"\xa9", b"\xbf", b"\x80\x80", b"\xa9\xa9\xa9", b"0", b"f", b"00", b"d8", b"9\\", b"u0041", b"n"]
STRINGS: dict[str, Any] = {
    "free": {"type": "string"},
    "pattern": {"type": "string", "pattern": "^[^b-y]*$"},
    "counted": {"type": "string", "minLength": 2, "maxLength": 5},
    "least": {"type": "string", "minLength": 3},
    "differs": {"type": "string", "not": {"enum": ["é", "aé", "\u2603"]}},
    "free-then-no-more": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
    "keys": {"type": "object", "properties": {"é": {"type": "string"}}, "additionalProperties": {"type": "integer"}},
}


def nasty(endings: bool) -> Vocab:
    """Every byte, and tokens that begin within characters and escapes; with ``endings`` they go on beyond strings."""
    rng = random.Random(5)
    tokens = {bytes([b]) for b in range(256)} | set(MIDDLES) | {b'"a', b'{"', b"ab", b"\xe2\x98", b"\xc3\xa9"}
    for _ in range(400):
        parts = [rng.choice(MIDDLES), *rng.choices(MIDDLES + [b"a", b"z", b"\xc3\xa9", b"\xe2"], k=rng.randrange(3))]
        tokens.add(b"".join(parts) + (rng.choice(ENDS) if endings else b""))
    return build_vocab(TokenTable((*sorted(tokens), b""), {"<end>": len(tokens)}, (len(tokens),), "nasty"))


VOCABS = {"ends": nasty(True), "stays": nasty(False)}


@pytest.mark.parametrize("name", VOCABS)
@pytest.mark.parametrize("case", [*STRINGS, *sorted(GRAMMARS)])
def test_the_tables_are_those_of_walks(case: str, name: str) -> None:
    def compiled() -> Bundle:
        if case in STRINGS:
            return compile_schema({"type": "array", "items": STRINGS[case]}, VOCABS[name]).bundle
        return compile_grammar(GRAMMARS[case], VOCABS[name]).bundle

    found = compiled()
    with without(Pass.INSIDE_UNITS):
        walked = compiled()
    lists = [held.tables.breaks[held.tables.state_break] for held in (walked, found)]
    same = np.array_equal(*lists)
    if same:
        assert rows_by_cell(walked) == rows_by_cell(found)
    else:  # walks that find nothing may have looked at a counter, so that its values seem to differ
        assert found.tables.cell_row.size < walked.tables.cell_row.size
    if case in STRINGS or not same:
        rng = random.Random(case + name)
        for _ in range(12):
            matcher = Matcher(found)
            for _ in range(30):
                allowed = bits(matcher, found.vocab.size)
                np.testing.assert_array_equal(allowed, brute_mask(found, matcher))
                some = np.flatnonzero(allowed).tolist()
                texts = [t for t in some if any(b in b'"\xa9\xc3\xe2\x98\x83\\' for b in found.vocab.token(t))]
                matcher.advance(rng.choice(texts if texts and rng.random() < 0.7 else some))
                if matcher.is_finished:
                    break


@pytest.mark.parametrize("name", VOCABS)
def test_some_states_are_not_walked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, found = lift.allow_just_the_slice, []
    monkeypatch.setattr(lift, "allow_just_the_slice", lambda *args: found.append(kernel(*args)) or found[-1])
    compile_schema({"enum": [["a"]]}, VOCABS[name])
    assert not any(some.any() for some in found), "there is no free string"
    compile_schema({"type": "array", "items": {"type": "string"}}, VOCABS[name])
    assert max(some.sum() for some in found) >= (15 if name == "stays" else 1)


@pytest.mark.parametrize("name", VOCABS)
def test_death_bytes(name: str) -> None:
    words, units = Words(VOCABS[name]), unit_automata()
    deaths, known = words.deaths(np.array([-1, units.names.index("json-raw"), units.names.index("text")]))
    assert {units.names[u] for u in np.flatnonzero(known & units.boundary)} == {"json-raw"}
    for u in range(len(units.names)):
        expected: set[int] = set()
        for token in map(words.vocab.token, range(words.vocab.size)):
            at = u
            for byte in token:
                if units.next_unit[at, byte] == DEAD:
                    expected |= {byte} if units.boundary[at] and known[u] else set()
                    break
                at = int(units.next_unit[at, byte])
        assert {b for b in range(256) if int(deaths[u, b >> 6]) >> (b & 63) & 1} == expected


def test_a_rest_without_strays() -> None:
    words, units = Words.of(VOCABS["ends"]), unit_automata()
    v = words.vocab
    for u in range(len(units.names)):
        tokens = [t for t in range(v.size) if v.token(t) and units.next_unit[u, v.token(t)[0]] != DEAD]
        wanted = {t for t in tokens if words.count(u)[t] < 0}
        part = words.rest(STRAYS_TOO + u)
        ends = v.node_token_offset
        found = [v.node_tokens[ends[n] : ends[n + 1]] for n in part.order.tolist()]
        assert {t for some in found for t in some.tolist() if part.own[t]} == wanted
        above = {v.token(t)[:n] for t in wanted for n in range(1, len(v.token(t)) + 1)}
        assert part.order.size == len(above), "no node more than they need"


@pytest.mark.parametrize(("more", "strays"), [("", False), ("|<", True)])
def test_states_that_read_strays_walk_them(more: str, strays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, kept = lift.leave_out_strays, []

    def noted(*args: Any) -> None:
        before = args[4].copy()
        kernel(*args)
        kept.extend(before[args[4] == before].tolist())

    monkeypatch.setattr(lift, "leave_out_strays", noted)
    text = r'[^"\\\x00-\x1f]|\\(["\\bfnrt]|u00[01][0-9a-fA-F]' + more + ")"
    found = compile_grammar(f'start: /"({text})*"/', VOCABS["ends"]).bundle
    assert (unit_automata().names.index("json-minimal:escape") in kept) == strays
    matcher = Matcher(found)
    for byte in b'"a\\':
        matcher.advance(next(t for t in range(found.vocab.size) if found.vocab.token(t) == bytes([byte])))
        np.testing.assert_array_equal(bits(matcher, found.vocab.size), brute_mask(found, matcher))
