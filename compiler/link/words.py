"""What linking asks of a vocabulary: tokens that go on behind an opening bracket, that begin a stub, that leave frames.

Leaves out   the tries of the lift (../lift/words.py).
Invariants   made once per Vocab object and kept on it.
"""

from __future__ import annotations

import numpy as np

from toolc.runtime.vocab import Vocab

from .split import OPENERS, STUB
from .walk import Nodes


class Words:
    """See the top.

    Attributes:
        begins_stub: some token could be read on from an opening bracket into a stub.
        whole: the trie.
        opening: the trie of the tokens that go on behind an opening bracket.
        most_ahead: how many bytes the longest of them has up to such a bracket.
    """

    def __init__(self, vocab: Vocab) -> None:
        v = self.vocab = vocab
        data, opens = v.token_bytes, np.zeros(256, bool)
        opens[list(OPENERS)] = True
        inside = np.ones(max(0, data.size - 1), bool)  # the next byte is of the same token
        ends = v.token_offset[(v.token_offset > 0) & (v.token_offset < data.size)]
        inside[ends - 1] = False
        self.begins_stub = bool((opens[data[:-1]] & (data[1:] == STUB) & inside).any())
        n = v.node_byte.size
        self.whole = self._nodes(np.arange(n, dtype=np.int32), np.full(n, 1 << 30, np.int32))
        openers = np.flatnonzero(opens[v.node_byte])
        change = np.zeros(n + 1, np.int32)  # how many openers the nodes from here on have above them
        np.add.at(change, openers + 1, 1)
        np.add.at(change, v.node_skip[openers], -1)
        behind = np.concatenate([[0], np.cumsum(np.cumsum(change[:-1]) > 0)])
        order = np.flatnonzero(behind[v.node_skip] > behind[:-1]).astype(np.int32)  # these, and what is above them
        self.opening = self._nodes(order, _ahead(order, v, opens))
        self.most_ahead = int(self.opening.ahead.max(initial=0))
        self._leaving: dict[bytes, int] = {}

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
        words: Words | None = vocab.__dict__.get("_link_words")
        if words is None:
            words = vocab.__dict__["_link_words"] = Words(vocab)
        return words

    def most_leaving(self, closing: np.ndarray) -> int:
        """How many of some bytes, bool [256], a token has at most."""
        key = closing.tobytes()
        known = self._leaving.get(key)
        if known is None:
            v = self.vocab
            count = np.concatenate([[0], np.cumsum(closing[v.token_bytes])])
            known = self._leaving[key] = int(np.diff(count[v.token_offset]).max(initial=0))
        return known


def _ahead(order: np.ndarray, v: Vocab, opens: np.ndarray) -> np.ndarray:
    """How many bytes, that of the node among them, lead to the deepest opening bracket at or below each of some nodes
    with which no token ends."""
    deepest = np.zeros(v.node_byte.size, np.int32)
    begins = opens[v.node_byte] & (v.node_skip > np.arange(v.node_byte.size) + 1)
    path: list[int] = []  # nodes from the first byte on
    for node in order.tolist():
        del path[int(v.node_depth[node]) - 1 :]
        path.append(node)
        if begins[node]:
            deepest[path] = np.maximum(deepest[path], v.node_depth[node])
    return np.maximum(deepest[order] - v.node_depth[order] + 1, 0).astype(np.int32)
