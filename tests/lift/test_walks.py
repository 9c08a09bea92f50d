"""What speeds walks up changes nothing that they find: children by bits, packed places, a memo that overflows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolc.compiler import compile_schema
from toolc.compiler.lift import region_rows as regions
from toolc.compiler.lift import token_costs as costs
from toolc.compiler.lift.children import next_child
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.lift.vocab_tries import Words
from toolc.compiler.link.cache import forget
from toolc.compiler.options import BUILTIN

CALM = set(range(32, 127)) - set(b'"\\')
CONTROL = set(range(32))
CLOSE = ("close_bound", "close_token", "close_after", "chain_after", "owed")
SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["one", "two"]}, "size": {"type": "integer"}, "next": {"$ref": "#"}},
    "required": ["kind"],
}

STRINGS = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "code": {"type": "string", "maxLength": 40},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-z ]*$"}, "maxItems": 4},
        "size": {"type": "integer"},
    },
    "required": ["name", "code"],
}


def test_children_and_places() -> None:
    words = Words.of(load_vocab(BUILTIN))
    trie, v = words.whole, words.vocab
    wide = np.flatnonzero(trie.children.wide[:-1] >= 0)
    alive = np.random.default_rng(3).integers(0, 1 << 63, (1, 4), np.uint64)
    lives = [b for b in range(256) if int(alive[0, b >> 6]) >> (b & 63) & 1]
    for node in wide[:: max(1, wide.size // 200)].tolist():
        children, i = {}, node + 1
        while i < trie.skip[node]:
            children[int(v.node_byte[i])] = i
            i = int(trie.skip[i])
        expected, found, byte = [children[b] for b in lives if b in children], [], -1
        while (place := next_child(trie.children, alive, 0, node, byte, trie.skip[node])) < trie.skip[node]:
            found.append(int(place))
            byte = int(v.node_byte[place])
        assert found == expected
    for part in (trie, words.rest(0)):
        own = [part.own[v.node_tokens[v.node_token_offset[n] : v.node_token_offset[n + 1]]].any() for n in part.order]
        wanted = part.skip, v.node_byte[part.order], v.node_depth[part.order], own
        for shift, mask, values in zip((0, 32, 40, 62), (2**32 - 1, 255, 2**22 - 1, 1), wanted, strict=True):
            np.testing.assert_array_equal(part.packed[:, 0] >> shift & mask, values)
        np.testing.assert_array_equal(part.packed[:, 1] & 2**32 - 1, part.order)
        for n, token in zip(part.order, (part.packed[:, 1] >> 32) - 1, strict=True):
            ends = [t for t in v.node_tokens[v.node_token_offset[n] : v.node_token_offset[n + 1]] if part.own[t]]
            assert token == (ends[0] if len(ends) == 1 else -1)
        below = [set(v.node_byte[part.order[i + 1 : end]].tolist()) for i, end in enumerate(part.skip)]
        calm = [not some - CALM or (ends and not some - CALM - CONTROL) for some, ends in zip(below, own, strict=True)]
        np.testing.assert_array_equal(part.packed[:, 0] < 0, calm)


def test_below_calm_bytes_nothing_costs_more(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, skipped = [], []
    for all_walked in (False, True):
        monkeypatch.setenv("TOOLC_CACHE", str(tmp_path / str(all_walked)))

        def known(a: Any, all_walked: bool = all_walked, make: Any = costs.rows_and_bounds) -> np.ndarray:
            out: np.ndarray = make(a)
            skipped.append(np.bincount(out[:, 2], minlength=3)[1:].tolist())
            out[:, 2] *= not all_walked
            return out

        with monkeypatch.context() as patch:
            patch.setattr(costs, "rows_and_bounds", known)
            forget()
            found.append(compile_schema(STRINGS).bundle.tables)
    half = len(skipped) // 2
    assert skipped[:half] == skipped[half:]
    assert np.sum(skipped, axis=0).min() > 0, "no state that counts, or none that does not"
    for name in CLOSE:
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name), name)


def test_a_memo_that_overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    make, made, found = costs.Memo.make, [], []
    for walks in (1 << 14, 4):

        def keep(_: Words, walks: int = walks) -> costs.Memo:
            made.append(make(walks))
            return made[-1]

        monkeypatch.setattr(Words, "take_memo", keep)
        monkeypatch.setattr(Words, "hand_back_memo", lambda *_: None)
        found.append(compile_schema(SCHEMA).bundle.tables)
    assert made[1].at[0] > made[0].at[0] + 50, "it was never full"
    for name in CLOSE:
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name), name)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(?:\\S+\\s+){0,9}\\S+$", "minLength": 3, "maxLength": 60},
        {"type": "string", "format": "hostname", "maxLength": 90},
        {"type": "string", "format": "uri-reference", "maxLength": 40},
    ],
    ids=["words", "hostname", "uri"],
)
def test_counter_values_that_share_walks(schema: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    walk, compared = regions.walk_collapsed, 0

    def checked(m, t, units, limit, home, jobs, st, parting, pairs, mark, out):  # type: ignore[no-untyped-def]
        nonlocal compared
        done, tokens, ends = walk(m, t, units, limit, home, jobs, st, parting, pairs, mark, out)
        begins, alone = np.append(0, ends[:-1]), np.empty((1, 3), np.int32)
        for j in range(0, done, 7):
            mark.fill(-1)
            _, expected, _ = walk(m, t, units, limit, home, jobs[j : j + 1], st, parting, pairs, mark, alone)
            of = out[j, 2]
            np.testing.assert_array_equal(tokens[begins[of] : ends[of]], expected)
            assert out[j, 0] == alone[0, 0] and out[j, 1] >= alone[0, 1]
            compared += 1
        return done, tokens, ends

    monkeypatch.setattr(regions, "walk_collapsed", checked)
    compile_schema(schema)
    assert compared > 20
