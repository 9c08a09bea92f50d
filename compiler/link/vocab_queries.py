"""Find the tokens that linking asks for: those behind what opens a part, that begin a stub, that leave frames.

Leaves out   the tries of the lift (../lift/vocab_tries.py).
Invariants   made once per Vocab object and kept on it.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.format.vocab import Vocab
from toolc.runtime.jit.memory import kernel, largest_in

from .split import STUB
from .walk import Nodes

_MOST_KEPT = 256  # sets of bytes before openers: few grammars differ in them


class Words:
    """See the top.

    Attributes:
        whole: the trie.
    """

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        n = vocab.node_byte.size
        self.whole = self._nodes(np.arange(n, dtype=np.int32), np.full(n, 1 << 30, np.int32))
        self._opening: dict[bytes, Nodes] = {}
        self._opening_behind: dict[tuple[bytes, bytes], Nodes] = {}
        self._begins: dict[bytes, bool] = {}
        self._leaving: dict[bytes, int] = {}

    def begins_stub(self, openers: bytes) -> bool:
        """Whether some token could be read on from one of some bytes into a stub."""
        if openers not in self._begins:
            self._begins[openers] = self._begin(openers)
        return self._begins[openers]

    def _begin(self, openers: bytes) -> bool:
        data, offset = self.vocab.token_bytes, self.vocab.token_offset
        places = np.flatnonzero(data == STUB)
        places = places[offset[np.searchsorted(offset, places, "right") - 1] < places]  # not the first of a token
        return bool(_set(openers)[data[places - 1]].any())

    def opening(self, openers: bytes, before: bytes = bytes(range(256))) -> Nodes:
        """The trie of the tokens that go on behind one of some bytes. Where that is not the first byte of a token it
        stands behind another of some: its ``ahead`` passes over all else."""
        known = self._opening.get(openers)
        if known is None:
            known = self._opening[openers] = self._behind(_set(openers))
        narrower = self._opening_behind.get((openers, before))
        if narrower is None:
            if len(self._opening_behind) == _MOST_KEPT:
                self._opening_behind.clear()
            ahead = _ahead(known.byte, known.depth, known.skip, _set(openers), _set(before))
            narrower = self._opening_behind[openers, before] = known._replace(ahead=ahead)
        return narrower

    def most_ahead(self, openers: bytes) -> int:
        """How many bytes the longest of them has up to such a byte."""
        return int(self.opening(openers).ahead.max(initial=0))

    def _behind(self, opens: np.ndarray) -> Nodes:
        v = self.vocab
        n = v.node_byte.size
        openers = np.flatnonzero(opens[v.node_byte])
        openers = openers[v.node_skip[openers] > openers + 1]
        end = v.node_skip[openers]
        outer = np.ones(openers.size, bool)  # below no other
        outer[1:] = openers[1:] >= np.maximum.accumulate(end)[:-1]
        behind = np.zeros(n + 2, np.int32)
        behind[openers[outer] + 2], behind[end[outer] + 1] = 1, -1
        np.cumsum(np.cumsum(behind, out=behind), out=behind)  # how many nodes below an opener come before each
        order = np.flatnonzero(behind[v.node_skip] > behind[:n]).astype(np.int32)  # these, and what is above them
        return self._nodes(order, np.zeros(order.size, np.int32))

    def _nodes(self, order: np.ndarray, ahead: np.ndarray) -> Nodes:
        """The part of the trie with these nodes, and what is above each."""
        v = self.vocab
        place = np.zeros(v.node_byte.size + 1, np.int32)
        place[order + 1] = 1
        skip = np.cumsum(place, dtype=np.int32)[v.node_skip[order]]
        return Nodes(order, v.node_byte[order], v.node_depth[order], skip, v.node_token_offset, v.node_tokens, ahead)

    @staticmethod
    def of(vocab: Vocab) -> Words:
        """The one of a vocabulary."""
        return vocab.once(Words)

    def most_leaving(self, closing: np.ndarray) -> int:
        """How many of some bytes, bool [256], a token has at most."""
        key = closing.tobytes()
        known = self._leaving.get(key)
        if known is None:
            v = self.vocab
            places = np.flatnonzero(closing[v.token_bytes])
            tokens = np.searchsorted(v.token_offset, places, "right")
            known = self._leaving[key] = int(np.bincount(tokens).max(initial=0))
        return known


def _set(some: bytes) -> np.ndarray:
    """bool [256]: which bytes are among some."""
    found = np.zeros(256, bool)
    found[list(some)] = True
    return found


@kernel()
def _ahead(byte, depth, skip, opens, before):  # type: ignore[no-untyped-def]
    """int32 [nodes]: how many bytes, that of the node among them, lead to the deepest opening byte at or below each
    with which no token ends; it is the first byte of a token, or behind another of some, bool [256]."""
    deepest = np.zeros(byte.size, np.int32)
    path = np.zeros(max(np.int64(0), largest_in(depth)) + 1, np.int64)
    for node in range(byte.size):
        d = depth[node]
        path[d] = node
        if opens[byte[node]] and skip[node] > node + 1 and (d == 1 or before[byte[path[d - 1]]]):
            for k in range(1, d + 1):
                deepest[path[k]] = max(deepest[path[k]], d)
    for node in range(byte.size):
        deepest[node] = max(deepest[node] - depth[node] + 1, 0)
    return deepest
