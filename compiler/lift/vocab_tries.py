"""Arrange a vocabulary for the kernels: the whole trie, and per slice the trie of what lies outside of it.

Leaves out   the vocab file (runtime/format/vocab.py), unit automata (slices.py).
Invariants   made once per Vocab object and kept on it; slices are cut out of the trie at first use.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np

from toolc.runtime.format.vocab import Vocab

from .children import children_of
from .collapsed_trie import Collapsed, collapse
from .inside_units import death_bytes
from .slice_simulation import new_pairs
from .slices import COPIED, DEAD, URI, unit_automata
from .token_costs import Memo
from .trie import count_before, cut
from .walk import Walkable, longest_rests, packed_places

# In the place of a slice:
PLAIN = -2  # tokens of plain bytes
NOTHING = 1 << 20  # all tokens: none lies outside
# Added to the number of a slice: further tokens that lie inside.
STRAYS_TOO = 1 << 21  # those that begin with a byte on which the unit state of the slice is dead

_ANY = np.ones(256, bool)
_MOST_COLLAPSED = 8  # tries that are kept, of up to a few MiB each


@cache
def plain_bytes() -> np.ndarray:
    """bool [256]: bytes of which most tokens consist, and on which most texts keep their form: no quote, no backslash,
    and of the controls only white space."""
    found = np.ones(256, bool)
    found[:32] = False
    found[list(b"\t\n\r")] = True
    found[list(b'"\\')] = False
    found.setflags(write=False)
    return found


class Words:
    """The tries of a vocabulary and the scratch arrays of the walks."""

    def __init__(self, vocab: Vocab) -> None:
        self.vocab = vocab
        self.units = units = unit_automata()
        self.homes = np.flatnonzero(units.boundary).astype(np.int32)
        self.copied = np.array([units.names.index(name) for name in COPIED], np.int32)
        self.poor = units.names.index(URI)  # from this one on slices are small
        n = vocab.node_byte.size
        order, own = np.arange(n, dtype=np.int32), np.ones(vocab.size, bool)
        skip = vocab.node_skip.copy()  # writable as that of a rest is: kernels are compiled once for both
        self.whole = Walkable(
            order,
            skip,
            vocab.node_byte,
            vocab.node_depth,
            vocab.node_token_offset,
            vocab.node_tokens,
            own,
            children_of(order, skip, vocab.node_byte),
            self._packed(order, skip, own),
            longest_rests(order, skip, vocab.node_byte, vocab.node_depth),
        )
        self._rest: dict[int, Walkable] = {}
        self._memos: list[Memo] = []
        self._listed: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._within: dict[int, Collapsed] = {}
        self._collapsed: dict[tuple[int, bytes], Collapsed] = {}
        depth = int(vocab.node_depth.max(initial=0)) + 2
        self.state = np.zeros((depth, 6), np.int32)
        self.frames = np.zeros((depth, 4), np.int32)
        self.pairs = new_pairs()
        offset = vocab.slice_token_offset
        self.most_units = np.array(
            [vocab.slice_units[offset[s] : offset[s + 1]].max(initial=0) for s in range(offset.size - 1)], np.int64
        )

    @cached_property
    def slice_size(self) -> np.ndarray:
        """int32 [slices]: how many tokens each has."""
        return np.diff(self.vocab.slice_token_offset)

    @cached_property
    def small(self) -> np.ndarray:
        """bool [slices + 1]: slices of less than half of the tokens that the largest has; the last answers for none."""
        return np.append(2 * self.slice_size < self.slice_size.max(), True)

    @staticmethod
    def of(vocab: Vocab) -> Words:
        """The one of a vocabulary."""
        return vocab.once(Words)

    def take_memo(self) -> Memo:
        """A memo that nobody else has; hand it back for the next close."""
        return self._memos.pop() if self._memos else Memo.make()

    def hand_back_memo(self, memo: Memo) -> None:
        """Keep a memo; what it knows means nothing to the next one who takes it."""
        if not self._memos:
            self._memos.append(memo)

    def count(self, s: int) -> np.ndarray:
        """Units of every token in slice s, -1 outside of it; int32 [V]."""
        v = self.vocab
        begin, end = v.slice_token_offset[s], v.slice_token_offset[s + 1]
        count = np.full(v.size, -1, np.int32)
        count[v.slice_tokens[begin:end]] = v.slice_units[begin:end]
        return count

    def rest(self, s: int) -> Walkable:
        """The trie of the tokens outside of slice s; the whole for -1, that of those that are not plain for PLAIN, one
        without tokens for NOTHING; see STRAYS_TOO."""
        if s == -1:
            return self.whole
        known = self._rest.get(s)
        if known is None:
            own = self._own(s)
            order, skip = self._part(own, self._alive(s) if s >= STRAYS_TOO else _ANY)
            children = children_of(order, skip, self.vocab.node_byte)
            rests = longest_rests(order, skip, self.vocab.node_byte, self.vocab.node_depth)
            packed = self._packed(order, skip, own)
            known = self._rest[s] = self.whole._replace(
                order=order, skip=skip, own=own, children=children, packed=packed, longest_rest=rests
            )
        return known

    @cached_property
    def json(self) -> np.ndarray:
        """bool [slices + 1]: slices of strings of JSON; the last answers for none."""
        return np.array([*(name.startswith("json") for name in self.units.names), False])

    @cached_property
    def own_slices(self) -> bool:
        """Whether the slices of the vocabulary are those of these unit automata."""
        return bool(self.vocab.meta["slices"] == list(self.units.names))

    @cached_property
    def _deaths(self) -> tuple[np.ndarray, np.ndarray]:
        known = ~self.units.boundary
        return self._deaths_of(known), known

    def deaths(self, slices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each unit state the bytes on which tokens die between units, see `death_bytes`, and whether these are
        known: bool [unit states], of those within units, and of those of strings among the slices int32 [·]."""
        found, known = self._deaths
        for u in np.unique(slices[self.json[slices]]).tolist():
            if not known[u]:
                known[u] = True
                found[u] = self._deaths_of(np.arange(known.size) == u)[u]
        return found, known

    def _deaths_of(self, chosen: np.ndarray) -> np.ndarray:
        v, units = self.vocab, self.units
        return death_bytes(v.node_byte, v.node_depth, v.node_skip, units.next_unit, units.boundary, chosen, self.state)

    def _own(self, s: int) -> np.ndarray:
        """bool [V]: the tokens of ``rest(s)``."""
        if s == PLAIN:
            return ~self._plain
        if s >= STRAYS_TOO:
            return self._alive(s)[self._first_byte] & self._own(s - STRAYS_TOO)
        return self.count(s) < 0 if 0 <= s < NOTHING else np.full(self.vocab.size, s < 0)

    def _alive(self, s: int) -> np.ndarray:
        """bool [256]: bytes on which the unit state of the slice lives."""
        alive: np.ndarray = self.units.next_unit[s - STRAYS_TOO] != DEAD
        return alive

    @cached_property
    def _plain(self) -> np.ndarray:
        """bool [V]: tokens of plain bytes."""
        v = self.vocab
        others = np.zeros(v.token_bytes.size + 1, np.int32)
        np.cumsum(~plain_bytes()[v.token_bytes], out=others[1:])
        begin, end = v.token_offset[:-1], v.token_offset[1:]
        plain: np.ndarray = (begin < end) & (others[begin] == others[end])
        return plain

    @cached_property
    def _first_byte(self) -> np.ndarray:
        """uint8 [V]; 0 for tokens without bytes, which no trie holds."""
        v = self.vocab
        return np.append(v.token_bytes, np.uint8(0))[v.token_offset[:-1]]

    def _packed(self, order: np.ndarray, skip: np.ndarray, own: np.ndarray) -> np.ndarray:
        """See `Walkable`."""
        v = self.vocab
        return packed_places(order, skip, v.node_byte, v.node_depth, v.node_token_offset, v.node_tokens, own)

    def listed(self, s: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How many tokens of slice s come before each node, int32 [nodes + 1]; those in preorder; their units."""
        known = self._listed.get(s)
        if known is None:
            count = self.count(s)
            inside = count[self.vocab.node_tokens] >= 0
            tokens = self.vocab.node_tokens[inside]
            known = self._listed[s] = self._before(inside), tokens, count[tokens]
        return known

    def within(self, s: int) -> Collapsed:
        """The trie of the tokens of slice s."""
        known = self._within.get(s)
        if known is None:
            v, (before, tokens, units) = self.vocab, self.listed(s)
            order, skip = self._part(~self._own(s), _ANY)
            units_offset = np.zeros(int(units.max(initial=0)) + 2, np.int32)
            np.cumsum(np.bincount(units, minlength=units_offset.size - 1), out=units_offset[1:])
            known = self._within[s] = Collapsed(
                v.node_byte[order], v.node_depth[order].astype(np.int32), skip, before[np.append(order, -1)],
                tokens, units, tokens[np.argsort(units, kind="stable")], units_offset,
            )  # fmt: skip
        return known

    def collapsed(self, s: int, byte_class: np.ndarray) -> Collapsed:
        """The same over classes of bytes, see `collapse`; the last few are kept."""
        key = s, byte_class.tobytes()
        known = self._collapsed.pop(key, None)
        if known is None:
            known = collapse(self.within(s), self.units.next_unit, s, byte_class)
            if len(self._collapsed) == _MOST_COLLAPSED:
                self._collapsed.pop(next(iter(self._collapsed)), None)
        self._collapsed[key] = known
        return known

    def _part(self, own: np.ndarray, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `cut`."""
        v = self.vocab
        return cut(own, first, v.node_token_offset, v.node_tokens, v.node_byte, v.node_depth, v.node_skip)

    def _before(self, chosen: np.ndarray) -> np.ndarray:
        """For every node how many of the chosen places of node_tokens come before it; int32 [nodes + 1]."""
        return count_before(chosen, self.vocab.node_token_offset)
