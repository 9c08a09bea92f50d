"""What speeds walks up changes nothing that they find: children by bits, packed places, a memo that overflows."""

from __future__ import annotations

import numpy as np
import pytest

from toolc.compiler import compile_schema
from toolc.compiler.lift import close, costs
from toolc.compiler.lift.children import child_at
from toolc.compiler.lift.vocab import load_vocab
from toolc.compiler.lift.words import Words
from toolc.compiler.pipeline import BUILTIN

SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["one", "two"]}, "size": {"type": "integer"}, "next": {"$ref": "#"}},
    "required": ["kind"],
}


def test_children_and_places() -> None:
    words = Words.of(load_vocab(BUILTIN))
    trie, v = words.whole, words.vocab
    widest = np.argsort(-np.diff(np.append(trie.children.first[:, 0], trie.children.place.size)))
    some = np.concatenate(
        [np.flatnonzero(np.isin(trie.children.wide[:-1], widest[:20])), np.arange(0, trie.order.size, 997)]
    )
    assert (trie.children.wide[some] < 0).any() and (trie.children.wide[some] >= 0).any()
    for node in some.tolist():
        expected, i = {}, node + 1
        while i < trie.skip[node]:
            expected[int(v.node_byte[i])] = i
            i = int(trie.skip[i])
        assert {b: n for b in range(256) if (n := child_at(trie, node, b)) >= 0} == expected
    for part in (trie, words.rest(0)):
        own = [
            (part.units[v.node_tokens[v.node_token_offset[n] : v.node_token_offset[n + 1]]] < 0).any()
            for n in part.order
        ]
        wanted = part.skip, v.node_byte[part.order], v.node_depth[part.order], own
        for shift, mask, values in zip((0, 32, 40, 62), (2**32 - 1, 255, 2**22 - 1, 1), wanted, strict=True):
            np.testing.assert_array_equal(part.packed >> shift & mask, values)


def test_a_memo_that_overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    make, made, found = costs.Memo.make, [], []
    for walks in (1 << 14, 4):

        def keep(nodes: int, walks: int = walks) -> costs.Memo:
            made.append(make(nodes, walks))
            return made[-1]

        monkeypatch.setattr(close.Memo, "make", keep)
        found.append(compile_schema(SCHEMA).bundle.tables)
    assert made[1].at[0] > made[0].at[0] + 50, "it was never full"
    for name in ("close_bound", "close_token", "close_after", "chain_after", "owed"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name), name)
